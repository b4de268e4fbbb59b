// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import KernelFiles
import Linux
import TestAddresses
import Testing
import TorporAPI

@Suite("Short memory: how apps go") struct MemoryEndingTests {
    @Test("evict = \"kill\" goes without notice; an unaware app is asked, continued for it, and ends by itself")
    func notice() throws {
        let apps =
            ShortMemory.app("blunt", 24, "evict = \"kill\"") + ShortMemory.app("asked", 4)
            + ShortMemory.app("running", 4)
        try ShortMemory.with(apps) { daemon, kernel throws in
            try daemon.bring(["blunt": "suspended", "asked": "suspended", "running": "background"])
            kernel.setAvailable(ShortMemory.critical)
            try daemon.waitForNews("no app may be evicted")
            #expect(try daemon.endings() == ["evict blunt", "evict asked", "end-background running"])
            for app in ["blunt", "asked", "running"] { #expect(try daemon.isEvicted(app), "\(app)") }
            #expect(daemon.records("blunt") == ["up"])
            #expect(daemon.records("asked") == ["up", "SIGTERM"])
            #expect(daemon.records("running") == ["up", "SIGTERM"])
            #expect(try daemon.summary("blunt").lastExit?.signal == "SIGKILL")
            #expect(try daemon.summary("asked").lastExit?.code == 0)
        }
    }

    @Test("One that ignores SIGTERM has two seconds whatever its grace, and keeps nobody else's turn waiting")
    func stubborn() throws {
        let apps =
            ShortMemory.app("stubborn", 24, "grace = \"1min\"", program: "stubborn.py") + ShortMemory.app("next", 4)
        try ShortMemory.with(apps) { daemon, kernel throws in
            try daemon.bring(["stubborn": "suspended", "next": "suspended"])
            kernel.setAvailable(ShortMemory.critical)
            let asked = try daemon.waitForStep("evict", "stubborn")
            let next = try daemon.waitForStep("evict", "next")
            try daemon.eventually("the stubborn one is gone") { try daemon.isEvicted("stubborn") }
            let end = try #require(try daemon.events("stubborn").last { $0.to == "not-running" })
            #expect(daemon.records("stubborn") == ["up", "SIGTERM"])
            #expect(try daemon.summary("stubborn").lastExit?.signal == "SIGKILL")
            #expect(end.at - asked.at >= 1_900_000 && end.at - asked.at < 20_000_000, "\(end.at - asked.at)")
            #expect(next.at < end.at, "the next one's turn came before")
        }
    }

    @Test("The port of one that connections wake stays, with or without notice; what was awake has it back soon")
    func ports() throws {
        let program =
            "import tp\nfood = bytearray(b'x' * (8 << 20))\n"
            + Servers.web.replacingOccurrences(of: ", 0), Handler", with: ", int(tp.sys.argv[1])), Handler")
            .replacingOccurrences(of: "server.serve_forever()", with: "tp.record('up')\nserver.serve_forever()")
        var ports: [String: UInt16] = [:]
        var toml = ShortMemory.head
        for (name, keys) in [("blunt", "evict = \"kill\""), ("asked", ""), ("awake", "background_time = \"none\"")] {
            let port = try TestAddress.port()
            ports[name] = port
            toml +=
                "[apps.\(name)]\n\(Scripts.python)\"@D/web.py\", \"\(port)\"]\nwake_on_connect = true\n"
                + "event_time = \"1h\"\n\(keys)\n\n"
        }
        try ShortMemory.with(toml, files: ["web.py": program]) { daemon, kernel throws in
            try daemon.bring(["blunt": "suspended", "asked": "suspended", "awake": "background"])
            for name in ["blunt", "asked"] { try daemon.waitUntilWatched(name) }
            kernel.setAvailable(ShortMemory.critical)
            for name in ports.keys { try daemon.eventually("\(name) is evicted") { try daemon.isEvicted(name) } }
            for name in ["blunt", "asked"] {
                #expect(throws: Errno.addressInUse, "\(name)") {
                    try Sockets.listenTCP(address: "127.0.0.1", port: ports[name] ?? 0).close()
                }
            }
            kernel.setAvailable(ShortMemory.enough)
            try daemon.waitForEvent("awake", "woken by the loss of its port")
            for name in ["blunt", "asked"] {
                #expect(try daemon.isEvicted(name), "nobody wants anything of it")
                // It may be reset as soon as it is there, when the app is launched for it.
                let client = try? Peer(port: ports[name] ?? 0)
                try daemon.waitForEvent(name, "woken by a connection at 127.0.0.1:")
                client?.close()
                try daemon.waitFor(name, "background")
            }
            try daemon.waitFor("awake", "suspended")
        }
    }

