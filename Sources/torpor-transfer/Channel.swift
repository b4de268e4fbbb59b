// SPDX-License-Identifier: Apache-2.0

import Linux
import TransferProtocol
import Varlink
import WireText

/// The socket to torpord. A lost message is no harm: all but progress is repeated after the next `hello`.
final class Channel {
    /// The longest command in bytes: a URL, 16 KiB of header fields, and JSON's overhead.
    private static let longestCommand = 1 << 20

    let raw: Int32
    private var framer = MessageFramer(limit: Channel.longestCommand)
    private var waiting: [UInt8] = []

    init(_ raw: Int32) { self.raw = raw }

    /// Whether unsent bytes wait for room in the socket.
    var wantsToWrite: Bool { !waiting.isEmpty }

    /// Reads commands; nil once the other end is closed.
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

    /// Nil for an invalid message, which is no reason to exit: a torpord that died may have sent only half of one.
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

    /// Queues a report and sends as much as the socket takes.
    func say(_ report: TransferReport) {
        // Drop progress while the socket is full: a later report replaces it.
        if case .progress = report, wantsToWrite { return }
        waiting += report.json.serialised() + [0]
        flush()
    }

    func flush() {
        while !waiting.isEmpty {
            let sent = waiting.withUnsafeBytes { bytes in (try? Sockets.send(raw, bytes)) ?? nil }
            guard let sent, sent > 0 else { return }
            waiting.removeFirst(sent)
        }
    }
}
