// SPDX-License-Identifier: Apache-2.0

import CalendarTime
import Configuration

/// Translates one app of an ecosystem file.
struct PM2App {
    /// The highest limit of restarts that a configuration can have: with this limit, torpord in practice never gives up
    /// the app.
    static let noLimit = 10_000

    let node: DataNode
    let folder: String
    let tree: SourceTree
    /// The PATH of the shell in which the user started the app. PM2 passed it on to the app.
    var path: String

    /// The command of an app.
    private struct Command {
        var words: [String]
        /// The program that runs the script; nil if the script is executed directly.
        var interpreter: String?
        /// The variables that are assigned at the beginning of a shell line.
        var variables = ImportedProgram("")
        /// Whether the script is a shell line. PM2 runs a shell line in cluster mode only if `exec_mode` says so.
        var isLine = false
    }

    /// The interpreter that PM2 uses for a script, by the script's extension.
    private static let interpreters: [String: String] = [
        "js": "node", "cjs": "node", "mjs": "node", "py": "python3", "sh": "bash", "rb": "ruby", "pl": "perl",
        "php": "php", "coffee": "coffee", "ls": "lsc", "ts": "ts-node", "tsx": "ts-node",
    ]
    private static let known: Set = [
        "name", "script", "cmd", "command", "exec", "args", "cwd", "interpreter", "exec_interpreter",
        "interpreter_args", "interpreterArgs", "node_args", "out", "out_log", "err", "err_log", "listen_timeout",
        "instances", "exec_mode", "watch", "env", "autorestart", "max_restarts", "min_uptime", "restart_delay",
        "exp_backoff_restart_delay", "max_memory_restart", "kill_timeout", "error_file", "out_file", "err_file",
        "output", "error", "log_file", "log", "cron_restart", "cron", "uid", "gid", "user", "namespace", "env_file",
        "stop_exit_codes", "wait_ready", "shutdown_with_message", "disable_logs", "autostart", "treekill", "port",
        "instance_var", "increment_var",
    ]
    /// The known keys whose value must be a single text.
    private static let texts: Set = [
        "out", "out_log", "err", "err_log", "cwd", "interpreter", "exec_interpreter", "exec_mode", "max_memory_restart",
        "error_file", "out_file",
        "err_file", "output", "error", "log_file", "log", "cron_restart", "cron", "uid", "gid", "user", "namespace",
        "env_file", "port", "instance_var", "increment_var",
    ]
    private static let log = "the log of an app has its own timestamps, both streams, and a file for each instance"
    private static let watch = "watch is not translated"
    private static let monitor = "Torpor measures an app only from outside, through the kernel"
    private static let processes = "‘torpor status’ and ‘torpor list --json’ show the process"
    private static let daemon = "only PM2 itself uses such keys"
    /// Keys that have no meaning for an app of Torpor, each with the reason.
    private static let idle: [String: String] = [
        "log_date_format": log, "time": log, "log_type": log, "merge_logs": log, "combine_logs": log,
        "ignore_watch": watch, "watch_delay": watch, "watch_options": watch, "pmx": monitor, "automation": monitor,
        "trace": monitor, "deep_monitoring": monitor, "disable_trace": monitor, "vizion": daemon, "force": daemon,
        "post_update": daemon, "append_env_to_name": daemon, "appendEnvToName": daemon, "windowsHide": daemon,
        "pid": processes, "pid_file": processes,
        "source_map_support": "node does it with node_args = \"--enable-source-maps\"",
        "disable_source_map_support": "node does it only with --enable-source-maps",
        "filter_env": "an app gets the variables of torpord, not those of its caller",
        "exec_args": "its name is now interpreter_args",
    ]

