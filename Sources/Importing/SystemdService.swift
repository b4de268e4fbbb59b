import Configuration

/// One service of systemd.
struct SystemdService {
    let unit: SystemdUnit
    let units: [SystemdUnit]
    let tree: SourceTree
    let text: SystemdText

    init(unit: SystemdUnit, units: [SystemdUnit], tree: SourceTree) {
        self.unit = unit
        self.units = units
        self.tree = tree
        text = SystemdText(unit, variables: tree.variables)
    }

    func value(_ key: String) -> String? { unit.value("Service", key).map(text.expanded) }

    /// Of the services that are imported, those that this one starts.
    var wanted: [String] {
        (["Wants", "Requires", "BindsTo", "Upholds", "Requisite"].flatMap { unit.lists("Unit", $0) }).compactMap(
            service
        )
    }

    /// The name of a service, of whatever other unit nil.
    private func service(_ name: String) -> String? {
        name.hasSuffix(".service") ? String(text.expanded(name).dropLast(8)) : nil
    }

    func read(into program: inout ImportedProgram) {
        kind(&program)
        guard program.isTranslated else { return }
        // Longer ones are sentences, and no loss.
        if let title = unit.value("Unit", "Description").map(text.expanded),
            AppPresentation.problem(inTitle: title) == nil
        {
            program["title"] = .string(title)
        }
        environment(&program)
        guard commands(&program) else { return }
        place(&program)
        order(&program)
        SystemdRestart(service: self).read(into: &program)
        SystemdResources(service: self).read(into: &program)
        output(&program)
        SystemdTriggers(service: self).read(into: &program)
        if unit.instance == "", !program.keys.values.allSatisfy({ !$0.text.contains("%i") }) {
            program["instances"] = .integer(1)
            program.remark("is a template: instances here are numbers, \(unit.prefix)@1 to \(unit.prefix)@N")
        }
        SystemdRemarks.add(unit, &program)
    }

    // MARK: What runs

    private func kind(_ program: inout ImportedProgram) {
        let type = value("Type") ?? (unit.value("Service", "BusName") != nil ? "dbus" : "simple")
        switch type {
        case "simple", "exec", "idle": break
        case "notify": program["ready"] = .string("notify")
        case "notify-reload":
            program["ready"] = .string("notify")
            program.remark(
                "Type=notify-reload: SIGHUP is sent by ‘torpor signal HUP’ or by the key signals, and not by a reload"
            )
        case "dbus":
            program.remark("Type=dbus: it is ready as soon as it runs; Torpor does not look for its name on the bus")
        case "oneshot": program["type"] = .string("oneshot")
        case "forking":
            program.cannot(
                "Type=forking: it leaves its starter, and Torpor supervises what it starts; write the command that stays in the "
                    + "foreground (\(unit.value("Service", "ExecStart").map(quoted) ?? "none"))",
                line: unit.line("Service", "Type")
            )
        default: program.remark("Type=\(type) is not known, and is taken as simple", line: unit.line("Service", "Type"))
        }
    }

    private func parsed(_ key: String, _ program: inout ImportedProgram) -> [SystemdCommand] {
        var commands: [SystemdCommand] = []
        for line in unit.values("Service", key) {
            guard let found = SystemdCommand.commands(line, text) else {
                program.remark("\(key)=\(line) cannot be read, and is left out", line: unit.line("Service", key))
                continue
            }
            for command in found {
                if let privileges = command.privileges {
                    program.remark("\(key): “\(privileges)” is not translated, it runs as the app's user")
                }
                if let name = command.shownName {
                    program.remark("\(key): it sees its own name, and not \(quoted(name))")
                }
            }
            commands += found
        }
        return commands
    }

