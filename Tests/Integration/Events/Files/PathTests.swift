// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("Files that wake apps")
struct PathTests {
    /// A program that says what it is told, by a signal or as a delegate.
    private static func toml(_ keys: String, ready: String = "exec") -> String {
        """
        [apps.web]
        \(Scripts.python)"@D/app.py"]
        launch = "on-demand"
        ready = "\(ready)"
        restart = "never"
        \(keys)

        """
    }

    private static let plain = """
        from tp import *
        on("SIGUSR1")
        on("SIGHUP")
        record("up")
        wait()
        """

    /// Takes what is in the folder, and ends.
    private static let worker = """
        from tp import *
        record("up")
        for name in os.listdir(HERE + "/in"):
            record("took " + name)
            os.remove(HERE + "/in/" + name)
        """

    @Test(
        "an app that was never started is launched by a file",
        arguments: [
            ("exists", "late/f", "the existence of"), ("changed", "late/f", "a change of"),
            ("modified", "late/*", "a change of"), ("not_empty", "late", "something in"),
        ]
    )
    func launches(condition: String, path: String, text: String) throws {
        let keys = "paths = [{ name = \"it\", \(condition) = \"@D/\(path)\" }]"
        try withDaemon(Self.toml(keys), files: ["app.py": Self.plain]) { daemon in
            try File.makeDirectory(daemon.directory + "/late")
            // Directories that come first are seen first: what comes into them by then is seen too.
            try File.write(daemon.directory + "/late/f", "x")
            // What was there before the first look is no change: then the next one is.
            try daemon.eventually("it was launched") {
                if daemon.records("web") == ["up"] { return true }
                if ["changed", "modified"].contains(condition) { try File.write(daemon.directory + "/late/f", "more") }
                return false
            }
            let woken = try daemon.waitForEvent("web", "woken by")
            #expect(woken.text.contains(text), "\(woken.text)")
            #expect(woken.reason == "path")
            try daemon.waitFor("web", "background")
        }
    }

    @Test("a suspended app is continued, hears which file it was, and is suspended again")
    func resumes() throws {
        let keys = """
            paths = [{ name = "conf", changed = "@D/c/*.conf" }]
            event_time = "300ms"
            """
        let toml = Self.toml(keys, ready: "delegate")
        try withDaemon(toml, files: Delegates.files()) { daemon in
            try File.makeDirectory(daemon.directory + "/c")
            // Whole at once: a file that is made and written to later changes twice.
            func put(_ name: String) throws {
                try File.write(daemon.directory + "/draft", "1")
                try File.rename(daemon.directory + "/draft", daemon.directory + "/c/" + name)
            }
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            try put("a.conf")
            let heard = try daemon.waitForMessage("didReceiveEvent")
            #expect(heard.parameters["topic"]?.stringValue == "path:conf")
            #expect(heard.parameters["payload"]?["path"]?.stringValue?.hasSuffix("/c/a.conf") ?? false)
            #expect(heard.parameters["payload"]?["condition"]?.stringValue == "changed")
            try daemon.waitFor("web", "suspended")
            try put("b.conf")
            let second = try daemon.waitForMessage("didReceiveEvent", count: 2)
            #expect(second.parameters["payload"]?["path"]?.stringValue?.hasSuffix("/c/b.conf") ?? false)
            try daemon.waitFor("web", "suspended")
        }
    }

    @Test("a folder that has something in it launches its app until it is empty")
    func queue() throws {
        let keys = """
            paths = [{ not_empty = "@D/in" }]
            success_exit_status = [0]
            """
        try withDaemon(Self.toml(keys), files: ["app.py": Self.worker]) { daemon in
            try File.makeDirectory(daemon.directory + "/in")
            for number in 1...3 {
                try File.write(daemon.directory + "/in/\(number)", "x")
                try daemon.waitForRecord("web", "took \(number)")
            }
            try daemon.waitFor("web", "not-running")
            #expect(try File.list(daemon.directory + "/in").isEmpty)
        }
    }