    func read(into program: inout ImportedProgram) {
        let directory = node["cwd"]?.text.map { SourceTree.join(folder, $0) } ?? folder
        program["directory"] = .string(directory)
        guard let command = command(directory, &program) else { return }
        program["exec"] = .strings(command.words)
        environment(&program)
        if command.interpreter?.contains("python") == true { program.setVariable("PYTHONUNBUFFERED", "1") }
        if case .table(let assigned)? = command.variables["environment"] {
            for case (let name, .string(let value)) in assigned { program.setVariable(name, value) }
        }
        SearchPath(path: path, tree: tree, directory: directory).keep(for: &program)
        accounts(&program)
        PM2Instances(node: node, tree: tree, isNode: isNode(command.words), isLine: command.isLine).read(into: &program)
        restarts(&program)
        if let text = node["max_memory_restart"]?.text {
            if let bytes = Amounts.bytes(text), bytes > 0 {
                program["memory_limit"] = .string(Amounts.size(bytes))
            } else {
                program.remark("max_memory_restart = \(quoted(text)) is not a size, and is left out")
            }
        }
        output(&program)
        others(&program)
    }

    // MARK: The program

    private func arguments(_ key: String) -> [String] {
        guard let node = node[key] else { return [] }
        if let list = node.list { return list.compactMap(\.text) }
        return node.text.flatMap { ShellWords.split($0) ?? $0.split(separator: " ").map(String.init) } ?? []
    }

    /// The app's script. PM2 accepts several keys for it.
    static func script(_ node: DataNode) -> String? {
        ["script", "cmd", "command", "exec"].lazy.compactMap { node[$0]?.text }.first { !$0.isEmpty }
    }

    private func command(_ directory: String, _ program: inout ImportedProgram) -> Command? {
        guard let script = Self.script(node) else {
            program.cannot("it has no script")
            return nil
        }
        if script == "serve", node["interpreter"] == nil, !tree.exists(directory + "/serve") {
            program.cannot(
                "serve is PM2's own file server (PM2_SERVE_PATH, PM2_SERVE_PORT): write the command of another one, "
                    + "such as ‘python3 -m http.server 8080 --directory PATH’"
            )
            return nil
        }
        let path =
            script.hasPrefix("~/")
            ? SourceTree.join(tree.variables["HOME"] ?? "/root", String(script.dropFirst(2)))
            : SourceTree.join(directory, script)
        if script.contains(" "), !tree.exists(path) { return line(script, directory, &program) }
        let arguments = self.arguments("args")
        let options =
            ["interpreter_args", "interpreterArgs", "node_args"].lazy.map { self.arguments($0) }
            .first { !$0.isEmpty } ?? []
        let interpreter = interpreter(&program)
        let last = SourceTree.lastPart(script)
        let suffix = last.contains(".") ? last.split(separator: ".").last.map { $0.lowercased() } : nil
        if !script.contains("/"), suffix == nil || Self.interpreters[suffix ?? ""] == nil, !tree.exists(path),
            interpreter == nil || interpreter == "none" || interpreter == "node"
        {
            // The script is the name of a program on the PATH, such as npm.
            return Command(words: [script] + arguments)
        }
        switch interpreter {
        case "none": return Command(words: [path] + arguments)
        case .some(let name): return Command(words: [name] + options + [path] + arguments, interpreter: name)
        case nil:
            // PM2 runs a file as JavaScript if it has no known extension and is not a binary.
            let bytes = tree.read(path)?.prefix(2)
            if suffix.flatMap({ Self.interpreters[$0] }) == nil, let bytes,
                bytes.elementsEqual([0x7f, 0x45]) || bytes.elementsEqual("#!".utf8)
            {
                return Command(words: [path] + arguments)
            }
            let name = suffix.flatMap { Self.interpreters[$0] } ?? "node"
            return Command(words: [name] + options + [path] + arguments, interpreter: name)
        }
    }

