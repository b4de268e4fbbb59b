import WireText

/// What an importer may read: the files beside its source, and the variables of its caller. A test puts its own in.
public struct SourceTree {
    /// The bytes of a file; nil where there is none, or it cannot be read.
    public var read: (String) -> [UInt8]?
    /// The names in a folder, sorted; nil where there is none.
    public var names: (String) -> [String]?
    /// The variables that a supervisor started here would have.
    public var variables: [String: String]
    /// How many processors the machine has.
    public var processors: Int
    /// PM2: the name of `--env`.
    public var environmentName: String?

    /// Everything that an importer may read.
    public init(
        read: @escaping (String) -> [UInt8]?,
        names: @escaping (String) -> [String]?,
        variables: [String: String] = [:],
        processors: Int = 1,
        environmentName: String? = nil
    ) {
        self.read = read
        self.names = names
        self.variables = variables
        self.processors = processors
        self.environmentName = environmentName
    }

    /// The text of a file, without a byte order mark and with newlines alone at the ends of lines.
    func text(_ path: String) -> String? {
        guard var bytes = read(path) else { return nil }
        if bytes.starts(with: [0xef, 0xbb, 0xbf]) { bytes.removeFirst(3) }
        var text = String(wire: bytes)
        // The marks of what is expanded late are nobody's text.
        if text.unicodeScalars.contains(where: { (Late.open...Late.close).contains($0) }) {
            text.unicodeScalars.removeAll { (Late.open...Late.close).contains($0) }
        }
        guard bytes.contains(0x0d) else { return text }
        return text.replacing("\r\n", with: "\n").replacing("\r", with: "\n")
    }

    func exists(_ path: String) -> Bool { read(path) != nil || names(path) != nil }

    static func lastPart(_ path: String) -> String {
        path.split(separator: "/").last.map(String.init) ?? path
    }

    static func folder(_ path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// The path, beginning at the folder unless it is absolute, without `.`, `..` and empty parts.
    static func join(_ folder: String, _ path: String) -> String {
        let whole = path.hasPrefix("/") ? path : folder + "/" + path
        var parts: [Substring] = []
        for part in whole.split(separator: "/") where part != "." {
            if part == "..", let last = parts.last, last != ".." {
                parts.removeLast()
            } else if part != ".." || !whole.hasPrefix("/") {
                parts.append(part)
            }
        }
        let joined = parts.joined(separator: "/")
        return whole.hasPrefix("/") ? "/" + joined : joined.isEmpty ? "." : joined
    }

    /// The files that a pattern of `*` and `?` in its last part names.
    func match(_ pattern: String) -> [String] {
        let name = Self.lastPart(pattern)
        guard name.contains("*") || name.contains("?") else { return [pattern] }
        let folder = Self.folder(pattern)
        return (names(folder) ?? []).filter { Self.matches($0.utf8[...], name.utf8[...]) }.map { folder + "/" + $0 }
    }

    private static func matches(_ text: Substring.UTF8View, _ pattern: Substring.UTF8View) -> Bool {
        var (text, pattern) = (text, pattern)
        // Where to go on after the last star.
        var retry: (text: Substring.UTF8View, pattern: Substring.UTF8View)?
        while true {
            if let wanted = pattern.first {
                if wanted == UInt8(ascii: "*") {
                    pattern = pattern.dropFirst()
                    retry = (text, pattern)
                    continue
                }
                if let found = text.first, wanted == found || wanted == UInt8(ascii: "?") {
                    text = text.dropFirst()
                    pattern = pattern.dropFirst()
                    continue
                }
            } else if text.isEmpty {
                return true
            }
            guard let last = retry, !last.text.isEmpty else { return false }
            text = last.text.dropFirst()
            pattern = last.pattern
            retry = (text, pattern)
        }
    }
}