    @Test("what is still in a folder when its app has ended launches it again")
    func again() throws {
        let lazy = """
            from tp import *
            name = sorted(os.listdir(HERE + "/in"))[0]
            record("took " + name)
            os.remove(HERE + "/in/" + name)
            """
        let files = ["app.py": lazy]
        try withDaemon(Self.toml("paths = [{ not_empty = \"@D/in\" }]"), files: files) { daemon in
            try File.makeDirectory(daemon.directory + "/new")
            for number in 1...3 { try File.write(daemon.directory + "/new/\(number)", "x") }
            try File.rename(daemon.directory + "/new", daemon.directory + "/in")
            try daemon.eventually("the folder is empty") { try File.list(daemon.directory + "/in").isEmpty }
            try daemon.waitFor("web", "not-running")
            #expect(daemon.records("web") == ["took 1", "took 2", "took 3"])
        }
    }

    @Test("nobody wakes an app that a person has stopped")
    func stopped() throws {
        try withDaemon(Self.toml("paths = [{ exists = \"@D/f\" }]"), files: ["app.py": Self.plain]) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.stop, "web")
            try File.write(daemon.directory + "/f", "x")
            try daemon.waitForEvent("web", "is not woken by")
            #expect(try daemon.summary("web").state == "not-running")
        }
    }

    @Test("what changes while torpord is dead wakes the app when the next one is there")
    func missed() throws {
        let keys = "paths = [{ changed = \"@D/f\" }, { changed = \"@D/same\" }]"
        try withDaemon(Self.toml(keys), files: ["app.py": Self.plain, "f": "1", "same": "1"]) { daemon in
            try daemon.done(.start, "web") { $0.background = true }
            try daemon.done(.suspend, "web")
            let torpord = try daemon.torpord()
            kill(daemon.pid, SIGSTOP)
            kill(torpord, SIGKILL)
            try File.write(daemon.directory + "/f", "other")
            kill(daemon.pid, SIGCONT)
            try daemon.waitUntilItAnswers()
            try daemon.waitForEvent("web", "woken by a change of \(daemon.directory)/f")
            #expect(try !daemon.events("web").contains { $0.text.contains("woken") && $0.text.contains("/same") })
        }
    }

    @Test("a change right after the reply of an apply is noticed, however long it takes to look at the new paths")
    func rightAfter() throws {
        let names = (0..<4).map { "d\($0)" }
        let apps = names.map { name in
            """
            [apps.\(name)]
            exec = ["/bin/sh", "-c", "echo ran >> @D/ran.\(name)"]
            type = "oneshot"
            restart = "never"
            launch = "on-demand"
            paths = [{ changed = "@D/\(name)/*" }]
            """
        }
        // A busy machine may take longer than an apply waits.
        let environment = ["TORPOR_TEST_WATCH_PATIENCE_MS": "60000"]
        try withDaemon("[apps.other]\nexec = [\"/bin/sleep\", \"1000\"]\n", environment: environment) { daemon in
            for name in names {
                try File.makeDirectory(daemon.directory + "/" + name)
                for number in 0..<250 { try File.write(daemon.directory + "/\(name)/\(number)", "") }
            }
            try daemon.apply(apps.joined(separator: "\n"))
            for name in names { try File.write(daemon.directory + "/\(name)/0", "x") }
            for name in names {
                try daemon.eventually("\(name) has run") { File.exists(daemon.directory + "/ran." + name) }
            }
        }
    }

    @Test("paths come and go with the configuration")
    func applied() throws {
        try withDaemon(Self.toml(""), files: ["app.py": Self.plain]) { daemon in
            _ = try Daemon.writeConfiguration(Self.toml("paths = [{ exists = \"@D/f\" }]"), in: daemon.directory)
            try daemon.call(.apply(ApplyRequest()))
            try File.write(daemon.directory + "/f", "x")
            try daemon.waitForRecord("web", "up")
        }
    }
}

