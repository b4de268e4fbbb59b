// SPDX-License-Identifier: Apache-2.0

/// Bytes as text in JSON: Base64 with padding (RFC 4648, section 4).
public enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let padding = UInt8(ascii: "=")
    /// The value of each character; 64 for an invalid one.
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 64, count: 256)
        for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
        return values
    }()

    /// Encodes bytes; the text is a third longer.
    public static func encode(_ bytes: [UInt8]) -> String {
        let count = (bytes.count + 2) / 3 * 4
        return String(unsafeUninitializedCapacity: count) { text in
            var place = 0
            var start = 0
            while start < bytes.count {
                let rest = bytes.count - start
                let first = bytes[start]
                let second = rest > 1 ? bytes[start + 1] : 0
                let third = rest > 2 ? bytes[start + 2] : 0
                text[place] = alphabet[Int(first >> 2)]
                text[place + 1] = alphabet[Int((first & 3) << 4 | second >> 4)]
                text[place + 2] = rest > 1 ? alphabet[Int((second & 15) << 2 | third >> 6)] : padding
                text[place + 3] = rest > 2 ? alphabet[Int(third & 63)] : padding
                place += 4
                start += 3
            }
            return count
        }
    }

    /// Decodes a text; nil unless it is what ``encode(_:)`` produces: without line breaks or other characters, with
    /// padding, and with all unused bits zero.
    public static func decode(_ text: String) -> [UInt8]? {
        var text = text
        return text.withUTF8 { characters -> [UInt8]? in
            guard characters.count % 4 == 0 else { return nil }
            let padded = characters.suffix(2).reversed().prefix { $0 == padding }.count
            let values = values
            var isValid = true
            let bytes = [UInt8](unsafeUninitializedCapacity: characters.count / 4 * 3) { bytes, count in
                for start in stride(from: 0, to: characters.count, by: 4) {
                    let missing = start + 4 == characters.count ? padded : 0
                    var group: UInt32 = 0
                    for offset in 0..<4 {
                        let value = offset < 4 - missing ? values[Int(characters[start + offset])] : 0
                        if value == 64 { isValid = false }
                        group = group << 6 | UInt32(value & 63)
                    }
                    if missing > 0, group & (missing == 1 ? 0xff : 0xffff) != 0 { isValid = false }
                    for offset in 0..<(3 - missing) {
                        bytes[count] = UInt8(truncatingIfNeeded: group >> (16 - 8 * UInt32(offset)))
                        count += 1
                    }
                    guard isValid else { return }
                }
            }
            return isValid ? bytes : nil
        }
    }
}
