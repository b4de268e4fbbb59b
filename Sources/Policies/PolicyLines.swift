// SPDX-License-Identifier: Apache-2.0

/// Splits what a policy's process writes to standard error into lines that are safe for logs.
public struct PolicyLines: Sendable {
    /// The maximum length of a line, in bytes; the rest of a longer line is dropped.
    public static let limit = 512
    /// The line that has not ended.
    private var rest: [UInt8] = []
    /// The last line that is not blank; empty if there is none. It often says why the process ended.
    public private(set) var last = ""

    /// Creates a splitter without output.
    public init() {}

    /// Adds output, and returns the lines that it ends, without blank ones.
    public mutating func take(_ bytes: UnsafeRawBufferPointer) -> [String] {
        var lines: [String] = []
        for byte in bytes {
            if byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") {
                if let line = finish() { lines.append(line) }
            } else if rest.count < Self.limit, !rest.isEmpty || !Self.isBlank(byte) {
                rest.append(byte)
            }
        }
        return lines
    }

    /// Ends the line that has not ended, and returns it; nil if it is blank.
    public mutating func finish() -> String? {
        guard !rest.isEmpty else { return nil }
        last = rest.withUnsafeBytes { PolicyText.clean($0, limit: Self.limit) }
        rest.removeAll(keepingCapacity: true)
        return last
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
}
