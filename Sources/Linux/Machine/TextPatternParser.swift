// SPDX-License-Identifier: Apache-2.0

/// A node of the syntax tree of a regular expression.
indirect enum TextPatternPart {
    /// One byte that is in this set.
    case take(ByteSet)
    case atStart
    case atEnd
    case sequence([TextPatternPart])
    case choice([TextPatternPart])
    /// A part that is repeated, with the minimum and the maximum number of repetitions. The maximum is nil if there is
    /// no limit.
    case repeated(TextPatternPart, Int, Int?)

    /// The length of the longest text that can match, in bytes; nil if there is no limit. Call this only for a part
    /// whose size the compiler has accepted, because otherwise the product may overflow.
    var longest: Int? {
        switch self {
        case .take: return 1
        case .atStart, .atEnd: return 0
        case .sequence(let parts):
            var sum = 0
            for part in parts {
                guard let longest = part.longest else { return nil }
                sum += longest
            }
            return sum
        case .choice(let branches):
            var greatest = 0
            for branch in branches {
                guard let longest = branch.longest else { return nil }
                greatest = max(greatest, longest)
            }
            return greatest
        case .repeated(let part, _, let most):
            let longest = part.longest
            if longest == 0 || most == 0 { return 0 }
            guard let longest, let most else { return nil }
            return longest * most
        }
    }
}

/// A set of bytes.
struct ByteSet: Sendable {
    private var words = SIMD4<UInt64>(repeating: 0)

    init(_ ranges: ClosedRange<UInt8>...) { for range in ranges { insert(range) } }

    mutating func insert(_ range: ClosedRange<UInt8>) {
        for byte in range { words[Int(byte >> 6)] |= 1 << UInt64(byte & 63) }
    }

    mutating func insert(_ other: ByteSet) { words |= other.words }

    func contains(_ byte: UInt8) -> Bool { words[Int(byte >> 6)] & (1 << UInt64(byte & 63)) != 0 }

    /// All bytes that are not in the set, except 0, because texts contain no byte 0.
    var others: ByteSet {
        var result = ByteSet()
        result.words = ~words
        result.words[0] &= ~1
        return result
    }
}

/// Parses extended regular expressions as regcomp(3) does in the C locale.
struct TextPatternParser {
    /// The pattern is invalid, or uses an unsupported feature.
    struct Invalid: Error {}

    /// How deep groups may be nested. The limit keeps the recursive parser from overflowing the stack.
    private static let deepest = 32
    /// The character classes, such as `[:alpha:]`.
    private static let classes: [(name: String, set: ByteSet)] = [
        ("alnum", ByteSet(0x30...0x39, 0x41...0x5a, 0x61...0x7a)), ("alpha", ByteSet(0x41...0x5a, 0x61...0x7a)),
        ("blank", ByteSet(0x09...0x09, 0x20...0x20)), ("cntrl", ByteSet(0x01...0x1f, 0x7f...0x7f)),
        ("digit", ByteSet(0x30...0x39)), ("graph", ByteSet(0x21...0x7e)), ("lower", ByteSet(0x61...0x7a)),
        ("print", ByteSet(0x20...0x7e)), ("punct", ByteSet(0x21...0x2f, 0x3a...0x40, 0x5b...0x60, 0x7b...0x7e)),
        ("space", ByteSet(0x09...0x0d, 0x20...0x20)), ("upper", ByteSet(0x41...0x5a)),
        ("xdigit", ByteSet(0x30...0x39, 0x41...0x46, 0x61...0x66)),
    ]

    private var rest: ArraySlice<UInt8>

    static func parse(_ pattern: String) throws(Invalid) -> TextPatternPart {
        var parser = TextPatternParser(rest: Array(pattern.utf8)[...])
        return try parser.choice(0)
    }

    private mutating func next() throws(Invalid) -> UInt8 {
        guard let byte = rest.popFirst() else { throw Invalid() }
        return byte
    }

    private mutating func choice(_ depth: Int) throws(Invalid) -> TextPatternPart {
        guard depth <= Self.deepest else { throw Invalid() }
        var branches = [try sequence(depth)]
        while rest.first == UInt8(ascii: "|") {
            rest.removeFirst()
            branches.append(try sequence(depth))
        }
        return branches.count == 1 ? branches[0] : .choice(branches)
    }

    private mutating func sequence(_ depth: Int) throws(Invalid) -> TextPatternPart {
        var parts: [TextPatternPart] = []
        while let byte = rest.first, byte != UInt8(ascii: "|") {
            if byte == UInt8(ascii: ")") {
                guard depth > 0 else { throw Invalid() }
                break
            }
            rest.removeFirst()
            switch byte {
            case UInt8(ascii: "^"): parts.append(.atStart)
            case UInt8(ascii: "$"): parts.append(.atEnd)
            default:
                let part = try atom(byte, depth)
                parts.append(try repeated(part))
            }
        }
        return .sequence(parts)
    }

