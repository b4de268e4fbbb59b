// SPDX-License-Identifier: Apache-2.0

/// The last line that a policy's process wrote to standard error: it often says why the process ended.
public struct LastLine: Sendable {
    /// The maximum length of the line that is stored, in bytes.
    public static let limit = 512
    private var tail: [UInt8] = []

    /// Creates an empty line.
    public init() {}

    /// Adds output; only the end of it is stored.
    public mutating func take(_ bytes: UnsafeRawBufferPointer) {
        tail.append(contentsOf: bytes.suffix(2 * Self.limit))
        if tail.count > 2 * Self.limit { tail.removeFirst(tail.count - 2 * Self.limit) }
    }

    /// The line, made safe for logs; empty if nothing was written.
    public var text: String {
        let lines = tail.split { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
        guard let line = lines.last(where: { !$0.allSatisfy { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") } })
        else { return "" }
        let kept = line.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }.suffix(Self.limit)
        return Array(kept).withUnsafeBytes { PolicyText.clean($0, limit: Self.limit) }
    }
}