    /// The command for a script that contains blanks. PM2 passes such a script to bash as a shell line, without other
    /// arguments.
    private func line(_ script: String, _ directory: String, _ program: inout ImportedProgram) -> Command? {
        guard ShellWords.split(script)?.first.map({ !$0.isEmpty }) == true else {
            program.cannot("its script \(quoted(script)) has a quote that is not closed")
            return nil
        }
        var leftOut = LeftOutKeys()
        for key in ["args", "interpreter_args", "interpreterArgs", "node_args", "interpreter", "exec_interpreter"] {
            guard let value = node[key], value.text != "none", value.text != "", value.list?.isEmpty != true,
                !value.isNull
            else { continue }
            leftOut.add(key, because: "PM2 has bash run a script with blanks, and passes it nothing else")
        }
        program.remark(leftOut)
        let bash = "/bin/bash"
        var command = Command(words: [], isLine: true)
        command.words = Procfile.command(
            script,
            shell: tree.program(bash) == nil ? "/bin/sh" : bash,
            &command.variables
        )
        if let first = command.words.first, first.contains("/") {
            command.words[0] = SourceTree.join(directory, first)
        }
        return command
    }

    /// The interpreter that the configuration of the app names; nil if it names none. For `node@VERSION`, the path of
    /// that version of node in the folder of nvm.
    private func interpreter(_ program: inout ImportedProgram) -> String? {
        let name = [node["interpreter"]?.text, node["exec_interpreter"]?.text].lazy.compactMap { $0 }.first { $0 != "" }
        guard let name, name.hasPrefix("node@") else { return name }
        let version = name.dropFirst("node@".count)
        let folder = tree.variables["NVM_DIR"] ?? (tree.variables["HOME"] ?? "/root") + "/.nvm"
        let place = "\(folder)/versions/node/v\(version.hasPrefix("v") ? version.dropFirst() : version)/bin/node"
        guard tree.program(place) != nil else {
            program.remark(
                "\(name): this machine has no \(place), so it is run by the node of the PATH: write the path of the node "
                    + "that it needs",
                line: node["interpreter"]?.line ?? 0
            )
            return "node"
        }
        program.remark("\(name) is \(place)", line: node["interpreter"]?.line ?? 0)
        return place
    }

    /// Whether node runs the command.
    private func isNode(_ words: [String]) -> Bool {
        words.first.map { ["node", "nodejs"].contains(SourceTree.lastPart($0)) } ?? false
    }

    private func environment(_ program: inout ImportedProgram) {
        if let file = node["env_file"]?.text {
            let path = SourceTree.join(folder, file)
            program["environment_file"] = .string(path)
            if let difference = Dotenv.difference(path, tree) { program.remark(difference) }
        }
        // PM2 also passes the key `port` as an environment variable.
        if let port = node["port"]?.text { program.setVariable("PORT", port) }
        put("env", &program)
        let prefix = "env_"
        var others: [String] = []
        for key in (node.members ?? []).map(\.key) where key.hasPrefix(prefix) && key != "env_file" {
            let name = String(key.dropFirst(prefix.count))
            if name == tree.environmentName { put(key, &program) } else { others.append(name) }
        }
        if let name = tree.environmentName, node[prefix + name] == nil {
            let hint = Nearest.name(to: name, among: others).map { ": did you mean --env \($0)?" } ?? ""
            program.remark("has no \(prefix)\(name)\(hint)")
        }
        if !others.isEmpty {
            let names = others.map { prefix + $0 }.joined(separator: ", ")
            program.remark("\(names) is left out: import it with ‘--env \(others[0])’")
        }
    }

    private func put(_ key: String, _ program: inout ImportedProgram) {
        guard let node = node[key], !node.isNull else { return }
        guard let variables = node.members else {
            return program.remark("\(key) is \(node.kind), not a table of variables, and is left out", line: node.line)
        }
        for (name, value) in variables {
            if let text = value.text {
                program.setVariable(name, text)
            } else if !value.isNull {
                program.remark("the variable \(name) is \(value.kind), and is left out")
            }
        }
    }

