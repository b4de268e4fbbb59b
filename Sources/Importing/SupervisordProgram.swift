// SPDX-License-Identifier: Apache-2.0

/// Translates a section `[program:x]`.
struct SupervisordProgram {
    let name: String
    let section: INI.Section
    let defaults: SupervisordDefaults
    let group: SupervisordGroups.Group?
    /// The folder of the file that contains the section, which is the value of `%(here)s`.
    let folder: String
    let tree: SourceTree

    /// Keys that are translated by their own code.
    private static let known: Set = [
        "command", "process_name", "numprocs", "numprocs_start", "priority", "autostart", "autorestart", "startsecs",
        "exitcodes", "stopsignal", "stopwaitsecs", "stopasgroup", "killasgroup", "user", "directory",
        "umask", "environment", "redirect_stderr", "stdout_logfile", "stdout_logfile_maxbytes",
        "stdout_logfile_backups", "stderr_logfile", "stderr_logfile_maxbytes", "stderr_logfile_backups",
    ]
    private static let syslog = "log = \"journal\" comes closest"
    private static let events = "‘torpor logs -f’ shows the output of an app as it arrives"
    /// Keys that have a meaning only within supervisord, each with the reason why it is left out.
    private static let idle: [String: String] = [
        "startretries": "Torpor gives up no program, and restarts one that exits soon after longer and longer delays",
        "stdout_capture_maxbytes": events, "stderr_capture_maxbytes": events, "stdout_events_enabled": events,
        "stderr_events_enabled": events, "serverurl": "TORPOR_MANAGER_SOCKET names the control socket",
        "stdout_syslog": syslog, "stderr_syslog": syslog,
    ]

    /// Translates the program. Its processes become instances of the app.
    func program() -> ImportedProgram {
        var program = ImportedProgram(name, line: section.line.number)
        let count = number("numprocs", 1, in: -1_000_000...1000, &program)
        let start = number("numprocs_start", 0, in: 0...1_000_000_000, &program)
        if count > 1 {
            program["instances"] = .integer(Int64(count))
            if start != 1 { program["instance_first"] = .integer(Int64(start)) }
            let app = Names.valid(name)
            program.remark("its processes are \(app)@\(start) to \(app)@\(start + count - 1)")
        } else if let text = section["process_name"], text != "%(program_name)s" {
            program.remark(
                "process_name = \(quoted(text)) is left out: its one process has the name of the app",
                at: section.line(of: "process_name")
            )
        }
        fill(&program, number: count > 1 ? "%i" : "\(start)", count: count)
        if count < 1 {
            program["launch"] = .string("on-demand")
            program.remark(
                "numprocs is \(count), so supervisord runs none of it: only a user launches it (‘torpor start’)",
                at: section.line(of: "numprocs")
            )
        }
        return program
    }

    private func fill(_ program: inout ImportedProgram, number: String, count: Int) {
        var expansion = SupervisordExpansion(
            values: [
                "here": folder, "program_name": name, "process_num": number, "numprocs": "\(count)",
                "group_name": group?.name ?? name, "host_node_name": tree.hostName,
            ],
            variables: tree.variables
        )
        expansion.ofSupervisord = defaults.variables
        expansion.currentOfSupervisord = defaults.currentVariables
        if let group {
            program["tags"] = .strings([group.name] + group.others)
            if !group.others.isEmpty {
                program.remark(
                    "is in the groups \(LeftOutKeys.list([group.name] + group.others)), in each of which supervisord runs it: "
                        + "Torpor runs it once"
                )
            }
        }
        let priority = self.number("priority", SupervisordPriority.usual, in: -1_000_000...1_000_000, &program)
        program.priority = SupervisordPriority(group: group?.priority ?? priority, own: priority)
        command(expansion, hasInstances: count > 1, &program)
        notice(expansion, &program)
        place(expansion, &program)
        starting(expansion, &program)
        stopping(&program)
        output(expansion, &program)
        var leftOut = LeftOutKeys()
        for entry in section.entries {
            if entry.value.contains("%(host_node_name)") {
                program.remark(SupervisordExpansion.remark(onHost: tree), at: entry.line)
            }
            if let reason = Self.idle[entry.key] {
                leftOut.add(entry.key, because: reason, at: entry.line)
            } else if !Self.known.contains(entry.key) {
                program.remark(
                    "\(entry.key) = \(quoted(entry.value)) is not a key of supervisord, and is left out",
                    at: entry.line
                )
            }
        }
        program.remark(leftOut)
    }

