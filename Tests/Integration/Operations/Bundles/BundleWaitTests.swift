// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// What launches of bundles wait for: never without end, and not if somebody stops the app.
@Suite("Bundles of apps: waits") struct BundleWaitTests {
    /// torpor-verify, replaced by a script that does `lines` first.
    static func withVerifier(
        _ lines: (_ folder: String) -> String,
        _ body: (Daemon, BundleTests.Maker, _ folder: String) throws -> Void
    ) throws {
        let folder = try Daemon.makeFolder()
        defer { try? File.removeTree(folder) }
        let script = "#!/bin/sh\n\(lines(folder))\nexec \(Built.path("torpor-verify")) \"$@\"\n"
        try Spawn.lock.withLock { try File.replace(folder + "/verify", Array(script.utf8), mode: 0o755) }
        let toml = BundleTests.toml.replacing("restart_backoff", with: "restart = \"always\"\nrestart_backoff")
        try withRecovery(toml, environment: ["TORPOR_VERIFY": folder + "/verify"]) { daemon throws in
            try body(daemon, try BundleTests.Maker(daemon), folder)
        }
    }

    @Test("A stop answers while a failure is recorded on a disk that hangs, and launches wait for that with a bound")
    func hangingTrial() throws {
        let hang = { (folder: String) in
            "[ \"$1\" = --failed ] && [ ! -e \(folder)/go ] && { echo $$ >>\(folder)/hangs; exec sleep 1000; }"
        }
        try Self.withVerifier(hang) { daemon, maker, folder in
            try maker.install("1.0", app: "exec = [\"bin/app\"]", BundleTests.sleeper, programs: ["bin/app"])
            try daemon.apply()
            try daemon.done(.start, "web")
            let failing = ["bin/app": "#!/bin/sh\nexit 1\n"]
            try maker.install("2.0", app: "exec = [\"bin/app\"]", failing, programs: ["bin/app"])
            try daemon.apply {
                $0.restart = true
                $0.wait = false
            }
            func hangs() -> [Int32] {
                ((try? File.readString(folder + "/hangs")) ?? "").split(separator: "\n").compactMap { Int32($0) }
            }
            try daemon.eventually("the failure of 2.0 is recorded") { hangs().count == 1 }
            try daemon.eventually("the next launch waits for that") {
                try daemon.status("web").summary.transition == "launching"
            }
            let first = hangs()[0]
            try daemon.done(.stop, "web")
            try daemon.waitFor("web", "not-running")
            #expect(File.exists("/proc/\(first)"), "the stop did not wait for it")
            // The next launch waits too, and goes on when the time is over.
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.eventually("the launch has failed as the one before") { hangs().count == 2 }
            #expect(!File.exists("/proc/\(first)"))
            try File.write(folder + "/go", "")
            try daemon.eventually("1.0 is put back") {
                let status = try daemon.status("web")
                return status.bundle == "notes 1.0" && status.summary.state == "active"
            }
        }
    }

    @Test("A stop answers while a bundle is verified, and torpor-verify is killed")
    func stopWhileVerifying() throws {
        let wait = { (folder: String) in "echo $$ >>\(folder)/pids; exec sleep 1000" }
        try Self.withVerifier(wait) { daemon, maker, folder in
            try maker.install("1.0", app: "exec = [\"bin/app\"]", BundleTests.sleeper, programs: ["bin/app"])
            try daemon.apply()
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.eventually("torpor-verify works") { File.exists(folder + "/pids") }
            try daemon.done(.stop, "web")
            try daemon.waitFor("web", "not-running")
            for pid in try File.readString(folder + "/pids").split(separator: "\n") {
                try daemon.eventually("\(pid) is gone") { !File.exists("/proc/\(pid)") }
            }
        }
    }

    @Test("A manifest that cannot be read for a moment is read again at the next try")
    func unread() throws {
        let toml = BundleTests.toml.replacing("restart_backoff", with: "restart = \"always\"\nrestart_backoff")
        try BundleTests.with(toml) { daemon, maker in
            try maker.install("1.0", app: "exec = [\"bin/app\"]", BundleTests.sleeper, programs: ["bin/app"])
            let manifest = maker.bundles + "/notes/1.0/manifest.toml"
            // A lease: until it is given back, whoever opens the file without waiting gets EAGAIN.
            let script = """
                import fcntl, os, signal, sys, time
                signal.signal(signal.SIGIO, signal.SIG_IGN)
                f = os.open(sys.argv[1], os.O_RDWR)
                fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)
                open(sys.argv[2], "w").close()
                while not os.path.exists(sys.argv[3]): time.sleep(0.02)
                """
            let (held, go) = (daemon.directory + "/held", daemon.directory + "/go")
            let words = ["/usr/bin/python3", "-c", script, manifest, held, go]
            let holder = try Spawn.start(words, environment: [:], output: daemon.directory + "/holder.out")
            defer {
                kill(holder, SIGKILL)
                waitpid(holder, nil, 0)
            }
            try daemon.eventually("the lease is held") { File.exists(held) }
            try daemon.apply()
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.eventually("the launch was refused") {
                try daemon.events("web").contains { $0.text.contains("cannot be read") }
            }
            try File.write(go, "")
            try daemon.waitFor("web", "active")
            #expect(try daemon.status("web").bundle == "notes 1.0")
        }
    }

    @Test("What an uninstall that was killed has left is removed at the next start")
    func removedAtStart() throws {
        try withKilledDaemon(BundleTests.toml) { daemon throws in
            let left = daemon.directory + "/s/bundles/.removed-notes"
            try File.makeDirectories(left + "/1.0/bin")
            try File.makeDirectories(daemon.directory + "/s/bundles/other/1.0")
            try daemon.killTorpord()
            try daemon.waitUntilItAnswers()
            try daemon.eventually("it is removed") { !File.exists(left) }
            #expect(File.exists(daemon.directory + "/s/bundles/other/1.0"))
        }
    }
}
