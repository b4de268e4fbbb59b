/// One `[program:x]`.
struct SupervisordProgram {
    let name: String
    let section: INI.Section
    let supervisor: INI.Section?
    let group: String?
    /// The folder of its file, `%(here)s`.
    let folder: String
    let tree: SourceTree

    /// Keys with a reader of their own.
    private static let known: Set = [
        "command", "process_name", "numprocs", "numprocs_start", "priority", "autostart", "autorestart", "startsecs",
        "startretries", "exitcodes", "stopsignal", "stopwaitsecs", "stopasgroup", "killasgroup", "user", "directory",
        "umask", "environment", "redirect_stderr", "stdout_logfile", "stdout_logfile_maxbytes",
        "stdout_logfile_backups", "stderr_logfile", "stderr_logfile_maxbytes", "stderr_logfile_backups",
    ]
    /// Keys that mean something only within supervisord, and why nothing is lost with them.
    private static let idle: Set = [
        "stdout_capture_maxbytes", "stderr_capture_maxbytes", "stdout_events_enabled", "stderr_events_enabled",
        "serverurl", "stdout_syslog", "stderr_syslog",
    ]

    /// The program, or one for each of its processes where their numbers count from elsewhere than 1.
    func programs() -> [ImportedProgram] {
        var program = ImportedProgram(name, line: section.line)
        let count = number("numprocs", 1, in: 1...1000, &program)
        let start = number("numprocs_start", 0, in: -100_000...10_000_000, &program)
        let isNumbered = section.entries.contains { entry in
            entry.key != "process_name" && !entry.key.hasSuffix("logfile") && entry.value.contains("%(process_num)")
        }
        let isFormatted = section.entries.contains { $0.key != "process_name" && $0.value.contains("%(process_num)0") }
        guard count > 1 else { return [filled(program, number: "\(start)", count: 1)] }
        guard isNumbered, start != 1 || isFormatted else {
            program["instances"] = .integer(Int64(count))
            program.remark("its processes are \(Names.valid(name))@1 to \(Names.valid(name))@\(count)")
            return [filled(program, number: "%i", count: count)]
        }
        return (start..<start + count).map { number in
            var one = program
            one.name = "\(name)-\(number)"
            one.template = name
            return filled(one, number: "\(number)", count: count)
        }
    }

    private func filled(_ base: ImportedProgram, number: String, count: Int) -> ImportedProgram {
        var program = base
        let expansion = SupervisordExpansion(
            values: [
                "here": folder, "program_name": name, "process_num": number, "numprocs": "\(count)",
                "group_name": group ?? name, "host_node_name": tree.variables["HOSTNAME"] ?? "localhost",
            ],
            variables: tree.variables
        )
        program.priority = self.number("priority", 999, in: -1_000_000...1_000_000, &program)
        command(expansion, &program)
        place(expansion, &program)
        starting(expansion, &program)
        stopping(&program)
        output(expansion, &program)
        for entry in section.entries where !Self.known.contains(entry.key) {
            if Self.idle.contains(entry.key) {
                if entry.key.hasSuffix("syslog") {
                    program.remark(
                        "\(entry.key) is not translated: log = \"journal\" is what comes closest",
                        line: entry.line
                    )
                }
                continue
            }
            program.remark(
                "\(entry.key) = \(quoted(entry.value)) is no key of supervisord, and is left out",
                line: entry.line
            )
        }
        return program
    }

    // MARK: What runs, and where

    private func command(_ expansion: SupervisordExpansion, _ program: inout ImportedProgram) {
        guard let text = section["command"], !text.isEmpty else { return program.cannot("it has no command") }
        do throws(SupervisordExpansion.Failure) {
            var set: [(name: String, value: String)] = []
            for section in [supervisor, self.section] {
                guard let text = section?["environment"] else { continue }
                guard let variables = SupervisordValues.environment(try expansion.late(text)) else {
                    program.remark(
                        "environment is not KEY=\"value\",KEY=\"value\", and is left out",
                        line: section?.line(of: "environment")
                    )
                    continue
                }
                for (name, value) in variables {
                    set.removeAll { $0.name == name }
                    set.append((name, value))
                }
            }
            for (name, value) in set where !Late.isIn(value) { program.setVariable(name, value) }
            guard let words = ShellWords.split(try expansion.late(text)), let first = words.first, !first.isEmpty else {
                return program.cannot("its command has a quote that is not closed", line: section.line(of: "command"))
            }
            program["exec"] = .strings(Late.command(words, variables: set.filter { Late.isIn($0.value) }))
        } catch {
            program.cannot(error.message)
        }
    }

