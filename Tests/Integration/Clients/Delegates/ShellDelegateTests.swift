// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// `torpor delegate`, `task` and `state`, as scripts use them.
struct ShellDelegateTests {
    private static let torpor = Built.path("torpor")

    private static func toml(_ words: [String], _ keys: String = "") -> String {
        """
        [apps.web]
        exec = [\(words.map { "'\($0)'" }.joined(separator: ", "))]
        launch = "on-demand"
        ready = "delegate"
        restart_backoff = { initial = "10ms" }
        environment = { TORPOR = "\(torpor)" }
        \(keys)

        """
    }

    /// A program that knows nothing of its lifecycle.
    private static let program = """
        #!/bin/sh
        echo program >>@D/rec.web
        trap 'echo TERM >>@D/rec.web; exit 0' TERM
        while :; do sleep 0.02; done
        """

    @Test("what a script of an app gets wrong is said in a sentence, with the exit statuses of a shell")
    func mistakes() throws {
        let script = """
            run() { "$TORPOR" "$@" 2>&1; echo "status $?"; }
            run app task run -- @D/nothing-there
            run app task run -- @D/plain
            run app delegate -- @D/nothing-there
            run app task end typo
            run app task begin index
            run app task end typo
            run app task end index
            run post wbe news
            echo done
            exec sleep 1000
            """
        let toml = """
            [apps.web]
            exec = ["/bin/sh", "@D/script.sh"]
            environment = { TORPOR = "\(Self.torpor)" }
            """
        try withDaemon(toml, files: ["script.sh": script, "plain": "text"]) { daemon in
            func lines() throws -> [String] {
                let request = ManagerRequest.logs(LogsRequest(app: "web"))
                return (try daemon.call(request)["lines"]?.arrayValue ?? []).compactMap { $0["text"]?.stringValue }
            }
            try daemon.eventually("the script is through") { try lines().last == "done" }
            let said = try lines()
            #expect(
                said.filter { $0.hasPrefix("status ") }.map { $0.dropFirst(7) } == [
                    "127", "126", "127", "1", "0", "1", "0", "4",
                ],
                "\(said)"
            )
            #expect(said.contains("torpor: the app has no background task typo: it has none"), "\(said)")
            #expect(said.contains("torpor: the app has no background task typo: it has index"), "\(said)")
            #expect(said.contains("torpor: there is no app wbe: did you mean web?"), "\(said)")
        }
    }

    @Test("start says that an app has answered didFinishLaunching with failed")
    func failedLaunch() throws {
        let toml = Self.toml([Self.torpor, "delegate", "--on", "didFinishLaunching=exit 3"])
        try withDaemon(toml) { daemon in
            let start = try Spawn.run([Self.torpor, "--socket", daemon.socket, "start", "web"])
            #expect(start.code == 0 && start.output.contains("it answered didFinishLaunching with failed"), "\(start)")
            let health = try Spawn.run([Self.torpor, "--socket", daemon.socket, "health"])
            let sentence = "web answered didFinishLaunching with failed"
            #expect(health.code == 1 && health.output.contains(sentence), "\(health)")
            let again = try Spawn.run([Self.torpor, "--socket", daemon.socket, "start", "web"])
            #expect(again.code == 0 && !again.output.contains("failed"), "\(again)")
        }
    }

    @Test("a delegate of another user than the app's says so and ends", .enabled(if: Users.isRoot))
    func otherUser() throws {
        let change = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        let toml = Self.toml(change + [Self.torpor, "app", "delegate", "--", "/bin/sleep", "1000"])
        try withDaemon(toml + "restart = \"never\"\nlog = \"file\"\n") { daemon in
            let result = try daemon.verb(.start, "web")
            #expect(!result.ok && result.message?.contains("exit") == true, "\(result)")
            try daemon.waitFor("web", "not-running")
            #expect(try daemon.summary("web").lastExit?.reason == "exit-failure")
            let request = ManagerRequest.logs(LogsRequest(app: "web"))
            let lines = (try daemon.call(request)["lines"]?.arrayValue ?? []).compactMap { $0["text"]?.stringValue }
            let sentence = "the app's socket is only for the app's user, and this is user 65534: "
            #expect(lines.contains { $0.contains(sentence) }, "\(lines)")
        }
    }

    @Test("a message whose command the app's end cuts short is told to the next run")
    func cutShort() throws {
        let command = """
            echo told >>@D/rec.web; if [ -e @D/begun ]; then touch @D/handled; else touch @D/begun; exec sleep 1000; fi
            """
        let toml = Self.toml([Self.torpor, "app", "delegate", "--on", "didReceiveEvent=" + command])
        try withDaemon(toml + "topics = { \"*\" = { keep = true } }\n") { daemon in
            try daemon.done(.start, "web")
            try daemon.post("news")
            try daemon.eventually("it is handled") { File.exists(daemon.directory + "/begun") }
            try daemon.done(.restart, "web")
            try daemon.eventually("the next run has handled it") { File.exists(daemon.directory + "/handled") }
            #expect(daemon.records("web") == ["told", "told"])
        }
    }

    @Test("mail is kept if the answer to it cannot be read, and if unhandled was written before a failure")
    func misspelt() throws {
        let hook = """
            #!/bin/sh
            case $TORPOR_MESSAGE in didReceiveEvent) ;; didEnterBackground) echo Done >&3; exit ;; *) exit ;; esac
            case $TORPOR_MESSAGE_TOPIC in
            misspelt) echo unhandeld >&3 ;;
            because) echo unhandled because of nothing >&3; exit 3 ;;
            failing) echo unhandled >&3; exit 1 ;;
            pending) echo pending soon >&3 ;;
            esac
            """
        let toml = Self.toml([Self.torpor, "delegate", "--on", "*=@D/hook.sh"], "topics = { \"*\" = {} }\n")
        try withDaemon(toml, files: ["hook.sh": hook]) { daemon in
            try daemon.done(.start, "web")
            for topic in ["misspelt", "because", "failing"] { try daemon.post(topic) }
            try daemon.eventually("all are kept") {
                let rows = try daemon.call(.unhandled(UnhandledRequest()))["unhandled"]?.arrayValue ?? []
                return rows.count == 3 && rows.allSatisfy { $0["why"] == "unhandled" }
            }
            let start = "answered didReceiveEvent: it does not handle it: "
            try daemon.waitForEvent("web", start + "“unhandeld” is not an answer: write done")
            try daemon.waitForEvent("web", start + "“unhandled because of nothing” is not an answer")
            try daemon.waitForEvent("web", start + "‘" + daemon.directory + "/hook.sh’ ended with exit status 1")
            // The message is handled, but a line of the hook had no effect.
            try daemon.post("pending")
            try daemon.waitForEvent("web", "answered didReceiveEvent: “pending soon” is not an answer: write done")
            // It must not say that the state was saved.
            try daemon.done(.background, "web")
            try daemon.waitForEvent("web", "failed to handle didEnterBackground: “Done” is not an answer")
        }
    }

    @Test("a program that is not changed walks with commands for its messages")
    func commands() throws {
        let toml = Self.toml([Self.torpor, "delegate", "--on", "*=@D/hook.sh", "--", "@D/program.sh"])
        let files = [
            "hook.sh": "#!/bin/sh\necho $TORPOR_MESSAGE $TORPOR_MESSAGE_REASON >>@D/rec.web\n",
            "program.sh": Self.program,
        ]
        try withDaemon(toml, files: files) { daemon in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "program")
            try daemon.done(.background, "web")
            try daemon.done(.suspend, "web")
            try daemon.done(.foreground, "web")
            try daemon.done(.stop, "web")
            let heard = daemon.records("web")
            #expect(
                heard.filter { $0 != "program" } == [
                    "willFinishLaunching", "didFinishLaunching", "didBecomeActive", "willResignActive",
                    "didEnterBackground", "resumed", "willEnterForeground", "didBecomeActive", "willTerminate stopped",
                    "TERM",
                ]
            )
            // Once: the supervisor's, which goes to all processes.
            #expect(heard.filter { $0 == "program" }.count == 1)
            #expect(try daemon.summary("web").lastExit?.reason == "stopped")
        }
    }

    @Test("a program has the sockets and the watchdog of the app: the variables name its own process")
    func sockets() throws {
        let program = """
            #!/bin/bash
            [ "$LISTEN_PID" = $$ ] && [ "$WATCHDOG_PID" = $$ ] && [ "$LISTEN_FDS" = 1 ] && [ -S /dev/fd/3 ] && echo mine >>@D/rec.web
            trap 'exit 0' TERM
            while :; do sleep 0.02; done
            """
        let keys = "sockets = [{ stream = '@D/web.sock' }]\nwatchdog = '1h'\ntopics = { news = 'all' }\n"
        let words = [Self.torpor, "app", "delegate", "--on", "didReceiveEvent=@D/hook.sh", "--", "@D/program.sh"]
        // The rest of message_deadline, in milliseconds.
        let hook = "#!/bin/bash\nset -u\necho \"in <$TORPOR_MESSAGE_DEADLINE_MS> $TORPOR_MESSAGE_TOPIC\" >>@D/rec.web\n"
        let files = ["program.sh": program, "hook.sh": hook]
        try withDaemon(Self.toml(words, keys), files: files) { daemon in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "mine")
            try daemon.post("news", .int(1))
            try daemon.eventually("the message came with its deadline") {
                daemon.records("web").contains { $0.wholeMatch(of: /in <[0-9]+> news/) != nil }
            }
            try daemon.done(.stop, "web")
        }
    }

    @Test("a command that runs while torpord is killed runs once, and answers the next one")
    func replaced() throws {
        let toml = Self.toml([Self.torpor, "delegate", "--on", "didEnterBackground=@D/hook.sh", "--", "@D/program.sh"])
        let hook = """
            #!/bin/sh
            echo in >>@D/rec.web
            while [ ! -e @D/go ]; do sleep 0.02; done
            """
        try withRecovery(toml, files: ["hook.sh": hook, "program.sh": Self.program]) { daemon in
            try daemon.done(.start, "web")
            _ = try daemon.verb(.background, "web") { $0.wait = false }
            try daemon.waitForRecord("web", "in")
            try daemon.lose(.killed)
            try File.write(daemon.directory + "/go", "")
            try daemon.waitFor("web", "background")
            #expect(daemon.records("web").filter { $0 == "in" }.count == 1)
        }
    }

    @Test("a script that reads messages and answers them is a delegate")
    func lines() throws {
        let script = """
            #!/bin/bash
            coproc DELEGATE { $TORPOR delegate --answers; }
            while read -r id message parameters; do
                echo "$id $message" >>@D/rec.web
                case $message in
                    willResignActive) echo "failed it does not want to" ;;
                    didFinishLaunching) echo "pending 20s reading"; sleep 0.1; echo done ;;
                    didBecomeActive) echo Done ;;
                    *) echo done ;;
                esac >&"${DELEGATE[1]}"
            done <&"${DELEGATE[0]}"
            """
        let toml = Self.toml(["@D/script.sh"], "launch_deadline = \"10s\"")
        try withDaemon(toml, files: ["script.sh": script]) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.background, "web")
            #expect(
                daemon.records("web") == [
                    "1 willFinishLaunching", "2 didFinishLaunching", "3 didBecomeActive", "4 willResignActive",
                    "5 didEnterBackground",
                ]
            )
            try daemon.waitForEvent("web", "failed to handle didBecomeActive: “Done” is not an answer")
            try daemon.done(.stop, "web")
        }
    }

    @Test("mail for a command that is not there or not executable is kept, and the delegate says so at its start")
    func missingCommand() throws {
        let words = [
            Self.torpor, "app", "delegate", "--on", "didReceiveEvent=@D/gone.sh now",
            "--on", "didEnterBackground=@D/plain", "--", "@D/program.sh",
        ]
        let toml = Self.toml(words, "topics = { news = \"all\" }\n")
        try withDaemon(toml, files: ["program.sh": Self.program]) { daemon in
            try File.write(daemon.directory + "/plain", "text", mode: 0o644)
            try daemon.done(.start, "web")
            func said() throws -> [String] {
                let request = ManagerRequest.logs(LogsRequest(app: "web"))
                return (try daemon.call(request)["lines"]?.arrayValue ?? []).compactMap { $0["text"]?.stringValue }
            }
            try daemon.eventually("both commands are named") {
                let text = try said().joined(separator: " ")
                return text.contains("didReceiveEvent cannot be run: there is no program")
                    && text.contains("didEnterBackground cannot be run: ")
            }
            try daemon.post("news", .int(1))
            try daemon.eventually("the message is kept") {
                let rows = try daemon.call(.unhandled(UnhandledRequest()))["unhandled"]?.arrayValue ?? []
                return rows.count == 1 && rows.first?["why"] == "unhandled"
            }
            try daemon.waitForEvent("web", "answered didReceiveEvent: it does not handle it: ‘")
            // It must not say that the state was saved.
            try daemon.done(.background, "web")
            try daemon.waitForEvent("web", "failed to handle didEnterBackground")
        }
    }

    @Test("a payload with NUL reaches a command as JSON")
    func payloadWithNUL() throws {
        let hook = "#!/bin/sh\nprintf '%s\\n' \"$TORPOR_MESSAGE_PAYLOAD\" >>@D/rec.web\n"
        let words = [Self.torpor, "app", "delegate", "--on", "didReceiveEvent=@D/hook.sh", "--", "@D/program.sh"]
        let toml = Self.toml(words, "topics = { news = \"all\" }\n")
        try withDaemon(toml, files: ["hook.sh": hook, "program.sh": Self.program]) { daemon in
            try daemon.done(.start, "web")
            try daemon.post("news", .string("a\0b"))
            try daemon.waitForRecord("web", #""a\u0000b""#)
            try daemon.post("news", .string("plain"))
            try daemon.waitForRecord("web", "plain")
        }
    }

    @Test("what a program at the app's socket gets wrong before it is a delegate is an event")
    func wrongAttach() throws {
        let program = """
            import os, socket, time
            def send(text):
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(os.environ["TORPOR_APP_SOCKET"])
                connection.sendall(text)
                return connection
            kept = [send(b'{"method": "io.torpor.App.Attach", "more": true}\\n')]
            kept.append(send(b'Attach more\\0'))
            kept.append(send(b'{"method": "io.torpor.App.Attach"}\\0'))
            kept.append(send(b'{"method": "io.torpor.App.Attach", "more": true}\\0'))
            time.sleep(1000)
            """
        let toml = """
            [apps.web]
            exec = ["python3", "@D/wrong.py"]
            launch = "on-demand"
            """
        try withDaemon(toml, files: ["wrong.py": program]) { daemon in
            try daemon.done(.start, "web")
            try daemon.waitForEvent("web", "ends with a newline, and was not answered: end each message with a NUL")
            try daemon.waitForEvent("web", "sent something to its app socket that is no JSON object")
            try daemon.waitForEvent("web", "called Attach without “more”, so it is no delegate")
            try daemon.waitForEvent("web", "ready is not \"delegate\", so it is not sent the launch messages")
        }
    }

    @Test("settings of an app that declares none are refused with a whole sentence")
    func noSettings() throws {
        try withDaemon(Self.toml(["/bin/sleep", "1000"])) { daemon in
            let unset = try Spawn.run([Self.torpor, "--socket", daemon.socket, "settings", "web", "--unset", "n"])
            #expect(unset.code != 0 && unset.output.contains("web has no settings: declare them"), "\(unset)")
        }
    }

    @Test("a command that is a background task holds the app; torpor task lists it")
    func task() throws {
        let script = """
            #!/bin/sh
            $TORPOR task run --name upload -- sh -c '
                $TORPOR task list >@D/list; $TORPOR task time >@D/time; echo begun >>@D/rec.web
                while [ ! -e @D/go ]; do sleep 0.02; done; exit 7'
            echo "ended $?" >>@D/rec.web
            $TORPOR task begin sync && echo held >>@D/rec.web
            while [ ! -e @D/on ]; do sleep 0.02; done
            $TORPOR task end sync && echo free >>@D/rec.web
            while :; do sleep 0.05; done
            """
        let toml = Self.toml([Self.torpor, "delegate", "--", "@D/script.sh"])
        try withDaemon(toml, files: ["script.sh": script]) { daemon in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "begun")
            #expect(try File.readString(daemon.directory + "/list").contains("upload"))
            #expect(try File.readString(daemon.directory + "/time") == "unlimited\n")
            try daemon.done(.background, "web")
            let refused = try daemon.verb(.suspend, "web")
            #expect(!refused.ok && refused.message?.contains("upload") == true, "\(refused)")
            try File.write(daemon.directory + "/go", "")
            try daemon.waitForRecord("web", "ended 7")
            try daemon.waitForRecord("web", "held")
            let held = try daemon.verb(.suspend, "web")
            #expect(!held.ok && held.message?.contains("sync") == true, "\(held)")
            try File.write(daemon.directory + "/on", "")
            try daemon.waitForRecord("web", "free")
            try daemon.done(.suspend, "web")
            try daemon.done(.stop, "web")
        }
    }

    @Test("a command that runs over is told to end, and the app lives")
    func overTime() throws {
        let script = """
            #!/bin/sh
            echo begun >>@D/rec.web
            $TORPOR task run -- sleep 60
            echo "ended $?" >>@D/rec.web
            while :; do sleep 0.05; done
            """
        let toml = Self.toml(
            [Self.torpor, "delegate", "--", "@D/script.sh"],
            "task_time = \"3s\"\nexpiry_warning = \"1s\""
        )
        try withDaemon(toml, files: ["script.sh": script]) { daemon in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "begun")
            try daemon.done(.background, "web")
            try daemon.waitForRecord("web", "ended 143")
            try daemon.done(.suspend, "web")
            #expect(try daemon.reports("web").isEmpty)
        }
    }

    @Test("what a hook saves is there for the next one after a crash")
    func state() throws {
        let hook = """
            #!/bin/sh
            case $TORPOR_MESSAGE in
                didEnterBackground) echo kept | $TORPOR state save - ;;
                restoreState) $TORPOR state restore @D/restored; echo restored >>@D/rec.web ;;
            esac
            """
        let toml = Self.toml([Self.torpor, "delegate", "--on", "*=@D/hook.sh", "--", "@D/program.sh"])
        try withDaemon(toml, files: ["hook.sh": hook, "program.sh": Self.program]) { daemon in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "program")
            try daemon.done(.background, "web")
            for pid in daemon.processes(of: "web") { kill(pid, SIGKILL) }
            try daemon.eventually("its program runs again") {
                daemon.records("web").filter { $0 == "program" }.count == 2
            }
            // torpord may have seen the end of the first one, and told the other, before that was killed too.
            #expect(daemon.records("web").filter { $0 != "TERM" } == ["program", "restored", "program"])
            #expect(try File.readString(daemon.directory + "/restored") == "kept\n")
        }
    }
}