    private func accounts(_ program: inout ImportedProgram) {
        if let user = node["uid"]?.text ?? node["user"]?.text { program["user"] = .string(user) }
        if let group = node["gid"]?.text { program["group"] = .string(group) }
    }

    // MARK: Restarts

    /// A time in seconds. The key's value is in milliseconds, or a text such as `10s`.
    private func seconds(_ key: String, _ program: inout ImportedProgram) -> Double? {
        guard let node = node[key], !node.isNull else { return nil }
        let units = ["ms": 1e-3, "s": 1, "m": 60, "h": 3600]
        if let time = node.text.flatMap({ Amounts.seconds($0, units: units, alone: 1e-3) }) { return time }
        program.remark("\(key) = \(node.shown) is not a time, and is left out", line: node.line)
        return nil
    }

    /// The key as a boolean. If its value is not a boolean, adds a remark.
    private func flag(_ key: String, _ program: inout ImportedProgram) -> Bool? {
        guard let node = node[key], !node.isNull else { return nil }
        if node.flag == nil {
            program.remark("\(key) = \(node.shown) is neither true nor false, and is left out", line: node.line)
        }
        return node.flag
    }

    private func restarts(_ program: inout ImportedProgram) {
        let restarts = flag("autorestart", &program) ?? true
        program["restart"] = .string(restarts ? "always" : "never")
        let stable = seconds("min_uptime", &program)
        let delay = seconds("restart_delay", &program)
        let growing = seconds("exp_backoff_restart_delay", &program)
        var limit: Int?
        if let node = node["max_restarts"], !node.isNull {
            // 0 means that PM2 never gives up.
            limit = node.integer.flatMap { $0 > 0 ? min(Self.noLimit, $0) : nil }
            if node.integer == nil {
                program.remark("max_restarts = \(node.shown) is not a number, and is left out", line: node.line)
            }
        }
        if restarts {
            var backoff = OrderedTable<TOMLValue>()
            if let growing, growing > 0 {
                backoff["initial"] = Amounts.duration(seconds: growing).map(TOMLValue.string)
                backoff["factor"] = .number(1.5)
                backoff["cap"] = .string("15s")
            } else if limit != nil || (delay ?? 0) > 0 {
                backoff["initial"] = Amounts.duration(seconds: delay ?? 0).map(TOMLValue.string)
                backoff["factor"] = .integer(1)
                if let delay, delay > 60 { backoff["cap"] = Amounts.duration(seconds: delay).map(TOMLValue.string) }
            } else {
                // PM2 restarts an app without a delay even if it ends at once each time, so keep the longest delay
                // short.
                backoff["cap"] = .string("15s")
            }
            backoff["limit"] = .integer(Int64(limit ?? Self.noLimit))
            if let limit {
                // Choose the window so short that `limit` restarts never happen within it if every run lasts for
                // min_uptime.
                let delays = Self.delays(growing ?? 0, count: limit)
                let window = max(1e-3, Double(limit) * (stable ?? 1) + delays)
                backoff["window"] = Amounts.duration(seconds: window).map(TOMLValue.string)
            }
            program["restart_backoff"] = .table(backoff)
            // PM2 begins with the shortest delay again after 30 s, whatever min_uptime is.
            let settled = (growing ?? 0) > 0 ? max(30, stable ?? 0) : stable ?? 1
            program["stable_after"] = Amounts.duration(seconds: settled).map(TOMLValue.string)
        }
        // With a restart delay and without `min_uptime`, the app may be meant to end soon, like a periodic job. So do
        // not treat an early end as a failed launch then.
        if restarts, stable != nil || (delay ?? 0) == 0 { launching(stable ?? 1, &program) }
        let codes = (node["stop_exit_codes"]?.list ?? node["stop_exit_codes"].map { [$0] } ?? []).compactMap(\.integer)
        if !codes.isEmpty {
            program.remark(
                "stop_exit_codes are not translated: restart = \"on-failure\" with success_exit_status comes closest"
            )
        }
        program["stop_signal"] = .string("SIGINT")
        if flag("treekill", &program) == false { program["kill_mode"] = .string("main") }
        if flag("autostart", &program) == false { program["launch"] = .string("on-demand") }
        program["grace"] = Amounts.duration(seconds: seconds("kill_timeout", &program) ?? 1.6).map(TOMLValue.string)
        if flag("wait_ready", &program) == true {
            let timeout = seconds("listen_timeout", &program) ?? 0
            program["launch_deadline"] = Amounts.duration(seconds: max(timeout, Self.leastDeadline))
                .map(TOMLValue.string)
            // torpord holds the ports of `sockets`, so they accept connections even before the program listens, and a
            // check of the port proves nothing.
            let port = program["sockets"] == nil ? "ready = { tcp = \"127.0.0.1:PORT\" }, or " : ""
            program.remark(
                "wait_ready is not translated: Torpor does not receive process.send('ready'). Write \(port)"
                    + "ready = \"notify\" and in the program "
                    + "require('child_process').execFile('systemd-notify', ['--ready']). Without PM2 there is no "
                    + "process.send, so the program must test it first: if (process.send) process.send('ready'). "
                    + "PM2 lets an app run that is not ready in time (listen_timeout); Torpor ends it and launches it "
                    + "again after launch_deadline"
            )
        } else if let node = node["listen_timeout"], !node.isNull {
            program.remark(
                "listen_timeout is left out: launch_deadline limits how long it may take to become ready, as ready "
                    + "defines it",
                line: node.line
            )
        }
    }

