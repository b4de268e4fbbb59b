// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// Apps that get stuck, and what their reports say of it.
@Suite("A termination report of an app that got stuck") struct StuckTests {
    static func toml(_ keys: String) -> String {
        """
        [apps.web]
        \(Scripts.python)"@D/app.py"]
        launch = "on-demand"
        restart = "never"
        grace = "2s"
        \(keys)
        """
    }

    static let notify = "ready = \"notify\"\n"
    static let answers = notify + "answers = true\nsignals = { didEnterBackground = \"SIGUSR1\" }\n"

    /// Its report once it has ended.
    static func report(_ daemon: Daemon, at location: SourceLocation = #_sourceLocation) throws -> Report {
        try daemon.eventually("there is a report", at: location) { try !daemon.reports("web").isEmpty }
        return try #require(try daemon.reports("web").first)
    }

    @Test("In a system call before it was ready: what was due, how late, and where it waits")
    func launch() throws {
        let program = "import tp\ntp.notify('STATUS=asking the database')\ntp.select.select([], [], [])"
        let toml = Self.toml(Self.notify + "launch_deadline = \"2s\"")
        try withDaemon(toml, files: ["app.py": program]) { daemon throws in
            #expect(try daemon.verb(.start, "web").error == "launch-deadline")
            let report = try Self.report(daemon)
            let text = try #require(report.text)
            let sentence = "was not ready within its launch_deadline of 2s (it sent no READY=1), and was ended"
            #expect(text.hasPrefix(sentence), "\(text)")
            #expect(report.deadline == "launch" && report.due == "ready" && report.deadlineMilliseconds == 2_000)
            #expect((2_000...20_000).contains(report.usedMilliseconds ?? 0))
            #expect(report.answered == false && (0...20_000).contains(report.lateMilliseconds ?? -1))
            #expect(report.status == "asking the database")
            let launch = try #require(report.launch)
            let executed = try #require(launch.executed)
            let contact = try #require(launch.contact)
            #expect(0 < executed && executed < contact && contact < 2_000)
            #expect(launch.ready == nil && launch.message == nil)
            let kinds = report.timeline.map { "\($0.kind) \($0.name ?? "")" }
            #expect(
                kinds == [
                    "launch fork", "transition launching", "launch exec", "state inactive", "launch contact",
                    "missed launch", "transition terminating", "signal SIGTERM", "exit ",
                ],
                "\(kinds)"
            )
            let thread = try #require(report.threads.first)
            #expect(report.threads.count == 1 && thread.pid == report.pid && thread.tid == report.pid)
            #expect(thread.state == "S")
            if Users.isRoot { #expect(thread.stack.contains { $0.contains("select") }, "\(thread.stack)") }
            #expect((report.memoryBytes ?? 0) > 1 << 20 && (report.maxMemoryBytes ?? 0) >= (report.memoryBytes ?? 0))
        }
    }

