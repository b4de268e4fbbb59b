// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import MockLogind
import Testing
import TorporAPI
import Varlink

/// A state directory on an ext4 filesystem of its own that encrypts folders.
struct EncryptedScene {
    let daemon: Daemon
    static let passphrase = "correct horse"
    /// What stands in a protected file, and nowhere else.
    static let secret = "the-secret-that-no-dump-may-show"

    /// Why the tests cannot run here; nil if they can.
    static let obstacle: String? = {
        guard Users.isRoot else { return "only root can mount" }
        guard File.exists("/usr/sbin/mkfs.ext4") || File.exists("/sbin/mkfs.ext4") else {
            return "mkfs.ext4 is missing"
        }
        let script = """
            cd $(mktemp -d); truncate -s 16M disk; mkfs.ext4 -q -O encrypt disk; mkdir on
            mount -o loop disk on; umount on; cd /; rm -rf "$OLDPWD"
            """
        let result = try? Spawn.run(["/usr/bin/unshare", "-m", "/bin/sh", "-ec", script], environment: ["PATH": path])
        return result?.code == 0 ? nil : "no ext4 with encryption can be mounted here"
    }()
    private static let path = "/usr/sbin:/usr/bin:/sbin:/bin"

    static func with(
        _ answers: String = ProtectionTests.closing,
        keys: String = "protected = \"complete\"\n",
        supervisor: String = "",
        environment: [String: String] = [:],
        _ body: (EncryptedScene) throws -> Void
    ) throws {
        let script = """
            mkdir -p @D/s
            [ -e @D/disk ] || { truncate -s 32M @D/new; mkfs.ext4 -q -O encrypt @D/new; mv @D/new @D/disk; }
            mount -o loop @D/disk @D/s; chmod 755 @D/s; export TORPOR_PROTECT=@D/protect; exec "$@"
            """
        let daemon = try Daemon(
            supervisor + Delegates.head + keys,
            files: Delegates.files(answers).merging(["protect": FailingLocksTests.program]) { $1 },
            environment: ["PATH": path].merging(environment) { $1 },
            nested: true,
            wrapper: ["/usr/bin/unshare", "-m", "/bin/sh", "-ec", script, "sh"]
        )
        try daemon.waitUntilItAnswers()
        try body(EncryptedScene(daemon: daemon))
        try daemon.endEverything()
    }

    /// Runs a shell where torpord sees its disk.
    @discardableResult
    func shell(_ script: String) throws -> (status: Int32, output: String) {
        let pid = try daemon.livingTorpord()
        let result = try Spawn.run(
            ["/usr/bin/nsenter", "-t", "\(pid)", "-m", "/bin/sh", "-c", script],
            environment: ["PATH": Self.path + ":" + Built.folder, "D": daemon.directory]
        )
        return (result.code, result.output)
    }

    /// `torpor protect` with a passphrase on standard input.
    @discardableResult
    func protect(_ words: String, _ input: String = EncryptedScene.passphrase) throws -> (status: Int32, output: String)
    {
        try File.write(daemon.directory + "/input", input)
        let stdin = words.hasPrefix("lock") ? "" : "--stdin"
        return try shell("torpor protect \(words) \(stdin) --socket \(daemon.socket) < $D/input 2>&1")
    }

    func begin() throws {
        #expect(try protect("init").status == 0)
        let (status, output) = try protect("unlock")
        #expect(status == 0 && output == "unlocked\n", "\(output)")
        try daemon.done(.start, "web")
        try daemon.ask("setattr(d, 'file', open(os.environ['TORPOR_PROTECTED_DIRECTORY'] + '/diary', 'w+'))")
        try daemon.ask("d.file.write('\(Self.secret)') and d.file.flush()")
    }

