// SPDX-License-Identifier: Apache-2.0

/// Creates strings from untrusted text: from clients, apps, files, the network, names in the kernel.
///
/// Swift compares and hashes a `String` by canonical equivalence, which takes time quadratic in a run of combining
/// marks. It finds the start of a `Character` by going back over all regional indicators before it. So a message of
/// some hundred kilobytes could block a thread for minutes. These initialisers bound such runs, like Unicode's
/// Stream-Safe Text Format (https://unicode.org/reports/tr15/#Stream_Safe_Text_Format): then all later work takes
/// time linear in the length. `make check` forbids other ways of creating a string from untrusted bytes.
extension String {
    /// Decodes UTF-8: invalid bytes become U+FFFD, and runs that are too long are cut.
    @inlinable
    public init(wire bytes: some Collection<UInt8>) {
        // Inlinable, because without knowing the type of `bytes`, this takes three times as long for a short text.
        self =
            bytes.withContiguousStorageIfAvailable { WireText.decoded($0) }
            ?? Array(bytes).withUnsafeBufferPointer { WireText.decoded($0) }
    }

    /// Decodes bytes that are known to be ASCII, in which no run can be too long.
    public init(wireASCII bytes: UnsafeBufferPointer<UInt8>) { self = String(decoding: bytes, as: UTF8.self) }

    /// Decodes bytes that end with a NUL. It has another name because an array converts implicitly to a pointer.
    public init(terminatedWire characters: UnsafePointer<CChar>) {
        let text = String(cString: characters)
        self = WireText.isBounded(text) ? text : WireText.bounded(text)
    }

    /// Decodes bytes that end with a NUL.
    public init(terminatedWire bytes: UnsafePointer<UInt8>) {
        let text = String(cString: bytes)
        self = WireText.isBounded(text) ? text : WireText.bounded(text)
    }

    /// Decodes UTF-8; nil if it is invalid or has a run that is too long.
    public init?(validWire bytes: some Collection<UInt8>) {
        guard let text = String(validating: bytes, as: UTF8.self), WireText.isBounded(text) else { return nil }
        self = text
    }
}

extension Unicode.Scalar {
    /// Whether a terminal would act on the character or reorder text because of it: control characters (C0, DEL, C1),
    /// line and paragraph separators, and marks, embeddings, overrides and isolates of direction.
    public var steersTerminals: Bool {
        switch value {
        case 0..<0x20, 0x7f...0x9f, 0x61c, 0x200e, 0x200f, 0x2028...0x202e, 0x2066...0x2069: true
        default: false
        }
    }
}

extension String {
    /// The text as one line that neither controls a terminal nor reorders the text around it. Line breaks and tabs
    /// become blanks, and other such characters (`steersTerminals`) become U+FFFD. Blanks at the end are removed.
    public var onOneLine: String {
        // In UTF-8, each character that must be replaced begins with one of these bytes.
        let isPlain = utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f && $0 != 0xc2 && $0 != 0xd8 && $0 != 0xe2 }
        if isPlain { return self }
        var result = String.UnicodeScalarView()
        for scalar in unicodeScalars {
            switch scalar {
            case "\n", "\t", "\r", "\u{2028}", "\u{2029}": result.append(" ")
            default: result.append(scalar.steersTerminals ? "\u{fffd}" : scalar)
            }
        }
        while result.last == " " { result.removeLast() }
        return String(result)
    }
}

/// Text compared by its bytes, as a dictionary key for untrusted names. Two Unicode forms of a letter are different.
public struct WireText: Hashable, Sendable, CustomStringConvertible {
    /// The text.
    public let description: String

    /// Wraps text that was created with `init(wire:)`.
    public init(_ text: String) { description = text }

    /// Compares bytes.
    public static func == (one: WireText, other: WireText) -> Bool {
        one.description.utf8.elementsEqual(other.description.utf8)
    }

    /// Hashes bytes.
    public func hash(into hasher: inout Hasher) {
        var text = description
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

extension WireText {
    /// The most combining marks in a row; no language needs more.
    public static let mostMarks = 30
    /// The most regional indicators in a row: 32 flags.
    public static let mostIndicators = 64

    /// A sequence of fewer non-ASCII bytes than this contains no run that is too long, since a mark has at least two
    /// bytes.
    private static let shortRun = 2 * mostMarks

    /// Decodes UTF-8 as ``String/init(wire:)`` does.
    @usableFromInline
    static func decoded(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        let text = String(decoding: bytes, as: UTF8.self)
        return isPlain(bytes) || isBounded(text) ? text : bounded(text)
    }

    /// Whether there are too few non-ASCII bytes in a row for a run that is too long.
    private static func isPlain(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var start = 0
        // Most texts are ASCII: look at eight bytes at a time until the first that is not.
        let raw = UnsafeRawBufferPointer(bytes)
        while start + 8 <= raw.count,
            raw.loadUnaligned(fromByteOffset: start, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
        {
            start += 8
        }
        var run = 0
        for byte in bytes[start...] {
            run = byte < 0x80 ? 0 : run + 1
            if run > shortRun { return false }
        }
        return true
    }

    /// Whether all runs are short enough.
    public static func isBounded(_ text: String) -> Bool {
        var text = text
        if text.withUTF8({ isPlain($0) }) { return true }
        var runs = Runs()
        return text.unicodeScalars.allSatisfy { runs.take($0) }
    }

    static func bounded(_ text: String) -> String {
        var runs = Runs()
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars where runs.take(scalar) { result.append(scalar) }
        return String(result)
    }

    /// Counts the current run of each kind.
    private struct Runs {
        private var marks = 0
        private var indicators = 0

        /// False if the scalar makes a run too long.
        mutating func take(_ scalar: Unicode.Scalar) -> Bool {
            // No combining mark and no regional indicator has a number below U+0300.
            if scalar.value < 0x300 {
                marks = 0
                indicators = 0
                return true
            }
            let isIndicator = (0x1f1e6...0x1f1ff).contains(scalar.value)
            let isMark = !isIndicator && scalar.properties.canonicalCombiningClass != .notReordered
            marks = isMark ? marks + 1 : 0
            indicators = isIndicator ? indicators + 1 : 0
            return marks <= mostMarks && indicators <= mostIndicators
        }
    }
}