    private mutating func atom(_ byte: UInt8, _ depth: Int) throws(Invalid) -> TextPatternPart {
        switch byte {
        case UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "?"), UInt8(ascii: "{"): throw Invalid()
        case UInt8(ascii: "("):
            let part = try choice(depth + 1)
            guard try next() == UInt8(ascii: ")") else { throw Invalid() }
            return part
        case UInt8(ascii: "["): return .take(try bracket())
        case UInt8(ascii: "."): return .take(ByteSet(0x01...0xff))
        case UInt8(ascii: "\\"): return .take(try escaped())
        default: return .take(ByteSet(byte...byte))
        }
    }

    /// Parses the character after a backslash. Rejects back-references and word boundaries, because with them the
    /// number of steps would not be limited.
    private mutating func escaped() throws(Invalid) -> ByteSet {
        let byte = try next()
        let word = ByteSet(0x30...0x39, 0x41...0x5a, 0x5f...0x5f, 0x61...0x7a)
        let space = ByteSet(0x09...0x0d, 0x20...0x20)
        switch byte {
        case UInt8(ascii: "1")...UInt8(ascii: "9"), UInt8(ascii: "b"), UInt8(ascii: "B"), UInt8(ascii: "<"),
            UInt8(ascii: ">"), UInt8(ascii: "`"), UInt8(ascii: "'"):
            throw Invalid()
        case UInt8(ascii: "w"): return word
        case UInt8(ascii: "W"): return word.others
        case UInt8(ascii: "s"): return space
        case UInt8(ascii: "S"): return space.others
        default: return ByteSet(byte...byte)
        }
    }

    /// Parses the repetitions that follow a part.
    private mutating func repeated(_ single: TextPatternPart) throws(Invalid) -> TextPatternPart {
        var part = single
        while let byte = rest.first {
            switch byte {
            case UInt8(ascii: "*"): part = .repeated(part, 0, nil)
            case UInt8(ascii: "+"): part = .repeated(part, 1, nil)
            case UInt8(ascii: "?"): part = .repeated(part, 0, 1)
            case UInt8(ascii: "{"):
                rest.removeFirst()
                part = try bounded(part)
                continue
            default: return part
            }
            rest.removeFirst()
        }
        return part
    }

    /// Parses the bounds of a repetition after an opening brace.
    private mutating func bounded(_ part: TextPatternPart) throws(Invalid) -> TextPatternPart {
        let least = try number()
        var most = least
        if rest.first == UInt8(ascii: ",") {
            rest.removeFirst()
            most = try number()
        } else if least == nil {
            throw Invalid()
        }
        guard try next() == UInt8(ascii: "}") else { throw Invalid() }
        if let most, most < least ?? 0 { throw Invalid() }
        return .repeated(part, least ?? 0, most)
    }

    /// Parses a number; nil if none follows.
    private mutating func number() throws(Invalid) -> Int? {
        var value: Int?
        while let byte = rest.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) {
            rest.removeFirst()
            let number = (value ?? 0) * 10 + Int(byte - UInt8(ascii: "0"))
            guard number <= TextPattern.most else { throw Invalid() }
            value = number
        }
        return value
    }

    // MARK: Brackets

    private mutating func bracket() throws(Invalid) -> ByteSet {
        let isNegated = rest.first == UInt8(ascii: "^")
        if isNegated { rest.removeFirst() }
        var set = ByteSet()
        var isFirst = true
        while true {
            let byte = try next()
            if byte == UInt8(ascii: "]"), !isFirst { return isNegated ? set.others : set }
            if byte == UInt8(ascii: "-"), !isFirst, rest.first != UInt8(ascii: "]") { throw Invalid() }
            isFirst = false
            if byte == UInt8(ascii: "["), let members = try named() {
                set.insert(members)
                guard !isRange else { throw Invalid() }
                continue
            }
            let low = try single(byte)
            var high = low
            if isRange {
                rest.removeFirst()
                let byte = try next()
                if byte == UInt8(ascii: "["), try named() != nil { throw Invalid() }
                high = try single(byte)
                guard low <= high else { throw Invalid() }
            }
            set.insert(low...high)
        }
    }

    /// Whether the next byte is a hyphen that stands for a range, not the last character in the brackets.
    private var isRange: Bool { rest.first == UInt8(ascii: "-") && rest.dropFirst().first != UInt8(ascii: "]") }

    /// Parses a class (`[:alpha:]`) or an equivalence class (`[=a=]`), whose first bracket was already read. Nil if
    /// neither follows.
    private mutating func named() throws(Invalid) -> ByteSet? {
        guard let kind = rest.first, kind == UInt8(ascii: ":") || kind == UInt8(ascii: "=") else { return nil }
        let name = try name(kind)
        if kind == UInt8(ascii: ":") {
            guard let found = Self.classes.first(where: { $0.name.utf8.elementsEqual(name) }) else { throw Invalid() }
            return found.set
        }
        guard let member = name.first, name.count == 1 else { throw Invalid() }
        return ByteSet(member...member)
    }

    /// The byte itself. If the byte begins a collating element (`[.a.]`), the byte that the element stands for.
    private mutating func single(_ byte: UInt8) throws(Invalid) -> UInt8 {
        guard byte == UInt8(ascii: "["), rest.first == UInt8(ascii: ".") else { return byte }
        let name = try name(UInt8(ascii: "."))
        guard let member = name.first, name.count == 1 else { throw Invalid() }
        return member
    }

    /// Parses the name in an element such as `[:alpha:]`, up to the second byte `kind` (here `:`), which is followed by
    /// a bracket.
    private mutating func name(_ kind: UInt8) throws(Invalid) -> [UInt8] {
        rest.removeFirst()
        var name: [UInt8] = []
        while true {
            let byte = try next()
            if byte == kind, rest.first == UInt8(ascii: "]") {
                rest.removeFirst()
                return name
            }
            name.append(byte)
        }
    }
}