    func state() throws -> String { try #require(try daemon.status("web").protection).text }

    /// What the block device shows of a text.
    func dump(has text: String) throws -> Bool {
        try shell("sync; echo 3 > /proc/sys/vm/drop_caches; sync")
        let bytes = try Data(contentsOf: URL(fileURLWithPath: daemon.directory + "/disk"))
        return bytes.range(of: Data(text.utf8)) != nil
    }
}

@Suite(
    "Encrypted folders",
    .enabled(if: EncryptedScene.obstacle == nil, "\(EncryptedScene.obstacle ?? "")")
)
struct EncryptionTests {
    @Test("What an app writes is on the disk only as ciphertext, and readable only with the passphrase")
    func whole() throws {
        try EncryptedScene.with { scene throws in
            let daemon = scene.daemon
            let (status, output) = try scene.protect("init")
            #expect(status == 0)
            let recovery = try #require(output.split(separator: "\n").last).trimmingCharacters(in: .whitespaces)
            #expect(recovery.count == 79, "\(output)")
            #expect(try scene.protect("init").status != 0)
            let wrong = try scene.protect("unlock", "incorrect horse")
            #expect(wrong.status == 1 && wrong.output.contains("this is not the passphrase"), "\(wrong.output)")
            #expect(try scene.protect("unlock").output == "unlocked\n")
            try daemon.done(.start, "web")
            #expect(try scene.state() == "unlocked, encrypted")
            try daemon.ask(
                "open(os.environ['TORPOR_PROTECTED_DIRECTORY'] + '/diary', 'w').write('\(EncryptedScene.secret)')"
            )
            try scene.shell("echo seen-in-plain > $D/s/plain")
            #expect(try scene.protect("lock").output == "locked\n")
            #expect(try scene.state() == "locked, encrypted")
            let pid = try daemon.summary("web").pid
            #expect(pid != nil)
            // Even root sees neither names nor contents.
            #expect(try scene.shell("ls $D/s/protected/web/files").output.contains("diary") == false)
            #expect(try scene.shell("cat $D/s/protected/web/files/* 2>&1").output.contains("key not available"))
            #expect(try scene.dump(has: "seen-in-plain"))
            #expect(try !scene.dump(has: EncryptedScene.secret))
            for file in ["ring", "web"] {
                let mode = try scene.shell("stat -c %a $D/s/protected/.keys/\(file)").output
                #expect(mode == "600\n")
            }
            #expect(try scene.protect("unlock --recovery", recovery).output == "unlocked\n")
            let read = "open(os.environ['TORPOR_PROTECTED_DIRECTORY'] + '/diary').read()"
            #expect(try daemon.ask(read) == .string(EncryptedScene.secret))
            #expect(try scene.protect("passphrase", "\(EncryptedScene.passphrase)\nnew horse\n").status == 0)
            #expect(try scene.protect("lock").status == 0)
            #expect(try scene.protect("unlock").status == 1)
            #expect(try scene.protect("unlock", "new horse").output == "unlocked\n")
            #expect(try daemon.ask(read) == .string(EncryptedScene.secret))
            // As PAM gives it: a NUL at the end, and no environment but its own.
            #expect(try scene.protect("lock").status == 0)
            let pam = "env -i PAM_USER=root \(Built.path("torpor")) protect unlock --pam --socket \(daemon.socket)"
            #expect(try scene.shell("printf 'new horse\\0' | \(pam)").output == "unlocked\n")
        }
    }

    @Test("Removing the key is not enough while a file is open: its app is ended, and the key removed again")
    func busy() throws {
        try EncryptedScene.with(#"protectedDataWillBecomeUnavailable="done""#) { scene throws in
            try scene.begin()
            #expect(try scene.protect("lock").output == "locked\n")
            #expect(try scene.state() == "locked, encrypted")
            #expect(try scene.daemon.summary("web").lastExit?.reason == "protected-data-open")
            #expect(try !scene.shell("ls $D/s/protected/web/files").output.contains("diary"))
            #expect(try !scene.dump(has: EncryptedScene.secret))
            #expect(try scene.protect("unlock").output == "unlocked\n")
            try scene.daemon.waitFor("web", "active")
        }
    }