    private func commands(_ program: inout ImportedProgram) -> Bool {
        let start = parsed("ExecStart", &program)
        guard let first = start.first else {
            program.cannot("it has no ExecStart that can be read")
            return false
        }
        if start.count == 1 {
            program["exec"] = .strings(Late.command(first.words, defaults: defaults))
            if first.isForgiven { program.remark("ExecStart: a failure counts as one, although “-” stands before it") }
        } else {
            let lines = start.map { $0.words.map(Late.shell).joined(separator: " ") + ($0.isForgiven ? " || :" : "") }
            let set = defaults.map { "[ \"${\($0.name)+x}\" ] || export \($0.name)=\(ShellWords.quote($0.value))" }
            program["exec"] = .strings(["/bin/sh", "-c", "set -e -f\n" + (set + lines).joined(separator: "\n")])
        }
        let limit = value("TimeoutStartSec") ?? value("TimeoutSec") ?? (value("Type") == "oneshot" ? "infinity" : "90s")
        let isWaiting = program["ready"] != nil || program["type"] != nil
        if isWaiting { program["launch_deadline"] = deadline(limit, "TimeoutStartSec", &program) }
        hooks("before_start", parsed("ExecCondition", &program) + parsed("ExecStartPre", &program), limit, &program)
        hooks(
            "after_stop",
            parsed("ExecStopPost", &program),
            value("TimeoutStopSec") ?? value("TimeoutSec") ?? "90s",
            &program
        )
        if !unit.values("Service", "ExecStartPost").isEmpty {
            program.remark(
                "ExecStartPost is not translated: \(unit.values("Service", "ExecStartPost").joined(separator: "; "))",
                line: unit.line("Service", "ExecStartPost")
            )
        }
        ending(&program)
        return true
    }

    private func hooks(_ key: String, _ commands: [SystemdCommand], _ limit: String, _ program: inout ImportedProgram) {
        guard !commands.isEmpty else { return }
        let deadline = deadline(limit, key, &program) ?? .string("90s")
        program[key] = .array(commands.map { .table([("command", .strings($0.hook)), ("deadline", deadline)]) })
    }

    /// `ExecStop=` that only sends a signal is a stop signal; anything else is told.
    private func ending(_ program: inout ImportedProgram) {
        for line in unit.values("Service", "ExecStop") {
            let words = SystemdText.words(line) ?? []
            let isKill = words.count >= 2 && words.last == "$MAINPID" && SourceTree.lastPart(words[0]).hasSuffix("kill")
            let options = words.dropFirst().dropLast().filter { $0 != "-s" }
            if isKill, options.count <= 1 {
                let name = options.first.map { $0.hasPrefix("-") ? String($0.dropFirst()) : $0 } ?? "TERM"
                program["stop_signal"] = .string(Amounts.signal(name))
            } else {
                program.remark(
                    "ExecStop is not translated, it gets its stop signal: \(quoted(line))",
                    line: unit.line("Service", "ExecStop")
                )
            }
        }
        for line in unit.values("Service", "ExecReload") {
            program.remark(
                "ExecReload is not translated: ‘torpor signal SIGNAL \(Names.valid(program.name))’ is what comes closest to \(quoted(line))",
                line: unit.line("Service", "ExecReload")
            )
        }
    }

    func deadline(_ limit: String, _ key: String, _ program: inout ImportedProgram) -> TOMLValue? {
        if limit == "infinity" || limit == "0" { return .string("none") }
        guard let seconds = Amounts.systemd(limit), let text = Amounts.duration(seconds: seconds) else {
            program.remark("\(key)=\(limit) is no time, and is left out")
            return nil
        }
        return .string(seconds == 0 ? "none" : text)
    }

    // MARK: Where

    /// `NAME=VALUE` of `Environment=`, the last of a name.
    private func variables(_ program: inout ImportedProgram) -> [(name: String, value: String)] {
        var variables: [(name: String, value: String)] = []
        for value in unit.values("Service", "Environment") {
            for word in SystemdText.words(value) ?? [] {
                guard let (name, value) = ShellWords.assignment(text.expanded(word)) else {
                    program.remark("Environment: \(quoted(word)) is no NAME=VALUE, and is left out")
                    continue
                }
                variables.removeAll { $0.name == name }
                variables.append((name, value))
            }
        }
        return variables
    }

    /// Files win over `Environment=` with systemd, and `environment` over files with Torpor: where there are both, the
    /// variables are set by a shell, unless a file has them.
    private var defaults: [(name: String, value: String)] {
        guard !unit.values("Service", "EnvironmentFile").isEmpty else { return [] }
        var nobody = ImportedProgram("")
        return variables(&nobody)
    }