    @Test("Eight that have next to nothing are left alone: the end of all of them would help nobody")
    func small() throws {
        let names = (1...8).map { "small@\($0)" }
        let toml = "[apps.small]\nexec = [\"/bin/sleep\", \"1000\"]\ninstances = 8\n\n" + ShortMemory.app("large", 24)
        try ShortMemory.with(toml) { daemon, kernel throws in
            for name in names {
                try daemon.done(.start, name)
                try daemon.done(.suspend, name)
            }
            try daemon.bring(["large": "suspended"])
            kernel.setAvailable(ShortMemory.critical)
            try daemon.waitForNews("no app may be evicted")
            #expect(try daemon.endings() == ["evict large"])
            #expect(try daemon.memory().steps.allSatisfy { !$0.apps.contains { $0.hasPrefix("small") } })
        }
    }

    @Test("An evicted app rests, even one that is always restarted, and comes back when somebody wants it")
    func comesBack() throws {
        try ShortMemory.with(ShortMemory.app("web", 4, "restart = \"always\"")) { daemon, kernel throws in
            try daemon.bring(["web": "suspended"])
            kernel.setAvailable(ShortMemory.critical)
            try daemon.eventually("it is evicted") { try daemon.isEvicted("web") }
            #expect(try daemon.reports("web").isEmpty, "nothing went wrong with it")
            kernel.setAvailable(ShortMemory.enough)
            try daemon.waitUntilEnough()
            #expect(try daemon.isEvicted("web"))
            try daemon.done(.foreground, "web")
            #expect(try daemon.summary("web").state == "active" && daemon.summary("web").incarnation == 2)
        }
    }

    @Test("torpord is killed in the middle of an eviction: the next one ends it, and goes on where memory is short")
    func replaced() throws {
        let apps =
            ShortMemory.app("stubborn", 24, "restart = \"always\"", program: "stubborn.py")
            + ShortMemory.app("next", 4) + ShortMemory.app("web", 4)
        try ShortMemory.with(apps) { daemon, kernel throws in
            try daemon.bring(["web": "active", "stubborn": "suspended", "next": "suspended"])
            let web = try daemon.summary("web").pid
            kernel.setAvailable(ShortMemory.critical)
            try daemon.waitForRecord("stubborn", "SIGTERM")
            let torpord = try daemon.torpord()
            kill(torpord, SIGKILL)
            try daemon.eventually("another torpord answers") {
                (try? daemon.torpord()) != torpord && (try? daemon.list()) != nil
            }
            try daemon.eventually("both are evicted") {
                try daemon.isEvicted("stubborn") && daemon.isEvicted("next")
            }
            #expect(try daemon.summary("web").pid == web && daemon.summary("web").state == "active")
            #expect(daemon.processes(of: "stubborn").isEmpty)
        }
    }

    @Test("An app that is being debugged is left alone", .enabled(if: geteuid() == 0)) func traced() throws {
        let apps = ShortMemory.app("seen", 40) + ShortMemory.app("other", 4)
        let tracer = """
            import ctypes, sys, time
            libc = ctypes.CDLL(None, use_errno=True)
            libc.ptrace.argtypes = [ctypes.c_long] * 4
            seized = libc.ptrace(0x4206, int(sys.argv[1]), 0, 0)  # PTRACE_SEIZE
            open(sys.argv[2], "w").write(str(seized))
            time.sleep(100)
            """
        try ShortMemory.with(apps, files: ["tracer.py": tracer]) { daemon, kernel throws in
            try daemon.bring(["seen": "background", "other": "background"])
            let (pid, answer) = (try #require(try daemon.summary("seen").pid), daemon.directory + "/seized")
            let debugger = try Spawn.start(
                ["/usr/bin/python3", daemon.directory + "/tracer.py", "\(pid)", answer],
                environment: ["TPTEST": daemon.directory],
                output: daemon.directory + "/tracer.log"
            )
            defer {
                kill(debugger, SIGKILL)
                waitpid(debugger, nil, 0)
            }
            try daemon.eventually("it is traced") { (try? String(contentsOfFile: answer, encoding: .utf8)) == "0" }
            kernel.setAvailable(ShortMemory.critical)
            let end = try daemon.waitForNews("no app may be evicted")
            #expect(try daemon.endings() == ["end-background other"])
            #expect(end.text.contains("seen") && end.text.contains("it is being debugged"), "\(end.text)")
            #expect(try daemon.summary("seen").state == "background")
        }
    }

    @Test("torpord is stopped in the middle of an eviction: nothing is left") func shutdown() throws {
        let apps = ShortMemory.app("web") + ShortMemory.app("old", 4, program: "stubborn.py")
        try ShortMemory.with(apps) { daemon, kernel throws in
            try daemon.bring(["web": "active", "old": "suspended"])
            kernel.setAvailable(ShortMemory.critical)
            try daemon.waitForRecord("old", "SIGTERM")
        }
    }
}
