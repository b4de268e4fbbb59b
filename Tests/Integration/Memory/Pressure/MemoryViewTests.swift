// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Linux
import Testing
import TorporAPI
import Varlink

/// What the supervisor itself says of memory.
@Suite("What a supervisor says of memory") struct MemoryViewTests {
    private static let toml = """
        [defaults]
        exec = ["/usr/bin/python3", "-S", "-c", "import time; time.sleep(1000)"]
        [apps.first]
        priority = -1
        [apps.second]
        evict = "kill"
        memory_limit = "64MiB"
        [apps.kept]
        evict = "never"
        [apps.needed]
        [apps.user]
        requires = ["needed"]
        [apps.gone]
        launch = "on-demand"
        """

    @Test("it has each app that runs with what it has, and who would go next or why not")
    func memory() throws {
        try withDaemon(Self.toml) { daemon throws in
            for app in ["first", "second", "kept", "needed", "user"] { try daemon.waitFor(app, "active") }
            for app in ["first", "second", "kept"] { try daemon.done(.suspend, app) }
            for app in ["needed", "user"] { try daemon.done(.background, app) }
            let reply = try daemon.call(.memory)
            let memory = try MemoryStatus(json: reply["memory"] ?? .null)
            #expect(memory.totalBytes > 0 && memory.availableBytes <= memory.totalBytes && memory.policy == nil)
            let apps = Dictionary(uniqueKeysWithValues: memory.apps.map { ($0.app, $0) })
            #expect(Set(apps.keys) == ["first", "second", "kept", "needed", "user"])
            for app in memory.apps { #expect(app.residentBytes + app.swappedBytes > 10_000, "\(app)") }
            #expect(apps["second"]?.endsAtOnce == true && apps["first"]?.endsAtOnce == false)
            #expect(apps["second"]?.limitBytes == 64 << 20 && apps["first"]?.limitBytes == nil)
            #expect(apps["kept"]?.protection == "evict = \"never\"")
            #expect(apps["needed"]?.protection != nil)
            let endings = memory.steps.filter { $0.rung == "evict" || $0.rung.hasPrefix("end-") }
            // What another one requires may go when that one has gone; in a rehearsal nobody goes.
            #expect(
                endings.map { "\($0.rung) \($0.apps)" }.prefix(3) == [
                    "evict [\"first\"]", "evict [\"second\"]", "end-background [\"user\"]",
                ]
            )
            #expect(!endings.contains { $0.apps == ["kept"] })
            // None of it was done.
            #expect(try daemon.list().count { $0.pid != nil } == 5)
        }
    }

    /// Takes 64 MiB at the first SIGUSR1, and says so with a file in its folder.
    private static let growing = """
        import signal

        def grow(*_):
            global memory
            memory = bytearray(64 << 20)
            memory[::4096] = b"x" * len(memory[::4096])
            open("grown", "w").close()

        signal.signal(signal.SIGUSR1, grow)
        open("ready", "w").close()
        while True:
            signal.pause()
        """

    @Test("what it says is so at the moment in which it is asked")
    func present() throws {
        let toml = "[apps.new]\nexec = [\"/usr/bin/python3\", \"@D/app.py\"]\ndirectory = \"@D\"\n"
        try withDaemon(toml, files: ["app.py": Self.growing]) { daemon throws in
            func bytes() throws -> Int64 {
                let memory = try MemoryStatus(json: daemon.call(.memory)["memory"] ?? .null)
                return try #require(memory.apps.first { $0.app == "new" }).residentBytes
            }
            try daemon.eventually("it hears signals") { File.exists(daemon.directory + "/ready") }
            let before = try bytes()
            try daemon.call(.signal(app: "new", signal: "USR1"))
            try daemon.eventually("it has grown") { File.exists(daemon.directory + "/grown") }
            #expect(try bytes() >= before + 60 << 20)
        }
    }

    @Test("doctor says whether it hears of pressure and stays in memory")
    func doctor() throws {
        try withDaemon("[apps]") { daemon throws in
            let checks = try (daemon.call(.doctor)["checks"]?.arrayValue ?? []).map { try DoctorCheck(json: $0) }
            let names = checks.map(\.name)
            for name in [
                "when memory is short", "torpord in memory", "swap", "paging out", "other OOM killers",
                "pressure (PSI)",
            ] {
                #expect(names.count { $0 == name } == 1, "\(name)")
            }
            for check in checks where !check.ok { #expect(check.message?.isEmpty == false, "\(check)") }
        }
    }
}
