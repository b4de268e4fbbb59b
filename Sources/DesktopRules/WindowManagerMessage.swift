// SPDX-License-Identifier: Apache-2.0

/// Messages of the IPC of i3 and Sway (https://i3wm.org/docs/ipc.html): `i3-ipc`, the length and the type as 32-bit
/// integers of the machine's byte order, then JSON.
public enum WindowManagerMessage {
    /// The types of the messages that torpor-desktop sends or reads.
    public enum Kind: UInt32, Sendable {
        /// A request to run a command, and its reply.
        case command = 0
        /// A request to subscribe to events, and its reply.
        case subscribe = 2
        /// A request for the tree of windows, and its reply.
        case tree = 4
        /// An event: a workspace has changed.
        case workspace = 0x8000_0000
        /// An event: a window has changed.
        case window = 0x8000_0003
    }

    private static let magic = Array("i3-ipc".utf8)
    private static let headSize = 14

    /// Encodes a message.
    public static func bytes(_ kind: Kind, _ payload: String = "") -> [UInt8] {
        var bytes = magic
        for number in [UInt32(payload.utf8.count), kind.rawValue] {
            withUnsafeBytes(of: number) { bytes += $0 }
        }
        return bytes + payload.utf8
    }

    /// Splits received bytes into messages.
    public struct Framer: Sendable {
        /// The error for bytes that are no message, or for a message that is too long.
        public struct Invalid: Error, Hashable, Sendable, CustomStringConvertible {
            /// The end of a sentence whose subject is the socket's path.
            public let description: String
        }

        /// The longest payload in bytes: enough for a tree of thousands of windows.
        public static let longest = 16 << 20
        private var buffer: [UInt8] = []
        /// The index in the buffer at which the next message begins.
        private var start = 0

        /// Creates a framer that has received nothing.
        public init() {}

        /// Adds received bytes.
        public mutating func append(_ bytes: some Collection<UInt8>) {
            buffer.removeFirst(start)
            start = 0
            buffer += bytes
        }

        /// The next complete message; nil if there is none yet. `kind` is nil if the message's type is not listed in
        /// ``Kind``.
        public mutating func next() throws(Invalid) -> (kind: Kind?, payload: [UInt8])? {
            let count = buffer.count - start
            let known = min(count, magic.count)
            guard buffer[start..<start + known].elementsEqual(magic[..<known]) else {
                throw Invalid(description: "does not speak the i3 protocol")
            }
            guard count >= headSize else { return nil }
            let (length, kind) = (number(at: start + 6), number(at: start + 10))
            guard length <= Self.longest else { throw Invalid(description: "sent a message of \(length) bytes") }
            guard count >= headSize + Int(length) else { return nil }
            let payload = Array(buffer[start + headSize..<start + headSize + Int(length)])
            start += headSize + Int(length)
            return (Kind(rawValue: kind), payload)
        }

        private func number(at place: Int) -> UInt32 {
            buffer.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: place, as: UInt32.self) }
        }
    }
}
