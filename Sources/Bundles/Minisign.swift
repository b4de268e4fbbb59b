// SPDX-License-Identifier: Apache-2.0

import WireText

/// A signature of minisign, in its prehashed form (https://jedisct1.github.io/minisign/).
public struct MinisignSignature: Hashable, Sendable {
    /// The id of the key that made the signature.
    public let key: [UInt8]
    /// The signature over BLAKE2b-512 of the file.
    public let signature: [UInt8]
    /// A comment that the second signature protects from changes.
    public let trustedComment: [UInt8]
    /// The signature over the first signature and the trusted comment.
    public let second: [UInt8]

    /// The trusted comment as text.
    public var comment: String { String(wire: trustedComment) }

    /// Creates a signature from its parts.
    public init(key: [UInt8], signature: [UInt8], trustedComment: [UInt8], second: [UInt8]) {
        (self.key, self.signature, self.trustedComment, self.second) = (key, signature, trustedComment, second)
    }

    /// Parses a `.minisig` file.
    public init(text: [UInt8]) throws(BundleFault) {
        guard text.count <= BundleLimit.signature else { throw BundleFault("its signature is too long") }
        let lines = Minisign.lines(text)
        guard lines.count == 4, lines[0].starts(with: Minisign.untrusted), lines[2].starts(with: Minisign.trusted),
            let first = Base64.bytes(lines[1]), first.count == 74, let second = Base64.bytes(lines[3]),
            second.count == 64
        else { throw BundleFault("its signature is not one of minisign") }
        guard first[..<2].elementsEqual("ED".utf8) else {
            throw BundleFault("its signature is not prehashed: sign it with minisign -H, or with torpor bundle sign")
        }
        let comment = Array(lines[2].dropFirst(Minisign.trusted.count))
        guard !comment.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw BundleFault("its signature has a control character in its comment")
        }
        self.init(
            key: Array(first[2..<10]),
            signature: Array(first[10...]),
            trustedComment: comment,
            second: second
        )
    }

    /// The signature as a `.minisig` file.
    public var text: [UInt8] {
        var text = Minisign.untrusted + Array("signature of a torpor bundle\n".utf8)
        text += Base64.text(Array("ED".utf8) + key + signature) + [Minisign.newline]
        text += Minisign.trusted + trustedComment + [Minisign.newline]
        return text + Base64.text(second) + [Minisign.newline]
    }
}

/// A public key of minisign.
public struct MinisignKey: Hashable, Sendable {
    /// The key's id, by which signatures refer to the key.
    public let id: [UInt8]
    /// The Ed25519 public key (32 bytes).
    public let key: [UInt8]

    /// Creates a public key from its parts.
    public init(id: [UInt8], key: [UInt8]) { (self.id, self.key) = (id, key) }

    /// Parses a `.pub` file: a comment and the key, or only the key.
    public init(text: [UInt8]) throws(BundleFault) {
        guard text.count <= BundleLimit.signature, let line = Minisign.lines(text).last,
            let bytes = Base64.bytes(line), bytes.count == 42, bytes[..<2].elementsEqual("Ed".utf8)
        else { throw BundleFault("this is not a public key of minisign") }
        self.init(id: Array(bytes[2..<10]), key: Array(bytes[10...]))
    }

    /// The key as a `.pub` file.
    public var text: [UInt8] {
        Minisign.untrusted + Array("minisign public key \(name)\n".utf8) + Base64.text(Array("Ed".utf8) + id + key)
            + [Minisign.newline]
    }

    /// The key's id as minisign prints it.
    public var name: String { Self.name(id) }

    /// A key's id as minisign prints it: 16 upper-case hexadecimal digits, the last byte first.
    public static func name(_ id: [UInt8]) -> String { String(wire: Hex.text(id.reversed())).uppercased() }
}