    @Test(
        "In a loop, not answering didEnterBackground, and deaf to SIGTERM: it is killed after its grace, and no later"
    )
    func loop() throws {
        let program = """
            import tp
            tp.on("SIGTERM")
            def spin():
                tp.notify("STATUS=spinning")
                while True:
                    pass
            tp.on("SIGUSR1", spin)
            tp.notify("READY=1")
            tp.wait()
            """
        let toml = Self.toml(Self.answers + "background_deadline = \"500ms\"\ngrace = \"700ms\"").replacingOccurrences(
            of: "grace = \"2s\"\n",
            with: ""
        )
        try withDaemon(toml, files: ["app.py": program]) { daemon throws in
            try daemon.done(.start, "web")
            #expect(try daemon.verb(.background, "web").error == "background-deadline")
            let report = try Self.report(daemon)
            let text = try #require(report.text)
            #expect(
                text.hasPrefix(
                    "did not answer didEnterBackground within its background_deadline of 500ms, and was ended by SIGKILL"
                ),
                "\(text)"
            )
            #expect(report.due == "didEnterBackground" && !report.answered)
            #expect(report.lateMilliseconds ?? 0 >= 700, "\(report.lateMilliseconds ?? 0)")
            #expect(report.state == "inactive" && report.transition == "entering-background")
            // A second and more in the loop, as far as the machine has room for it.
            #expect((report.cpuSeconds ?? 0) > 0.05, "\(report.cpuSeconds ?? 0)")
            let thread = try #require(report.threads.first)
            #expect(thread.state == "R" && (thread.cpuSeconds ?? 0) > 0.01)
            let kinds = report.timeline.map { "\($0.kind) \($0.name ?? "")" }
            let tail = [
                "message didEnterBackground", "transition entering-background", "missed background",
                "transition terminating", "signal SIGTERM", "missed grace", "signal SIGKILL", "exit ",
            ]
            #expect(kinds.suffix(tail.count) == tail[...], "\(kinds)")
            let times = report.timeline.compactMap(\.after)
            #expect(times == times.sorted() && times.count == report.timeline.count)
        }
    }

    @Test("In a lock that another process holds: the wait channel and the kernel's stack say so")
    func lock() throws {
        let program = """
            import fcntl, tp
            def close():
                file = open(tp.HERE + "/locked", "w")
                fcntl.flock(file, fcntl.LOCK_EX)
            tp.on("SIGUSR1", close)
            tp.notify("READY=1")
            tp.wait()
            """
        try withDaemon(Self.toml(Self.answers + "background_deadline = \"400ms\""), files: ["app.py": program]) {
            daemon throws in
            let path = daemon.directory + "/locked"
            let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o666)
            defer { close(file) }
            #expect(file >= 0 && flock(file, LOCK_EX) == 0)
            try daemon.done(.start, "web")
            let result = try daemon.verb(.background, "web")
            #expect(result.error == "background-deadline", "\(result)")
            let thread = try #require(try Self.report(daemon).threads.first)
            if Users.isRoot {
                #expect(thread.waitChannel?.contains("lock") ?? false, "\(thread)")
                #expect(thread.stack.contains { $0.contains("flock") }, "\(thread.stack)")
            }
        }
    }

    @Test("With eu-stack, where its program stands, seen before SIGTERM ends it")
    func program() throws {
        guard File.isExecutable("/usr/bin/eu-stack") else {
            print("skipped: there is no /usr/bin/eu-stack here (package elfutils)")
            return
        }
        let program =
            "import tp, threading\nthreading.Thread(target=tp.time.sleep, args=(60,), daemon=True).start()\ntp.wait()"
        // Another user's than the supervisor's, where that can be.
        let user = Users.isRoot ? "user = \"nobody\"\n" : ""
        let toml = Self.toml(Self.notify + user + "launch_deadline = \"2s\"")
        try withDaemon(toml, files: ["app.py": program]) { daemon throws in
            #expect(try daemon.verb(.start, "web").error == "launch-deadline")
            let report = try Self.report(daemon)
            #expect(report.signal == "SIGTERM")
            #expect(report.threads.count == 2)
            for thread in report.threads {
                #expect(thread.userStack.first?.contains("libc.so") ?? false, "\(thread.userStack)")
                #expect(thread.userStack.contains { $0.contains("_PyEval_EvalFrameDefault") }, "\(thread.userStack)")
            }
            #expect(try daemon.summary("web").state == "not-running")
        }
    }

    @Test("A tool that hangs delays SIGTERM by half a second, and is gone then")
    func hangingTool() throws {
        let tool = "#!/bin/sh\necho $$ > @D/tool\necho 'PID 1 - process'\nexec sleep 1000\n"
        let program = "import tp\ntp.on('SIGTERM', lambda: tp.os._exit(0))\ntp.wait()"
        let path = "@D/bin:/usr/bin:/bin"
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try Daemon.write(["eu-stack": tool], in: folder)
        let toml = Self.toml(Self.notify + "launch_deadline = \"2s\"")
        try withDaemon(
            toml,
            files: ["app.py": program],
            environment: ["PATH": path.replacingOccurrences(of: "@D/bin", with: folder)]
        ) {
            daemon throws in
            #expect(try daemon.verb(.start, "web").error == "launch-deadline")
            let report = try Self.report(daemon)
            #expect(report.exitCode == 0)
            #expect(report.lateMilliseconds ?? 0 >= 500, "\(report.lateMilliseconds ?? 0)")
            let text = try String(contentsOfFile: folder + "/tool", encoding: .utf8)
            let pid = try #require(Int32(text.split(separator: "\n")[0]))
            try daemon.eventually("the tool is gone") { !File.exists("/proc/\(pid)") }
        }
    }

    @Test("An answer that comes too late is in it, with how much")
    func late() throws {
        let program = """
            import tp
            def late():
                tp.await_file("answer")
                tp.notify("X_TORPOR_DONE=didEnterBackground")
            tp.on("SIGTERM")
            tp.on("SIGUSR1", late)
            tp.notify("READY=1")
            tp.wait()
            """
        // So long it may answer after SIGTERM.
        let toml = Self.toml(Self.answers + "background_deadline = \"400ms\"")
            .replacingOccurrences(of: "grace = \"2s\"", with: "grace = \"4s\"")
        try withDaemon(toml, files: ["app.py": program]) { daemon throws in
            try daemon.done(.start, "web")
            _ = try daemon.verb(.background, "web") { $0.wait = false }
            try daemon.waitForRecord("web", "SIGTERM")
            daemon.touch("answer")
            let report = try Self.report(daemon)
            #expect(report.reason == "background-deadline" && report.answered)
            func time(_ kind: String, _ name: String) throws -> Double {
                try #require(report.timeline.first { $0.kind == kind && $0.name == name }?.after, "\(kind) \(name)")
            }
            let told = try time("message", "didEnterBackground")
            let missed = try time("missed", "background")
            let answered = try time("answer", "didEnterBackground")
            // Counted from the deadline, in whole milliseconds; torpord notices that it was missed when it is its turn.
            let late = Double(try #require(report.lateMilliseconds)) / 1000
            #expect(late > answered - missed - 0.002 && late < answered - told - 0.4 + 0.05, "\(late)")
        }
    }
}
