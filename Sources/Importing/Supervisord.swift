// SPDX-License-Identifier: Apache-2.0

import WireText

/// Imports a configuration of supervisord.
enum Supervisord {
    /// - Parameter folder: the folder from which relative paths start.
    static func read(
        _ text: String,
        in folder: String,
        _ tree: SourceTree,
        into result: inout ImportedConfiguration
    ) throws(ImportError) {
        var ini = INI(text)
        for place in ini.strays {
            result.doubt("line \(place.number) is neither a section nor KEY = VALUE, and is left out", at: place)
        }
        var included = SupervisordIncludes(folder: folder, tree: tree)
        included.read(into: &ini, &result)
        for section in ini.sections where section.name != "include" { SupervisordSections.overridden(section, &result) }
        let defaults = SupervisordDefaults(ini["supervisord"], folder: included.folder, tree, &result)
        var groups = SupervisordGroups()
        for section in ini.sections where section.name.hasPrefix("group:") { groups.read(section, &result) }
        for section in ini.sections {
            let kind = section.name.prefix { $0 != ":" }
            let name = String(section.name.dropFirst(kind.count + 1)).trimmed
            switch kind {
            case "program":
                let reader = SupervisordProgram(
                    name: name,
                    section: section,
                    defaults: defaults,
                    group: groups[name],
                    folder: included.folder(of: section),
                    tree: tree
                )
                try result.append(reader.program())
            case "eventlistener", "fcgi-program":
                var program = ImportedProgram(name, line: section.line.number)
                program.cannot(
                    kind == "eventlistener"
                        ? "it is an event listener, which speaks supervisord's own protocol "
                            + "(‘torpor events -f -n 0 --json’ shows new events; on_failure runs a command when an app has failed)"
                        : "it is an fcgi-program, whose socket supervisord opens and passes as standard input: with "
                            + "[[apps.NAME.sockets]] Torpor opens it and passes it as descriptor 3 "
                            + "(‘sh -c 'exec PROGRAM <&3 3<&-'’); instances can share only a TCP port (reuse_port)",
                    at: section.line
                )
                try result.append(program)
            case "group", "include", "supervisord": continue
            default: SupervisordSections.other(section, &result)
            }
        }
        groups.tellMissing(&result)
        order(&result)
        general(&result)
    }

    /// Adds a remark that explains the order of starts. At its start, supervisord forks all programs in the order of
    /// their priorities, and waits neither for a program's readiness nor for its startsecs (supervisord.py, runforever;
    /// process.py, transition). `after` would wait, so priorities are not translated to `after`. Only at the end,
    /// supervisord stops one group after the other.
    private static func order(_ result: inout ImportedConfiguration) {
        let programs = result.programs.filter(\.isTranslated)
        guard Set(programs.map(\.priority)).count > 1 else { return }
        let sorted = programs.sorted { $0.priority < $1.priority }
        // If there are many programs, the first and the last names are enough to show the order.
        let names = sorted.map { quoted($0.name) }
        let half = mostNamed / 2
        let shown = names.count > mostNamed ? names.prefix(half) + ["…"] + names.suffix(half) : names[...]
        result.remark(
            "priority is left out (the order was \(shown.joined(separator: ", "))): supervisord starts the programs in "
                + "this order without waiting for any, and Torpor starts all at once. If a program needs another one, "
                + "write requires = [\"NAME\"] (it is also stopped before that one) or after = [\"NAME\"]: both wait until "
                + "the other one is ready."
        )
    }

    /// The maximum number of programs that a remark names.
    private static let mostNamed = 100

    /// Adds remarks about differences from supervisord that concern all programs.
    private static func general(_ result: inout ImportedConfiguration) {
        let programs = result.programs.filter(\.isTranslated)
        guard !programs.isEmpty else { return }
        if programs.contains(where: { $0["directory"] == nil }) {
            result.remark(
                "Programs without a directory ran where supervisord had been started; Torpor runs them in the home of "
                    + "their user, or else in /."
            )
        }
        result.remark(
            "Standard input is /dev/null, not supervisord's pipe that stays open: a program that exits at the end of "
                + "its input, such as cat, needs ‘bash -c 'exec PROGRAM < <(sleep infinity)'’, or a path in stdin."
        )
        result.remark(
            "SUPERVISOR_ENABLED, SUPERVISOR_PROCESS_NAME and SUPERVISOR_GROUP_NAME are not set: TORPOR_APP is the name of the "
                + "app."
        )
        if programs.contains(where: { $0["restart"] != .string("never") }) {
            result.remark(
                "No program is given up, as startretries does with one that exits within startsecs so many times in a "
                    + "row: Torpor restarts it after longer and longer delays, up to a minute. limit and window of "
                    + "restart_backoff set when to give up, and count long runs too."
            )
        }
    }
}

/// The priority of a program: that of its group decides first, then its own. A program without a group is a group of
/// its own. Programs with lower values are started earlier.
struct SupervisordPriority: Hashable, Comparable {
    static let usual = 999

    var group = usual
    var own = usual

    static func < (one: SupervisordPriority, other: SupervisordPriority) -> Bool {
        (one.group, one.own) < (other.group, other.own)
    }
}

/// The groups of a configuration, which become tags of apps.
struct SupervisordGroups {
    struct Group {
        var name: String
        /// The names of further groups with the same program.
        var others: [String] = []
        var priority: Int
    }

    private var groups: [WireText: Group] = [:]
    /// The programs that groups name, with the place in the source of each name.
    private var members: [(program: String, group: String, place: SourceLine?)] = []

    /// The group of a program.
    subscript(program: String) -> Group? { groups[WireText(program)] }

