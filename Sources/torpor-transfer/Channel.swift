// SPDX-License-Identifier: Apache-2.0

import Linux
import TransferProtocol
import Varlink
import WireText

/// The socket to torpord. Nothing is lost when nobody reads: all but progress is said again after the next `hello`.
final class Channel {
    /// The longest command in bytes: a URL, 16 KiB of header fields, and what JSON makes of them.
    private static let longestCommand = 1 << 20

    let raw: Int32
    private var framer = MessageFramer(limit: Channel.longestCommand)
    private var waiting: [UInt8] = []

    init(_ raw: Int32) { self.raw = raw }

    /// Whether something waits for room in the socket.
    var wantsToWrite: Bool { !waiting.isEmpty }

    /// What torpord said; nil once nobody will ever say anything more.
    func read() throws(Errno) -> [TransferCommand]? {
        var commands: [TransferCommand] = []
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 8)
        defer { buffer.deallocate() }
        for _ in 0..<16 {
            guard let count = try Sockets.receive(raw, into: buffer) else { break }
            if count == 0 { return nil }
            framer.append(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            while true {
                let message: ArraySlice<UInt8>?
                do throws(MessageFramer.TooLong) {
                    message = try framer.next()
                } catch {
                    ThisProcess.complain("torpor-transfer: \(error): ending")
                    return nil
                }
                guard let message else { break }
                if message.isEmpty { continue }
                if let command = Self.command(message) { commands.append(command) }
            }
        }
        return commands
    }

    /// Half a message of a torpord that died, with what its follower said, is none: that is no reason to end.
    private static func command(_ bytes: ArraySlice<UInt8>) -> TransferCommand? {
        guard let json = try? JSON.parse(bytes) else {
            ThisProcess.complain("torpor-transfer: ignoring a message that is not JSON")
            return nil
        }
        do throws(FieldError) {
            return try TransferCommand(json: json)
        } catch {
            ThisProcess.complain("torpor-transfer: ignoring a command: \(error.field) \(error.problem)")
            return nil
        }
    }

    /// Says something, at once or when there is room.
    func say(_ report: TransferReport) {
        // Nobody misses an old number, and nobody reads when torpord is away.
        if case .progress = report, wantsToWrite { return }
        waiting += report.json.serialised() + [0]
        flush()
    }

    /// Sends what the socket takes.
    func flush() {
        while !waiting.isEmpty {
            let sent = waiting.withUnsafeBytes { bytes in (try? Sockets.send(raw, bytes)) ?? nil }
            guard let sent, sent > 0 else { return }
            waiting.removeFirst(sent)
        }
    }
}
