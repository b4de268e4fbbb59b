/// Bytes as text, as RFC 4648 has it, with padding.
public enum Base64 {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// The text of some bytes.
    public static func encode(_ bytes: [UInt8]) -> String {
        let length = (bytes.count + 2) / 3 * 4
        return String(unsafeUninitializedCapacity: length) { text in
            var at = 0
            var index = 0
            while index < bytes.count {
                let left = bytes.count - index
                let group =
                    UInt32(bytes[index]) << 16 | (left > 1 ? UInt32(bytes[index + 1]) << 8 : 0)
                    | (left > 2 ? UInt32(bytes[index + 2]) : 0)
                for place in 0..<4 {
                    let isPadding = place > left
                    text[at] = isPadding ? UInt8(ascii: "=") : digits[Int(group >> (18 - 6 * UInt32(place)) & 63)]
                    at += 1
                }
                index += 3
            }
            return length
        }
    }
}