    // MARK: What runs, and where

    /// Variables that have one value for supervisord and another for the program: those of the program's user, and
    /// those that its `environment` sets. In the settings of the program, these variables must be expanded with
    /// supervisord's value. In `environment` itself, variables that are computed from other variables are not set yet.
    private func hidden(in key: String) -> Set<String> {
        let own = section["environment"].flatMap { SupervisordValues.environment($0) } ?? []
        let set = own.filter { key == "command" || !$0.value.contains("%(ENV_") }
        return Set(["HOME", "USER", "LOGNAME", "SHELL"] + set.map(\.name))
    }

    private func command(
        _ expansion: SupervisordExpansion,
        hasInstances: Bool,
        _ program: inout ImportedProgram
    ) {
        var expansion = expansion
        guard let text = section["command"], !text.isEmpty else { return program.cannot("it has no command") }
        do throws(SupervisordExpansion.Failure) {
            var set = defaults.variables
            if let text = section["environment"] {
                expansion.hidden = hidden(in: "environment").union(expansion.setHere)
                if let variables = SupervisordValues.environment(try expansion.late(text)) {
                    for (name, value) in variables { set[name] = value }
                } else {
                    program.remark(
                        "environment is not KEY=\"value\",KEY=\"value\", and is left out",
                        at: section.line(of: "environment")
                    )
                }
            }
            for (name, value) in set.members { set[name] = Late.unmarked(value, hasInstances: hasInstances) }
            for (name, value) in set where !Late.isIn(value) { program.setVariable(name, value) }
            expansion.hidden = hidden(in: "command").union(expansion.setHere)
            guard let words = ShellWords.split(try expansion.late(text)), let first = words.first, !first.isEmpty else {
                return program.cannot("its command has a quote that is not closed", at: section.line(of: "command"))
            }
            let settled = words.map { Late.unmarked($0, hasInstances: hasInstances) }
            let late = set.members.filter { Late.isIn($0.value) }.map { ($0.key, $0.value) }
            program["exec"] = .strings(Late.command(settled, variables: late))
        } catch {
            program.cannot(error.message)
        }
    }

    /// Adds remarks about three kinds of variables. First, variables that are not set now, which a shell will expand at
    /// each launch: supervisord refuses to start if a variable is not set. Then those whose current values were written
    /// into the result: since the program has another value, or since the supervisor will have none.
    private func notice(_ expansion: SupervisordExpansion, _ program: inout ImportedProgram) {
        let prefix = "%(ENV_"
        for key in ["command", "environment"] {
            guard let text = section[key], program.isTranslated else { continue }
            let hidden = hidden(in: key)
            var unset: [String] = []
            var fixed: [String] = []
            var setHere: [String] = []
            for range in text.ranges(of: prefix) {
                let name = String(text[range.upperBound...].prefix { $0 != ")" })
                guard expansion.ofSupervisord[name] == nil else { continue }
                if hidden.contains(name) {
                    if !fixed.contains(name) { fixed.append(name) }
                } else if expansion.setHere.contains(name) {
                    if !setHere.contains(name) { setHere.append(name) }
                } else if tree.variables[name] == nil, !unset.contains(name) {
                    unset.append(name)
                }
            }
            if !unset.isEmpty {
                program.remark(
                    "\(key): \(LeftOutKeys.list(unset)) \(unset.count == 1 ? "is" : "are") not set here: without a value in "
                        + "the environment of torpord the text is empty, where supervisord would refuse to start",
                    at: section.line(of: key)
                )
            }
            let reasons = [
                (fixed, "the program has a value of its own"), (setHere, "Torpor, as a service, would have no value"),
            ]
            for (names, reason) in reasons where !names.isEmpty {
                let values = names.map { "%(ENV_\($0))s becomes \(quoted(tree.variables[$0] ?? ""))" }
                program.remark(
                    "\(key): \(values.joined(separator: ", ")), as it is set here: \(reason)",
                    at: section.line(of: key)
                )
            }
        }
    }