    /// The least time, in seconds, that an app with `wait_ready` gets to become ready. PM2 only stops waiting after
    /// `listen_timeout`, and an app may need much longer while the machine boots.
    private static let leastDeadline = 60.0

    /// The sum, in seconds, of that many delays which grow as those of `exp_backoff_restart_delay`.
    private static func delays(_ first: Double, count: Int) -> Double {
        var (sum, delay) = (0.0, first)
        for done in 0..<count {
            if delay >= 15 { return sum + Double(count - done) * 15 }
            sum += delay
            delay *= 1.5
        }
        return sum
    }

    /// The longest time, in seconds, for which an app counts as launching because of `min_uptime`.
    private static let longestLaunch = 10.0

    /// Makes the app count as launching for the time of `min_uptime`. If the app ends before that time is over, the
    /// launch has failed, and ‘torpor restart’ reports that.
    private func launching(_ seconds: Double, _ program: inout ImportedProgram) {
        let seconds = min(seconds, Self.longestLaunch)
        guard seconds > 0 else { return }
        let whole = seconds.rounded() == seconds
        program["ready"] = .table([
            ("command", .strings(["/bin/sleep", whole ? "\(Int(seconds))" : "\(seconds)"])),
            ("timeout", .string("\(Int(seconds.rounded(.up)) + 10)s")),
        ])
        // With `wait_ready`, the user must replace this readiness check by another one, which needs a deadline.
        if node["wait_ready"]?.flag != true { program["launch_deadline"] = .string("none") }
    }

    // MARK: Output and others

    private func output(_ program: inout ImportedProgram) {
        func file(_ keys: [String]) -> (key: String, path: String)? {
            keys.lazy.compactMap { key in node[key]?.text.map { (key, $0) } }.first
        }
        let errors = ["error_file", "err_file", "error", "err", "err_log"]
        func isNothing(_ path: String) -> Bool { path == "/dev/null" || path == "NULL" }
        let files = [
            file(["out_file", "output", "out", "out_log"]), file(errors), file(["log_file", "log"]),
        ].compactMap { $0 }
        if flag("disable_logs", &program) == true {
            program["log"] = .string("null")
            return
        }
        if let out = files.first, !errors.contains(out.key), isNothing(out.path) {
            program["log"] = .string("null")
        }
        for (key, path) in files where !isNothing(path) {
            program.remark("its output is in the log directory, not in \(path) (\(key)): ‘torpor logs’ shows it")
        }
        for (key, path) in files where isNothing(path) && program["log"] == nil {
            program.remark("standard error goes where its output goes, and is not discarded (\(key))")
        }
    }

