// SPDX-License-Identifier: Apache-2.0

public import Linux

/// A helper's side of its socket to torpord: JSON in both directions, each message with a NUL at its end. Never waits.
public final class MessageChannel {
    /// The socket.
    public let raw: Int32
    private var framer: MessageFramer
    private var waiting: [UInt8] = []
    private let complain: (String) -> Void

    /// - Parameters:
    ///   - limit: the longest message in bytes.
    ///   - complain: gets a sentence about each message that is ignored.
    public init(_ raw: Int32, limit: Int, complain: @escaping (String) -> Void) {
        self.raw = raw
        framer = MessageFramer(limit: limit)
        self.complain = complain
    }

    /// Whether unsent bytes wait for room in the socket.
    public var wantsToWrite: Bool { !waiting.isEmpty }
    /// How many bytes wait.
    public var waitingBytes: Int { waiting.count }

    /// Reads messages; nil once the other end is closed, or after a message that is too long. Invalid messages are
    /// ignored: a torpord that died may have sent only half of one.
    public func read<Message>(
        _ decode: (JSON) throws(FieldError) -> Message
    ) throws(Errno) -> [Message]? {
        var messages: [Message] = []
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 8)
        defer { buffer.deallocate() }
        for _ in 0..<16 {
            guard let count = try Sockets.receive(raw, into: buffer) else { break }
            if count == 0 { return nil }
            framer.append(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            while true {
                let bytes: ArraySlice<UInt8>?
                do throws(MessageFramer.TooLong) {
                    bytes = try framer.next()
                } catch {
                    complain("\(error): ending")
                    return nil
                }
                guard let bytes else { break }
                if bytes.isEmpty { continue }
                if let message = self.message(bytes, decode) { messages.append(message) }
            }
        }
        return messages
    }

    private func message<Message>(
        _ bytes: ArraySlice<UInt8>,
        _ decode: (JSON) throws(FieldError) -> Message
    ) -> Message? {
        guard let json = try? JSON.parse(bytes) else {
            complain("ignoring a message that is not JSON")
            return nil
        }
        do throws(FieldError) {
            return try decode(json)
        } catch {
            complain("ignoring a command: \(error.field) \(error.problem)")
            return nil
        }
    }

    /// Queues a message and sends as much as the socket takes.
    public func say(_ message: JSON) {
        waiting += message.serialised() + [0]
        flush()
    }

    /// Sends as much as the socket takes.
    public func flush() {
        var sent = 0
        while sent < waiting.count {
            let count = waiting.withUnsafeBytes { bytes in
                (try? Sockets.send(raw, UnsafeRawBufferPointer(rebasing: bytes[sent...]))) ?? nil
            }
            guard let count, count > 0 else { break }
            sent += count
        }
        waiting.removeFirst(sent)
    }
}