    /// The value of a key, with all variables expanded at the time of the import.
    private func value(_ key: String, _ expansion: SupervisordExpansion, _ program: inout ImportedProgram) -> String? {
        guard let text = section[key], !text.isEmpty else { return nil }
        do throws(SupervisordExpansion.Failure) {
            return try expansion.now(text)
        } catch {
            program.remark("\(key) is left out: \(error.message)", at: section.line(of: key))
            return nil
        }
    }

    private func place(_ expansion: SupervisordExpansion, _ program: inout ImportedProgram) {
        if let directory = value("directory", expansion, &program) {
            if directory.hasPrefix("~") {
                let home = tree.variables["HOME"] ?? "/root"
                program["directory"] = .string(SourceTree.join(home, String(directory.dropFirst().drop { $0 == "/" })))
            } else if directory.hasPrefix("/") {
                program["directory"] = .string(SourceTree.join("/", directory))
            } else {
                program["directory"] = .string(SourceTree.join(folder, directory))
                program.remark(
                    "directory is relative, and is taken to begin at \(folder)",
                    at: section.line(of: "directory")
                )
            }
        } else {
            program["directory"] = defaults.directory.map(TOMLValue.string)
        }
        if let user = value("user", expansion, &program) ?? defaults.user {
            let parts = user.split(separator: ":", maxSplits: 1).map(String.init)
            program["user"] = .string(parts.first ?? user)
            if parts.count > 1 { program["group"] = .string(parts[1]) }
        }
        program["umask"] = (value("umask", expansion, &program) ?? defaults.umask).map(TOMLValue.string)
        for (name, bounds) in defaults.limits { program.set(inTable: "limits", name, .string(bounds)) }
    }

    // MARK: Start and end

    private func starting(_ expansion: SupervisordExpansion, _ program: inout ImportedProgram) {
        if let text = value("autostart", expansion, &program) {
            if SupervisordValues.flag(text) == false { program["launch"] = .string("on-demand") }
        }
        switch value("autorestart", expansion, &program)?.lowercased() {
        case nil, "unexpected": program["restart"] = .string("on-failure")
        case .some(let text):
            guard let flag = SupervisordValues.flag(text) else {
                program.remark("autorestart = \(quoted(text)) is neither true, false nor unexpected, and is left out")
                break
            }
            program["restart"] = .string(flag ? "always" : "never")
        }
        // supervisord takes a negative time as none.
        let seconds = max(0, number("startsecs", 1, in: -1_000_000...1_000_000, &program))
        if seconds > 0 {
            // During startsecs, the app counts as launching: if it ends in that time, the launch has failed. Later, no
            // deadline terminates the app.
            program["ready"] = .table([
                ("command", .strings(["/bin/sleep", "\(seconds)"])), ("timeout", .string("\(seconds + 10)s")),
            ])
            program["launch_deadline"] = .string("none")
        }
        if program["restart"] != .string("never") {
            // supervisord gives up a program only if it ends within startsecs several times in a row. Torpor's limit
            // counts every end, so set the limit very high. With startsecs = 0 it restarts a program that exits at once
            // about once a second, without end; delays that grow until a run has lasted a second come closest.
            program["stable_after"] = .string("\(max(seconds, 1))s")
            program["restart_backoff"] = .table([("limit", .integer(10_000))])
        }
        if let codes = section["exitcodes"] {
            let words = codes.split { $0 == "," || $0 == " " }
            let numbers = words.compactMap { Int64($0) }
            let others = words.filter { Int64($0) == nil }.map(String.init)
            if !others.isEmpty {
                program.remark(
                    "\(LeftOutKeys.list(others)) of exitcodes is not a number, and is left out",
                    at: section.line(of: "exitcodes")
                )
            }
            if numbers.contains(where: { $0 != 0 }) {
                program["success_exit_status"] = .array(numbers.filter { $0 != 0 }.map(TOMLValue.integer))
            }
            if !numbers.contains(0), program["restart"] == .string("on-failure") {
                program.remark("exit status 0 still counts as success, though exitcodes = \(codes) does not include it")
            }
        }
    }

    private func stopping(_ program: inout ImportedProgram) {
        if let text = section["stopsignal"], Amounts.signal(text) != "SIGTERM" {
            program["stop_signal"] = .string(Amounts.signal(text))
        }
        program["grace"] = .string("\(number("stopwaitsecs", 10, in: 0...1_000_000, &program))s")
        let asGroup = SupervisordValues.flag(section["stopasgroup"] ?? "false") ?? false
        program["kill_mode"] = .string(asGroup ? "all" : "main")
        if SupervisordValues.flag(section["killasgroup"] ?? "true") == false {
            program.remark(
                "killasgroup = false is left out: once grace is over, all its processes are killed",
                at: section.line(of: "killasgroup")
            )
        }
    }

