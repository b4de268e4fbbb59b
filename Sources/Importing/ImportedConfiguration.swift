// SPDX-License-Identifier: Apache-2.0

import Configuration
import WireText

/// The configuration of another supervisor, translated to Torpor's keys.
public struct ImportedConfiguration: Sendable {
    /// The kind of configuration that was imported.
    public var kind: SourceKind
    /// The path of the imported file or folder.
    public var source: String
    /// The paths of further files that were read together with the source.
    var others: [String] = []
    /// The programs in the order of the source, including those that could not be translated.
    public var programs: [ImportedProgram] = []
    /// Remarks that concern the whole configuration.
    public var remarks: [Remark] { told.list }
    private var told = Remarks()
    /// Whether the name of a container was refused as invalid. Then names must be assigned again.
    var isRenamed = false
    /// Reasons why parts of the source were left out because they do not fit its kind. If the source contains no
    /// program, the first of these reasons becomes the error.
    private(set) var doubts: [String] = []

    init(kind: SourceKind, source: String) {
        self.kind = kind
        self.source = source
    }

    /// The maximum size of the result in bytes: a larger torpor.toml cannot be loaded.
    static let sizeLimit = ConfigurationSystem.fileLimit
    /// The maximum number of processes, which is the number of slots that torpor-keeper has.
    static let processLimit = 16_384
    /// The approximate size of all programs in bytes.
    private var size = 0
    private var processes = 0

    /// Adds a program. Throws if the result becomes too large: it can be much larger than the source, because settings
    /// that programs share in the source are repeated for each app.
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

    /// Adds a remark about the source as a whole.
    public mutating func add(remark text: String) { remark(text) }

    mutating func remark(_ text: String, at place: SourceLine? = nil) { told.add(Remark(text, at: place)) }

    /// - Parameter line: the line's number, from 1; 0 if unknown.
    mutating func remark(_ text: String, line: Int) { remark(text, at: line > 0 ? SourceLine(line) : nil) }

    /// Adds a remark about a part of the source that is not a program.
    ///
    /// - Parameter reason: the reason as a sentence, but without a capital letter at its start and without a full stop.
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
    /// Remarks about parts of the program that could not be translated, and other facts that the user must know.
    public var remarks: [Remark] { told.list }
    private var told = Remarks()
    /// The line where the program is defined in the source; nil if unknown.
    public internal(set) var line: Int?
    /// The keys of the app that the program became.
    var keys: [String: TOMLValue] = [:]
    /// Keys that Torpor refuses as invalid. The resulting torpor.toml contains them as comments.
    var refused: [(key: String, value: TOMLValue)] = []
    /// The names, in the source, of the programs that this program requires.
    var requires: [String] = []
    /// The names, in the source, of the programs that are started before this program.
    var after: [String] = []
    /// For an s6-rc bundle: the names of its services.
    var contents: [String] = []
    /// For compose: the services that must have ended successfully before this service is started.
    var completed: [String] = []
    /// For a container: a command that podman runs inside the container as a probe. It is set last, because it contains
    /// the container's name, which depends on the app's name.
    var probe: [String] = []
    /// For a container that joins the network of another container: the name, in the source, of the program with that
    /// other container.
    var joined: String?
    /// Whether the container also shares IPC and the host name with the container whose network it joins, as the
    /// containers of a pod do.
    var isInPod = false
    /// For a pod of `podman pod create`: true. For a container of `podman run --pod`: the name of its pod.
    var isPod = false
    var pod: String?
    /// For compose: where the container's image comes from, for comparison; `exposes`: whether the service declares
    /// ports inside its container.
    var origin: String?
    var exposes = false
    /// For a container that mounts the volumes of other containers: the names, in the source, of their programs. Each
    /// has podman's options after the name, such as `:ro`.
    var volumesFrom: [(program: String, options: String)] = []
    /// For a container that joins the IPC or PID namespace of another one: podman's option, and the name, in the
    /// source, of that one's program.
    var namespaces: [(option: String, program: String)] = []
    /// How many of the container's last arguments contain other containers' names.
    var addedArguments = 0
    /// For compose: the names by which this service knows other services in its networks (`links`).
    var links: [(program: String, alias: String, place: SourceLine?)] = []
    /// For supervisord: the program's priority. Programs with lower values are started earlier.
    var priority = SupervisordPriority()
    /// Why the program cannot become an app; nil if it can.
    public internal(set) var obstacle: String?

    /// - Parameter line: the line's number, from 1; 0 or nil if unknown.
    init(_ name: String, line: Int? = nil) {
        self.name = name
        self.line = line.flatMap { $0 > 0 ? $0 : nil }
    }

    /// The approximate size of the program's keys in bytes.
    var size: Int { keys.values.reduce(name.utf8.count) { $0 + $1.size } }

    /// The number of processes that the program has; several processes become instances of the app.
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

    /// - Parameter line: the line's number, from 1; 0 if unknown.
    mutating func remark(_ text: String, line: Int) { remark(text, at: line > 0 ? SourceLine(line) : nil) }

    mutating func remark(_ leftOut: LeftOutKeys) {
        for (text, place) in leftOut.sentences() { remark(text, at: place) }
    }

    /// Marks the program as not translatable. If this is called several times, the first reason is kept.
    mutating func cannot(_ reason: String, at place: SourceLine? = nil) {
        guard obstacle == nil else { return }
        obstacle = reason
        remark("is not translated: \(reason)", at: place)
    }

    /// Makes sure that only a user can launch the app, because its configured user is missing and it would run as root.
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

    /// Sets a member of a table. While the table is changed, it is removed from `keys`, because otherwise each change
    /// would copy the table.
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

/// The text in quotes, shortened and on one line.
func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars.prefix(100) {
        result.unicodeScalars.append(scalar.steersTerminals ? " " : scalar)
    }
    return result + (text.unicodeScalars.count > 100 ? "…\"" : "\"")
}
