// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("torpor import and torpor init") struct ImportTests {
    private func torpor(_ words: [String]) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor")] + words)
    }

    private func withFolder(_ files: [String: String] = [:], _ body: (String) throws -> Void) throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for (name, text) in files { try File.write(folder + "/" + name, text) }
        try body(folder)
    }

    @Test("a Procfile becomes a file that check accepts, with the count and what to do next at the end")
    func procfile() throws {
        try withFolder(["Procfile": "web: sleep 100\njob: sleep 1 && true\n"]) { folder in
            let target = folder + "/torpor.toml"
            let (code, output) = try torpor(["import", folder + "/Procfile", "--output", target])
            let root = Users.effectiveUID == 0 ? "2 remarks" : "1 remark"
            let end = """
                2 of 2 programs translated; \(root)
                \(target) is written. Next:
                  torpor check \(target)
                  torpord --config \(target)
                  torpor list
                Connections wake an app that sleeps if it has sockets or wake_on_connect = true.

                """
            #expect(code == 0 && output.hasSuffix(end), "\(output)")
            #expect(try torpor(["check", target]).code == 0)
            let again = try torpor(["import", folder + "/Procfile", "--output", target])
            #expect(again.code == 2 && again.output.contains("--force"), "\(again.output)")
        }
    }

    @Test("A file that cannot be written whole is not there afterwards")
    func full() throws {
        try withFolder(["Procfile": "web: sleep 100\n"]) { folder in
            // No file may grow, as on a full disk.
            let script = "(trap '' XFSZ; ulimit -f 0; \"$0\" \"$@\"; echo exit $?) 2>&1 | cat"
            let words = ["import", folder + "/Procfile", "--output", folder + "/torpor.toml"]
            let failed = try Spawn.run(["/bin/sh", "-c", script, Built.path("torpor")] + words)
            #expect(failed.output.contains("torpor.toml cannot be written: "), "\(failed)")
            #expect(failed.output.hasSuffix("exit 1\n"), "\(failed)")
            #expect(!File.exists(folder + "/torpor.toml"))
            // A file that was there is as it was, and nothing is left beside it.
            try File.write(folder + "/torpor.toml", "# mine\n", mode: 0o600)
            let names = try File.list(folder)
            let again = try Spawn.run(["/bin/sh", "-c", script, Built.path("torpor")] + words + ["--force"])
            #expect(again.output.contains("torpor.toml cannot be written: "), "\(again)")
            #expect(try File.readString(folder + "/torpor.toml") == "# mine\n")
            #expect(try File.list(folder).sorted() == names.sorted())
        }
    }

    @Test("a file that is overwritten keeps its owner, its mode and its other names", .enabled(if: Users.isRoot))
    func overwritten() throws {
        try withFolder(["Procfile": "web: sleep 100\n"]) { folder in
            let target = folder + "/torpor.toml"
            try File.write(target, "# old\n", mode: 0o640)
            try File.setOwner(target, uid: 4321, gid: 1)
            let words = ["import", folder + "/Procfile", "--output", target, "--force"]
            #expect(try torpor(words).code == 0)
            let status = try File.status(target)
            #expect(status.uid == 4321 && status.gid == 1 && status.mode & 0o7777 == 0o640, "\(status)")
            #expect(try File.readString(target).contains("[apps.web]"))
            try File.hardLink(target, at: folder + "/other")
            try File.write(target, "# old\n")
            #expect(try torpor(words).code == 0)
            #expect(try File.readString(folder + "/other").contains("[apps.web]"))
        }
    }

    @Test("The app of docs/howto/from-pm2.md restarts another one when a file changes")
    func watch() throws {
        let page = try File.readString(Sources.root + "/docs/howto/from-pm2.md")
        let block = page.components(separatedBy: "```toml\n[apps.api-watch]\n").dropFirst().first
        let app = try #require(block?.components(separatedBy: "```").first)
        let toml = """
            [apps.api]
            exec = ["/bin/sleep", "1000"]
            [apps.api-watch]
            \(app.replacing("/srv/api", with: "@D/api"))
            """
        let path = Built.folder + ":/usr/bin:/bin"
        try withDaemon(toml, environment: ["PATH": path]) { daemon in
            try daemon.waitFor("api", "active")
            let pid = try daemon.summary("api").pid
            try File.makeDirectories(daemon.directory + "/api")
            try File.write(daemon.directory + "/api/a.js", "1")
            try daemon.eventually("it was restarted") {
                let now = try daemon.summary("api")
                return now.pid != pid && now.state == "active"
            }
        }
    }

    @Test("what it says is there for programs too, and bad input is a sentence")
    func json() throws {
        try withFolder(["compose.yaml": "services:\n  db: {command: run}\n  web: {image: x}\n", "bad.yaml": "{"]) {
            folder in
            let (code, output) = try torpor(["import", folder + "/compose.yaml", "--json"])
            let json = try JSON.parse(output)
            #expect(code == 0 && json["kind"]?.stringValue == "compose", "\(output)")
            #expect(json["programs"]?.arrayValue?.map { $0["translated"]?.boolValue } == [false, true])
            for words in [
                ["--from", "compose", folder + "/bad.yaml"], [folder + "/none"], ["--from", "compse", folder],
            ] {
                let (code, output) = try torpor(["import"] + words)
                #expect(
                    code == 2 && output.hasPrefix("torpor: ") && output.split(separator: "\n").count == 1,
                    "\(output)"
                )
            }
        }
    }

    @Test("init says what else it has seen, and why it did not take it")
    func seen() throws {
        func initialised(_ files: [String: String], _ more: String...) throws -> String {
            let folder = try Daemon.makeFolder()
            defer { try? FileManager.default.removeItem(atPath: folder) }
            for (name, text) in files { try File.write(folder + "/" + name, text) }
            let (code, output) = try torpor(["init", folder, "--yes"] + more)
            #expect(code == 0, "\(output)")
            return output.replacingOccurrences(of: folder, with: "@D")
        }
        let program = "ecosystem.config.js"
        let supervisord = "[program:a]\ncommand=/bin/sleep 1\n"
        let compose = "services:\n  a:\n    image: a\n"
        let alone = try initialised([program: "module.exports = { apps: [] }\n"])
        #expect(alone.contains("Not taken: @D/ecosystem.config.js is a program, which is not run: write its result"))
        #expect(alone.contains("import('./ecosystem.config.js').then("), "\(alone)")
        let files = [
            "Procfile": "web: sleep 1\n", "supervisord.conf": supervisord, "compose.yml": compose, program: "",
        ]
        let several = try initialised(files)
        #expect(several.hasPrefix("@D/torpor.toml is written, from Procfile. Next:\n"), "\(several)")
        for text in [
            "Not taken: supervisord.conf, a configuration of supervisord with 1 app: ‘torpor import @D/supervisord.conf’",
            "Not taken: compose.yml, a compose file with 1 app: ‘torpor import @D/compose.yml’ translates it\n",
            "Not taken: @D/ecosystem.config.js is a program",
        ] {
            #expect(several.contains(text), "\(several)")
        }
        #expect(!several.contains("Not taken: Procfile"))
        let empty = try initialised(["Procfile": "web: sleep 1\n", "supervisord.conf": "[supervisord]\n"])
        #expect(empty.contains("Not taken: @D/supervisord.conf names no program"), "\(empty)")
        let json = try JSON.parse(initialised(files, "--json"))
        #expect(
            json["seen"]?.arrayValue?.compactMap { $0["file"]?.stringValue } == [
                "supervisord.conf", "compose.yml", program,
            ]
        )
    }

    @Test("beside a supervisor that runs, the next step is to include the file, not to start another torpord")
    func beside() throws {
        try withFolder(["Procfile": "web: sleep 100\n"]) { folder in
            try withDaemon("") { daemon in
                let place = [
                    "RUNTIME_DIRECTORY": daemon.runtime, "XDG_RUNTIME_DIR": daemon.directory, "XDG_CONFIG_HOME": "/c",
                ]
                let (code, output) = try Spawn.run([Built.path("torpor"), "init", folder, "--yes"], environment: place)
                let line = "include = [\"\(folder)/torpor.toml\"]"
                let name = folder.split(separator: "/").last.map(String.init) ?? ""
                let use =
                    Users.effectiveUID == 0
                    ? "echo '\(line)' > /etc/torpor/conf.d/\(name).toml" : "add \(line) to /c/torpor/torpor.toml"
                let next = " Next:\n  torpor check \(folder)/torpor.toml\n  \(use)\n  torpor apply\n  torpor list\n"
                #expect(code == 0 && output.contains(next), "\(output)")
            }
        }
    }

    @Test("the file that torpord reads by itself needs no --config: its service is started, or it is applied")
    func ownFile() throws {
        try withFolder(["Procfile": "web: sleep 100\n"]) { folder in
            try withDaemon("") { daemon in
                var place = ["CONFIGURATION_DIRECTORY": folder, "RUNTIME_DIRECTORY": folder]
                func next() throws -> String {
                    let words = ["import", folder + "/Procfile", "--output", folder + "/torpor.toml", "--force"]
                    return try Spawn.run([Built.path("torpor")] + words, environment: place).output
                }
                func steps(_ use: String) -> String {
                    " Next:\n  torpor check \(folder)/torpor.toml\n  \(use)\n  torpor list\n"
                }
                let kind = Users.isRoot ? "system" : "user"
                let units = ["/etc", "/usr/local/lib", "/usr/lib", "/lib"].map {
                    "\($0)/systemd/\(kind)/torpord.service"
                }
                let service = "systemctl \(Users.isRoot ? "" : "--user ")enable --now torpord"
                let hasService = File.exists("/run/systemd/system") && units.contains { File.exists($0) }
                let idle = try next()
                #expect(idle.contains(steps(hasService ? service : "torpord")), "\(idle)")
                place["RUNTIME_DIRECTORY"] = daemon.runtime
                let running = try next()
                #expect(running.contains(steps("torpor apply")), "\(running)")
            }
        }
    }

    @Test("init takes what is there, or writes an example, and never over a file")
    func first() throws {
        try withFolder(["Procfile": "web: sleep 100\n"]) { folder in
            let (code, output) = try torpor(["init", folder])
            #expect(code == 0 && output.contains("from Procfile") && output.contains("torpord --config"), "\(output)")
            #expect(try torpor(["check", folder + "/torpor.toml"]).code == 0)
            #expect(try torpor(["init", folder, "--yes"]).code == 2)
        }
        try withFolder { (folder: String) throws -> Void in
            #expect(try torpor(["init", folder, "--yes"]).code == 0)
            #expect(try torpor(["check", folder + "/torpor.toml"]).output.contains("OK: 1 app"))
        }
    }
}
