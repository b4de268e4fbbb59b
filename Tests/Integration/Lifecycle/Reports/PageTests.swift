// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("A termination report") struct PageTests {
    @Test("Of a crash has what it went through, and no deadline that it missed long before and went on after")
    func crash() throws {
        let program = """
            import tp
            tp.on("SIGUSR1")
            tp.on("SIGUSR2", lambda: tp.os.kill(tp.os.getpid(), tp.signal.SIGSEGV))
            tp.notify("READY=1")
            tp.wait()
            """
        let keys = """
            answers = true
            transition_deadline = "200ms"
            signals = { willResignActive = "SIGUSR1" }
            limits = { core = "0" }
            """
        try withDaemon(StuckTests.toml(StuckTests.notify + keys), files: ["app.py": program]) { daemon throws in
            let pid = try #require(try daemon.done(.start, "web").pid)
            try daemon.done(.background, "web")
            kill(pid, SIGUSR2)
            let report = try StuckTests.report(daemon)
            let hint = "; its limit allowed no core dump: limits = { core = \"unlimited\" } does"
            #expect(report.reason == "signal" && report.text == "was ended by SIGSEGV (signal)" + hint)
            #expect(report.deadline == nil && report.due == nil && report.lateMilliseconds == nil)
            #expect(report.threads.isEmpty && report.memoryBytes == nil && (report.maxMemoryBytes ?? 0) > 1 << 20)
            let launch = try #require(report.launch)
            let times = [launch.planned, launch.executed, launch.contact, launch.ready].compactMap { $0 }
            #expect(times.count == 4 && times == times.sorted())
            let kinds = report.timeline.map { "\($0.kind) \($0.name ?? "")" }
            #expect(
                kinds.suffix(6) == [
                    "message willResignActive", "transition entering-background", "missed transition",
                    "state inactive", "state background", "exit ",
                ],
                "\(kinds)"
            )
            #expect(try daemon.status("web").reports == [report])
        }
    }

    @Test("Of an app that left a core dump says where that is")
    func core() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sh", "-c", "kill -SEGV $$"]
            directory = "@D"
            restart = "never"
            limits = { core = "unlimited" }
            """
        try withDaemon(toml) { daemon throws in
            try daemon.eventually("there is a report") { try !daemon.reports("web").isEmpty }
            let report = try #require(try daemon.reports("web").first)
            guard report.coreDumped else {
                print("skipped: this machine's kernel.core_pattern, or a limit, allows no core dumps")
                return
            }
            let pattern = try File.readString("/proc/sys/kernel/core_pattern").split(separator: "\n").first ?? ""
            let (code, output) = try Spawn.run([Built.path("torpor"), "report", "web", "--socket", daemon.socket])
            let place =
                switch pattern.first {
                case "|": pattern.contains("systemd-coredump") ? ": ‘coredumpctl info" : " to /"
                case "/": ", as \(pattern) (core(5)"
                default: ", as \(pattern) in the folder in which it ran"
                }
            #expect(code == 0 && output.contains("by SIGSEGV, core dumped" + place), "\(output)")
        }
    }

    @Test("The most memory is that of all its processes together")
    func memory() throws {
        let program = """
            import tp
            def child():
                kept = bytearray(b"x") * (24 << 20)
                tp.record("child")
                tp.wait()
            for _ in range(3):
                tp.fork(child)
            tp.record("up")
            tp.await_file("go")
            tp.os._exit(3)
            """
        let toml = "[apps.web]\n" + Scripts.python + "\"@D/app.py\"]\nrestart = \"never\""
        try withDaemon(toml, files: ["app.py": program]) { daemon throws in
            try daemon.eventually("all of it runs") { daemon.records("web").count { $0 == "child" } == 3 }
            var seen: Int64 = 0
            try daemon.eventually("the list has all of it") {
                seen = max(seen, try daemon.summary("web").memoryBytes ?? 0)
                return seen > 72 << 20
            }
            try File.write(daemon.directory + "/go", "")
            try daemon.eventually("there is a report") { try !daemon.reports("web").isEmpty }
            let report = try #require(try daemon.reports("web").first)
            #expect((report.maxMemoryBytes ?? 0) >= seen, "\(report)")
        }
    }

    @Test("Of a launch that was replaced by a new torpord still has how the launch went, and what came after")
    func recovered() throws {
        let program = "import tp\ntp.notify('READY=1')\ntp.await_file('go')\ntp.os._exit(3)"
        try withDaemon(StuckTests.toml(StuckTests.notify), files: ["app.py": program]) { daemon throws in
            try daemon.done(.start, "web")
            let before = try #require(try daemon.status("web").launch)
            #expect(before.ready != nil)
            kill(try daemon.torpord(), SIGKILL)
            try daemon.waitUntilItAnswers()
            let after = try #require(try daemon.status("web").launch)
            #expect(after == before)
            try File.write(daemon.directory + "/go", "")
            let report = try StuckTests.report(daemon)
            #expect(report.launch == before)
            let kinds = report.timeline.map { "\($0.kind) \($0.name ?? "")" }
            for kind in ["launch exec", "launch ready", "state active", "supervisor ", "exit "] {
                #expect(kinds.filter { $0 == kind }.count == 1, "\(kind) of \(kinds)")
            }
        }
    }

    @Test("A torpord that dies while SIGTERM waits for a look leaves it to the next one")
    func dyingMidLook() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        // It never ends by itself.
        try Daemon.write(["eu-stack": "#!/bin/sh\necho $$ > \(folder)/tool\nexec sleep 1000\n"], in: folder)
        let program = "import tp\ntp.on('SIGTERM', lambda: tp.os._exit(7))\ntp.wait()"
        let toml = StuckTests.toml(StuckTests.notify + "launch_deadline = \"300ms\"")
        let path = folder + ":/usr/bin:/bin"
        try withDaemon(toml, files: ["app.py": program], environment: ["PATH": path]) { daemon throws in
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.eventually("the tool runs") { File.exists(folder + "/tool") }
            kill(try daemon.torpord(), SIGKILL)
            try daemon.waitUntilItAnswers()
            let report = try StuckTests.report(daemon)
            #expect(report.reason == "launch-deadline" && report.exitCode == 7)
            #expect(report.timeline.contains { $0.kind == "signal" && $0.name == "SIGTERM" })
        }
    }

    @Test("The command line shows it as a page, and as JSON what the supervisor says")
    func page() throws {
        let program = "import tp\nprint('about to hang', flush=True)\ntp.wait()"
        let toml = StuckTests.toml(StuckTests.notify + "launch_deadline = \"400ms\"")
        try withDaemon(toml, files: ["app.py": program]) { daemon throws in
            #expect(try daemon.verb(.start, "web").error == "launch-deadline")
            let report = try StuckTests.report(daemon)
            let (status, page) = try Spawn.run([Built.path("torpor"), "report", "web", "--socket", daemon.socket])
            #expect(status == 0)
            for line in [
                "web, run 1: launch-deadline (0x8badf00d), ",
                "  why:     was not ready within its launch_deadline of 400ms (it sent no READY=1), and was",
                "  due:     ready within 400ms; still missing ", ", never ready\n",
                "s  missed its deadline: launch\n", "s  sent SIGTERM\n", "  threads, when it was about to be ended:\n",
                "  last output:\n    about to hang\n",
            ] {
                #expect(page.contains(line), "\(line)\nis not in\n\(page)")
            }
            let (_, json) = try Spawn.run([Built.path("torpor"), "report", "--json", "--socket", daemon.socket])
            let parsed = try JSON.parse(Array(json.utf8)).arrayValue ?? []
            #expect(try parsed.map { try Report(json: $0) } == [report])
        }
    }

    @Test("Of ten that are kept the newest three have their threads, also for a torpord that finds them in the store")
    func many() throws {
        let toml = StuckTests.toml(StuckTests.notify + "launch_deadline = \"60ms\"").replacingOccurrences(
            of: "grace = \"2s\"",
            with: "grace = \"20ms\""
        )
        try withDaemon(toml, files: ["app.py": "import tp\ntp.wait()"]) { daemon throws in
            for number in 1...5 {
                #expect(try daemon.verb(.start, "web").error == "launch-deadline")
                try daemon.eventually("there is one more") { try daemon.reports("web").count == number }
            }
            let reports = try daemon.reports("web")
            #expect(reports.map(\.incarnation) == [5, 4, 3, 2, 1])
            #expect(reports.map(\.threads.isEmpty) == [false, false, false, true, true])
            #expect(reports.allSatisfy { !$0.timeline.isEmpty })
            kill(try daemon.torpord(), SIGKILL)
            try daemon.waitUntilItAnswers()
            try daemon.eventually("they are back") { try daemon.reports("web") == reports }
        }
    }
}
