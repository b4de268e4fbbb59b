// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// Two supervisors on this machine, of which each stands for one: `ssh` is a script that runs torpor of the other.
@Suite("Moving an app to another machine") struct MoveTests {
    /// Saves and gets back its state as the files in its folder say.
    static let program = """
        import json
        from tp import *
        path = json.loads(os.environ["TORPOR_LAUNCH_OPTIONS"])["restored_state"]
        record("got " + (open(path).read() if path else "nothing"))
        notify("READY=1")
        on("SIGTERM", lambda: os._exit(0))
        while True:
            time.sleep(0.01)
        """

    static let toml = """
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        ready = "notify"
        owner = "external"
        launch = "foreground"
        topics = { "*" = "all" }

        [apps.plain]
        exec = ["/bin/sleep", "1000"]
        launch = "on-demand"

        """

    /// What `ssh` does: it runs torpor of the other machine, and fails at the verb in the file `fails`,
    /// and waits at the one in the file `waits`, as long as that is there.
    private static func ssh(to other: Daemon) -> String {
        """
        #!/bin/sh
        shift
        if [ -e "$(dirname "$0")/fails" ]; then
            case "$*" in *"$(cat "$(dirname "$0")/fails")"*) exit $(cat "$(dirname "$0")/code" 2>/dev/null || echo 255) ;; esac
        fi
        if [ -e "$(dirname "$0")/waits" ]; then
            case "$*" in *"$(cat "$(dirname "$0")/waits")"*)
                touch "$(dirname "$0")/waiting"
                while [ -e "$(dirname "$0")/waits" ]; do sleep 0.01; done ;;
            esac
        fi
        shift
        # As sshd does, a shell gets the words.
        eval "exec '\(Built.path("torpor"))' $* --socket '\(other.socket)'"

        """
    }

    private static func withTwo(
        _ toml: String = toml,
        _ body: (_ here: Daemon, _ there: Daemon, _ ssh: String) throws -> Void
    ) throws {
        try withDaemon(toml, files: ["app.py": program]) { here in
            try withDaemon(toml, files: ["app.py": program]) { there in
                let ssh = here.directory + "/ssh"
                try File.write(ssh, Self.ssh(to: there))
                chmod(ssh, 0o755)
                try body(here, there, ssh)
            }
        }
    }