    @Test("Without keys, or without the passphrase, an app waits, and says what to do")
    func withoutKeys() throws {
        try EncryptedScene.with { scene throws in
            let client = try Client(scene.daemon, "start", "web")
            try scene.daemon.eventually("it waits") { try scene.daemon.summary("web").heldBack != nil }
            let (status, output) = try scene.protect("unlock")
            #expect(status == 1 && output.contains("torpor protect init"), "\(output)")
            #expect(try scene.protect("init").status == 0)
            // An unlock that brings no keys, as by a screen locker that has none.
            #expect(throws: (any Error).self) { try scene.daemon.call(.unlockData) }
            #expect(try scene.state().contains("run ‘torpor protect unlock’"))
            #expect(try scene.daemon.summary("web").pid == nil)
            #expect(try scene.protect("unlock").status == 0)
            #expect(try client.finish(scene.daemon) == 0)
        }
    }

    @Test("A session that ends its lock without a key stays locked; a command that gives the passphrase unlocks it")
    func session() throws {
        guard MockLogind.obstacle == nil else { return print("skipped: \(MockLogind.obstacle ?? "")") }
        for hasCommand in [false, true] {
            let mock = try MockLogind { body in try Spawn.lock.withLock { try body() } }
            try mock.run("start_logind()\nadd_session('c1', 1000)\n")
            let command = hasCommand ? "[supervisor.protected]\nunlock = [\"/bin/cat\", \"@D/passphrase\"]\n" : ""
            try EncryptedScene.with(
                supervisor: "session = \"c1\"\n" + command,
                environment: ["DBUS_SYSTEM_BUS_ADDRESS": mock.address]
            ) { scene throws in
                let daemon = scene.daemon
                try scene.begin()
                try File.write(daemon.directory + "/passphrase", EncryptedScene.passphrase + "\n")
                try mock.hint("c1", true)
                try daemon.waitForMessage("protectedDataWillBecomeUnavailable")
                try daemon.eventually("it is locked") { try scene.state() == "locked, encrypted" }
                try mock.hint("c1", false)
                if hasCommand {
                    try daemon.waitForMessage("protectedDataDidBecomeAvailable")
                    try daemon.waitFor("web", "active")
                } else {
                    try daemon.eventually("it says why") { try scene.state().contains("the passphrase was not given") }
                    #expect(try !daemon.messages().contains("protectedDataDidBecomeAvailable"))
                    #expect(try daemon.summary("web").state == "background")
                    // As a screen locker does by PAM.
                    #expect(try scene.protect("unlock").status == 0)
                    try daemon.waitFor("web", "active")
                }
            }
        }
    }

    @Test("An unlock that fails takes its keys back, and a folder that needs none stays closed with the others")
    func takenBack() throws {
        let other = """
            [apps.other]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            protected = "first-unlock"
            """
        try EncryptedScene.with(keys: "protected = \"complete\"\n" + other) { scene throws in
            let daemon = scene.daemon
            try scene.begin()
            #expect(try scene.protect("lock").output == "locked\n")
            // The folder of the other app is open since the first unlock, which says nothing about the keys now.
            #expect(throws: (any Error).self) { try daemon.call(.unlockData) }
            #expect(try scene.state().hasPrefix("locked, encrypted"))
            // Nothing but the client takes the keys back.
            for step in ["open", "close"] { try File.write(daemon.directory + "/fails-\(step)", "") }
            #expect(try scene.protect("unlock").status == 1)
            #expect(try scene.shell("ls $D/s/protected/web/files").output.contains("diary") == false)
            for step in ["open", "close"] { try File.remove(daemon.directory + "/fails-\(step)") }
            // One damaged key keeps no other app locked.
            try scene.shell("echo damaged > $D/s/protected/.keys/other")
            let (status, output) = try scene.protect("unlock")
            #expect(status == 0 && output.contains(".keys/other is damaged"), "\(output)")
            try daemon.waitFor("web", "active")
        }
    }