    // MARK: Output

    private func output(_ expansion: SupervisordExpansion, _ program: inout ImportedProgram) {
        let isRedirected = SupervisordValues.flag(section["redirect_stderr"] ?? "false") ?? false
        let standard = target("stdout_logfile", expansion, &program)
        let error = isRedirected ? nil : target("stderr_logfile", expansion, &program)
        switch standard {
        case .inherit: program["log"] = .string("inherit")
        case .null: program["log"] = .string("null")
        case .file:
            program.remark(
                "its output is in the log directory, not in \(section["stdout_logfile"] ?? "") (stdout_logfile): "
                    + "‘torpor logs’ shows it",
                at: section.line(of: "stdout_logfile")
            )
        case nil: break
        }
        if let error, error != standard {
            let place =
                switch error {
                case .file:
                    "not to \(section["stderr_logfile"] ?? "") (stderr_logfile): stderr = \"PATH\" sends it there, "
                        + "where nothing rotates it"
                case .inherit: "not to supervisord's own (stderr_logfile)"
                case .null: "and is not discarded (stderr_logfile)"
                }
            program.remark(
                "standard error goes where its output goes, \(place)",
                at: section.line(of: "stderr_logfile")
            )
        }
        if isRedirected, section["stderr_logfile"] != nil {
            program.remark(
                "stderr_logfile is left out: redirect_stderr sends it where its output goes",
                at: section.line(of: "stderr_logfile")
            )
        }
        rotation(&program)
    }

    /// Translates the rotation of logs. In Torpor, one log contains both standard output and standard error.
    private func rotation(_ program: inout ImportedProgram) {
        for end in ["maxbytes", "backups"] {
            let keys = ["stdout_logfile_" + end, "stderr_logfile_" + end].filter { section[$0] != nil }
            guard let key = keys.first, let text = section[key] else { continue }
            if program["log"] != nil {
                program.remark(
                    "\(LeftOutKeys.list(keys)) \(keys.count > 1 ? "have" : "has") no effect: there is no file",
                    at: section.line(of: key)
                )
                continue
            }
            if end == "maxbytes", let bytes = Amounts.bytes(text) {
                program["log_max_size"] = .string(bytes == 0 ? "none" : Amounts.size(bytes))
            } else if end == "backups", let count = Int64(text) {
                program["log_max_files"] = .integer(count)
            } else {
                program.remark("\(key) = \(quoted(text)) is not a number, and is left out", at: section.line(of: key))
            }
            if keys.count > 1 {
                program.remark("\(keys[1]) is left out: both streams are in one log", at: section.line(of: keys[1]))
            }
        }
    }

    private enum Target: Equatable {
        case inherit
        case null
        case file(String)
    }

    private func target(_ key: String, _ expansion: SupervisordExpansion, _ program: inout ImportedProgram) -> Target? {
        guard let text = value(key, expansion, &program) else { return nil }
        switch text.lowercased() {
        case "auto": return nil
        case "none", "/dev/null": return .null
        case "syslog":
            program.remark(
                "\(key) = syslog is not translated: log = \"journal\" comes closest"
                    + JournalRemark.exception(section["command"] ?? "")
            )
            return nil
        case "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2", "/proc/1/fd/1", "/proc/1/fd/2", "/proc/self/fd/1",
            "/proc/self/fd/2":
            return .inherit
        default: return .file(SourceTree.join(folder, text))
        }
    }

    private func number(
        _ key: String,
        _ usual: Int,
        in range: ClosedRange<Int>,
        _ program: inout ImportedProgram
    ) -> Int {
        guard let text = section[key] else { return usual }
        var expansion = SupervisordExpansion(values: ["here": folder, "program_name": name], variables: tree.variables)
        expansion.currentOfSupervisord = defaults.currentVariables
        if let expanded = try? expansion.now(text), let value = Int(expanded.trimmed), range.contains(value) {
            return value
        }
        program.remark(
            "\(key) = \(quoted(text)) is not a valid number, and is taken as \(usual)",
            at: section.line(of: key)
        )
        return usual
    }
}