    /// Adds remarks about programs that groups name but that do not exist.
    func tellMissing(_ result: inout ImportedConfiguration) {
        let names = Set(result.programs.map { WireText($0.name) })
        for (program, group, place) in members where !names.contains(WireText(program)) {
            result.remark(
                "There is no program \(quoted(program)), which the group \(quoted(group)) names: supervisord does not start "
                    + "with it.",
                at: place
            )
        }
    }

    mutating func read(_ section: INI.Section, _ result: inout ImportedConfiguration) {
        let name = String(section.name.dropFirst("group:".count)).trimmed
        var priority = SupervisordPriority.usual
        if let text = section["priority"] {
            if let number = Int(text) {
                priority = number
            } else {
                result.remark(
                    "priority = \(quoted(text)) of the group \(quoted(name)) is not a number, and is left out.",
                    at: section.line(of: "priority")
                )
            }
        }
        for program in (section["programs"] ?? "").split(whereSeparator: { $0 == "," || $0.isWhitespace }) {
            let key = WireText(program.trimmed)
            if groups[key] == nil {
                groups[key] = Group(name: name, priority: priority)
            } else if groups[key]?.name != name {
                groups[key]?.others.append(name)
            }
            members.append((program.trimmed, name, section.line(of: "programs")))
        }
        for entry in section.entries where entry.key != "programs" && entry.key != "priority" {
            result.remark("\(entry.key) of the group \(quoted(name)) is not translated.", at: entry.line)
        }
    }
}

/// Reads the files that `[include]` names.
struct SupervisordIncludes {
    let folder: String
    let tree: SourceTree
    /// For each section of an included file, the folder of that file.
    private var folders: [WireText: String] = [:]
    private var listings: [String: [String]] = [:]

    /// The maximum number of patterns, because each pattern is compared with every name in its folder.
    private static let mostPatterns = 100
    /// The maximum number of files and folders that a pattern may name.
    private static let mostPlaces = 1000
    /// Whether a pattern names more.
    private var leftOut = false

    init(folder: String, tree: SourceTree) {
        self.folder = folder
        self.tree = tree
    }

    /// The folder of the file that contains the section, which is the value of `%(here)s`.
    func folder(of section: INI.Section) -> String { folders[WireText(section.name)] ?? folder }

    mutating func read(into ini: inout INI, _ result: inout ImportedConfiguration) {
        guard let section = ini["include"] else { return }
        SupervisordSections.overridden(section, &result)
        for entry in section.entries where entry.key != "files" {
            result.remark("\(entry.key) of [include] is not known, and is left out.", at: entry.line)
        }
        let place = section.line(of: "files")
        let expansion = SupervisordExpansion(
            values: ["here": folder, "host_node_name": tree.hostName],
            variables: tree.variables
        )
        var patterns = OrderedTable<Void>()
        for pattern in (section["files"] ?? "").split(whereSeparator: \.isWhitespace) {
            do throws(SupervisordExpansion.Failure) {
                patterns[try expansion.now(String(pattern))] = ()
            } catch {
                result.doubt(
                    "the files \(quoted(String(pattern))) of [include] are not read, since \(error.message)",
                    at: place
                )
            }
        }
        if patterns.members.count > Self.mostPatterns {
            result.doubt(
                "[include] names \(patterns.members.count) files and patterns, of which the first \(Self.mostPatterns) are read",
                at: place
            )
        }
        var seen: Set<WireText> = []
        for (pattern, _) in patterns.members.prefix(Self.mostPatterns) {
            let found = files(SourceTree.join(folder, pattern)).filter { tree.read($0) != nil }
                .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            if leftOut {
                let most = "more than \(Self.mostPlaces) files or folders, of which the first are read"
                result.doubt("\(quoted(pattern)) of [include] matches \(most)", at: place)
                leftOut = false
            }
            if found.isEmpty {
                result.doubt("there is no file \(quoted(pattern)), which files of [include] names", at: place)
            }
            for path in found where seen.insert(WireText(path)).inserted { take(path, &ini) }
        }
    }

    /// Adds the sections of a file. What a later file says of a section counts before what earlier ones said.
    private mutating func take(_ path: String, _ ini: inout INI) {
        guard let text = tree.text(path) else { return }
        let here = SourceTree.folder(path)
        for section in INI(text, file: SourceTree.lastPart(path)).sections {
            guard ini[section.name] != nil else {
                ini.add(section)
                folders[WireText(section.name)] = here
                continue
            }
            // The entries of the section keep the folder of their own file.
            var merged = INI.Section(name: section.name, line: section.line)
            for var entry in section.entries {
                entry.value = entry.value.replacing("%(here)s", with: here.replacing("%", with: "%%"))
                merged.append(entry)
            }
            ini.add(merged)
        }
    }

    /// The files that a path names, each component of which may be a pattern, as supervisord reads them.
    private mutating func files(_ path: String) -> [String] {
        var places = [path.hasPrefix("/") ? "" : "."]
        for part in path.split(separator: "/") {
            let pattern = NamePattern(String(part))
            var next: [String] = []
            for place in places {
                guard pattern.isPattern else {
                    next.append(place + "/" + part)
                    continue
                }
                let folder = place.isEmpty ? "/" : place
                let names = listings[folder] ?? tree.names(folder) ?? []
                listings[folder] = names
                next += names.filter(pattern.matches).map { place + "/" + $0 }
            }
            if next.count > Self.mostPlaces {
                leftOut = true
                next.removeLast(next.count - Self.mostPlaces)
            }
            places = next
        }
        return places
    }
}