    private func others(_ program: inout ImportedProgram) {
        if let watch = node["watch"], watch.flag != false, !watch.isNull {
            self.watch(watch, &program)
        }
        if let cron = (node["cron_restart"] ?? node["cron"])?.text, cron != "0" {
            self.cron(cron, &program)
        }
        if flag("shutdown_with_message", &program) == true {
            program.remark("shutdown_with_message is not translated: the app gets SIGINT")
        }
        if let space = node["namespace"]?.text, space != "default" { program["tags"] = .strings([space]) }
        for (key, value) in node.members ?? [] where Self.texts.contains(key) && !value.isNull && value.text == nil {
            program.remark("\(key) is \(value.kind), not a string, and is left out", line: value.line)
        }
        var leftOut = LeftOutKeys()
        for (key, value) in node.members ?? [] where !Self.known.contains(key) && !key.hasPrefix("env_") {
            if value.isNull { continue }
            let place = value.line > 0 ? SourceLine(value.line) : nil
            leftOut.add(key, because: Self.idle[key] ?? "PM2's documentation has no such key", at: place)
        }
        program.remark(leftOut)
    }

    /// Adds a remark that describes a second app, which restarts this one when a file changes.
    private func watch(_ node: DataNode, _ program: inout ImportedProgram) {
        var folder = self.folder
        if case .string(let directory)? = program["directory"] { folder = directory }
        let named = (node.list ?? [node]).filter { $0.flag == nil }.compactMap(\.text)
        let paths = (named.isEmpty ? ["."] : named).map { path in
            TOMLValue.table([("changed", .string(SourceTree.join(folder, path))), ("rerun", .boolean(true))])
        }
        let name = Names.valid(program.name)
        program.remark(
            "watch is not translated: write a separate app for it, [apps.\(TOMLValue.key(name + "-watch"))] with "
                + "type = \"oneshot\", restart = \"never\", launch = \"on-demand\", launch_deadline = \"none\", "
                + "exec = [\"torpor\", \"restart\", \"--only-running\", \"\(name)\"] and paths = "
                + "\(TOMLValue.array(paths).text), with an entry for each folder below that must be watched too"
        )
    }

    /// Translates `cron_restart`. If the app is a job that ends by itself, a timer starts it. If the app runs forever,
    /// a remark describes a second app that restarts it at these times.
    private func cron(_ text: String, _ program: inout ImportedProgram) {
        guard let times = CronTimes.calendar(text) else {
            return program.remark("cron_restart = \(quoted(text)) is not a time in cron's syntax, and is left out")
        }
        let calendar = times.count > 1 ? TOMLValue.strings(times) : .string(times[0])
        let timers = TOMLValue.array([.table([("calendar", calendar), ("accuracy", .string("1s"))])])
        if program["restart"] == .string("never") {
            program["type"] = .string("oneshot")
            program["launch_deadline"] = .string("none")
            program["timers"] = timers
            return program.remark(
                "cron_restart = \(quoted(text)) becomes its timer, which does not end a run that is still going, "
                    + "unlike PM2"
            )
        }
        let name = Names.valid(program.name)
        program.remark(
            "cron_restart = \(quoted(text)) is not translated: write a separate app for it, "
                + "[apps.\(TOMLValue.key(name + "-restart"))] with type = \"oneshot\", restart = \"never\", "
                + "launch = \"on-demand\", launch_deadline = \"none\", "
                + "exec = [\"torpor\", \"restart\", \"--only-running\", \"\(name)\"] and timers = \(timers.text)"
        )
    }
}