/// The content of a file with a secret key of minisign, possibly encrypted.
public struct MinisignSecret: Sendable {
    /// Whether a password protects the key.
    public let isEncrypted: Bool
    /// scrypt's salt.
    public let salt: [UInt8]
    /// How many operations scrypt may use to derive the encryption from the password.
    public let operations: UInt64
    /// How many bytes of memory scrypt may use to derive the encryption from the password.
    public let memory: UInt64
    /// The key's id, the Ed25519 secret key and a checksum: 104 bytes, XORed with scrypt's output if the key is
    /// encrypted.
    public let sealed: [UInt8]

    /// Parses the file of a secret key.
    public init(text: [UInt8]) throws(BundleFault) {
        guard text.count <= BundleLimit.signature, let line = Minisign.lines(text).last,
            let bytes = Base64.bytes(line), bytes.count == 158, bytes[..<2].elementsEqual("Ed".utf8),
            bytes[4..<6].elementsEqual("B2".utf8)
        else { throw BundleFault("this is not a secret key of minisign") }
        switch (bytes[2], bytes[3]) {
        case (0, 0): isEncrypted = false
        case (UInt8(ascii: "S"), UInt8(ascii: "c")): isEncrypted = true
        default: throw BundleFault("this secret key is encrypted in a way that torpor does not know")
        }
        func number(_ range: Range<Int>) -> UInt64 { bytes[range].reversed().reduce(0) { $0 << 8 | UInt64($1) } }
        salt = Array(bytes[6..<38])
        operations = number(38..<46)
        memory = number(46..<54)
        sealed = Array(bytes[54...])
    }

    /// Returns the file of a secret key without a password.
    public static func text(sealed: [UInt8]) -> [UInt8] {
        var bytes = Array("Ed".utf8) + [0, 0] + Array("B2".utf8)
        bytes += [UInt8](repeating: 0, count: 48) + sealed
        return Minisign.untrusted + Array("minisign secret key, not encrypted\n".utf8) + Base64.text(bytes)
            + [Minisign.newline]
    }
}

enum Minisign {
    static let untrusted = Array("untrusted comment: ".utf8)
    static let trusted = Array("trusted comment: ".utf8)
    static let newline = UInt8(ascii: "\n")

    /// Splits a file into lines, without their newlines and without a CR before a newline.
    static func lines(_ text: [UInt8]) -> [ArraySlice<UInt8>] {
        var lines = text.split(separator: newline, omittingEmptySubsequences: false)
        while lines.last?.isEmpty ?? false { lines.removeLast() }
        return lines.map { $0.last == UInt8(ascii: "\r") ? $0.dropLast() : $0 }
    }
}

/// Base64 with padding (RFC 4648). Only the canonical encoding is valid: unused bits must be 0.
enum Base64 {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func text(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let part = Array(bytes[start..<min(start + 3, bytes.count)])
            let value = (0..<3).reduce(UInt32(0)) { $0 << 8 | UInt32($1 < part.count ? part[$1] : 0) }
            for index in 0..<4 {
                text.append(
                    index <= part.count ? digits[Int(value >> UInt32(18 - 6 * index) & 63)] : UInt8(ascii: "=")
                )
            }
        }
        return text
    }

    static func bytes(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        guard text.count.isMultiple(of: 4), text.count <= BundleLimit.signature else { return nil }
        let padding = text.suffix(2).count { $0 == UInt8(ascii: "=") }
        var (bytes, value, bits) = ([UInt8](), UInt32(0), 0)
        for byte in text.dropLast(padding) {
            guard let digit = digits.firstIndex(of: byte) else { return nil }
            value = (value << 6 | UInt32(digit)) & 0xFFFF
            bits += 6
            guard bits >= 8 else { continue }
            bits -= 8
            bytes.append(UInt8(truncatingIfNeeded: value >> UInt32(bits)))
        }
        return value & (1 << UInt32(bits) - 1) == 0 ? bytes : nil
    }
}
