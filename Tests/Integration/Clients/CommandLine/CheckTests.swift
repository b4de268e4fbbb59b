// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import PolicyLibraries
import Testing

@Suite("torpor check") struct CheckTests {
    /// Checks a configuration in a folder of its own; `@D` becomes the folder.
    private static func check(
        _ toml: String,
        _ options: String...,
        prepare: (String) throws -> Void = { _ in }
    ) throws -> (code: Int32, output: String) {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try prepare(folder)
        let file = folder + "/torpor.toml"
        try toml.replacingOccurrences(of: "@D", with: folder).write(toFile: file, atomically: false, encoding: .utf8)
        let (code, output) = try Spawn.run([Built.path("torpor"), "check", file] + options)
        return (code, output.replacingOccurrences(of: folder, with: "@D"))
    }

    @Test(
        "what the machine lacks is a warning",
        arguments: [
            (
                #"exec = ["python3 -m http.server"]"#,
                #"apps.web.exec: there is no program "python3 -m http.server" on the PATH now"#
            ),
            (
                #"exec = ["python3 -m http.server"]"#,
                #"write each word as its own element: ["python3", "-m", "http.server"]"#
            ),
            (
                #"exec = ["python3 app.py | tee log"]"#,
                #"have a shell run it: ["/bin/sh", "-c", "python3 app.py | tee log"]"#
            ),
            (
                "exec = [\"sleep\", \"1\"]\nlanguage = \"xx_XX.UTF-8\"",
                #"apps.web.language: this machine has no locale "xx_XX.UTF-8" now"#
            ),
            (#"exec = ["no-such-program"]"#, #"apps.web.exec: there is no program "no-such-program" on the PATH now"#),
            (#"exec = ["/bin/slepe", "1"]"#, #"apps.web.exec: there is no program "slepe" in /bin now"#),
            (#"exec = ["./run"]"# + "\ndirectory = \"@D\"", #""@D/run" cannot be executed now: it needs chmod +x"#),
            (#"exec = ["/bin/sh", "-e", "@D/gone.sh"]"#, #"apps.web.exec: there is no script "gone.sh" in @D now"#),
            (#"exec = ["/bin"]"#, #"apps.web.exec: "/bin" is a folder, not a program"#),
            (
                #"exec = ["/bin/sleep", "1"]"# + "\ndirectory = \"@D/none\"",
                #"torpor.toml:3:13: warning: apps.web.directory: there is no folder "@D/none" now"#
            ),
            (
                #"exec = ["/bin/sleep", "1"]"# + "\nenvironment_file = \"@D/web.env\"",
                #"apps.web.environment_file: there is no file "@D/web.env" now"#
            ),
            (
                #"exec = ["/bin/sleep", "1"]"# + "\nbefore_start = [{ command = [\"/bin/nothing-here\"] }]",
                #"apps.web.before_start: there is no program "nothing-here" in /bin now"#
            ),
        ]
    )
    func lacking(keys: String, warning: String) throws {
        let toml = "[apps.web]\n" + keys
        func prepare(_ folder: String) throws { try File.write(folder + "/run", "#!/bin/sh\n") }
        let (code, output) = try Self.check(toml, prepare: prepare)
        #expect(code == 0)
        #expect(output.contains("warning: "), "\(output)")
        #expect(output.contains(warning), "\(output)")
        #expect(output.contains("OK: 1 app in @D/torpor.toml\n"), "\(output)")
        let strict = try Self.check(toml, "--strict", prepare: prepare)
        #expect(strict.code == 1)
        #expect(strict.output.contains(warning) && !strict.output.contains("OK: "), "\(strict.output)")
        #expect(strict.output.contains("torpor: @D/torpor.toml has a warning, "), "\(strict.output)")
    }

    @Test("what is there is no warning, and the files that were read are named")
    func complete() throws {
        let toml = """
            include = ["more.toml"]
            [apps.web]
            exec = ["sleep", "1"]
            directory = "@D"
            environment_file = ["@D/web.env", "-@D/none.env"]
            [apps.own]
            exec = ["own-program"]
            environment = { PATH = "@D" }
            """
        let (code, output) = try Self.check(toml, "--strict") { folder in
            try File.write(folder + "/more.toml", "[apps.other]\nexec = [\"/bin/sleep\", \"1\"]")
            try File.write(folder + "/web.env", "A=1")
            try Daemon.write(["own-program": "#!/bin/sh\n"], in: folder)
        }
        #expect(code == 0, "\(output)")
        #expect(!output.contains("warning"), "\(output)")
        #expect(output.hasPrefix("OK: 3 apps in @D/torpor.toml and the file that it includes\n"), "\(output)")
    }

    @Test("an operator who is not root is told what of root's configuration cannot be judged, and no false error")
    func operators() throws {
        guard geteuid() == 0 else { return }
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try File.makeDirectories(folder + "/conf.d")
        try File.makeDirectories(folder + "/hidden")
        let file = folder + "/torpor.toml"
        let apps = "[apps.web]\nexec = [\"/bin/sleep\", \"1\"]\nuser = \"root\"\nrequires = [\"db\"]\n"
        try File.write(file, "include = [\"conf.d/*.toml\", \"hidden/*.toml\"]\n" + apps)
        try File.write(folder + "/conf.d/db.toml", "[apps.db]\nexec = [\"/bin/sleep\", \"1\"]\n")
        try File.setMode(folder + "/conf.d/db.toml", 0o600)
        try File.setMode(folder + "/hidden", 0o700)
        let words = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
        func check() throws -> (code: Int32, output: String) {
            try Spawn.run(words + [Built.path("torpor"), "check", file])
        }
        let (code, output) = try check()
        #expect(code == 0 && output.contains("OK: 1 app"), "\(output)")
        for path in ["conf.d/db.toml", "hidden"] {
            #expect(output.contains("\(folder)/\(path)\" is not judged, since you may not read it"), "\(output)")
        }
        #expect(output.contains("warning: apps.web.requires: there is no app \"db\"; it may be in a file"), "\(output)")
        #expect(output.contains("‘sudo torpor check \(file)’ judges all of it"), "\(output)")
        try File.setMode(file, 0o600)
        let none = try check()
        #expect(none.code == 1 && none.output.contains("cannot be judged: you may not read it"), "\(none.output)")
    }

    @Test("a configuration without apps is a warning")
    func empty() throws {
        let (code, output) = try Self.check("[supervisor]\n")
        #expect(code == 0)
        #expect(output.hasPrefix("@D/torpor.toml: warning: has no apps: add a table [apps.NAME]\n"), "\(output)")
        #expect(output.hasSuffix("OK: 0 apps in @D/torpor.toml\n"), "\(output)")
        #expect(try Self.check("[supervisor]\n", "--strict").code == 1)
        #expect(
            try Self.check("[defaults]\nuser = \"root\"\n").output
                .hasPrefix("@D/torpor.toml: warning: has [defaults], but no apps: add a table [apps.NAME]\n")
        )
        #expect(try !Self.check("[apps.a]\nexec = [\"/bin/true\"]\nscenes = {}\n").output.contains("has no apps"))
    }

    @Test("--strict names the included file that has the warning")
    func strictInclusion() throws {
        let (code, output) = try Self.check("include = [\"more.toml\"]\n", "--strict") { folder in
            let text = "[apps.other]\nexec = [\"/bin/sleep\", \"1\"]\ndirectory = \"/nonexistent\""
            try File.write(folder + "/more.toml", text)
        }
        #expect(code == 1 && output.contains("more.toml has a warning, which --strict does not allow"), "\(output)")
    }

    @Test("a file that every user can change is a warning")
    func exposed() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try File.write(folder + "/torpor.toml", "[apps.a]\nexec = [\"/bin/true\"]\n")
        try File.setMode(folder + "/torpor.toml", 0o666)
        let words = [Built.path("torpor"), "check", folder + "/torpor.toml"]
        let (code, output) = try Spawn.run(words)
        let warning = "torpor.toml: warning: every user can change it: ‘chmod o-w "
        #expect(code == 0 && output.contains(warning), "\(output)")
        #expect(try Spawn.run(words + ["--strict"]).code == 1)
    }

    @Test("without a file, and without one of the user's own, it says so and not that there is an error")
    func absent() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let place = ["CONFIGURATION_DIRECTORY": folder, "XDG_CONFIG_HOME": folder]
        let (code, output) = try Spawn.run([Built.path("torpor"), "check"], environment: place)
        #expect(code == 2 && output.contains("name a file (‘torpor check FILE’), or have ‘torpor init’"), "\(output)")
        #expect(output.contains(folder) && !output.contains("error"), "\(output)")
    }

    @Test("a file with errors is not called empty too, and one of another supervisor is said to be that")
    func others() throws {
        let (code, output) = try Self.check("apps = [\n")
        #expect(code == 2 && !output.contains("has no apps"), "\(output)")
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for (name, text, title) in [
            ("ecosystem.json", "{\"apps\": [{\"script\": \"a.js\"}]}", "an ecosystem file of PM2"),
            ("supervisord.conf", "[program:a]\ncommand=/bin/a\n", "a configuration of supervisord"),
        ] {
            try File.write(folder + "/" + name, text)
            let (code, output) = try Spawn.run([Built.path("torpor"), "check", folder + "/" + name])
            #expect(code == 2 && output.contains("is \(title): translate it by ‘torpor import"), "\(output)")
        }
    }

    @Test("options that a policy refuses are an error, and names of no app in them a warning")
    func policy() throws {
        // Others can write to the folder of temporary files.
        let folder = try Libraries.makeFolder("configured")
        try copyProgram(Built.path("libMobilePolicy.so"), to: folder + "/libMobilePolicy.so")
        func check(_ options: String) throws -> (code: Int32, output: String) {
            let toml = """
                [supervisor]
                policies = ["mobile"]
                policy_directory = "\(folder)"
                [policies.mobile]
                path = "libMobilePolicy.so"
                options = \(options)
                [apps.web]
                exec = ["/bin/sleep", "1"]
                tags = ["shell"]
                [apps.shop]
                exec = ["/bin/sleep", "1"]
                instances = 2
                [apps.code]
                exec = ["/bin/sleep", "%s"]
                scenes = {}
                """
            return try Self.check(toml, "--strict")
        }
        let good = try check("{ max_active = 2 }")
        #expect(good.code == 0, "\(good.output)")
        let bad = try check("{ max_actives = 2 }")
        #expect(bad.code == 2)
        #expect(bad.output.contains("torpor.toml:4:11: policies.mobile: "), "\(bad.output)")
        #expect(bad.output.contains("max_actives"), "\(bad.output)")
        for (list, sentence) in [
            ("[\"wbe\"]", "options.keep_running: there is no app \"wbe\"; did you mean \"web\"?"),
            ("\"wbe\"", "options.keep_running: there is no app \"wbe\"; did you mean \"web\"?"),
            ("[\"web\", \"[wx]*\"]", "there is no app \"[wx]*\": only * and ? stand for other characters"),
            ("[\"x*\"]", "options.keep_running: no app matches \"x*\""),
            ("[\"tag:shel\"]", "no app has the tag \"shel\"; did you mean \"shell\"?"),
        ] {
            let unknown = try check("{ keep_running = \(list) }")
            #expect(unknown.code == 1, "\(unknown.output)")
            #expect(unknown.output.contains("torpor.toml:4:11: warning: policies.mobile: "), "\(unknown.output)")
            #expect(unknown.output.contains(sentence), "\(unknown.output)")
        }
        let known = try check("{ keep_running = [\"w*\", \"tag:sh*\", \"shop\", \"shop@2\", \"code@alice\", \"*b\"] }")
        #expect(known.code == 0, "\(known.output)")
    }
}