    @Test("A command that gives the passphrase ends with a newer lock, and unlocks nothing after it")
    func lateCommand() throws {
        guard MockLogind.obstacle == nil else { return print("skipped: \(MockLogind.obstacle ?? "")") }
        let mock = try MockLogind { body in try Spawn.lock.withLock { try body() } }
        try mock.run("start_logind()\nadd_session('c1', 1000)\n")
        let command = """
            session = "c1"
            [supervisor.protected]
            unlock = ["/bin/sh", "-c", "echo $$ > @D/asked; while [ ! -e @D/go ]; do sleep 0.05; done; cat @D/passphrase"]

            """
        try EncryptedScene.with(
            supervisor: command,
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": mock.address]
        ) { scene throws in
            let daemon = scene.daemon
            try scene.begin()
            try File.write(daemon.directory + "/passphrase", EncryptedScene.passphrase + "\n")
            try mock.hint("c1", true)
            try daemon.eventually("it is locked") { try scene.state() == "locked, encrypted" }
            // The one of the start may have found the new keys.
            try? File.remove(daemon.directory + "/asked")
            try mock.hint("c1", false)
            let asked = daemon.directory + "/asked"
            func asking() -> Int32? {
                (try? File.readString(asked)).flatMap { Int32($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
            }
            try daemon.eventually("the command asks") { asking() != nil }
            let pid = try #require(asking())
            #expect(try scene.protect("lock").output == "locked\n")
            try daemon.eventually("the command is gone") { !Truth.isAlive(pid) }
            try File.write(daemon.directory + "/go", "")
            #expect(try scene.state().hasPrefix("locked, encrypted"))
            // The next end of a lock asks again.
            try mock.hint("c1", true)
            try mock.hint("c1", false)
            try daemon.eventually("it is unlocked") { try scene.state() == "unlocked, encrypted" }
        }
    }

    @Test("torpord, its keeper or both are killed at each step of an edge: nothing changes but time")
    func kills() throws {
        let seed =
            ProcessInfo.processInfo.environment["TORPOR_PROTECT_SEED"].flatMap { UInt64($0) }
            ?? UInt64.random(in: 1...999_999)
        let rounds = ProcessInfo.processInfo.environment["TORPOR_PROTECT_ROUNDS"].flatMap { Int($0) } ?? 9
        print("protected data: TORPOR_PROTECT_SEED=\(seed), \(rounds) rounds")
        var state = seed
        func dice(_ count: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int((state >> 33) % UInt64(count))
        }
        let answers = "protectedDataWillBecomeUnavailable=once(later(0.2))"
        try EncryptedScene.with(answers) { scene throws in
            let daemon = scene.daemon
            try scene.begin()
            for round in 0..<rounds {
                let loss = [Loss.killed, .keeper, .both][dice(3)]
                let isLock = round % 2 == 0
                // The client sees the loss, or an answer.
                let words = isLock ? "lock" : "unlock --stdin"
                try File.write(daemon.directory + "/input", EncryptedScene.passphrase)
                let pid = try daemon.livingTorpord()
                let client = try Spawn.start(
                    [
                        "/usr/bin/nsenter", "-t", "\(pid)", "-m", "/bin/sh", "-c",
                        "exec \(Built.path("torpor")) protect \(words) --socket \(daemon.socket) < \(daemon.directory)/input",
                    ],
                    environment: [:],
                    output: daemon.directory + "/client"
                )
                usleep(UInt32(dice(400)) * 1000)
                try daemon.lose(loss)
                kill(client, SIGKILL)
                waitpid(client, nil, 0)
                // The person asks again: it may have been lost before torpord heard of it.
                let (status, output) = try scene.protect(isLock ? "lock" : "unlock")
                #expect(status == 0, "round \(round), \(loss): \(output)")
                #expect(try scene.state() == (isLock ? "locked, encrypted" : "unlocked, encrypted"), "\(round) \(loss)")
                if isLock {
                    #expect(
                        try !scene.shell("ls $D/s/protected/web/files").output.contains("diary"),
                        "\(round) \(loss)"
                    )
                } else {
                    try daemon.done(.start, "web")
                    try daemon.waitFor("web", "active")
                    #expect(try scene.shell("cat $D/s/protected/web/files/diary").output == EncryptedScene.secret)
                }
            }
        }
    }
}
