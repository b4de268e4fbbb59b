/// What another supervisor's configuration says, in Torpor's terms.
public struct ImportedConfiguration: Sendable {
    /// Whose configuration it was.
    public var kind: SourceKind
    /// The file or folder that it was read from.
    public var source: String
    /// Its programs in their order, those that cannot be translated included.
    public var programs: [ImportedProgram] = []
    /// What concerns all of them.
    public var remarks: [Remark] = []

    init(kind: SourceKind, source: String) {
        self.kind = kind
        self.source = source
    }

    /// How many programs became apps.
    public var translatedCount: Int { programs.count { $0.isTranslated } }

    /// All remarks: how many.
    public var remarkCount: Int { programs.reduce(remarks.count) { $0 + $1.remarks.count } }

    mutating func remark(_ text: String, line: Int? = nil) {
        let remark = Remark(text, line: line)
        if !remarks.contains(remark) { remarks.append(remark) }
    }
}

/// One program of the source.
public struct ImportedProgram: Sendable {
    /// What the source calls it.
    public var name: String
    /// The name of its app: valid for Torpor, and no other app's.
    public internal(set) var appName = ""
    /// What could not be translated, and what one has to know.
    public internal(set) var remarks: [Remark] = []
    /// Where it stands in the source, where that is known.
    public internal(set) var line: Int?
    /// The keys of its app.
    var keys: [String: TOMLValue] = [:]
    /// Keys that Torpor's own validation refuses; they stand in the file as comments.
    var refused: [(key: String, value: TOMLValue)] = []
    /// The programs that it requires, by their names in the source.
    var requires: [String] = []
    /// The programs that are started before it, by their names in the source.
    var after: [String] = []
    /// s6-rc: what is in a bundle.
    var contents: [String] = []
    /// Compose: the programs that must have ended well before it.
    var completed: [String] = []
    /// Supervisord: who is started first.
    var priority: Int?
    /// The program that it is a process of, where that has another name.
    var template: String?
    /// Why it cannot be an app; nil where it is one.
    public internal(set) var obstacle: String?

    init(_ name: String, line: Int? = nil) {
        self.name = name
        self.line = line
    }

    /// Whether it became an app.
    public var isTranslated: Bool { obstacle == nil }

    subscript(key: String) -> TOMLValue? {
        get { keys[key] }
        set { keys[key] = newValue }
    }

    mutating func remark(_ text: String, line: Int? = nil) {
        let remark = Remark(text, line: line)
        if !remarks.contains(remark) { remarks.append(remark) }
    }

    /// It is no app, for this reason; the first one counts.
    mutating func cannot(_ reason: String, line: Int? = nil) {
        guard obstacle == nil else { return }
        obstacle = reason
        remark("is not translated: \(reason)", line: line)
    }

    mutating func setVariable(_ name: String, _ value: String) {
        guard !name.isEmpty, !name.contains("="), !name.utf8.contains(0), !value.utf8.contains(0) else {
            remark("the variable \(quoted(name)) has a name or value that no variable can have, and is left out")
            return
        }
        var table: [(String, TOMLValue)] = []
        if case .table(let members) = keys["environment"] { table = members }
        table.removeAll { $0.0 == name }
        table.append((name, .string(value)))
        keys["environment"] = .table(table)
    }

    mutating func set(inTable key: String, _ name: String, _ value: TOMLValue) {
        var table: [(String, TOMLValue)] = []
        if case .table(let members) = keys[key] { table = members }
        table.removeAll { $0.0 == name }
        table.append((name, value))
        keys[key] = .table(table)
    }

    mutating func append(to key: String, _ value: TOMLValue) {
        var values: [TOMLValue] = []
        if case .array(let elements) = keys[key] { values = elements }
        values.append(value)
        keys[key] = .array(values)
    }
}

/// A sentence about what became of something.
public struct Remark: Sendable, Hashable {
    /// The sentence.
    public var text: String
    /// Where it stands in the source, where that is known.
    public var line: Int?

    init(_ text: String, line: Int? = nil) {
        self.text = text
        self.line = line
    }
}

/// Why nothing can be imported: a sentence.
public struct ImportError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The sentence.
    public var description: String

    init(_ description: String) { self.description = description }
}

/// The text in quotes, shortened and on one line.
func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars.prefix(100) {
        result.unicodeScalars.append(scalar.value < 0x20 || scalar.value == 0x7f ? " " : scalar)
    }
    return result + (text.unicodeScalars.count > 100 ? "…\"" : "\"")
}
