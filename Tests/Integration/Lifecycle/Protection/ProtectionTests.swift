// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// Apps whose protected folder is closed by its mode, on a filesystem that encrypts none.
@Suite("Protected data", .enabled(if: Users.isRoot, "only root sees who holds files of others")) struct ProtectionTests
{
    static let keys = "protected = \"complete\"\nprotected_fallback = \"permissions\"\n"

    /// A delegate that closes its file when it is told to.
    static let closing = """
        protectedDataWillBecomeUnavailable=lambda m: (d.file.close() if getattr(d, "file", None) else None, "done")[1]
        """

    static func with(
        _ answers: String = closing,
        keys: String = keys,
        deadline: String = "10s",
        loss: Bool = false,
        _ body: (Daemon) throws -> Void
    ) throws {
        let toml = "[supervisor.protected]\nprotected_deadline = \"\(deadline)\"\n" + Delegates.head + keys
        let daemon = try Daemon(toml, files: Delegates.files(answers), nested: loss)
        try daemon.waitUntilItAnswers()
        try body(daemon)
        try daemon.endEverything()
    }

    @discardableResult static func lock(_ daemon: Daemon) throws -> String? {
        try daemon.call(.lockData)["message"]?.stringValue
    }

    @discardableResult static func unlock(_ daemon: Daemon) throws -> String? {
        try daemon.call(.unlockData)["message"]?.stringValue
    }

    static func state(_ daemon: Daemon, _ app: String = "web") throws -> ProtectionInfo {
        try #require(try daemon.status(app).protection)
    }

    /// Unlocks, starts the app, and has it open a file.
    static func begin(_ daemon: Daemon) throws {
        try unlock(daemon)
        try daemon.done(.start, "web")
        try daemon.ask("setattr(d, 'file', open(os.environ['TORPOR_PROTECTED_DIRECTORY'] + '/secret', 'w+'))")
        try daemon.ask("d.file.write('plain text') and d.file.flush()")
    }

    static func door(_ daemon: Daemon) throws -> UInt32 { try File.status(daemon.directory + "/s/protected/web").mode }

    @Test("An app that closes its files keeps running, out of the foreground, and comes back with the unlock")
    func closes() throws {
        try Self.with { daemon throws in
            try daemon.eventually("it is locked") { try Self.state(daemon).state == "locked" }
            try Self.begin(daemon)
            #expect(try Self.state(daemon).text == "unlocked, not encrypted")
            let pid = try daemon.summary("web").pid
            #expect(try Self.door(daemon) == 0o711)
            #expect(try Self.lock(daemon) == nil)
            #expect(try Self.door(daemon) == 0o700)
            #expect(try Self.state(daemon).text == "locked, not encrypted")
            try daemon.waitFor("web", "background")
            try Self.unlock(daemon)
            try daemon.waitForMessage("protectedDataDidBecomeAvailable")
            try daemon.waitFor("web", "active")
            #expect(try daemon.summary("web").pid == pid)
            let names = try daemon.messages().filter { !$0.contains("Launching") }
            let order = [
                "didBecomeActive", "willResignActive", "didEnterBackground", "protectedDataWillBecomeUnavailable",
                "protectedDataDidBecomeAvailable", "willEnterForeground", "didBecomeActive",
            ]
            #expect(names.sorted() == order.sorted(), "\(names)")
            #expect(try daemon.ask("open(os.environ['TORPOR_PROTECTED_DIRECTORY'] + '/secret').read()") == "plain text")
        }
    }

    @Test("An app that keeps a file open or mapped is ended, which is no crash, and launched again after the unlock")
    func keepsOpen() throws {
        for mapped in [false, true] {
            try Self.with(#"protectedDataWillBecomeUnavailable="done""#) { daemon throws in
                try Self.begin(daemon)
                if mapped {
                    try daemon.ask("import mmap; d.map = mmap.mmap(d.file.fileno(), 5); d.file.close()")
                    // Python keeps a descriptor of its own for a mapping.
                    try daemon.ask(
                        "[os.close(int(n)) for n in os.listdir('/proc/self/fd') if os.path.realpath('/proc/self/fd/' + n)"
                            + ".endswith('/secret')]"
                    )
                }
                #expect(try Self.lock(daemon) == nil)
                try daemon.eventually("it waits for the unlock") {
                    try daemon.summary("web").heldBack?.contains("locked") ?? false
                }
                let report = try #require(try daemon.reports("web").first)
                #expect(report.reason == "protected-data-open" && report.text?.contains("secret") == true)
                let summary = try daemon.summary("web")
                #expect(summary.restarts == 0 && summary.lastExit?.reason == "protected-data-open" && !summary.failed)
                #expect(try daemon.events("web").contains { $0.text.contains("waits to be launched") })
                try Self.unlock(daemon)
                try daemon.waitFor("web", "active")
                #expect(try daemon.messages(incarnation: 2).contains("didFinishLaunching"))
            }
        }
    }

    @Test("An app that does not answer has its time, and no more")
    func silent() throws {
        try Self.with("protectedDataWillBecomeUnavailable=hold", deadline: "400ms") { daemon throws in
            try Self.begin(daemon)
            let begin = Clock.monotonic()
            #expect(try Self.lock(daemon) == nil)
            #expect(Clock.monotonic() - begin >= .milliseconds(400))
            #expect(try daemon.summary("web").lastExit?.reason == "protected-data-open")
            #expect(try daemon.events().contains { $0.text.contains("without the answers of web") })
        }
    }

    @Test("An app that sleeps with a file open is evicted; it is not woken to be told")
    func asleep() throws {
        try Self.with { daemon throws in
            try Self.begin(daemon)
            try daemon.done(.background, "web")
            try daemon.done(.suspend, "web")
            #expect(try Self.lock(daemon) == nil)
            try daemon.waitFor("web", "not-running")
            #expect(try daemon.summary("web").lastExit?.reason == "evicted")
            #expect(!(try daemon.messages().contains("protectedDataWillBecomeUnavailable")))
        }
    }

    @Test("A process of somebody else is reported and left alone; when it is gone, the lock is whole")
    func foreign() throws {
        try Self.with { daemon throws in
            try Self.begin(daemon)
            let secret = daemon.directory + "/s/protected/web/files/secret"
            let other = try Spawn.start(
                ["/bin/sh", "-c", "exec 7<\(secret); exec sleep 1000"],
                environment: [:],
                output: "/dev/null"
            )
            defer {
                kill(other, SIGKILL)
                waitpid(other, nil, 0)
            }
            try daemon.eventually("it holds the file") {
                (try? File.readLink("/proc/\(other)/fd/7")) == secret && (try? ProcFS.stat(other).comm) == "sleep"
            }
            #expect(try Self.lock(daemon) == "1 file busy: PID \(other) (sleep)")
            #expect(try Self.state(daemon).text == "locked, not encrypted, 1 file busy: PID \(other) (sleep)")
            #expect(try daemon.events().contains { $0.text.contains("process \(other) (sleep) has 1 file") })
            let doctor = try (daemon.call(.doctor)["checks"]?.arrayValue ?? []).map { try DoctorCheck(json: $0) }
            #expect(doctor.first { $0.name == "protected data" }?.message?.contains("not encrypted: web") == true)
            #expect(Truth.isAlive(other))
            try Self.unlock(daemon)
            let client = try Client(daemon, "protect", "lock")
            try daemon.eventually("it is reported again") {
                try daemon.events().filter { $0.text.contains("process \(other)") }.count == 2
            }
            kill(other, SIGKILL)
            let code = try client.finish(daemon)
            // On a busy machine, torpor-protect may not come through all of /proc in its time.
            #expect(code == 0, "\(client.output)")
            #expect(client.output == "locked\n" || client.output.contains("did not end"), "\(client.output)")
        }
    }

    @Test("A launch waits while data is locked, unless the app is launched in spite of that")
    func launches() throws {
        try Self.with { daemon throws in
            let client = try Client(daemon, "start", "web")
            try daemon.eventually("it waits") { try daemon.summary("web").heldBack?.contains("unlock") ?? false }
            #expect(try daemon.summary("web").pid == nil)
            try daemon.eventually("it says for what it waits") {
                client.output.contains("its data is locked") && client.output.contains("--timeout bounds the wait")
            }
            try Self.unlock(daemon)
            #expect(try client.finish(daemon) == 0)
        }
        try Self.with(keys: Self.keys + "launch_when_locked = true\n") { daemon throws in
            try daemon.done(.start, "web")
            try Self.unlock(daemon)
            try daemon.waitForMessage("protectedDataDidBecomeAvailable")
        }
    }

    @Test("Until the first unlock, then to the end: no lock closes such a folder, and the end does")
    func firstUnlock() throws {
        let keys = Self.keys.replacing("complete", with: "first-unlock")
        try Self.with(keys: keys) { daemon throws in
            let client = try Client(daemon, "start", "web")
            try daemon.eventually("it waits") { try daemon.summary("web").heldBack?.contains("unlock") ?? false }
            try Self.unlock(daemon)
            #expect(try client.finish(daemon) == 0)
            // Before the first unlock, all folders are closed, and the search for holders may not end in time.
            func failures() -> Int { daemon.log.components(separatedBy: "protected folders could not be closed").count }
            let before = failures()
            try Self.lock(daemon)
            // A lock that closes nothing has nothing to try again, for ten seconds.
            #expect(failures() == before)
            #expect(try Self.door(daemon) == 0o711)
            #expect(try Self.state(daemon).state == "unlocked")
            #expect(try daemon.summary("web").state == "active")
            try daemon.done(.restart, "web")
            let door = daemon.directory + "/s/protected/web"
            kill(try daemon.livingKeeper(), SIGTERM)
            try daemon.eventually("everything is gone") {
                _ = daemon.reap()
                return Truth.processes(marked: daemon.directory).isEmpty
            }
            #expect(try File.status(door).mode == 0o700)
            try daemon.startAgain()
            try daemon.waitUntilItAnswers()
        }
    }

    @Test("Without encryption and without the fallback the app is not launched, and is told why")
    func refused() throws {
        try Self.with(keys: "protected = \"complete\"\n") { daemon throws in
            for isUnlocked in [false, true] {
                if isUnlocked { #expect(try Self.unlock(daemon)?.contains("encrypts no folders") == true) }
                let result = try daemon.verb(.start, "web")
                let message = result.message ?? ""
                #expect(!result.ok && message.contains("could not be launched (protected)"), "\(message)")
                #expect(message.contains("protected_fallback"), "\(message)")
                #expect(try daemon.summary("web").lastExit?.reason == "launch-failed")
            }
        }
    }

    @Test("The folder is the app's alone, and its user cannot open a closed door")
    func users() throws {
        let script = """
            while :; do
                cat "$TORPOR_PROTECTED_DIRECTORY/secret" 2>&1
                chmod 777 "$TORPOR_PROTECTED_DIRECTORY/.." 2>&1
                sleep 0.05
            done
            """
        let toml = """
            [apps.web]
            exec = ["/bin/sh", "-c", '''\(script)''']
            user = "nobody"
            launch_when_locked = true
            \(Self.keys)
            """
        try withDaemon(toml) { daemon throws in
            try Self.unlock(daemon)
            try daemon.waitFor("web", "active")
            let files = daemon.directory + "/s/protected/web/files"
            try daemon.eventually("the folder is there") { File.exists(files) }
            #expect(try File.status(files).uid == Users.lookup("nobody")?.uid)
            try File.write(files + "/secret", "plain text\n")
            func log() -> String { (try? File.readString(daemon.directory + "/l/web.log")) ?? "" }
            try daemon.eventually("it reads") { log().contains("plain text") }
            try Self.lock(daemon)
            let before = log().components(separatedBy: "plain text").count
            try daemon.eventually("it is refused") { log().contains("Permission denied") }
            try daemon.eventually("it was refused some times") {
                log().components(separatedBy: "Permission denied").count > 5
            }
            #expect(log().components(separatedBy: "plain text").count <= before + 1)
        }
    }
}
