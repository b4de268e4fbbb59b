// SPDX-License-Identifier: Apache-2.0

import Configuration
import WireText

/// Translates one systemd service.
struct SystemdService {
    let unit: SystemdUnit
    let units: SystemdUnits
    let tree: SourceTree
    let text: SystemdText
    /// The sections that other code translates, so that their keys get no remark.
    var own: Set<String> = []

    init(unit: SystemdUnit, units: SystemdUnits, tree: SourceTree) {
        self.unit = unit
        self.units = units
        self.tree = tree
        text = SystemdText(unit, tree: tree)
    }

    func value(_ key: String) -> String? { unit.value("Service", key).map(text.expanded) }

    /// The imported services that are started together with this service.
    var wanted: [String] {
        (["Wants", "Requires", "BindsTo", "Upholds", "Requisite"].flatMap { unit.lists("Unit", $0) }).compactMap(
            service
        )
    }

    /// The name of a service; nil for any other unit.
    private func service(_ name: String) -> String? {
        Systemd.service(text.expanded(name))
    }

    func read(into program: inout ImportedProgram) {
        kind(&program)
        guard program.isTranslated else { return }
        title(&program)
        environment(&program)
        guard commands(&program) else { return }
        place(&program)
        rest(&program)
        template(&program)
    }

    /// Translates a template. It becomes an app with instances if anything in the template depends on the instance.
    func template(_ program: inout ImportedProgram) {
        if unit.instance == "", !program.keys.values.allSatisfy({ !$0.text.contains("%i") }) {
            program["instances"] = .integer(1)
            program.remark("is a template: instances here are numbers, \(unit.prefix)@1 to \(unit.prefix)@N")
        }
    }

    /// Translates the settings that a service and a Quadlet container have in common: all except the command and how it
    /// is run.
    func readAround(into program: inout ImportedProgram) {
        title(&program)
        steps(&program)
        account(&program)
        rest(&program)
    }

    private func title(_ program: inout ImportedProgram) {
        if let title = unit.value("Unit", "Description").map(text.expanded) {
            if let problem = AppPresentation.problem(inTitle: title) {
                program.remark("Description is left out as a title: \(problem)", at: unit.line("Unit", "Description"))
            } else {
                program["title"] = .string(title)
            }
        }
    }