    private static func torpor(_ daemon: Daemon, _ words: String...) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor")] + words + ["--socket", daemon.socket])
    }

    private static func owners(_ here: Daemon, _ there: Daemon) throws -> [String?] {
        try [here, there].map { try $0.summary("web").owner }
    }

    @Test("it ends here and runs there, with its state and its mail; and back again")
    func moved() throws {
        try Self.withTwo { here, there, ssh in
            try here.done(.own, "web")
            try here.plant("ours")
            try there.plant("older")
            let plan = try Self.torpor(here, "move", "web", "other", "--ssh", ssh, "--dry-run")
            #expect(plan.code == 0 && plan.output.hasPrefix("web: can move to other"), "\(plan)")
            #expect(try Self.owners(here, there) == ["here", "none"])

            let moved = try Self.torpor(here, "move", "web", "other", "--ssh", ssh, "--json")
            #expect(moved.code == 0, "\(moved)")
            #expect(try JSON.parse(Array(moved.output.utf8)[...])["bytes"]?.intValue == 4)
            #expect(try Self.owners(here, there) == ["none", "here"])
            #expect(try there.summary("web").state == "active" && here.summary("web").state == "not-running")
            #expect(there.records("web") == ["got ours"])

            // What comes here from now on goes along the next time; first it goes the other way.
            try here.post("news", ["n": 1])
            let back = here.directory + "/back"
            try File.write(back, Self.ssh(to: here))
            chmod(back, 0o755)
            try there.plant("theirs")
            try there.done(.background, "web")
            try there.post("late", ["n": 2], to: "web") { $0.urgent = false }
            let mailed = try there.mailbox("web").mail.count
            #expect(try Self.torpor(there, "move", "web", "other", "--ssh", back).code == 0)
            #expect(here.records("web").last == "got theirs")
            #expect(try here.mailbox("web").mail.count == 1 + mailed && there.mailbox("web").mail.isEmpty)
        }
    }

    @Test("its settings go along; secrets and data folders stay, which is said before, with the commands for them")
    func belongings() throws {
        let toml = Self.toml.replacing(
            "[apps.plain]",
            with: """
                data_folders = true
                [apps.web.settings]
                theme = { type = "string", default = "light" }
                size = { type = "size", default = "1MiB" }
                same = { type = "integer", default = 3 }
                key = { type = "secret" }

                [apps.plain]
                """
        )
        try Self.withTwo(toml) { here, there, ssh in
            try here.done(.own, "web")
            let text = "it's \"dark\" $HOME"
            #expect(try Self.torpor(here, "settings", "web", "theme=\(text)", "size=2MiB", "key=abc").code == 0)
            let folder = try DataFoldersInfo(json: here.call(.data(apps: ["web"]))["data"]?.arrayValue?.first ?? .null)
            try File.write(folder.path + "/library/db", String(repeating: "x", count: 20_000))
            for words in [["--dry-run"], []] {
                let moved = try Spawn.run(
                    [Built.path("torpor"), "move", "web", "other", "--ssh", ssh, "--socket", here.socket] + words
                )
                #expect(moved.code == 0, "\(moved)")
                let output = moved.output.replacing("\n", with: " ")
                #expect(output.contains("2 settings"), "\(output)")
                #expect(output.contains("torpor settings web --stdin key"), "\(output)")
                #expect(output.contains("rsync") && output.contains(folder.path), "\(output)")
            }
            let reply = try there.call(.settings(app: "web"))["settings"]?.arrayValue ?? []
            let settings = try reply.map { try SettingInfo(json: $0) }
            #expect(settings.first { $0.key == "theme" }?.text == text)
            #expect(settings.first { $0.key == "size" }?.text == "2MiB")
            #expect(settings.first { $0.key == "same" }?.changedAt == nil)
            #expect(settings.first { $0.key == "key" }?.isSet == false)
        }
    }

    @Test("if a step fails it is here again, and the sentence says so", arguments: ["import", "torpor own web"])
    func failing(step: String) throws {
        try Self.withTwo { here, there, ssh in
            try here.done(.own, "web")
            try here.plant("ours")
            try File.write(here.directory + "/fails", step)
            // As torpor there refuses it; a lost connection leaves open whether it is owned there.
            try File.write(here.directory + "/code", "1")
            let (code, output) = try Self.torpor(here, "move", "web", "other", "--ssh", ssh)
            #expect(code == 1 && output.contains("web is owned here again"), "\(output)")
            #expect(try Self.owners(here, there) == ["here", "none"])
            #expect(try here.summary("web").state == "active")
            #expect(here.records("web").last == "got ours")
        }
    }

    @Test("an app that ran here runs there, even if a user had stopped it there")
    func stoppedThere() throws {
        try Self.withTwo { here, there, ssh in
            try there.done(.own, "web")
            try there.done(.stop, "web")
            try there.done(.disown, "web")
            try here.done(.own, "web")
            let (code, output) = try Self.torpor(here, "move", "web", "other", "--ssh", ssh)
            #expect(code == 0, "\(output)")
            #expect(try there.summary("web").state == "active" && Self.owners(here, there) == ["none", "here"])
        }
    }

    @Test("one that is interrupted takes the app back; a time that is not allowed is said before anything is done")
    func interrupted() throws {
        try Self.withTwo { here, there, ssh in
            try here.done(.own, "web")
            let pid = try here.process(of: "web")
            for time in ["0s", "9000h"] {
                #expect(try Self.torpor(here, "move", "web", "other", "--ssh", ssh, "--for", time).code == 2)
            }
            #expect(try here.process(of: "web") == pid)
            try File.write(here.directory + "/waits", "state import")
            let client = try Client(here, "move", "web", "other", "--ssh", ssh)
            try here.eventually("it is under way") { File.exists(here.directory + "/waiting") }
            kill(client.pid, SIGTERM)
            try File.remove(here.directory + "/waits")
            #expect(try client.finish(here) == 1 && client.output.contains("was interrupted"), "\(client.output)")
            #expect(try Self.owners(here, there) == ["here", "none"] && here.summary("web").state == "active")
        }
    }

    @Test("an answer without an end from the other machine is none")
    func endless() throws {
        try Self.withTwo { here, there, ssh in
            try here.done(.own, "web")
            let program = here.directory + "/endless"
            try File.write(program, "#!/bin/sh\nexec cat /dev/zero\n")
            chmod(program, 0o755)
            let (code, output) = try Self.torpor(here, "move", "web", "other", "--ssh", program)
            #expect(code == 1 && output.contains("failed with exit status"), "\(output)")
            #expect(try Self.owners(here, there) == ["here", "none"])
        }
    }

    @Test("if nobody can say whether it is owned there, it is not owned here, and the sentence says what to do")
    func uncertain() throws {
        try Self.withTwo { here, there, ssh in
            try here.done(.own, "web")
            try File.write(here.directory + "/fails", "own web")
            let (code, output) = try Self.torpor(here, "move", "web", "other", "--ssh", ssh)
            #expect(code == 1 && output.contains("it is not known whether other owns web"), "\(output)")
            #expect(try Self.owners(here, there) == ["none", "none"])
            // The connection is lost at ‘own’ alone, which may still arrive.
            try here.done(.own, "web")
            try File.write(here.directory + "/fails", "torpor own web")
            let lost = try Self.torpor(here, "move", "web", "other", "--ssh", ssh)
            #expect(lost.code == 1 && lost.output.contains("it is not known whether other owns web"), "\(lost)")
            #expect(try Self.owners(here, there) == ["none", "none"])
        }
    }

    @Test("what cannot be moved is refused before anything is done")
    func refused() throws {
        try Self.withTwo { here, there, ssh in
            func refusal(_ app: String = "web", _ command: String? = nil) throws -> String {
                let (code, output) = try Self.torpor(here, "move", app, "other", "--ssh", command ?? ssh)
                #expect([1, 4, 5, 127].contains(code), "\(code) \(output)")
                return output
            }
            #expect(try refusal().contains("is not owned here"))
            #expect(try refusal("plain").contains("is not an app of several machines"))
            #expect(try refusal("none").contains("there is no app none"))
            try here.done(.own, "web")
            try there.done(.own, "web")
            #expect(try refusal().contains("is owned on other too"))
            try there.done(.disown, "web")
            #expect(try refusal("web", "/bin/false").contains("failed with exit status 1"))
            #expect(try refusal("web", "/nowhere/ssh").contains("there is no program"))
            #expect(try Self.torpor(here, "move", "web", "-oProxyCommand=x", "--ssh", ssh).code == 2)
            try File.write(here.directory + "/fails", "status")
            #expect(try refusal().contains("does not reach other"))
            #expect(try here.summary("web").state == "active")
        }
    }

    @Test("an exported state is taken whole or not at all")
    func document() throws {
        try withDaemon(Self.toml, files: ["app.py": Self.program]) { daemon in
            // Larger than one part.
            let text = String(repeating: "state ", count: 100_000)
            try daemon.plant(text)
            try daemon.post("news", ["n": 1])
            let file = daemon.directory + "/web.state"
            #expect(try Self.torpor(daemon, "state", "export", "web", "-o", file).code == 0)
            let bytes = try File.read(file, limit: 1 << 24)
            // What is no file is written into, not replaced: root would replace /dev/null for all.
            let sink = daemon.directory + "/sink"
            try File.link(sink, to: "/dev/null")
            #expect(try Self.torpor(daemon, "state", "export", "web", "-o", sink).code == 0)
            #expect(try File.readLink(sink) == "/dev/null" && File.status(sink).kind != .regular)
            func imported(_ bytes: [UInt8], as app: String = "web") throws -> (code: Int32, output: String) {
                try File.replace(file, bytes)
                return try Self.torpor(daemon, "state", "import", app, file)
            }
            try daemon.plant("other")
            let damaged: [[UInt8]] = [
                bytes.dropLast(1) + [], bytes.dropLast(70) + [], bytes + [10], bytes.dropFirst(1) + [], [10], [],
            ]
            for damage in damaged {
                #expect(try imported(damage).code == 2)
            }
            var changed = bytes
            changed[bytes.count / 2] ^= 1
            let refusal = try imported(changed)
            #expect(refusal.code == 2 && refusal.output.contains("is damaged"), "\(refusal)")
            // A message that torpord would not even read is refused before it is sent.
            let enlarge = """
                import hashlib, json, sys
                data = open(sys.argv[1], "rb").read()[:-66]
                header, state = data.split(b"\\n", 1)
                header = json.loads(header)
                header["mail"][0]["payload"] = "x" * 2000000
                data = json.dumps(header).encode() + b"\\n" + state
                data += b"\\n" + hashlib.sha256(data).hexdigest().encode() + b"\\n"
                open(sys.argv[1], "wb").write(data)
                """
            try File.replace(file, bytes)
            #expect(try Spawn.run(["/usr/bin/python3", "-c", enlarge, file]).code == 0)
            let large = try Self.torpor(daemon, "state", "import", "web", file)
            #expect(large.code == 2 && large.output.contains("larger than any app gets"), "\(large)")
            #expect(try imported(bytes, as: "plain").output.contains("is the state of web"))
            #expect(try String(contentsOfFile: daemon.archive(), encoding: .utf8) == "other")
            // Twice: the message is posted once.
            for _ in 1...2 { #expect(try imported(bytes).code == 0) }
            #expect(try String(contentsOfFile: daemon.archive(), encoding: .utf8) == text)
            #expect(try daemon.mailbox("web").mail.count == 2)

            try daemon.done(.own, "web")
            #expect(daemon.records("web").last == "got " + text)
            let running = try imported(bytes)
            #expect(running.code == 1 && running.output.contains("‘torpor stop web’ first"), "\(running)")
            try daemon.done(.stop, "web") { $0.keepState = true }
            try daemon.done(.start, "web")
            #expect(daemon.records("web").last == "got " + text)
            let runs = daemon.records("web").count
            try daemon.done(.restart, "web") { $0.keepState = true }
            #expect(daemon.records("web").dropFirst(runs).last == "got " + text)
            try daemon.done(.restart, "web")
            #expect(daemon.records("web").last == "got nothing")
            try daemon.done(.stop, "web")
            try File.write(file, "as it is")
            #expect(try Self.torpor(daemon, "state", "import", "web", "--raw", file).code == 0)
            try daemon.done(.start, "web")
            #expect(daemon.records("web").last == "got as it is")
            try daemon.done(.stop, "web")
            try File.write(file, "")
            #expect(try Self.torpor(daemon, "state", "import", "web", "--raw", file).code == 2)
            #expect(try Self.torpor(daemon, "state", "export", "nobody", "-o", file).code == 4)
        }
    }

    @Test("mail is imported whole or not at all, and not twice while it waits")
    func mail() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            topics = { "*" = "all" }

            """
        try withDaemon(toml) { daemon in
            for number in 1...8 as ClosedRange<Int64> { try daemon.post("news", .int(number)) }
            // Equal messages are two.
            for _ in 1...2 { try daemon.post("tick", .null) }
            try daemon.plant("theirs")
            let file = daemon.directory + "/web.state"
            #expect(try Self.torpor(daemon, "state", "export", "web", "-o", file).code == 0)
            let all = try daemon.mailbox("web").mail.map { "\($0.topic) \($0.payload)" }
            #expect(all.count == 10)
            func empty() throws {
                _ = try Self.torpor(daemon, "mailbox", "web", "--take")
                #expect(try daemon.mailbox("web").mail.isEmpty)
            }
            func imported() throws -> (code: Int32, output: String) {
                try Self.torpor(daemon, "state", "import", "web", file)
            }
            try empty()
            try daemon.plant("own")
            for limit in ["mailbox_limit = 9\n", "mailbox_size = \"600B\"\n"] {
                try daemon.apply(toml + limit)
                let refusal = try imported()
                #expect(refusal.code == 1 && refusal.output.contains("so nothing was imported"), "\(refusal)")
                #expect(try daemon.mailbox("web").mail.isEmpty)
                #expect(try String(contentsOfFile: daemon.archive(), encoding: .utf8) == "own")
            }
            try daemon.apply(toml + "mailbox_limit = 10\n")
            let first = try imported()
            #expect(first.code == 0 && first.output.isEmpty, "\(first)")
            let again = try imported()
            #expect(again.code == 0 && again.output.contains("10 messages of it wait since an earlier import"))
            #expect(try daemon.mailbox("web").mail.map { "\($0.topic) \($0.payload)" } == all)
            #expect(try String(contentsOfFile: daemon.archive(), encoding: .utf8) == "theirs")
            // A torpord that takes over recognises all of them too, also those whose tokens are no longer the last ones.
            try daemon.killTorpord()
            try daemon.waitUntilItAnswers()
            let later = try imported()
            #expect(later.code == 0 && later.output.contains("10 messages of it wait since an earlier import"))
            #expect(try daemon.mailbox("web").mail.map { "\($0.topic) \($0.payload)" } == all)
            // What was taken out is imported again, each of it.
            try empty()
            #expect(try imported().code == 0)
            #expect(try daemon.mailbox("web").mail.map { "\($0.topic) \($0.payload)" } == all)
        }
    }

    @Test("the details of an exit say what comes next")
    func next() throws {
        let toml = """
            [apps.always]
            exec = ["/bin/false"]
            restart_backoff = { initial = "10ms", limit = 1 }
            [apps.never]
            exec = ["/bin/false"]
            restart = "never"

            """
        try withDaemon(toml) { daemon in
            try daemon.eventually("it was given up") { try daemon.summary("always").failed }
            func details(_ app: String) throws -> [JSON] {
                try daemon.events(app).filter { $0.kind == "exit" }.map(\.details)
            }
            try daemon.eventually("the other has ended") { try !details("never").isEmpty }
            #expect(try details("never").map { $0["next"]?.stringValue } == ["rest"])
            let all = try details("always")
            #expect(all.map { $0["next"]?.stringValue } == ["restart", "give-up"])
            #expect(all[0]["restart_at"]?.intValue ?? 0 > 0)
        }
    }
}
