/// The configuration of supervisord.
enum Supervisord {
    /// Sections that concern supervisord itself.
    private static let own = ["supervisord", "supervisorctl", "unix_http_server", "inet_http_server", "include"]

    static func read(_ text: String, _ tree: SourceTree, into result: inout ImportedConfiguration) throws(ImportError) {
        var ini = INI(text)
        for line in ini.strays { result.remark("Line \(line) is neither a section nor KEY = VALUE, and is left out.") }
        let folder = SourceTree.folder(result.source)
        var sources: [String: String] = [:]
        include(&ini, folder, tree, &sources, &result)
        let supervisor = ini.sections.first { $0.name == "supervisord" }
        var groups: [String: String] = [:]
        for section in ini.sections {
            switch section.name.split(separator: ":", maxSplits: 1).first {
            case "group":
                let name = String(section.name.dropFirst(6))
                for program in (section["programs"] ?? "").split(whereSeparator: { $0 == "," || $0.isWhitespace }) {
                    groups[program.trimmed] = name
                }
                for entry in section.entries where entry.key != "programs" && entry.key != "priority" {
                    result.remark("\(entry.key) of the group \(quoted(name)) is not translated.", line: entry.line)
                }
            case "eventlistener", "fcgi-program":
                let kind = section.name.prefix { $0 != ":" }
                var program = ImportedProgram(String(section.name.dropFirst(kind.count + 1)), line: section.line)
                program.cannot(
                    kind == "eventlistener"
                        ? "it is an event listener, which speaks supervisord's own protocol (‘torpor events -f --json’ tells what happens)"
                        : "it is an fcgi-program, whose socket supervisord opens: write it with [[apps.NAME.sockets]]"
                )
                result.programs.append(program)
            case "program":
                let name = String(section.name.dropFirst(8)).trimmed
                let reader = SupervisordProgram(
                    name: name,
                    section: section,
                    supervisor: supervisor,
                    group: groups[name],
                    folder: sources[section.name] ?? folder,
                    tree: tree
                )
                result.programs += reader.programs()
            case .some(let other) where own.contains(String(other)) || other == "rpcinterface" || other == "ctlplugin":
                continue
            default:
                result.remark("The section [\(section.name)] is not known, and is left out.", line: section.line)
            }
        }
        tag(groups, &result)
        order(ini, &result)
        unplaced(&result)
    }

    /// Reads the files of `[include]` into the same.
    private static func include(
        _ ini: inout INI,
        _ folder: String,
        _ tree: SourceTree,
        _ sources: inout [String: String],
        _ result: inout ImportedConfiguration
    ) {
        guard let section = ini.sections.first(where: { $0.name == "include" }) else { return }
        let expansion = SupervisordExpansion(values: ["here": folder], variables: tree.variables)
        for pattern in (section["files"] ?? "").split(whereSeparator: \.isWhitespace) {
            guard let pattern = try? expansion.now(String(pattern)) else {
                result.remark("The files \(quoted(String(pattern))) of [include] cannot be found, and are left out.")
                continue
            }
            var isFound = false
            for path in tree.match(SourceTree.join(folder, pattern)) {
                guard let text = tree.text(path) else { continue }
                isFound = true
                for section in INI(text).sections where !ini.sections.contains(where: { $0.name == section.name }) {
                    sources[section.name] = SourceTree.folder(path)
                    ini.sections.append(section)
                }
            }
            if !isFound { result.remark("There is no file \(quoted(pattern)), which [include] names.") }
        }
    }

    /// A group becomes a tag, also of programs that stand before it.
    private static func tag(_ groups: [String: String], _ result: inout ImportedConfiguration) {
        for index in result.programs.indices {
            let program = result.programs[index].template ?? result.programs[index].name
            if let group = groups[program] { result.programs[index]["tags"] = .strings([group]) }
        }
    }

    /// A lower priority is started first.
    private static func order(_ ini: INI, _ result: inout ImportedConfiguration) {
        var levels: [Int: [Int]] = [:]
        for (index, program) in result.programs.enumerated() where program.isTranslated {
            levels[program.priority ?? 999, default: []].append(index)
        }
        let sorted = levels.sorted { $0.key < $1.key }
        for (before, level) in zip(sorted, sorted.dropFirst()) {
            let names = before.value.map { result.programs[$0].name }
            for index in level.value { result.programs[index].after = names }
        }
    }

    private static func unplaced(_ result: inout ImportedConfiguration) {
        guard result.programs.contains(where: { $0.isTranslated && $0["directory"] == nil }) else { return }
        result.remark(
            "Programs without a directory ran where supervisord had been started; here they run in the home of their user, "
                + "else in /."
        )
    }
}
