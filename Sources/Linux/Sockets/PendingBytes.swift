// SPDX-License-Identifier: Apache-2.0

/// Bytes that wait until a socket has room for them.
public struct PendingBytes: Sendable {
    private var bytes: [UInt8] = []
    /// How many of `bytes` were sent already.
    private var sent = 0

    /// Creates an empty buffer.
    public init() {}

    /// The number of bytes that wait.
    public var count: Int { bytes.count - sent }

    /// Whether no bytes wait.
    public var isEmpty: Bool { sent == bytes.count }

    /// The number of bytes in memory.
    public var held: Int { bytes.count }

    /// Appends bytes. A reader that never takes the last byte must not make the buffer keep what was sent, so that is
    /// removed once it is the larger part.
    public mutating func append(_ more: [UInt8]) {
        if sent > bytes.count / 2 {
            bytes.removeFirst(sent)
            sent = 0
        }
        bytes += more
    }

    /// The first bytes that wait, at most so many.
    public func first(_ most: Int) -> ArraySlice<UInt8> { bytes[sent..<sent + min(most, count)] }

    /// Removes the first bytes, which were sent.
    public mutating func drop(_ number: Int) {
        sent += number
        guard isEmpty else { return }
        bytes = []
        sent = 0
    }
}