@Suite("Files of settings and of the identity")
struct SettingsTests {
    private static let toml = """
        [apps.web]
        \(Scripts.python)"@D/app.py"]
        launch = "on-demand"
        ready = "notify"
        settings_files = ["@D/web.conf", "@D/conf.d/*.conf"]
        identity_files = ["@D/who"]
        signals = { settingsDidChange = "SIGHUP", identityDidChange = "SIGUSR1" }
        """

    private static let app = """
        from tp import *
        on("SIGHUP")
        on("SIGUSR1")
        notify("READY=1")
        record("up")
        wait()
        """

    @Test("an app that runs is told of a change of its settings")
    func running() throws {
        try withDaemon(Self.toml, files: ["app.py": Self.app, "web.conf": "1", "who": "me"]) { daemon in
            try daemon.done(.start, "web")
            try File.replace(daemon.directory + "/web.conf", Array("22".utf8))
            try daemon.waitForRecord("web", "SIGHUP")
            #expect(!daemon.records("web").contains("SIGUSR1"))
            try File.write(daemon.directory + "/who", "you")
            try daemon.waitForRecord("web", "SIGUSR1")
        }
    }

    @Test("one that is suspended is not woken for it, and is told once when it wakes")
    func suspended() throws {
        try withDaemon(Self.toml, files: ["app.py": Self.app, "web.conf": "1"]) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            try File.makeDirectory(daemon.directory + "/conf.d")
            for number in 1...3 as ClosedRange<Int64> {
                try File.replace(daemon.directory + "/conf.d/\(number).conf", Array("x".utf8))
                // Else they might be gathered into one change.
                try daemon.eventually("change \(number) was seen") {
                    let mail = try daemon.mailbox().mail
                    return mail.count == 1 && mail[0].count >= number
                }
            }
            #expect(try daemon.summary("web").state == "suspended")
            #expect(!daemon.records("web").contains("SIGHUP"))
            try daemon.done(.resume, "web")
            try daemon.waitForRecord("web", "SIGHUP")
            try daemon.done(.foreground, "web")
            #expect(daemon.records("web").filter { $0 == "SIGHUP" }.count == 1)
        }
    }

    @Test("a change that torpord has seen, and has told nobody of yet, is not lost with it")
    func seenAndLost() throws {
        try withRecovery(Self.toml, files: ["app.py": Self.app, "web.conf": "1"]) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            for round in 1...5 {
                try File.replace(daemon.directory + "/web.conf", Array("round \(round)".utf8))
                // Within the time that is waited for the last step of a change.
                usleep(50_000)
                try daemon.lose(.killed)
                try daemon.eventually("it waits to be told") {
                    try daemon.mailbox().mail.map(\.topic) == ["settings"]
                }
                try daemon.done(.resume, "web")
                try daemon.eventually("it is told") { daemon.records("web").count { $0 == "SIGHUP" } == round }
                try daemon.done(.suspend, "web")
            }
        }
    }

    @Test("one that sleeps is told before it takes what has woken it")
    func beforeAnythingElse() throws {
        let app = """
            from tp import *
            import signal, socket, tp
            told = 0
            def changed(*_):
                global told
                told += 1
            signal.signal(signal.SIGHUP, changed)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(tp.HERE + "/listener")
            listener.listen()
            notify("READY=1")
            while True:
                connection, _ = listener.accept()
                connection.send(b"%d" % told)
                connection.close()
            """
        let toml = Self.toml + "\nwake_on_connect = true\n"
        try withDaemon(toml, files: ["app.py": app, "web.conf": "1"]) { daemon in
            try daemon.done(.start, "web")
            for round in 1...10 {
                try daemon.done(.suspend, "web")
                try File.replace(daemon.directory + "/web.conf", Array("round \(round)".utf8))
                try daemon.eventually("it waits to be told") { try !daemon.mailbox().mail.isEmpty }
                let answer = try Spawn.run([
                    "/usr/bin/python3", "-S", "-c",
                    // To its end: an app that is stopped before it closes the connection is woken by that.
                    "import socket; s = socket.socket(1); s.connect('\(daemon.directory)/listener'); print(s.makefile().read())",
                ])
                #expect(answer.output == "\(round)\n")
            }
        }
    }
}
