// SPDX-License-Identifier: Apache-2.0

import WireText

/// The path of a file inside a bundle: relative, valid UTF-8, without `.` and `..`.
public struct BundlePath: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The path's bytes, as in the manifest and on the disk.
    public let bytes: [UInt8]

    /// The path of the bundle's manifest.
    public static let manifest = BundlePath(trusted: "manifest.toml")
    /// The path of the manifest's signature.
    public static let signature = BundlePath(trusted: "manifest.toml.minisig")

    private init(trusted text: String) { bytes = Array(text.utf8) }

    /// Checks a path from an archive, a manifest or a folder. Throws if a bundle may not have such a path.
    public init(_ bytes: some Sequence<UInt8>) throws(BundleFault) {
        let bytes = Array(bytes)
        let shown = Self.shown(bytes)
        guard !bytes.isEmpty else { throw BundleFault("a file has an empty name") }
        guard bytes.count <= BundleLimit.path else {
            throw BundleFault("\(shown) is longer than \(BundleLimit.path) bytes")
        }
        guard bytes[0] != Self.slash else { throw BundleFault("\(shown) is an absolute path") }
        guard Self.isPlain(bytes) else {
            throw BundleFault("\(shown) has a control character, or is not UTF-8")
        }
        for name in bytes.split(separator: Self.slash, omittingEmptySubsequences: false) {
            guard !name.isEmpty else { throw BundleFault("\(shown) has an empty part") }
            guard !name.elementsEqual(".".utf8), !name.elementsEqual("..".utf8) else {
                throw BundleFault("\(shown) has . or .. in it")
            }
            guard name.count <= BundleLimit.name else {
                throw BundleFault("\(shown) has a name longer than \(BundleLimit.name) bytes")
            }
        }
        guard bytes.count(where: { $0 == Self.slash }) < BundleLimit.depth else {
            throw BundleFault("\(shown) is more than \(BundleLimit.depth) folders deep")
        }
        self.bytes = bytes
    }

    static let slash = UInt8(ascii: "/")

    /// The names on the path, split at `/`; the last is the file's own.
    public var names: [[UInt8]] { bytes.split(separator: Self.slash).map(Array.init) }

    /// The paths of all folders that contain the file, the outermost first.
    var folders: [[UInt8]] {
        bytes.indices.filter { bytes[$0] == Self.slash }.map { Array(bytes[..<$0]) }
    }

    /// The path for messages.
    public var description: String { Self.shown(bytes) }

    /// Compares two paths by their bytes.
    public static func < (one: BundlePath, other: BundlePath) -> Bool {
        one.bytes.lexicographicallyPrecedes(other.bytes)
    }

    /// The path in lower case. Two paths with equal results are one file on a filesystem that ignores case.
    static func folded(_ bytes: [UInt8]) -> [UInt8] { Array(String(wire: bytes).lowercased().utf8) }

    /// Whether the bytes are valid UTF-8 without control characters.
    static func isPlain(_ bytes: [UInt8]) -> Bool {
        guard let text = String(validWire: bytes) else { return false }
        return !text.unicodeScalars.contains { $0.steersTerminals }
    }

    /// Returns a path for messages: control characters are replaced by `?`, and a long path is cut.
    public static func shown(_ bytes: some Sequence<UInt8>) -> String {
        // C1 control characters too: some terminals interpret them.
        let scalars = String(wire: Array(bytes.prefix(200))).unicodeScalars.map { scalar in
            scalar.steersTerminals ? Unicode.Scalar("?") : scalar
        }
        let text = String(String.UnicodeScalarView(scalars))
        return text.isEmpty ? "a file without a name" : text
    }
}

/// Rules for the name and the version of a bundle.
public enum BundleWord {
    /// Checks a bundle's name: it becomes a folder's name, and an app may have the same name.
    public static func checkName(_ text: String) throws(BundleFault) {
        let bytes = Array(text.utf8)
        guard let first = bytes.first, bytes.count <= BundleLimit.word, isLetter(first) || isDigit(first),
            bytes.allSatisfy({ isLetter($0) || isDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") })
        else {
            throw BundleFault(
                "the name of a bundle has up to \(BundleLimit.word) letters, digits, - and _, and begins with a letter "
                    + "or a digit"
            )
        }
    }

    /// The prefix of the name of a bundle's folder while the bundle is being removed.
    public static let removedMark = ".removed-"

    /// Checks a bundle's version: it becomes a folder's name.
    public static func checkVersion(_ text: String) throws(BundleFault) {
        let bytes = Array(text.utf8)
        let others = Array(".-_+~".utf8)
        guard let first = bytes.first, bytes.count <= BundleLimit.word, isDigit(first),
            bytes.allSatisfy({ isLetter($0) || isDigit($0) || others.contains($0) })
        else {
            throw BundleFault(
                "the version of a bundle begins with a digit and has up to \(BundleLimit.word) letters, digits, ., -, _, "
                    + "+ and ~"
            )
        }
    }

    /// Whether version `one` is lower than `other`, by Debian's rules for one part of a version (deb-version(7)):
    /// numbers compare by value, `~` sorts before everything, and letters sort before other characters.
    public static func isLower(_ one: String, than other: String) -> Bool {
        var (left, right) = (Array(one.utf8)[...], Array(other.utf8)[...])
        while !left.isEmpty || !right.isEmpty {
            while left.first.map({ !isDigit($0) }) ?? false || right.first.map({ !isDigit($0) }) ?? false {
                let (a, b) = (weight(left.first), weight(right.first))
                if a != b { return a < b }
                left = left.dropFirst()
                right = right.dropFirst()
            }
            let (a, b) = (number(&left), number(&right))
            if a.count != b.count { return a.count < b.count }
            if a != b { return a.lexicographicallyPrecedes(b) }
        }
        return false
    }

    private static func weight(_ byte: UInt8?) -> Int {
        guard let byte, !isDigit(byte) else { return 0 }
        if byte == UInt8(ascii: "~") { return -1 }
        return isLetter(byte) ? Int(byte) : Int(byte) + 256
    }

    /// Removes the digits at the start of `text` and returns them without leading zeros.
    private static func number(_ text: inout ArraySlice<UInt8>) -> [UInt8] {
        let digits = text.prefix(while: isDigit)
        text = text.dropFirst(digits.count)
        return Array(digits.drop { $0 == UInt8(ascii: "0") })
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }
}
