// SPDX-License-Identifier: Apache-2.0

/// Text that comes from outside: from clients, apps, files that others write, the network, the kernel's names of things.
///
/// Swift compares and hashes a `String` by canonical equivalence, which takes time quadratic in a run of combining marks,
/// and finds the beginning of a `Character` by going back over all regional indicators before it. So a message of some
/// hundred kilobytes could hold a thread for minutes. Text that was made here has bounded runs, as Unicode's Stream-Safe
/// Text Format has them (https://unicode.org/reports/tr15/#Stream_Safe_Text_Format): all that is done with it afterwards
/// takes time linear in its length. `make check` sees to it that text from outside is made nowhere else.
extension String {
    /// UTF-8 as it came: what is none becomes U+FFFD, and what is too much of a run is left out.
    public init(wire bytes: some Collection<UInt8>) {
        let text = String(decoding: bytes, as: UTF8.self)
        self = WireText.isBounded(text) ? text : WireText.bounded(text)
    }

    /// The same of bytes that end with a NUL. It has a name of its own, since an array converts to a pointer by itself.
    public init(terminatedWire characters: UnsafePointer<CChar>) {
        let text = String(cString: characters)
        self = WireText.isBounded(text) ? text : WireText.bounded(text)
    }

    /// The same of bytes that end with a NUL.
    public init(terminatedWire bytes: UnsafePointer<UInt8>) {
        let text = String(cString: bytes)
        self = WireText.isBounded(text) ? text : WireText.bounded(text)
    }

    /// UTF-8 as it came; nil where it is none, or has a run that is too long.
    public init?(validWire bytes: some Collection<UInt8>) {
        guard let text = String(validating: bytes, as: UTF8.self), WireText.isBounded(text) else { return nil }
        self = text
    }
}

extension Unicode.Scalar {
    /// Whether a terminal would do something other than show it, or show what follows in another order: controls (C0, DEL,
    /// C1), separators of lines and paragraphs, and what marks, embeds, overrides or isolates a direction.
    public var steersTerminals: Bool {
        switch value {
        case 0..<0x20, 0x7f...0x9f, 0x61c, 0x200e, 0x200f, 0x2028...0x202e, 0x2066...0x2069: true
        default: false
        }
    }
}

/// Text that is told apart by its bytes: a key for what others name. Two spellings of the same letter are two.
public struct WireText: Hashable, Sendable, CustomStringConvertible {
    /// The text.
    public let description: String

    /// From text that was made from the wire.
    public init(_ text: String) { description = text }

    /// By bytes.
    public static func == (one: WireText, other: WireText) -> Bool {
        one.description.utf8.elementsEqual(other.description.utf8)
    }

    /// By bytes.
    public func hash(into hasher: inout Hasher) {
        var text = description
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

extension WireText {
    /// Combining marks that follow each other; no writing of any language has more.
    public static let mostMarks = 30
    /// Regional indicators that follow each other: 32 flags.
    public static let mostIndicators = 64

    /// Fewer bytes beyond ASCII in a row than the shortest run that is too long: a mark has two bytes or more.
    private static let shortRun = 2 * mostMarks

    /// Whether no run in it is too long.
    public static func isBounded(_ text: String) -> Bool {
        var text = text
        let isPlain = text.withUTF8 { bytes in
            var run = 0
            for byte in bytes {
                run = byte < 0x80 ? 0 : run + 1
                if run > shortRun { return false }
            }
            return true
        }
        if isPlain { return true }
        var runs = Runs()
        return text.unicodeScalars.allSatisfy { runs.take($0) }
    }

    static func bounded(_ text: String) -> String {
        var runs = Runs()
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars where runs.take(scalar) { result.append(scalar) }
        return String(result)
    }

    /// How many of a kind came last.
    private struct Runs {
        private var marks = 0
        private var indicators = 0

        /// False for one too many.
        mutating func take(_ scalar: Unicode.Scalar) -> Bool {
            // The first mark is U+0300.
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
