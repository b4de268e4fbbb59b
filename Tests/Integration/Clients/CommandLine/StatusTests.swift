// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("torpor status") struct StatusTests {
    private static func web(_ more: String) -> String {
        "[apps.web]\n\(Scripts.python)\"@D/web.py\"]\nbackground_time = \"none\"\nevent_time = \"400ms\"\n\(more)"
    }

    private func page(_ daemon: Daemon, _ verb: [String]) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor"), "--socket", daemon.socket] + verb)
    }

    @Test("says of one that sleeps what wakes it, and what one may take for that", arguments: [true, false])
    func wakers(wakes: Bool) throws {
        let more = wakes ? "wake_on_connect = true\ntimers = [{ name = \"nightly\", calendar = \"03:00\" }]" : ""
        try withDaemon(Self.web(more), files: ["web.py": Servers.web]) { daemon in
            let place = "connections to 127.0.0.1:\(try daemon.port(of: "web"))"
            try daemon.done(.suspend, "web")
            let status = try daemon.status("web")
            #expect(status.wokenBy == (wakes ? [place, "timer nightly"] : []))
            #expect(status.notWokenBy == (wakes ? [] : ["\(place) (wake_on_connect is not set)"]))
            #expect(status.suspendedBy == nil)
            let since = try #require(status.stateSince)
            let event = try #require(try daemon.events("web").last { $0.to == "suspended" })
            #expect(abs(since - event.at) < 200_000)
            let text = try page(daemon, ["status", "web"]).output
            #expect(text.contains(wakes ? "woken by: \(place), timer nightly\n" : "woken by: only you"))
            #expect(text.contains(" not woken by: \(place)") == !wakes)
            #expect(text.contains("\nlast events:\n") && text.contains("Z is suspended\n"), "\(text)")
        }
    }

    @Test("one that was stopped is launched by nothing until it is started: stop, status and timers say so")
    func stopped() throws {
        let nightly = "{ name = \"nightly\", every = \"1h\" }"
        let timer = "timers = [\(nightly), { name = \"mail\", every = \"1h\", wake = \"none\" }]"
        try withDaemon(Apps.sleeper("job", timer) + Apps.sleeper("plain")) { daemon in
            for app in ["job", "plain"] { try daemon.waitFor(app, "active") }
            let silent = "not even timer nightly"
            let stopped = try page(daemon, ["stop", "job", "plain"])
            #expect(stopped.code == 0)
            let lines = stopped.output.split(separator: "\n")
            #expect(lines.first?.hasSuffix("until ‘torpor start job’, \(silent)") == true, "\(lines)")
            #expect(lines.last?.contains("nothing launches it") == false, "\(lines)")
            var status = try daemon.status("job")
            #expect(status.wokenBy.isEmpty && status.notWokenBy == ["timer nightly (it was stopped)"])
            var timers = try page(daemon, ["timers"]).output.split(separator: "\n").map(String.init)
            #expect(timers.contains { $0.hasPrefix("stopped ") && $0.contains("nightly") }, "\(timers)")
            #expect(timers.contains { !$0.hasPrefix("stopped ") && $0.contains("mail") }, "\(timers)")
            try daemon.done(.start, "job")
            status = try daemon.status("job")
            #expect(status.wokenBy == ["timer nightly"] && status.notWokenBy.isEmpty)
            timers = try page(daemon, ["timers"]).output.split(separator: "\n").map(String.init)
            #expect(!timers.contains { $0.hasPrefix("stopped") }, "\(timers)")
        }
    }

    @Test("stop names the apps that do not run, but whose events launch what was stopped together with them")
    func launchedWithDependents() throws {
        let timer = "launch = \"on-demand\"\nrequires = [\"base\"]\ntimers = [{ name = \"nightly\", every = \"1h\" }]"
        try withDaemon(Apps.sleeper("base") + Apps.sleeper("job", timer)) { daemon in
            try daemon.waitFor("base", "active")
            let stopped = try page(daemon, ["stop", "base"])
            #expect(stopped.code == 0)
            let words = "an event that launches job (timer nightly), which requires it, launches it too"
            #expect(stopped.output.contains("\(words): ‘torpor stop job’ prevents"), "\(stopped.output)")
            // What it says is so: a launch of the one that requires it brings it back.
            try daemon.done(.start, "job")
            try daemon.waitFor("base", "active")
            #expect(try page(daemon, ["stop", "job"]).code == 0)
            let silent = try page(daemon, ["stop", "base"])
            #expect(silent.code == 0 && !silent.output.contains("job"), "\(silent.output)")
        }
    }

    @Test("one that another process has stopped is so in list and health too, until it is continued")
    func stoppedByOthers() throws {
        try withDaemon(Apps.sleeper("job") + Apps.sleeper("plain")) { daemon in
            for app in ["job", "plain"] { try daemon.waitFor(app, "active") }
            #expect(try page(daemon, ["health"]).code == 0)
            let pid = try #require(try daemon.summary("job").pid)
            #expect(kill(pid, SIGSTOP) == 0)
            let sentence = "is stopped by its own or another process's signal: ‘torpor signal CONT job’ continues it"
            // What was read of an app's processes counts for a second.
            try daemon.eventually("list says so") {
                try page(daemon, ["list"]).output.contains("unhealthy: \(sentence)")
            }
            let health = try page(daemon, ["health"])
            #expect(health.code == 1 && health.output.contains("job \(sentence)"), "\(health)")
            #expect(!health.output.contains("plain"), "\(health)")
            #expect(try page(daemon, ["health", "job"]).code == 1)
            #expect(try page(daemon, ["status", "job"]).output.contains("‘torpor signal CONT job’ continues it"))
            #expect(try page(daemon, ["signal", "CONT", "job"]).code == 0)
            try daemon.eventually("all is well again") { try page(daemon, ["health"]).code == 0 }
            try daemon.done(.suspend, "job")
            #expect(try page(daemon, ["health"]).code == 0)
        }
    }

    @Test("an app has a title in the reader's language, and a picture; both change without a restart")
    func presented() throws {
        func toml(_ keys: String) -> String { Apps.sleeper("a") + "\n" + keys + "\n" + Apps.sleeper("b") }
        let keys = "title = { default = \"Notebook\", de = \"Notizbuch\" }\nicon = \"@D/a.svg\""
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\"/>"
        try withDaemon(toml(keys), files: ["a.svg": svg]) { daemon in
            func run(_ verb: [String], _ locale: String = "C.UTF-8") throws -> String {
                let words = [Built.path("torpor"), "--socket", daemon.socket] + verb
                return try Spawn.run(words, environment: ["LC_ALL": locale, "LANGUAGE": ""]).output
            }
            func icon(_ app: String) throws -> AppIcon { try AppIcon(json: daemon.call(.icon(app: app))) }
            try daemon.waitFor("a", "active")
            let pid = try #require(try daemon.summary("a").pid)
            let lines = try run(["list"]).split(separator: "\n")
            #expect(lines[0].hasSuffix("REASON  TITLE") && lines[1].hasSuffix("  Notebook"), "\(lines)")
            #expect(lines[2].hasPrefix("b ") && !lines[2].hasSuffix(" "), "\(lines)")
            #expect(try run(["list"], "de_AT.UTF-8").contains("  Notizbuch\n"))
            #expect(try run(["status", "a"], "de_AT.UTF-8").contains(" title: Notizbuch\n"))
            #expect(try icon("a") == AppIcon(content: Array(svg.utf8)) && icon("a").mediaType == "image/svg+xml")
            #expect(try icon("b") == AppIcon(trouble: nil))
            // What cannot be had is said, and nobody waits for it.
            try FileManager.default.removeItem(atPath: daemon.directory + "/a.svg")
            try File.makeFIFO(daemon.directory + "/a.svg")
            #expect(try icon("a").trouble == "\(daemon.directory)/a.svg: it is not a regular file")
            _ = try daemon.apply(toml("title = \"Jotter\""))
            #expect(try run(["list"]).contains("  Jotter\n"))
            #expect(try icon("a") == AppIcon(trouble: nil))
            #expect(try daemon.summary("a").pid == pid)
        }
    }

    @Test("a list says of apps with much and with nothing to say what their status says")
    func listed() throws {
        let keys = """
            title = { default = "Notebook", de = "Notizbuch" }
            summary = { default = "Keeps notes", de = "Merkt sich Notizen" }
            icon = { default = "@D/a.svg", 64 = "@D/b.svg" }
            categories = ["Utility", "Office"]
            language = "C.UTF-8"
            tags = ["a", "b"]
            """
        let failing = """
            [apps.bad]
            exec = ["/bin/sh", "-c", "exit 3"]
            restart = "on-failure"
            restart_backoff = { initial = "1h", cap = "1h" }
            """
        let toml = Apps.sleeper("bare", "launch = \"on-demand\"") + Apps.sleeper("full", keys) + failing
        try withDaemon(toml, files: ["a.svg": "<svg/>", "b.svg": "<svg/>"]) { daemon in
            try daemon.waitFor("full", "active")
            try daemon.eventually("it has failed") { try daemon.summary("bad").nextRestartMilliseconds != nil }
            let (apps, folder) = (try daemon.list(), daemon.directory)
            #expect(apps.map(\.name) == ["bad", "bare", "full"])
            for app in apps {
                var asked = try daemon.status(app.name).summary
                // What the time changes.
                (asked.uptime, asked.nextRestartMilliseconds) = (app.uptime, app.nextRestartMilliseconds)
                (asked.memoryBytes, asked.cpuSeconds) = (app.memoryBytes, app.cpuSeconds)
                #expect(asked == app)
            }
            let exit = try #require(apps[0].lastExit)
            #expect(apps[0].pid == nil && exit.reason == "exit-failure" && exit.code == 3 && apps[0].incarnation == 1)
            #expect((1...7_200_000).contains(try #require(apps[0].nextRestartMilliseconds)))
            #expect(apps[1] == AppSummary(name: "bare", state: "not-running", goal: "not-running"))
            let full = apps[2]
            #expect(full.pid != nil && full.uptime != nil && full.memoryBytes ?? 0 > 0 && full.cpuSeconds != nil)
            var expected = AppSummary(
                name: "full",
                state: "active",
                goal: "active",
                pid: full.pid,
                incarnation: 1,
                uptime: full.uptime,
                memoryBytes: full.memoryBytes,
                cpuSeconds: full.cpuSeconds
            )
            (expected.title, expected.titles) = ("Notebook", ["de": "Notizbuch"])
            (expected.summary, expected.summaries) = ("Keeps notes", ["de": "Merkt sich Notizen"])
            (expected.icon, expected.icons) = ("\(folder)/a.svg", ["64": "\(folder)/b.svg"])
            (expected.categories, expected.language, expected.tags) = (["Utility", "Office"], "C.UTF-8", ["a", "b"])
            #expect(full == expected)
        }
    }

    @Test("status shows each process below its parent")
    func processes() throws {
        let script = "sh -c 'sleep 1000 & wait' & sleep 2000 & wait"
        try withDaemon("[apps.tree]\nexec = [\"/bin/sh\", \"-c\", \"\(script)\"]\n") { daemon in
            var lines: [String] = []
            try daemon.eventually("all processes are there") {
                let text = try page(daemon, ["status", "tree"]).output
                lines = text.components(separatedBy: "\nprocesses:\n").last?.components(separatedBy: "\n") ?? []
                return lines.count { $0.hasSuffix(" sleep 1000") || $0.hasSuffix(" sleep 2000") } == 2
            }
            let pid = try #require(try daemon.summary("tree").pid)
            #expect(lines[0].hasPrefix("  \(pid) ") && lines[0].contains("/bin/sh -c sh -c"), "\(lines)")
            func indent(_ end: String) throws -> Int {
                try #require(lines.first { $0.hasSuffix(end) }).prefix { $0 == " " }.count
            }
            #expect(try indent(" sleep 1000") == 6 && indent(" sleep 2000") == 4, "\(lines)")
            let inner = try #require(lines.firstIndex { $0.hasSuffix(" sleep 1000") })
            #expect(lines[inner - 1].hasPrefix("    ") && lines[inner - 1].contains("sh -c sleep 1000"), "\(lines)")
        }
    }

    @Test("says of one in the background who suspends it; the end of what woke it is an event")
    func suspenders() throws {
        try withDaemon(Self.web("wake_on_connect = true"), files: ["web.py": Servers.web]) { daemon in
            let port = try daemon.port(of: "web")
            try daemon.done(.background, "web")
            #expect(try daemon.status("web").suspendedBy == .nobody)
            let text = try page(daemon, ["status", "web"]).output
            #expect(text.contains("suspended by: only you") && !text.contains("background-time"), "\(text)")
            try daemon.done(.suspend, "web")
            let peer = try Peer(port: port)
            _ = try peer.get()
            // As long as it is awake for that; then the event says why it is not.
            let status = try daemon.status("web")
            if status.summary.state == "background", status.summary.transition == nil {
                #expect(status.suspendedBy == .eventTime)
            }
            try daemon.waitForEvent("web", "is suspended again: its time for the event that woke it is over")
            try daemon.waitFor("web", "suspended")
        }
    }

    @Test("Apps that a person had suspended say after the next start that they are taken there")
    func asLeft() throws {
        try withDaemon(Apps.sleeper("a")) { daemon in
            try daemon.waitFor("a", "active")
            try daemon.done(.suspend, "a")
            try daemon.stop()
            try daemon.startAgain()
            try daemon.waitUntilItAnswers()
            try daemon.waitFor("a", "suspended")
            try daemon.waitForEvent("a", "will be suspended, as a user left it before this start")
        }
    }

    @Test("On a terminal lines are broken between words, and what is waited for is said after half a second")
    func terminal() throws {
        try withDaemon(Apps.sleeper("a")) { daemon in
            try daemon.waitFor("a", "active")
            try daemon.done(.suspend, "a")
            let torpor = "\(Built.path("torpor")) --socket \(daemon.socket)"
            let script = "stty cols 80 rows 24; \(torpor) status a; \(torpor) wait a --for active --timeout 10s"
            let result = try Spawn.run(["/usr/bin/script", "-qec", script, "/dev/null"], environment: ["TERM": "dumb"])
            let lines = result.output.replacingOccurrences(of: "\r\n", with: "\n").split(separator: "\n")
            // A path is one word.
            let broken = lines.prefix { !$0.hasPrefix("processes") }.filter { !$0.contains("/") }
            #expect(broken.count > 6 && broken.allSatisfy { $0.count <= 80 }, "\(result.output)")
            #expect(result.output.contains("a: not active yet … "), "\(result.output)")
            // It is gone when what came of it is said.
            let last = try #require(lines.last { $0.contains("torpor: a ") }?.split(separator: "\r").last)
            #expect(last.hasPrefix("torpor: a is still suspended after "), "\(result.output)")
        }
    }

    @Test("A reason is broken between words, and has a line of its own where its column has no room")
    func narrowList() throws {
        let toml = "[apps.bad]\nexec = [\"/bin/sh\", \"-c\", \"exit 3\"]\nrestart_backoff = { initial = \"1min\" }\n"
        try withDaemon(toml + Apps.sleeper("a")) { daemon in
            try daemon.eventually("it waits") { try daemon.summary("bad").nextRestartMilliseconds != nil }
            func lines(columns: Int) throws -> [String] {
                let script = "stty cols \(columns) rows 24; \(Built.path("torpor")) --socket \(daemon.socket) list"
                let words = ["/usr/bin/script", "-qec", script, "/dev/null"]
                let output = try Spawn.run(words, environment: ["TERM": "dumb"]).output
                var lines = output.replacingOccurrences(of: "\r\n", with: "\n").split(separator: "\n").map(String.init)
                // Who has no reason has its one line.
                #expect(!lines.contains { $0.allSatisfy(\.isWhitespace) }, "\(lines)")
                lines.removeAll { $0.hasPrefix("a ") }
                return lines
            }
            let wide = try lines(columns: 120)
            let column = try #require(wide.first?.range(of: "REASON")).lowerBound.utf16Offset(in: wide[0])
            #expect(wide.count == 2 && wide[1].dropFirst(column).hasPrefix("exit-failure 3, restarts in "), "\(wide)")
            let narrow = try lines(columns: column + 18)
            #expect(narrow.count == 3 && narrow[1].hasSuffix("  exit-failure 3,"), "\(narrow)")
            #expect(narrow[2].hasPrefix(String(repeating: " ", count: column) + "restarts in "), "\(narrow)")
            let narrower = try lines(columns: column + 6)
            #expect(narrower.count == 3 && narrower[1].hasPrefix("bad ") && narrower[1].hasSuffix("-"), "\(narrower)")
            #expect(narrower[2].hasPrefix("    exit-failure 3, restarts in "), "\(narrower)")
        }
    }

    @Test("doctor says each cause once, what is missing first")
    func doctor() throws {
        try withDaemon(Apps.sleeper("a")) { daemon in
            let text = try page(daemon, ["doctor"]).output
            let checks = try (daemon.call(.doctor)["checks"]?.arrayValue ?? []).map { try DoctorCheck(json: $0) }
            let lines = text.split(separator: "\n").map(String.init)
            let first = try #require(lines.firstIndex { $0.hasPrefix("ok ") })
            #expect(!lines[first...].contains { $0.hasPrefix("missing ") })
            let controllers = checks.filter { !$0.ok && $0.name.hasSuffix(" controller") }
            for check in controllers {
                let parts = try #require(check.message).components(separatedBy: ". Without it ")
                #expect(lines.count { $0.hasSuffix(parts[0]) } == 1)
                #expect(lines.contains { $0.hasPrefix("        without ") && $0.hasSuffix(parts[1]) })
            }
            for check in checks where !controllers.contains(check) { #expect(text.contains(check.name)) }
        }
    }
}