    private func environment(_ program: inout ImportedProgram) {
        let variables = variables(&program)
        let files = unit.values("Service", "EnvironmentFile")
        if files.isEmpty { for (name, value) in variables { program.setVariable(name, value) } }
        for file in files { program.append(to: "environment_file", .string(text.expanded(file))) }
        for key in ["PassEnvironment", "UnsetEnvironment"] where !unit.values("Service", key).isEmpty {
            program.remark(
                "\(key) is not translated: an app has the variables of torpord",
                line: unit.line("Service", key)
            )
        }
    }

    private func place(_ program: inout ImportedProgram) {
        if let user = value("User") { program["user"] = .string(user) }
        if let group = value("Group") { program["group"] = .string(group) }
        let groups = unit.lists("Service", "SupplementaryGroups").map(text.expanded)
        if !groups.isEmpty { program["supplementary_groups"] = .strings(groups) }
        if let mask = value("UMask") { program["umask"] = .string(mask) }
        if let nice = value("Nice").flatMap({ Int64($0) }) { program["nice"] = .integer(nice) }
        if var directory = value("WorkingDirectory") {
            if directory.hasPrefix("-") { directory.removeFirst() }
            if directory == "~" {
                // Torpor's own default is the home of its user.
                if value("User") == nil { program["directory"] = .string(text.specifiers["h"] ?? "/root") }
            } else {
                program["directory"] = .string(SourceTree.join("/", directory))
            }
        } else if unit.isUser {
            program["directory"] = text.specifiers["h"].map(TOMLValue.string)
        } else if value("User") != nil {
            program["directory"] = .string("/")
        }
    }

    // MARK: Order

    private func order(_ program: inout ImportedProgram) {
        let known = Set(units.filter { $0.suffix == ".service" }.map(\.title))
        for key in ["Requires", "BindsTo", "Requisite"] {
            program.requires += unit.lists("Unit", key).compactMap(service)
        }
        for key in ["Wants", "After", "Upholds"] {
            // A service of the machine that is not imported is there anyway.
            program.after += unit.lists("Unit", key).compactMap(service).filter(known.contains)
        }
        for key in ["PartOf", "Conflicts"] {
            let names = unit.lists("Unit", key).compactMap(service).filter(known.contains)
            if !names.isEmpty {
                program.remark("\(key)=\(names.joined(separator: " ")) is not translated", line: unit.line("Unit", key))
            }
        }
        let installs = ["WantedBy", "RequiredBy", "UpheldBy"].contains { !unit.lists("Install", $0).isEmpty }
        if !installs { program["launch"] = .string("on-demand") }
    }

    // MARK: Output

    private func output(_ program: inout ImportedProgram) {
        let standard = value("StandardOutput") ?? "journal"
        switch standard.prefix(while: { $0 != ":" }) {
        case "null": program["log"] = .string("null")
        case "file", "append", "truncate":
            program.remark(
                "its output is in the log directory, and not in \(standard.drop { $0 != ":" }.dropFirst()): ‘torpor logs’ shows it"
            )
        case "inherit", "journal", "syslog", "kmsg", "journal+console", "syslog+console": break
        default:
            program.remark("StandardOutput=\(standard) is not translated", line: unit.line("Service", "StandardOutput"))
        }
        let error = value("StandardError") ?? "inherit"
        switch error.prefix(while: { $0 != ":" }) {
        case "file", "append", "truncate":
            let path = String(error.drop { $0 != ":" }.dropFirst())
            if error != standard { program["stderr"] = .string(path) }
        case "null":
            if standard != "null" { program.remark("standard error goes where its output goes, and not to nowhere") }
        case "inherit", "journal", "syslog": break
        default: program.remark("StandardError=\(error) is not translated", line: unit.line("Service", "StandardError"))
        }
        if let input = value("StandardInput"), input != "null" {
            if input.hasPrefix("file:") {
                program["stdin"] = .string(String(input.dropFirst(5)))
            } else {
                program.remark("StandardInput=\(input) is not translated", line: unit.line("Service", "StandardInput"))
            }
        }
    }
}
