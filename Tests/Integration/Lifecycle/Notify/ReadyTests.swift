// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("Apps that speak sd_notify: ready and the launch deadline") struct ReadyTests {
    @Test("It is not active before READY=1, and its status is shown")
    func gate() throws {
        try withDaemon(NotifyApps.head, files: ["app.py": NotifyApps.obedient]) { daemon throws in
            try daemon.launch()
            try daemon.tell("1", #"notify("STATUS=warming up")"#)
            try daemon.eventually("the status is shown") { try daemon.summary("web").status == "warming up" }
            let summary = try daemon.summary("web")
            #expect(summary.state == "inactive")
            #expect(summary.transition == "launching")
            try daemon.tell("2", #"notify("READY=1\nSTATUS=serving")"#)
            try daemon.waitFor("web", "active")
            #expect(try daemon.summary("web").status == "serving")
        }
    }

    @Test("A program that is quicker than the keeper's word that it runs is heard all the same")
    func quick() throws {
        let toml = """
            [apps.web]
            exec = ["\(Built.path("torpor-test-app"))", "--ready", "0"]
            launch = "on-demand"
            ready = "notify"
            launch_deadline = "15s"
            restart = "never"
            instances = 30
            """
        try withDaemon(toml) { daemon throws in
            // Many at once and a busy machine, so that the keeper comes late to tell of them.
            let busy = try (0..<4).map { _ in
                try Spawn.start(["/bin/sh", "-c", "while :; do :; done"], environment: [:], output: "/dev/null")
            }
            defer {
                for pid in busy {
                    kill(pid, SIGKILL)
                    waitpid(pid, nil, 0)
                }
            }
            for _ in 0..<3 {
                let results = try daemon.verbs(.start, ["web@*"])
                #expect(results.count == 30 && results.allSatisfy(\.ok))
                _ = try daemon.verbs(.kill, ["web@*"])
            }
            #expect(try !daemon.events().contains { $0.text.contains("ignored") })
        }
    }

    @Test("Suspend asked of a launching app waits for ready: it is not stopped before")
    func suspendWaits() throws {
        try withDaemon(NotifyApps.head + "launch_deadline = \"30s\"\n", files: ["app.py": NotifyApps.obedient]) {
            daemon throws in
            try daemon.launch()
            _ = try daemon.verb(.suspend, "web") { $0.wait = false }
            try daemon.tell("1", "pass")
            #expect(try daemon.summary("web").transition == "launching")
            try daemon.order("2", #"notify("READY=1")"#)
            try daemon.waitFor("web", "suspended")
        }
    }

    @Test("No READY=1 in time ends it with launch-deadline and leaves a report")
    func deadline() throws {
        let toml = NotifyApps.head + "launch_deadline = \"300ms\"\n"
        try withDaemon(toml, files: ["app.py": NotifyApps.obedient]) { daemon throws in
            let result = try daemon.verb(.start, "web")
            #expect(!result.ok)
            #expect(result.error == "launch-deadline")
            let report = try #require(try daemon.reports("web").first)
            #expect(report.reason == "launch-deadline")
            #expect(report.code == 0x8bad_f00d)
            #expect(report.deadline == "launch")
            #expect(report.deadlineMilliseconds == 300)
            #expect(daemon.processes(of: "web").isEmpty)
        }
    }

    @Test("EXTEND_TIMEOUT_USEC moves the launch deadline")
    func extend() throws {
        let toml =
            NotifyApps.head + """
                launch_deadline = "3s"
                extension_limit = "1min"
                [apps.silent]
                exec = ["/bin/sleep", "1000"]
                launch = "on-demand"
                ready = "notify"
                restart = "never"
                launch_deadline = "3s"
                """
        try withDaemon(toml, files: ["app.py": NotifyApps.obedient]) { daemon throws in
            try daemon.launch()
            try daemon.tell("1", #"notify("EXTEND_TIMEOUT_USEC=30000000")"#)
            // One that is launched later, and has as much time, has missed it.
            #expect(try daemon.verb(.start, "silent").error == "launch-deadline")
            #expect(try daemon.summary("web").transition == "launching")
            try daemon.tell("2", #"notify("READY=1")"#)
            try daemon.waitFor("web", "active")
        }
    }

    @Test("Other programs that speak it are understood: systemd-notify --ready does not wait in vain")
    func systemdNotify() throws {
        guard File.isExecutable("/usr/bin/systemd-notify") else {
            print("skipped: there is no /usr/bin/systemd-notify here")
            return
        }
        let toml = """
            [apps.web]
            exec = ["/bin/sh", "-c", "systemd-notify --ready --status=hello && echo $? > @D/said; exec sleep 1000"]
            launch = "on-demand"
            ready = "notify"
            """
        try withDaemon(toml) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.eventually("systemd-notify came back") { File.exists(daemon.directory + "/said") }
            #expect(try daemon.summary("web").status == "hello")
        }
    }

    @Test("The sdnotify package of Python is understood")
    func sdnotify() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let installed = try? Spawn.run([
            "/usr/bin/python3", "-m", "pip", "install", "--quiet", "--timeout", "5", "--retries", "0", "--target",
            folder, "sdnotify",
        ])
        guard installed?.code == 0 else {
            print("skipped: sdnotify cannot be installed here: \(installed?.output.suffix(200) ?? "")")
            return
        }
        let program = """
            import sys
            sys.path.insert(0, "\(folder)")
            import sdnotify, tp
            n = sdnotify.SystemdNotifier(debug=True)
            n.notify("STATUS=from the package")
            n.notify("READY=1")
            tp.wait()
            """
        try withDaemon(NotifyApps.head, files: ["app.py": program]) { daemon throws in
            try daemon.done(.start, "web")
            #expect(try daemon.summary("web").status == "from the package")
        }
    }
}
