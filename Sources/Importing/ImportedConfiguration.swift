// SPDX-License-Identifier: Apache-2.0

import Configuration

/// What another supervisor's configuration says, in Torpor's terms.
public struct ImportedConfiguration: Sendable {
    /// Whose configuration it was.
    public var kind: SourceKind
    /// The file or folder that it was read from.
    public var source: String
    /// Files that were read together with it.
    var others: [String] = []
    /// Its programs in their order, those that cannot be translated included.
    public var programs: [ImportedProgram] = []
    /// What concerns all of them.
    public var remarks: [Remark] { told.list }
    private var told = Remarks()
    /// Whether the validation has refused the name of a container.
    var isRenamed = false
    /// What was left out of the source as nothing of its kind: why it may have no program.
    private(set) var doubts: [String] = []

    init(kind: SourceKind, source: String) {
        self.kind = kind
        self.source = source
    }

    /// More than this is more than a torpor.toml may have.
    static let sizeLimit = ConfigurationSystem.fileLimit
    /// As many processes as the keeper has places for.
    static let processLimit = 16_384
    /// Bytes of the programs, about.
    private var size = 0
    private var processes = 0

    /// Takes a program in; what many of them have in common makes them more than the source.
    mutating func append(_ program: ImportedProgram) throws(ImportError) {
        size += program.size
        processes += program.processes
        guard size <= Self.sizeLimit else {
            throw ImportError(
                "\(source): its programs make more than \(Amounts.size(UInt64(Self.sizeLimit))) of configuration, "
                    + "which is the limit: import it in parts"
            )
        }
        guard processes <= Self.processLimit else {
            throw ImportError(
                "\(source): its programs have more than \(Self.processLimit) processes: import it in parts"
            )
        }
        programs.append(program)
    }

    /// How many programs became apps.
    public var translatedCount: Int { programs.count { $0.isTranslated } }

    /// All remarks: how many.
    public var remarkCount: Int { programs.reduce(remarks.count) { $0 + $1.remarks.count } }

    mutating func remark(_ text: String, at place: SourceLine? = nil) { told.add(Remark(text, at: place)) }

    /// - Parameter line: from 1; 0 where it is not known.
    mutating func remark(_ text: String, line: Int) { remark(text, at: line > 0 ? SourceLine(line) : nil) }

    /// A remark about what the source has in the place of a program.
    ///
    /// - Parameter reason: the sentence without its capital and its full stop.
    mutating func doubt(_ reason: String, at place: SourceLine? = nil) {
        doubts.append(reason)
        remark(reason.prefix(1).uppercased() + reason.dropFirst() + ".", at: place)
    }
}

/// One program of the source.
public struct ImportedProgram: Sendable {
    /// What the source calls it.
    public var name: String
    /// The name of its app: valid for Torpor, and no other app's.
    public internal(set) var appName = ""
    /// What could not be translated, and what one has to know.
    public var remarks: [Remark] { told.list }
    private var told = Remarks()
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
    /// Containers: what podman runs in its own container as its probe; the container's name depends on that of its app.
    var probe: [String] = []
    /// Containers: the program whose container's network it is in, by its name in the source.
    var joined: String?
    /// Supervisord: the lower it is, the earlier it is started.
    var priority = SupervisordPriority()
    /// Why it cannot be an app; nil where it is one.
    public internal(set) var obstacle: String?

    /// - Parameter line: from 1; 0 where it is not known.
    init(_ name: String, line: Int? = nil) {
        self.name = name
        self.line = line.flatMap { $0 > 0 ? $0 : nil }
    }

    /// How many bytes its keys have, about.
    var size: Int { keys.values.reduce(name.utf8.count) { $0 + $1.size } }

    /// How many processes it is.
    var processes: Int {
        guard case .integer(let count) = keys["instances"] else { return 1 }
        return Int(count)
    }

    /// Whether it became an app.
    public var isTranslated: Bool { obstacle == nil }

    subscript(key: String) -> TOMLValue? {
        get { keys[key] }
        set { keys[key] = newValue }
    }

    mutating func remark(_ text: String, at place: SourceLine? = nil) { told.add(Remark(text, at: place)) }

    /// - Parameter line: from 1; 0 where it is not known.
    mutating func remark(_ text: String, line: Int) { remark(text, at: line > 0 ? SourceLine(line) : nil) }

    mutating func remark(_ leftOut: LeftOutKeys) {
        for (text, place) in leftOut.sentences() { remark(text, at: place) }
    }

    /// It is no app, for this reason; the first one counts.
    mutating func cannot(_ reason: String, at place: SourceLine? = nil) {
        guard obstacle == nil else { return }
        obstacle = reason
        remark("is not translated: \(reason)", at: place)
    }

    /// It is launched by hand alone: without the user that it should have it would run as root.
    mutating func withhold() {
        keys["launch"] = .string("on-demand")
        let waking = ["sockets", "timers", "paths"].filter { keys[$0] != nil }
        for key in waking {
            if let value = keys.removeValue(forKey: key) { refused.append((key, value)) }
        }
        let beside = waking.isEmpty ? "" : ", and its \(LeftOutKeys.list(waking)) are commented out"
        remark(
            "would run as root without a user, so it is launched only by hand\(beside): write user, then remove launch"
        )
    }

    mutating func setVariable(_ name: String, _ value: String) {
        guard !name.isEmpty, !name.contains("="), !name.utf8.contains(0), !value.utf8.contains(0) else {
            remark("the variable \(quoted(name)) has an invalid name or value, and is left out")
            return
        }
        set(inTable: "environment", name, .string(value))
    }

    /// What would stand in a table or array is changed outside of its key: there it would be copied for each change.
    mutating func set(inTable key: String, _ name: String, _ value: TOMLValue) {
        var table = OrderedTable<TOMLValue>()
        if case .table(let members) = keys.removeValue(forKey: key) { table = members }
        table[name] = value
        keys[key] = .table(table)
    }

    mutating func append(to key: String, _ value: TOMLValue) {
        var values: [TOMLValue] = []
        if case .array(let elements) = keys.removeValue(forKey: key) { values = elements }
        values.append(value)
        keys[key] = .array(values)
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