    /// The value of a key that must be known at once.
    private func value(_ key: String, _ expansion: SupervisordExpansion, _ program: inout ImportedProgram) -> String? {
        guard let text = section[key], !text.isEmpty else { return nil }
        do throws(SupervisordExpansion.Failure) {
            return try expansion.now(text)
        } catch {
            program.remark("\(key) is left out: \(error.message)", line: section.line(of: key))
            return nil
        }
    }

    private func place(_ expansion: SupervisordExpansion, _ program: inout ImportedProgram) {
        let isDaemon = !(SupervisordValues.flag(supervisor?["nodaemon"] ?? "false") ?? false)
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
                    line: section.line(of: "directory")
                )
            }
        } else if let directory = supervisor?["directory"], isDaemon, let path = try? expansion.now(directory),
            path.hasPrefix("/")
        {
            program["directory"] = .string(path)
        }
        if let user = value("user", expansion, &program) {
            let parts = user.split(separator: ":", maxSplits: 1).map(String.init)
            program["user"] = .string(parts.first ?? user)
            if parts.count > 1 { program["group"] = .string(parts[1]) }
        }
        if let mask = value("umask", expansion, &program) ?? (isDaemon ? supervisor?["umask"] : nil) {
            program["umask"] = .string(mask)
        }
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
        let seconds = number("startsecs", 1, in: 0...1_000_000, &program)
        let retries = number("startretries", 3, in: 0...10_000, &program)
        if program["restart"] != .string("never") {
            program["stable_after"] = .string("\(seconds)s")
            // It tries again after 1 s, then 2 s and so on; within the window they are failures one after the other.
            let window = retries * seconds + retries * (retries + 1) / 2 + 1
            program["restart_backoff"] =
                seconds == 0
                ? .table([("initial", .string("100ms")), ("factor", .integer(1)), ("limit", .integer(10_000))])
                : .table([
                    ("initial", .string("1s")), ("limit", .integer(Int64(retries))), ("window", .string("\(window)s")),
                ])
        }
        if let codes = section["exitcodes"] {
            let numbers = codes.split { $0 == "," || $0 == " " }.compactMap { Int64($0) }
            if numbers.contains(where: { $0 != 0 }) {
                program["success_exit_status"] = .array(numbers.filter { $0 != 0 }.map(TOMLValue.integer))
            }
            if !numbers.contains(0), program["restart"] == .string("on-failure") {
                program.remark("exit status 0 is success all the same, though exitcodes = \(codes) leaves it out")
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
    }

    // MARK: Output

    private func output(_ expansion: SupervisordExpansion, _ program: inout ImportedProgram) {
        let isRedirected = SupervisordValues.flag(section["redirect_stderr"] ?? "false") ?? false
        let standard = target("stdout_logfile", expansion, &program)
        let error = isRedirected ? nil : target("stderr_logfile", expansion, &program)
        switch standard {
        case .inherit: program["log"] = .string("inherit")
        case .null: program["log"] = .string("null")
        case .file(let path):
            program.remark("its output is in the log directory, and not in \(path): ‘torpor logs’ shows it")
        case nil: break
        }
        switch error {
        case .file(let path):
            if error != standard { program["stderr"] = .string(path) }
        case .inherit:
            if standard != .inherit {
                program.remark("standard error goes where its output goes, and not to supervisord's own")
            }
        case .null:
            if standard != .null { program.remark("standard error goes where its output goes, and not to nowhere") }
        case nil: break
        }
        guard program["log"] == nil else { return }
        if let text = section["stdout_logfile_maxbytes"], let bytes = Amounts.bytes(text) {
            program["log_max_size"] = .string(bytes == 0 ? "none" : Amounts.size(bytes))
        }
        if let text = section["stdout_logfile_backups"], let count = Int64(text) {
            program["log_max_files"] = .integer(count)
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
            program.remark("\(key) = syslog is not translated: log = \"journal\" is what comes closest")
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
        let expansion = SupervisordExpansion(values: ["here": folder, "program_name": name], variables: tree.variables)
        if let expanded = try? expansion.now(text), let value = Int(expanded.trimmed), range.contains(value) {
            return value
        }
        program.remark(
            "\(key) = \(quoted(text)) is no number here, and is taken as \(usual)",
            line: section.line(of: key)
        )
        return usual
    }
}
