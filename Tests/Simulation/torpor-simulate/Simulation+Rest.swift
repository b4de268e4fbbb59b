// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel
import Linux
import Varlink

/// What must hold when nothing goes wrong any more, and there was time for everything.
extension Simulation {
    /// Writes the configuration.
    func configure() throws {
        let count = 2 + random(4)
        var text = """
            [supervisor]
            runtime_directory = "\(root)/run"
            state_directory = "\(root)/state"
            log_directory = "\(root)/log"
            log_level = "debug"

            """
        for index in 0..<count {
            let kind = AppModel.Kind.allCases[random(3)]
            let app = AppModel("app\(index)", kind)
            apps.append(app)
            text += "\n[apps.\(app.name)]\nexec = [\"/bin/true\"]\n"
            switch kind {
            case .unaware: break
            case .notify: text += "ready = \"notify\"\n"
            case .delegate: text += "ready = \"delegate\"\n"
            }
            text += "launch = \"\(["foreground", "background", "on-demand"][random(3)])\"\n"
            text += "restart = \"\(["always", "on-failure", "never"][random(3)])\"\n"
            if index > 0, happens(1, of: 3) { text += "requires = [\"app\(random(index))\"]\n" }
            if happens(1, of: 4) { text += "before_start = [[\"/bin/true\"]]\n" }
            if happens(1, of: 4) { text += "after_stop = [[\"/bin/true\"]]\n" }
            if kind == .notify, happens(1, of: 4) { text += "watchdog = \"10s\"\n" }
            if happens(1, of: 3) { text += "log_max_size = \"4KiB\"\n" }
            if happens(1, of: 3) { text += "grace = \"\(1 + random(3))s\"\n" }
        }
        do {
            try File.write(root + "/torpor.toml", text)
        } catch {
            throw Violation("cannot write the configuration: \(error)")
        }
        for line in text.split(separator: "\n") { sim_trace(String(line)) }
    }

    /// Lets everything come to rest, and looks.
    func rest() throws {
        note("rest")
        isResting = true
        sim_state().pointee.is_calm = 1
        sim_state().pointee.kill_at = 0
        let end = now + 240_000_000_000
        var quiet = 0
        var turns = 0
        while now < end || quiet < 40 {
            let before = now
            try turn()
            turns += 1
            quiet = isRunning && !hasUnfinished ? quiet + 1 : 0
            // Nothing to wait for, and nothing waits: far ahead.
            if quiet > 40, sim_state().pointee.next_deadline == .max { break }
            if now == before, quiet > 0 { passTime() }
            if turns > 60_000 { throw Violation("it does not come to rest: \(unfinished)") }
        }
        try lookAtClients()
        if let open = clients.first(where: { !$0.isOver }) {
            throw Violation("a client of \(open.what) was never answered")
        }
        try compare()
        try compareLogs()
        isResting = false
        sim_state().pointee.is_calm = 0
        note("rested")
    }

    private var unfinished: String {
        var all: [String] = []
        if sim_state().pointee.is_ready != 0 { all.append("torpord has something to do") }
        if sim_keeper_has_mail() != 0 { all.append("the keeper has mail") }
        for process in processes.values.sorted(by: { $0.pid < $1.pid }) {
            guard let kernel = process.kernel else { continue }
            if kernel.pointee.state == CChar(UInt8(ascii: "Z")) { all.append("\(process.pid) is a zombie") }
            if kernel.pointee.pending != 0, !process.isStopped { all.append("\(process.pid) has signals") }
            if sim_keeper_is_launching(process.pid) != 0 { all.append("\(process.pid) is launching") }
            if process.isHelper { all.append("\(process.pid) is a helper") }
        }
        for client in clients where !client.isOver { all.append("a client of \(client.what) waits") }
        return all.joined(separator: ", ")
    }

    private var hasUnfinished: Bool { !unfinished.isEmpty }

    /// Asks torpord, and gives it time to answer.
    private func asked(_ method: String, _ parameters: JSON) throws -> JSON {
        guard let client = ClientModel(root + "/run/io.torpor", method, parameters, deaths: deaths) else {
            throw Violation("nobody listens at the control socket, and torpord runs")
        }
        defer { client.close() }
        for _ in 0..<3000 {
            try turn()
            client.look(deaths: deaths)
            if let problem = client.problem { throw Violation("a client of \(client.what) \(problem)") }
            if let reply = client.reply { return reply }
        }
        throw Violation("a client of \(client.what) is not answered")
    }

    private func compare() throws {
        let reply = try asked("List", .emptyObject)
        guard let list = reply["parameters"]?["apps"]?.arrayValue else { throw Violation("List answers \(reply)") }
        for app in apps {
            guard let told = list.first(where: { $0["name"]?.stringValue == app.name }) else {
                throw Violation("List does not name \(app.name)")
            }
            try compare(app, told)
        }
    }

    private func compare(_ app: AppModel, _ told: JSON) throws {
        let state = told["state"]?.stringValue ?? "?"
        let transition = told["transition"]?.stringValue
        let living = livingProcesses.filter { $0.app === app && !$0.isHelper }
        let words = "\(app.name) is told as \(state)\(transition.map { " (\($0))" } ?? "")"
        if let transition { throw Violation("\(words), after minutes of rest still \(transition): \(told)") }
        switch state {
        case "not-running":
            if let process = living.first { throw Violation("\(words), and process \(process.pid) lives") }
        case "suspended":
            if living.isEmpty { throw Violation("\(words), and nothing of it lives") }
            for process in living where !process.isStopped {
                throw Violation("\(words), and process \(process.pid) is not stopped")
            }
        default:
            guard let main = living.first(where: { $0.isMain }) else {
                throw Violation("\(words), and it has no main process")
            }
            if let pid = told["pid"]?.intValue, pid != Int64(main.pid) {
                throw Violation("\(words) with process \(pid), and its main process is \(main.pid)")
            }
            for process in living where process.isStopped {
                throw Violation("\(words), and process \(process.pid) is stopped")
            }
        }
    }

    /// Every line is in its log, once and in order.
    private func compareLogs() throws {
        for app in apps {
            var found: [Substring] = []
            let base = root + "/log/\(app.name).log"
            var texts: [String] = []
            for number in (1...9).reversed() {
                if let text = try? File.readString("\(base).\(number)", limit: 1 << 24) { texts.append(text) }
            }
            if let text = try? File.readString(base, limit: 1 << 24) { texts.append(text) }
            for text in texts {
                for line in text.split(separator: "\n") {
                    guard let space = line.firstIndex(of: " ") else { continue }
                    let rest = line[line.index(after: space)...]
                    if rest.hasPrefix(app.name + " ") { found.append(rest) }
                }
            }
            // What was rotated away is gone.
            var next = texts.count > 1 ? app.lines.firstIndex { $0 == found.first ?? "" } ?? 0 : 0
            for (place, line) in found.enumerated() {
                guard next < app.lines.count else {
                    throw Violation("the log of \(app.name) has \(line) after the last line, as line \(place)")
                }
                guard line == app.lines[next] else {
                    throw Violation("the log of \(app.name) has \(line) as line \(place), where \(app.lines[next]) was written")
                }
                next += 1
            }
            if next < app.lines.count {
                throw Violation("the log of \(app.name) lacks its last \(app.lines.count - next) lines, from \(app.lines[next]) on")
            }
        }
    }
}
