// SPDX-License-Identifier: Apache-2.0

import WireText

/// An authentication challenge of a server (RFC 9110, 11.6.1).
public struct Challenge: Hashable, Sendable {
    /// The scheme in lower case, such as `basic`, `digest` or `bearer`.
    public var scheme: String
    /// The protected realm, at most 256 bytes.
    public var realm: String?

    /// Creates a challenge.
    public init(scheme: String, realm: String? = nil) {
        self.scheme = scheme
        self.realm = realm
    }

    /// Parses a whole field, at most 16 challenges. Commas separate both schemes and parameters: a word before `=` is
    /// a parameter.
    static func all(in text: String) -> [Challenge] {
        var found: [Challenge] = []
        var rest = Substring(text).utf8
        while !rest.isEmpty, found.count < 16 {
            rest = rest.drop { $0 == 0x20 || $0 == 0x09 || $0 == UInt8(ascii: ",") }
            let word = rest.prefix(while: Bytes.isOfToken)
            guard !word.isEmpty else {
                // Invalid: skip to the next comma.
                rest = rest.drop { $0 != UInt8(ascii: ",") }
                continue
            }
            rest = rest[word.endIndex...]
            let after = rest.drop { $0 == 0x20 || $0 == 0x09 }
            guard after.first == UInt8(ascii: "=") else {
                if word.count <= 64 { found.append(Challenge(scheme: Bytes.lowercased(Substring(word)))) }
                continue
            }
            rest = after.dropFirst().drop { $0 == 0x20 || $0 == 0x09 }
            let value = takeValue(&rest)
            guard Bytes.lowercased(Substring(word)) == "realm", let last = found.indices.last, found[last].realm == nil
            else { continue }
            found[last].realm = String(wire: value.prefix(256))
        }
        return found
    }

    private static func takeValue(_ rest: inout Substring.UTF8View) -> [UInt8] {
        var value: [UInt8] = []
        guard rest.first == UInt8(ascii: "\"") else {
            while let byte = rest.first, byte != UInt8(ascii: ","), byte != 0x20, byte != 0x09 {
                value.append(byte)
                rest.removeFirst()
            }
            return value
        }
        rest.removeFirst()
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\"") { break }
            if byte == UInt8(ascii: "\\") {
                if let next = rest.popFirst() { value.append(next) }
            } else {
                value.append(byte)
            }
        }
        return value
    }
}