    private func rest(_ program: inout ImportedProgram) {
        order(&program)
        SystemdRestart(service: self).read(into: &program)
        SystemdResources(service: self).read(into: &program)
        output(&program)
        SystemdTriggers(service: self).read(into: &program)
        SystemdFailure(service: self).read(into: &program)
        SystemdRemarks(unit: unit, text: text, own: own).add(to: &program)
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
                "Type=notify-reload: SIGHUP is sent by ‘torpor signal HUP’ or by the key signals, not by a reload"
            )
        case "dbus":
            program.remark(
                "Type=dbus: it is ready as soon as it runs; Torpor does not look for its name on the bus (BusName)",
                at: unit.line("Service", "BusName") ?? unit.line("Service", "Type")
            )
        case "oneshot": program["type"] = .string("oneshot")
        case "forking":
            let command = unit.value("Service", "ExecStart")
            let name = SourceTree.lastPart(String((command ?? "").prefix { !$0.isWhitespace }))
            let known = ["nginx": "nginx -g 'daemon off;'", "redis-server": "redis-server --daemonize no"]
            program.cannot(
                "Type=forking: it detaches, but Torpor supervises the process that it starts: write a command that "
                    + "stays in the foreground (\(known[name].map { "such as ‘\($0)’" } ?? command.map(quoted) ?? "none"))",
                at: unit.line("Service", "Type")
            )
        default: program.remark("Type=\(type) is not known, and is taken as simple", at: unit.line("Service", "Type"))
        }
        if type != "dbus", unit.value("Service", "BusName") != nil {
            program.remark(
                "BusName is left out: Torpor does not look for names on the bus",
                at: unit.line("Service", "BusName")
            )
        }
    }

    func parsed(_ key: String, _ program: inout ImportedProgram) -> [SystemdCommand] {
        var commands: [SystemdCommand] = []
        for line in unit.values("Service", key) {
            guard let found = SystemdCommand.commands(line, text) else {
                program.remark("\(key)=\(line) cannot be read, and is left out", at: unit.line("Service", key))
                continue
            }
            for command in found {
                if let privileges = command.privileges {
                    program.remark("\(key): “\(privileges)” is not translated: it runs as the app's user")
                }
                if let name = command.shownName {
                    program.remark("\(key): it gets its own name as argv[0], not \(quoted(name))")
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
            if first.isForgiven { program.remark("ExecStart: a failure counts, in spite of its prefix “-”") }
        } else {
            let lines = start.map { $0.words.map(Late.shell).joined(separator: " ") + ($0.isForgiven ? " || :" : "") }
            let set = defaults.map { "[ \"${\($0.name)+x}\" ] || export \($0.name)=\(ShellWords.quote($0.value))" }
            program["exec"] = .strings(["/bin/sh", "-c", "set -e -f\n" + (set + lines).joined(separator: "\n")])
        }
        steps(&program)
        return true
    }

    /// Translates the launch deadline, and the commands that run before and after the main command.
    private func steps(_ program: inout ImportedProgram) {
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
                at: unit.line("Service", "ExecStartPost")
            )
        }
        ending(&program)
    }

    private func hooks(_ key: String, _ commands: [SystemdCommand], _ limit: String, _ program: inout ImportedProgram) {
        guard !commands.isEmpty else { return }
        let deadline = deadline(limit, key, &program) ?? .string("90s")
        let lines = commands.map { command in
            key == "after_stop" && SystemdEnding.isUsed(by: command.words, tree)
                ? SystemdEnding.translated(command.hook) : command.hook
        }
        program[key] = .array(lines.map { .table([("command", .strings($0)), ("deadline", deadline)]) })
    }

    /// Translates `ExecStop=`. A command that only sends a signal becomes the stop signal; other commands get a
    /// remark.
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
                    "ExecStop is not translated: it gets its stop signal, not \(quoted(line))",
                    at: unit.line("Service", "ExecStop")
                )
            }
        }
        for line in unit.values("Service", "ExecReload") {
            program.remark(
                "ExecReload is not translated: ‘torpor signal SIGNAL \(Names.valid(program.name))’ comes closest to "
                    + quoted(line),
                at: unit.line("Service", "ExecReload")
            )
        }
    }

    func deadline(_ limit: String, _ key: String, _ program: inout ImportedProgram) -> TOMLValue? {
        if limit == "infinity" || limit == "0" { return .string("none") }
        guard let seconds = Amounts.systemd(limit), let text = Amounts.duration(seconds: seconds) else {
            program.remark("\(key)=\(limit) is not a time, and is left out")
            return nil
        }
        return .string(seconds == 0 ? "none" : text)
    }

    // MARK: Where

    /// The variables of `Environment=`. If several have the same name, the last one counts.
    func variables(_ program: inout ImportedProgram) -> OrderedTable<String> {
        var variables = OrderedTable<String>()
        for value in unit.values("Service", "Environment") {
            for word in SystemdText.words(value) ?? [] {
                guard let (name, value) = ShellWords.assignment(text.expanded(word)) else {
                    program.remark("Environment: \(quoted(word)) is not NAME=VALUE, and is left out")
                    continue
                }
                variables[name] = value
            }
        }
        return variables
    }

    /// Variables that a shell must set unless they are set already. If a unit has both `Environment=` and environment
    /// files, the files override `Environment=`. In Torpor, `environment` overrides files, so the variables of
    /// `Environment=` cannot become `environment` then, except those that torpord sets itself.
    private var defaults: [(name: String, value: String)] {
        guard !unit.values("Service", "EnvironmentFile").isEmpty else { return [] }
        var nobody = ImportedProgram("")
        return variables(&nobody).filter { !Self.isGiven($0.key) }.map { ($0.key, $0.value) }
    }

    /// Whether every app has the variable, or every app with a user: a shell finds it set in any case.
    private static func isGiven(_ name: String) -> Bool {
        ["PATH", "LANG", "HOME", "USER", "LOGNAME", "SHELL"].contains(name) || name.hasPrefix("LC_")
    }

    private func environment(_ program: inout ImportedProgram) {
        let variables = variables(&program)
        let files = unit.values("Service", "EnvironmentFile").map(text.expanded)
        for file in files { program.append(to: "environment_file", .string(file)) }
        let inFiles = Set(files.flatMap { names(in: $0) })
        for (name, value) in variables where files.isEmpty || (Self.isGiven(name) && !inFiles.contains(name)) {
            program.setVariable(name, value)
            if files.isEmpty { continue }
            program.remark(
                "\(name) of Environment is in environment, which wins over environment_file: no file sets it now",
                at: unit.line("Service", "Environment")
            )
        }
        for key in ["PassEnvironment", "UnsetEnvironment"] where !unit.values("Service", key).isEmpty {
            program.remark(
                "\(key) is not translated: an app gets the variables of torpord",
                at: unit.line("Service", key)
            )
        }
    }

    /// The names of the variables that an environment file sets; none if the file cannot be read.
    private func names(in file: String) -> [String] {
        let path = file.hasPrefix("-") ? String(file.dropFirst()) : file
        guard let bytes = tree.read(path), let variables = try? EnvironmentFile.parse(bytes, file: path) else {
            return []
        }
        return variables.map(\.name)
    }

    private func place(_ program: inout ImportedProgram) {
        account(&program)
        if var directory = value("WorkingDirectory") {
            if directory.hasPrefix("-") { directory.removeFirst() }
            if directory == "~" {
                // In Torpor, the default directory is the home of the app's user.
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

    private func account(_ program: inout ImportedProgram) {
        if let user = value("User") { program["user"] = .string(user) }
        if let group = value("Group") { program["group"] = .string(group) }
        let groups = unit.lists("Service", "SupplementaryGroups").map(text.expanded)
        if !groups.isEmpty { program["supplementary_groups"] = .strings(groups) }
        if let mask = value("UMask") { program["umask"] = .string(mask) }
        if let nice = integer("Nice", &program) { program["nice"] = .integer(nice) }
    }

    /// The value of a key as a number. If it is not a number, adds a remark.
    func integer(_ key: String, _ program: inout ImportedProgram) -> Int64? {
        guard let text = value(key) else { return nil }
        if let number = Int64(text) { return number }
        program.remark("\(key)=\(text) is not a number, and is left out", at: unit.line("Service", key))
        return nil
    }

    // MARK: Order

    private func order(_ program: inout ImportedProgram) {
        for key in ["Requires", "BindsTo", "Requisite"] {
            program.requires += known(key, &program)
        }
        for key in ["Wants", "After", "Upholds"] { program.after += known(key, &program) }
        // ``Systemd`` translates `Before=` to `after` of the other service. Only add the remarks here.
        _ = known("Before", &program)
        for key in ["PartOf", "Conflicts"] where !unit.lists("Unit", key).isEmpty {
            let names = unit.lists("Unit", key).joined(separator: " ")
            program.remark("\(key)=\(names) is not translated", at: unit.line("Unit", key))
        }
        let installs = ["WantedBy", "RequiredBy", "UpheldBy"].contains { !unit.lists("Install", $0).isEmpty }
        if !installs { program["launch"] = .string("on-demand") }
        if unit.suffix == ".service", !unit.isUser, value("User") == nil,
            unit.lists("Install", "WantedBy").contains("default.target")
        {
            program.remark(
                "WantedBy=default.target: it is taken as a system unit; a user unit runs in the user's home: "
                    + "write directory, or import it from a folder user/",
                at: unit.line("Install", "WantedBy")
            )
        }
    }

    /// The imported services that a key names. Adds remarks about other units that the key names.
    private func known(_ key: String, _ program: inout ImportedProgram) -> [String] {
        var found: [String] = []
        var others: [String] = []
        for name in unit.lists("Unit", key) {
            if units.made.contains(WireText(name)) { continue }
            if let title = service(name), let app = units.names[WireText(title)] {
                found.append(app)
            } else {
                others.append(name)
            }
        }
        if !others.isEmpty {
            program.remark(
                "\(key)=\(others.joined(separator: " ")) is left out: units that are not imported must be running when "
                    + "torpord starts",
                at: unit.line("Unit", key)
            )
        }
        return found
    }

    // MARK: Output

    private func output(_ program: inout ImportedProgram) {
        let standard = value("StandardOutput") ?? "inherit"
        let place = unit.line("Service", "StandardOutput")
        switch standard.prefix(while: { $0 != ":" }) {
        case "null": program["log"] = .string("null")
        case "file", "append", "truncate":
            program.remark(
                "its output is in the log directory, not in \(standard.drop { $0 != ":" }.dropFirst()) "
                    + "(StandardOutput): ‘torpor logs’ shows it",
                at: place
            )
        case "journal", "syslog", "kmsg", "journal+console", "syslog+console":
            program.remark(
                "StandardOutput=\(standard): its output is in the log directory, and log = \"journal\" sends it to the journal"
                    + JournalRemark.exception(value("ExecStart") ?? ""),
                at: place
            )
        case "inherit": break
        default: program.remark("StandardOutput=\(standard) is not translated", at: place)
        }
        let error = value("StandardError") ?? "inherit"
        if error != "inherit", error != standard {
            program.remark(
                "StandardError=\(error) is not translated: standard error goes where its output goes",
                at: unit.line("Service", "StandardError")
            )
        }
        if let input = value("StandardInput"), input != "null" {
            if input.hasPrefix("file:") {
                program["stdin"] = .string(String(input.dropFirst(5)))
            } else {
                program.remark("StandardInput=\(input) is not translated", at: unit.line("Service", "StandardInput"))
            }
        }
    }
}
