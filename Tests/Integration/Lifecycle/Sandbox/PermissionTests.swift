// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// Answers to apps that ask for permissions.
@Suite(
    "Permissions",
    .enabled(if: Confinement.isAvailable() && Users.isRoot, "needs root, and a kernel with Landlock")
) struct PermissionTests {
    static let app = SandboxTests.app(
        "web",
        ["read:@D/srv/file", "tcp"],
        """
        launch = "on-demand"
        sandbox = true
        [apps.web.permissions]
        "files:@D/srv:ro" = { purpose = { default = "Reads", de = "Liest" } }
        network = { purpose = "Asks" }
        alerts = { purpose = "Tells" }
        """
    )

    static func answer(_ daemon: Daemon, _ answer: PermissionVerdict, _ names: [String]) throws -> String? {
        let names = names.map { $0.replacingOccurrences(of: "@D", with: daemon.directory) }
        let request = AnswerPermissionsRequest(app: "web", names: names, answer: answer)
        return try daemon.call(.answerPermissions(request))["message"]?.stringValue
    }

    /// Waits for the results of another run than that of the process.
    static func results(_ daemon: Daemon, after pid: Int32?) throws -> [String: Int] {
        try daemon.eventually("web runs again") {
            let summary = try daemon.summary("web")
            return summary.pid != nil && summary.pid != pid && summary.state == "active"
        }
        return try SandboxTests.results(daemon, "web")
    }

    static func pid(_ daemon: Daemon) throws -> Int32 { try #require(try daemon.summary("web").pid) }

    static func forgetResults(_ daemon: Daemon) { try? File.remove(daemon.directory + "/s/apps/web/result") }

    static let closed = ["read:@D/srv/file": 13, "tcp": 13]
    static let opened = ["read:@D/srv/file": 0, "tcp": 13]

    @Test("What was asked for is withheld until somebody allows it, and again when it is taken back")
    func answers() throws {
        try withDaemon(Self.app, environment: ["TORPOR_RESTART_DELAY_CAP_MS": "0"]) { daemon throws in
            try SandboxTests.makeFiles(daemon)
            try daemon.done(.start, "web")
            #expect(try SandboxTests.results(daemon, "web") == Self.closed)
            #expect(try daemon.status("web").sandbox?.permissions.map(\.state) == ["asked", "asked", "asked"])
            var pid = try Self.pid(daemon)
            for (verdict, expected) in [(PermissionVerdict.allow, Self.opened), (.deny, Self.closed)] {
                Self.forgetResults(daemon)
                #expect(try Self.answer(daemon, verdict, ["files:@D/srv:ro"]) == "web is launched again")
                #expect(try Self.results(daemon, after: pid) == expected)
                pid = try Self.pid(daemon)
                let info = try daemon.status("web").sandbox?.permissions.first { $0.name.hasPrefix("files:") }
                #expect(info?.state == (verdict == .allow ? "allowed" : "denied"))
                #expect(info?.by == "root" && info?.at != nil)
            }
            // An ending for an answer is no crash.
            #expect(try daemon.summary("web").restarts == 0)
            #expect(try daemon.summary("web").lastExit?.reason == "permission-changed")
            #expect(try daemon.reports("web").isEmpty)
            // What changes nothing of the sandbox ends nothing.
            #expect(try Self.answer(daemon, .deny, ["network"]) == nil)
            #expect(try Self.answer(daemon, .allow, ["alerts"]) == nil)
            #expect(try Self.pid(daemon) == pid)
        }
    }

    @Test("The command shows why in the reader's language, and what was answered")
    func shown() throws {
        try withDaemon(Self.app) { daemon throws in
            let words = [Built.path("torpor"), "permissions", "web", "--socket", daemon.socket]
            func page(_ language: String) throws -> String {
                let environment = ["LANGUAGE": "", "LC_ALL": language, "LANG": language]
                let (code, output) = try Spawn.run(words, environment: environment)
                #expect(code == 0, "\(output)")
                return output
            }
            #expect(try page("de_DE.UTF-8").contains("Liest"))
            #expect(try page("C.UTF-8").contains("Reads"))
            #expect(try Self.answer(daemon, .deny, ["network"]) == nil)
            let line = try page("de_DE.UTF-8").split(separator: "\n").first { $0.contains("network") }
            #expect(line?.contains("denied") == true && line?.contains("root") == true, "\(line ?? "")")
        }
    }

    @Test("An answer outlives torpord, and is forgotten on request")
    func lasting() throws {
        try withDaemon(Self.app, environment: ["TORPOR_RESTART_DELAY_CAP_MS": "0"]) { daemon throws in
            try SandboxTests.makeFiles(daemon)
            #expect(try Self.answer(daemon, .allow, ["files:@D/srv:ro"]) == nil)
            try daemon.replaceTorpord()
            try daemon.done(.start, "web")
            #expect(try SandboxTests.results(daemon, "web") == Self.opened)
            let pid = try Self.pid(daemon)
            try daemon.replaceTorpord()
            #expect(try Self.pid(daemon) == pid)
            Self.forgetResults(daemon)
            #expect(try Self.answer(daemon, .reset, []) == "web is launched again")
            #expect(try Self.results(daemon, after: pid) == Self.closed)
        }
    }

    @Test(
        "An answer during a launch, or while torpord or its keeper is killed, leaves no app in an older sandbox",
        arguments: [Loss.killed, .keeper, .both]
    )
    func kills(_ loss: Loss) throws {
        let environment = ["TORPOR_RESTART_DELAY_CAP_MS": "0"]
        try withRecovery(Self.app, loss: loss, environment: environment) { daemon throws in
            try SandboxTests.makeFiles(daemon)
            // The answer comes while the launch is on its way.
            try daemon.done(.start, "web") { $0.wait = false }
            _ = try Self.answer(daemon, .allow, ["files:@D/srv:ro"])
            try daemon.waitFor("web", "active")
            try daemon.eventually("the app may read") { (try? SandboxTests.results(daemon, "web")) == Self.opened }
            for verdict in [PermissionVerdict.deny, .allow] {
                // The answer before may have it launched again once more.
                try daemon.waitFor("web", "active")
                Self.forgetResults(daemon)
                let pid = try daemon.summary("web").pid ?? 0
                let words = ["permissions", "web", verdict.rawValue, "files:\(daemon.directory)/srv:ro", "--socket"]
                _ = try Spawn.start(
                    [Built.path("torpor")] + words + [daemon.socket],
                    environment: [:],
                    output: "/dev/null"
                )
                // Before the answer is heard, stored or carried out, or after.
                let isOver = { pid == 0 || !Truth.isAlive(pid) || File.exists(daemon.directory + "/s/torpor.db-wal") }
                try daemon.eventually("the answer is under way") { isOver() }
                try daemon.lose(loss)
                // It may have been killed before it was heard.
                _ = try Self.answer(daemon, verdict, ["files:@D/srv:ro"])
                let expected = verdict == .allow ? Self.opened : Self.closed
                try daemon.eventually("the app is launched again: \(verdict)") {
                    (try? daemon.summary("web").pid).flatMap { $0 } != pid
                        && (try? SandboxTests.results(daemon, "web")) == expected
                }
            }
        }
    }

    @Test("A suspended app whose sandbox changes is evicted, and has the new one when it is needed")
    func suspended() throws {
        try withDaemon(Self.app) { daemon throws in
            try SandboxTests.makeFiles(daemon)
            try daemon.done(.start, "web")
            _ = try SandboxTests.results(daemon, "web")
            for (verdict, expected) in [(PermissionVerdict.allow, Self.opened), (.deny, Self.closed)] {
                try daemon.done(.suspend, "web")
                let pid = try Self.pid(daemon)
                Self.forgetResults(daemon)
                let message = try Self.answer(daemon, verdict, ["files:@D/srv:ro"])
                #expect(message == "web is evicted, and is launched again when it is needed")
                try daemon.waitFor("web", "not-running")
                #expect(!Truth.isAlive(pid))
                let summary = try daemon.summary("web")
                #expect(summary.lastExit?.reason == "evicted" && summary.restarts == 0)
                #expect(summary.goal == "not-running" && summary.nextRestartMilliseconds == nil)
                try daemon.done(.foreground, "web")
                #expect(try Self.results(daemon, after: pid) == expected)
            }
        }
    }

    @Test("A suspended app that may not be evicted is launched again when its sandbox changes")
    func suspendedForGood() throws {
        let app = Self.app.replacingOccurrences(of: "sandbox = true\n", with: "sandbox = true\nevict = \"never\"\n")
        try withDaemon(app, environment: ["TORPOR_RESTART_DELAY_CAP_MS": "0"]) { daemon throws in
            try SandboxTests.makeFiles(daemon)
            try daemon.done(.start, "web")
            _ = try SandboxTests.results(daemon, "web")
            try daemon.done(.suspend, "web")
            let pid = try Self.pid(daemon)
            #expect(try Self.answer(daemon, .allow, ["files:@D/srv:ro"]) == "web is launched again")
            try daemon.eventually("another run is there") {
                let now = try daemon.summary("web").pid
                return now != nil && now != pid && !Truth.isAlive(pid)
            }
            #expect(try daemon.summary("web").lastExit?.reason == "permission-changed")
        }
    }

    @Test("What the app does not ask for cannot be allowed")
    func unknown() throws {
        try withDaemon(Self.app) { daemon throws in
            do {
                _ = try Self.answer(daemon, .allow, ["netwrk"])
                Issue.record("it was allowed")
            } catch {
                #expect("\(error)".contains("asks for no permission netwrk; did you mean network?"), "\(error)")
            }
        }
    }

    @Test(
        "A process in a sandbox is not heard at the control socket, even as root, nor is a check",
        arguments: [false, true]
    )
    func controlSocket(_ isCheck: Bool) throws {
        let app = """
            [apps.web]
            exec = \(isCheck ? "[\"/bin/sleep\", \"1000\"]" : "[\"/usr/bin/python3\", \"-S\", \"@D/app.py\"]")
            sandbox = true
            restart = "never"
            \(isCheck ? "health = { command = [\"/usr/bin/python3\", \"-S\", \"@D/app.py\"], interval = \"100ms\" }" : "")
            [apps.web.permissions]
            "files:@D:ro" = { purpose = "Why", default = "allow" }

            """
        let program = """
            import os, socket, sys
            s = socket.socket(socket.AF_UNIX); s.connect(os.environ["TORPOR_MANAGER_SOCKET"])
            s.sendall(b'{"method":"io.torpor.Manager.List","parameters":{}}\\0')
            answer = s.recv(65536).decode()
            open("@D/s/apps/web/new", "w").write(answer)
            os.rename("@D/s/apps/web/new", "@D/s/apps/web/answer")
            import time; time.sleep(1000)
            """
        try withDaemon(app, files: ["app.py": program]) { daemon throws in
            let path = daemon.directory + "/s/apps/web/answer"
            try daemon.eventually("it was answered: \(daemon.log.suffix(1500))") { File.exists(path) }
            #expect(try File.readString(path).contains("is in a sandbox"))
        }
    }
    @Test("A process in a sandbox of one supervisor is not heard by another either, with or without its parent")
    func controlSocketOfAnother() throws {
        let program = """
            import os, socket, sys
            def ask(name):
                s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
                s.sendall(b'{"method":"io.torpor.Manager.List","parameters":{}}\\0')
                answer = s.recv(65536).decode()
                open("@D/s/apps/web/new" + name, "w").write(answer)
                os.rename("@D/s/apps/web/new" + name, "@D/s/apps/web/" + name)
            ask("answer")
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    ask("orphan")
                os._exit(0)
            import time; time.sleep(1000)
            """
        try withDaemon("") { other throws in
            let app = """
                [apps.web]
                exec = ["/usr/bin/python3", "-S", "@D/app.py", "\(other.socket)"]
                sandbox = "agent"
                restart = "never"
                [apps.web.permissions]
                "files:@D:ro" = { purpose = "Why", default = "allow" }
                "files:\(other.directory):ro" = { purpose = "Why", default = "allow" }

                """
            try withDaemon(app, files: ["app.py": program]) { daemon throws in
                for name in ["answer", "orphan"] {
                    let path = daemon.directory + "/s/apps/web/" + name
                    try daemon.eventually("\(name): \(daemon.log.suffix(1500))") { File.exists(path) }
                    #expect(try File.readString(path).contains("may be in a sandbox of another supervisor"), "\(name)")
                }
            }
            // A client that is in no sandbox is heard.
            #expect(try Spawn.run([Built.path("torpor"), "list", "--socket", other.socket]).code == 0)
        }
    }
}
