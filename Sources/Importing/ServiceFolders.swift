// SPDX-License-Identifier: Apache-2.0

/// Imports service directories of s6, s6-rc and runit. The program `run` of a directory is executed unchanged.
enum ServiceFolders {
    static func read(_ path: String, _ tree: SourceTree, into result: inout ImportedConfiguration) throws(ImportError) {
        let own = Set(tree.names(path) ?? [])
        let isOne = own.contains("run") || own.contains("type")
        let folders = isOne ? [path] : own.sorted().map { path + "/" + $0 }.filter { tree.names($0) != nil }
        for folder in folders {
            let name = SourceTree.lastPart(folder)
            let names = Set(tree.names(folder) ?? [])
            if name.hasPrefix(".") || names.isDisjoint(with: ["run", "type", "up"]) { continue }
            var program = ImportedProgram(name)
            ServiceFolder(path: folder, names: names, kind: result.kind, tree: tree).read(into: &program)
            try result.append(program)
        }
        bundles(&result)
    }

    /// Replaces bundles that services require by the services in these bundles.
    private static func bundles(_ result: inout ImportedConfiguration) {
        var contents: [String: [String]] = [:]
        for program in result.programs where !program.contents.isEmpty { contents[program.name] = program.contents }
        for index in result.programs.indices {
            var seen: Set<String> = []
            var names: [String] = []
            var rest = Array(result.programs[index].requires.reversed())
            while let name = rest.popLast() {
                guard seen.insert(name).inserted else { continue }
                if let inner = contents[name] { rest += inner.reversed() } else { names.append(name) }
            }
            result.programs[index].requires = names
        }
    }
}

/// Translates one service directory.
struct ServiceFolder {
    let path: String
    let names: Set<String>
    let kind: SourceKind
    let tree: SourceTree

    private static let known: Set = [
        "run", "finish", "type", "notification-fd", "down", "dependencies", "dependencies.d", "timeout-kill",
        "timeout-finish", "timeout-up", "timeout-down", "down-signal", "check", "log", "env", "data", "up", "contents",
        "contents.d", "supervise", "event", "max-death-tally", "flag-newpidns", "lock-fd", "flag-essential",
        "producer-for", "consumer-for", "pipeline-name", "conf", "control",
    ]

    private func text(_ name: String) -> String? { tree.text(path + "/" + name)?.trimmed }

    func read(into program: inout ImportedProgram) {
        switch text("type") {
        case "bundle":
            program.contents = list("contents")
            program.cannot("it is a bundle of \(program.contents.joined(separator: ", ")): start them with a tag")
            return
        case "oneshot":
            guard let up = text("up"), !up.isEmpty else { return program.cannot("it is a oneshot with an empty up") }
            program["type"] = .string("oneshot")
            program["exec"] = .strings(["execlineb", "-P", path + "/up"])
            program["launch_deadline"] = .string(limit("timeout-up") ?? "none")
            program["restart"] = .string("never")
            if names.contains("down") {
                program.remark("down is not translated: Torpor runs nothing to undo a oneshot")
            }
        default:
            guard names.contains("run") else { return program.cannot("it has no file named run") }
            program["exec"] = .strings([path + "/run"])
            program["restart"] = .string("always")
            // s6 and runit wait one second between two starts, and never give up.
            program["restart_backoff"] = .table([
                ("initial", .string("1s")), ("factor", .integer(1)), ("limit", .integer(10_000)),
            ])
            ending(&program)
            readiness(&program)
            if names.contains("down") { program["launch"] = .string("on-demand") }
        }
        program["directory"] = .string(path)
        program.requires = list("dependencies")
        logging(&program)
        if names.contains("env") {
            program.remark(
                kind == .runit
                    ? "env is a folder for chpst -e or envdir, which run must call itself, as before"
                    : "env is a folder for s6-envdir, which run must call itself, as before"
            )
        }
        if names.contains("lock-fd") || names.contains("flag-newpidns") {
            program.remark("lock-fd and flag-newpidns are not translated")
        }
        if names.contains("control") {
            program.remark("control is not translated: stop_signal and grace set how it stops")
        }
        for name in names.sorted() where !Self.known.contains(name) && !name.hasPrefix(".") && kind == .s6 {
            // Only files with these names are settings of s6. Other files belong to the program of the service.
            if name.hasPrefix("timeout-") || name.hasPrefix("flag-") {
                program.remark("\(name) is not known, and is left out")
            }
        }
    }

    /// A list in the service directory: the names of the files in the folder `NAME.d` or, if there is no such folder,
    /// the lines of the file `NAME`.
    private func list(_ name: String) -> [String] {
        if let names = tree.names(path + "/" + name + ".d") { return names.filter { $0 != "base" } }
        return (text(name) ?? "").split(separator: "\n").map(\.trimmed).filter {
            !$0.isEmpty && !$0.hasPrefix("#") && $0 != "base"
        }
    }

    /// Reads a file that contains a time in milliseconds, where 0 means no limit.
    private func limit(_ name: String) -> String? {
        guard let text = text(name), let milliseconds = Double(text) else { return nil }
        return milliseconds == 0 ? "none" : Amounts.duration(seconds: milliseconds / 1000)
    }

    private func ending(_ program: inout ImportedProgram) {
        program["kill_mode"] = .string("main")
        if kind == .s6 {
            // Without timeout-kill, s6 sends no SIGKILL after SIGTERM.
            program["grace"] = .string(limit("timeout-kill") ?? "none")
            if let signal = text("down-signal"), !signal.isEmpty, Amounts.signal(signal) != "SIGTERM" {
                program["stop_signal"] = .string(Amounts.signal(signal))
            }
            if let tally = text("max-death-tally"), let limit = Int64(tally), (0...4096).contains(limit) {
                program.remark("max-death-tally = \(limit) only bounds what s6 remembers, and is left out")
            }
        } else {
            program["grace"] = .string("none")
        }
        guard names.contains("finish") else { return }
        let finish = TOMLValue.strings([path + "/finish"])
        let limit = kind == .s6 ? limit("timeout-finish") ?? "5s" : "none"
        program["after_stop"] = .array([.table([("command", finish), ("deadline", .string(limit))])])
        program.remark(
            "finish is run without its arguments (exit code and signal)\(kind == .s6 ? ", and its exit status 125 does not end restarts" : "")"
        )
    }

    private func readiness(_ program: inout ImportedProgram) {
        if let text = text("notification-fd") {
            program.remark(
                "notification-fd \(text) is not translated: it counts as ready as soon as it runs; for more, write "
                    + "ready = \"notify\" with s6-notify-fd-from-socket or sd_notify(3)"
            )
        }
        if names.contains("check") {
            program["ready"] = .table([
                ("command", .strings([path + "/check"])), ("interval", .string("1s")), ("timeout", .string("10s")),
            ])
            program["launch_deadline"] = .string("none")
        }
    }

    private func logging(_ program: inout ImportedProgram) {
        if tree.names(path + "/log")?.contains("run") == true {
            program.remark("log/run is not translated: its output is in the log directory, and ‘torpor logs’ shows it")
        }
        for name in ["producer-for", "consumer-for"] where names.contains(name) {
            program.remark(
                "\(name) is not translated: its output goes to the log directory, not to another service"
            )
        }
    }
}
