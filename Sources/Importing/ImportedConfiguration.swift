// SPDX-License-Identifier: Apache-2.0

import Configuration
import WireText

/// The configuration of another supervisor, translated to Torpor's keys.
public struct ImportedConfiguration: Sendable {
    /// The kind of configuration that was imported.
    public var kind: SourceKind
    /// The file or folder that was imported.
    public var source: String
    /// Further files that were read together with it.
    var others: [String] = []
    /// The programs in the order of the source, including those that cannot be translated.
    public var programs: [ImportedProgram] = []
    /// Remarks that concern the whole configuration.
    public var remarks: [Remark] { told.list }
    private var told = Remarks()
    /// Whether the validation has refused a container's name, so that names must be assigned again.
    var isRenamed = false
    /// Why parts of the source were left out, since they are not of its kind. If it has no program, the first reason
    /// is reported.
    private(set) var doubts: [String] = []

    init(kind: SourceKind, source: String) {
        self.kind = kind
        self.source = source
    }

    /// The maximum size of the result in bytes: a torpor.toml may not be larger.
    static let sizeLimit = ConfigurationSystem.fileLimit
    /// The maximum number of processes: the keeper has no more slots.
    static let processLimit = 16_384
    /// The approximate size of all programs in bytes.
    private var size = 0
    private var processes = 0

    /// Adds a program. Checks the size of the result, which may be much larger than the source: each app repeats the
    /// values that programs share.
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

    /// How many programs were translated to apps.
    public var translatedCount: Int { programs.count { $0.isTranslated } }

    /// The number of all remarks.
    public var remarkCount: Int { programs.reduce(remarks.count) { $0 + $1.remarks.count } }

    mutating func remark(_ text: String, at place: SourceLine? = nil) { told.add(Remark(text, at: place)) }

    /// - Parameter line: from 1; 0 if unknown.
    mutating func remark(_ text: String, line: Int) { remark(text, at: line > 0 ? SourceLine(line) : nil) }

    /// Adds a remark about something in the source that is not a program.
    ///
    /// - Parameter reason: the sentence, without a capital at its beginning and a full stop at its end.
    mutating func doubt(_ reason: String, at place: SourceLine? = nil) {
        doubts.append(reason)
        remark(reason.prefix(1).uppercased() + reason.dropFirst() + ".", at: place)
    }
}

/// A program of the imported configuration.
public struct ImportedProgram: Sendable {
    /// The program's name in the source.
    public var name: String
    /// The name of the program's app, which is valid and unique.
    public internal(set) var appName = ""
    /// Remarks about parts that could not be translated, and other facts that the user must know.
    public var remarks: [Remark] { told.list }
    private var told = Remarks()
    /// The line where the program is defined in the source; nil if unknown.
    public internal(set) var line: Int?
    /// The keys of the program's app.
    var keys: [String: TOMLValue] = [:]
    /// Keys that Torpor's validation refuses. In the result they are comments.
    var refused: [(key: String, value: TOMLValue)] = []
    /// The programs that this one requires, by their names in the source.
    var requires: [String] = []
    /// The programs that are started before this one, by their names in the source.
    var after: [String] = []
    /// For a bundle of s6-rc: the names of the services in it.
    var contents: [String] = []
    /// For compose: the services that must have ended successfully before this one is started.
    var completed: [String] = []
    /// For a container: a command that podman runs inside the container as a probe. It is set last, since it contains
    /// the container's name, which depends on the app's name.
    var probe: [String] = []
    /// For a container that joins the network of another one: the program that has the other container, by its name
    /// in the source.
    var joined: String?
    /// For compose: what the container's image is made from, and whether the service says that it has ports inside.
    var origin: String?
    var exposes = false
    /// For a container with the volumes of others: the programs that have these, by their names in the source, and
    /// podman's options after the name, such as `:ro`.
    var volumesFrom: [(program: String, options: String)] = []
    /// How many of the container's last arguments come from these.
    var addedArguments = 0
    /// For compose: further names that other services have in the networks of this one (`links`).
    var links: [(program: String, alias: String, place: SourceLine?)] = []
    /// For supervisord: the priority; a program with a lower value is started earlier.
    var priority = SupervisordPriority()
    /// Why the program cannot become an app; nil if it can.
    public internal(set) var obstacle: String?

    /// - Parameter line: from 1; 0 if unknown.
    init(_ name: String, line: Int? = nil) {
        self.name = name
        self.line = line.flatMap { $0 > 0 ? $0 : nil }
    }

    /// The approximate size of the program's keys in bytes.
    var size: Int { keys.values.reduce(name.utf8.count) { $0 + $1.size } }

    /// How many processes the program has: its instances.
    var processes: Int {
        guard case .integer(let count) = keys["instances"] else { return 1 }
        return Int(count)
    }

    /// Whether the program was translated to an app.
    public var isTranslated: Bool { obstacle == nil }

    subscript(key: String) -> TOMLValue? {
        get { keys[key] }
        set { keys[key] = newValue }
    }

    mutating func remark(_ text: String, at place: SourceLine? = nil) { told.add(Remark(text, at: place)) }

    /// - Parameter line: from 1; 0 if unknown.
    mutating func remark(_ text: String, line: Int) { remark(text, at: line > 0 ? SourceLine(line) : nil) }

    mutating func remark(_ leftOut: LeftOutKeys) {
        for (text, place) in leftOut.sentences() { remark(text, at: place) }
    }

    /// Marks the program as not translatable, for this reason; only the first reason is kept.
    mutating func cannot(_ reason: String, at place: SourceLine? = nil) {
        guard obstacle == nil else { return }
        obstacle = reason
        remark("is not translated: \(reason)", at: place)
    }

    /// Makes sure that only a user launches the app: without the user that its configuration names, it would run as
    /// root.
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

    /// Sets a member of a table. The table is removed from the keys while it is changed: otherwise it would be copied
    /// for each change.
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

/// Why a configuration cannot be imported.
public struct ImportError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The reason as a sentence.
    public var description: String

    init(_ description: String) { self.description = description }
}

/// The text in quotes, shortened, on one line.
func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars.prefix(100) {
        result.unicodeScalars.append(scalar.steersTerminals ? " " : scalar)
    }
    return result + (text.unicodeScalars.count > 100 ? "…\"" : "\"")
}
