// SPDX-License-Identifier: Apache-2.0

/// An entry of systemd's journal in its native protocol (https://systemd.io/JOURNAL_NATIVE_PROTOCOL): one datagram. A
/// field is `NAME=value` and a newline or, if the value contains newlines: the name, a newline, the value's size in
/// 64 bits (little-endian), the value and a newline.
public struct JournalEntry {
    /// The encoded entry.
    public private(set) var bytes: [UInt8] = []

    /// Creates an entry with a message and a priority of syslog(3): 7 is debug, 6 info, 3 error.
    public init(message: String, priority: Int) {
        bytes.reserveCapacity(512)
        add("MESSAGE", message)
        add("PRIORITY", "\(priority)")
    }

    /// Adds a field. If the journal would refuse the field's name, the field is skipped and the entry remains valid.
    public mutating func add(_ name: String, _ value: String) {
        guard Self.isName(name) else { return }
        bytes += name.utf8
        if value.utf8.contains(UInt8(ascii: "\n")) {
            bytes.append(UInt8(ascii: "\n"))
            let size = UInt64(value.utf8.count)
            for shift in stride(from: 0, to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: size >> shift)) }
        } else {
            bytes.append(UInt8(ascii: "="))
        }
        bytes += value.utf8
        bytes.append(UInt8(ascii: "\n"))
    }

    /// Whether the journal accepts this field name from a program: capitals, digits and underscores, starting with a
    /// capital, at most 64.
    static func isName(_ name: String) -> Bool {
        guard let first = name.utf8.first, name.utf8.count <= 64 else { return false }
        let capitals = UInt8(ascii: "A")...UInt8(ascii: "Z")
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        return capitals.contains(first)
            && name.utf8.allSatisfy { capitals.contains($0) || digits.contains($0) || $0 == UInt8(ascii: "_") }
    }
}
