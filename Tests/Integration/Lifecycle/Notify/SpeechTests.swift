// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("Apps that speak sd_notify: main process, barriers, stored descriptors, who is heard") struct SpeechTests {
    private func obedient(_ keys: String = "", _ body: (Daemon) throws -> Void) throws {
        let toml = NotifyApps.head + "grace = \"300ms\"\n" + keys
        try withDaemon(toml, files: ["app.py": NotifyApps.obedient]) { daemon throws in
            try daemon.launch()
            try daemon.tell("0", #"notify("READY=1")"#)
            try daemon.waitFor("web", "active")
            try body(daemon)
        }
    }

    @Test("MAINPID to a child is accepted: the old main process may go, the end of the new one is the end")
    func mainPID() throws {
        try obedient { daemon throws in
            let old = try #require(try daemon.summary("web").pid)
            try daemon.tell(
                "1",
                #"child = tp.fork(tp.wait); record("child " + str(child)); notify(f"MAINPID={child}")"#
            )
            try daemon.eventually("the child is the main process") {
                guard let pid = try daemon.summary("web").pid else { return false }
                return daemon.records("web").contains("child \(pid)")
            }
            let new = try #require(try daemon.summary("web").pid)
            kill(old, SIGKILL)
            try daemon.eventually("the old one is gone") { !Truth.isAlive(old) }
            #expect(try daemon.summary("web").state == "active")
            #expect(Truth.isAlive(new))
            kill(new, SIGKILL)
            try daemon.waitFor("web", "not-running")
            #expect(try daemon.summary("web").lastExit?.signal == "SIGKILL")
        }
    }

    @Test("The end of a main process that its own parent does not reap is noticed")
    func unreaped() throws {
        try obedient { daemon throws in
            let old = try #require(try daemon.summary("web").pid)
            try daemon.tell("1", #"child = tp.fork(tp.wait); notify(f"MAINPID={child}")"#)
            try daemon.eventually("the child is the main process") { try daemon.summary("web").pid != old }
            let new = try #require(try daemon.summary("web").pid)
            kill(new, SIGKILL)
            try daemon.waitFor("web", "not-running")
            #expect(!Truth.isAlive(old))
        }
    }

    @Test("MAINPID to a stranger is refused, and said")
    func stranger() throws {
        let pid = try Spawn.start(["/bin/sleep", "1000"], environment: [:], output: "/dev/null")
        defer {
            kill(pid, SIGKILL)
            waitpid(pid, nil, 0)
        }
        try obedient { daemon throws in
            let own = try daemon.summary("web").pid
            try daemon.tell("1", "notify(\"MAINPID=\(pid)\")")
            try daemon.waitForEvent("web", "which is not one of its processes")
            #expect(try daemon.summary("web").pid == own)
            try daemon.tell(
                "2",
                "notify(\"MAINPID=1\"); notify(\"MAINPID=0\"); notify(\"MAINPID=-1\"); notify(\"MAINPID=999999999999\")"
            )
            #expect(try daemon.summary("web").pid == own)
        }
        #expect(Truth.isAlive(pid))
    }

    @Test("What is wrong with a notification is said once in a run")
    func wrong() throws {
        try obedient { daemon throws in
            try daemon.tell("1", #"notify("REDY=1"); notify("REDY=1"); notify("READY=yes"); notify("STATUS=all sent")"#)
            try daemon.eventually("all are read") { try daemon.summary("web").status == "all sent" }
            let warnings = try daemon.events("web").map(\.text).filter { $0.contains(" means nothing") }
            let yes = "READY=yes means nothing: only READY=1 does"
            #expect(warnings == ["REDY means nothing: did you mean READY?", yes], "\(warnings)")
        }
    }

    @Test("STOPPING=1 starts the grace: an app that then does not end is ended")
    func stopping() throws {
        try obedient { daemon throws in
            // Deaf before it says so, and not waited for: it may be ended before it can record that it did.
            try daemon.order("1", #"tp.signal.signal(tp.signal.SIGTERM, tp.signal.SIG_IGN); notify("STOPPING=1")"#)
            try daemon.waitFor("web", "not-running")
            #expect(try daemon.summary("web").lastExit?.signal == "SIGKILL")
        }
    }

    @Test("A barrier's descriptor is closed as soon as what came before is handled")
    func barrier() throws {
        try obedient { daemon throws in
            try daemon.tell(
                "1",
                """
                r, w = os.pipe()
                notify("STATUS=before the barrier")
                notify("BARRIER=1", [w])
                os.close(w)
                import select
                record("answered" if select.select([r], [], [], 60)[0] and os.read(r, 1) == b"" else "not answered")
                """
            )
            #expect(daemon.records("web").contains("answered"))
            #expect(try daemon.summary("web").status == "before the barrier")
        }
    }

    @Test("Descriptors in the store come back at the next launch, by name")
    func store() throws {
        let program = """
            import tp
            from tp import *
            names = os.environ.get("LISTEN_FDNAMES", "none")
            record("names " + names + " " + str(os.environ.get("LISTEN_PID") == str(os.getpid())))
            if names != "none":
                for i in range(int(os.environ["LISTEN_FDS"])):
                    os.lseek(3 + i, 0, 0)
                    record("fd " + os.read(3 + i, 100).decode())
            else:
                for name in ["one", "two"]:
                    fd = os.memfd_create(name)
                    os.write(fd, name.encode())
                    notify("FDSTORE=1\\nFDNAME=" + name, [fd])
            notify("READY=1")
            wait()
            """
        try withDaemon(NotifyApps.head, files: ["app.py": program]) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.done(.restart, "web")
            try daemon.waitForRecord("web", "fd two")
            #expect(daemon.records("web") == ["names none False", "names one:two True", "fd one", "fd two"])
        }
    }

    @Test("With notify_access = main a child is not heard")
    func onlyMain() throws {
        try obedient("notify_access = \"main\"\n") { daemon throws in
            try daemon.tell(
                "1",
                """
                def speak():
                    notify("STATUS=from the child")
                    wait()
                tp.fork(speak)
                """
            )
            try daemon.waitForEvent("web", "ignored a notification")
            #expect(try daemon.summary("web").status == nil)
            try daemon.tell("2", #"notify("STATUS=from main")"#)
            try daemon.eventually("main is heard") { try daemon.summary("web").status == "from main" }
        }
    }

    @Test("A child is heard by default, a stranger never")
    func stranger2() throws {
        try obedient { daemon throws in
            let path = daemon.runtime + "/apps/web/notify"
            // One that has ended would be heard: it was perhaps one of the app's.
            let stranger = try Spawn.start(
                ["/usr/bin/python3", "-S", "-c", "import tp; tp.notify('STATUS=from a stranger'); tp.wait()"],
                environment: ["NOTIFY_SOCKET": path, "PYTHONPATH": daemon.directory],
                output: "/dev/null"
            )
            defer {
                kill(stranger, SIGKILL)
                waitpid(stranger, nil, 0)
            }
            try daemon.waitForEvent("web", "ignored a notification of process \(stranger)")
            #expect(try daemon.summary("web").status == nil)
            try daemon.tell(
                "1",
                """
                def speak():
                    notify("X_NOTHING=1\\nSTATUS=from the child")
                    wait()
                tp.fork(speak)
                """
            )
            try daemon.eventually("the child is heard") { try daemon.summary("web").status == "from the child" }
        }
    }

    @Test("What is no notification is not believed and harms nobody")
    func garbage() throws {
        try obedient { daemon throws in
            try daemon.tell(
                "1",
                #"""
                for text in ["", "\n\n", "READY", "=", "=1", "WATCHDOG_USEC=never", "MAINPID=x", "EXTEND_TIMEOUT_USEC=-5",
                        "STATUS=" + "x" * 60000, "FDSTORE=1", "X" * 5000, "ERRNO=999999999999999999999", "\0\0\0",
                        "X_TORPOR_DONE=nothing", "WATCHDOG=2"]:
                    notify(text)
                """#
            )
            #expect(try daemon.summary("web").state == "active")
            try daemon.tell("2", #"notify("STATUS=fine")"#)
            try daemon.eventually("it is still heard") { try daemon.summary("web").status == "fine" }
        }
    }
}
