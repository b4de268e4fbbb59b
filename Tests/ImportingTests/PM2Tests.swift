// SPDX-License-Identifier: Apache-2.0

import Configuration
import Importing
import Lifecycle
import Linux
import Testing

@Suite("An ecosystem file of PM2 becomes apps")
struct PM2Tests {
    func app(_ members: String, files: [String: String] = [:], environment: String? = nil) throws -> AppSpecification {
        var all = files
        all["ecosystem.json"] = #"{"apps":[{"name":"web",\#(members)}]}"#
        return try Imported("ecosystem.json", all, environment: environment)["web"]
    }

    @Test(
        "a script is run by what its extension says",
        arguments: [
            (#""script":"a.js""#, ["node", "/srv/app/a.js"]),
            (#""cmd":"./b.sh""#, ["bash", "/srv/app/b.sh"]), (#""command":"npm","args":"start""#, ["npm", "start"]),
            (#""script":"./x/a.py""#, ["python3", "/srv/app/x/a.py"]),
            (#""script":"a.sh","args":"-x 'b c'""#, ["bash", "/srv/app/a.sh", "-x", "b c"]),
            (#""script":"npm","args":["start"]"#, ["npm", "start"]),
            (#""script":"/bin/a","interpreter":"none""#, ["/bin/a"]),
            (
                #""script":"a.js","node_args":"--inspect","interpreter":"/opt/node""#,
                ["/opt/node", "--inspect", "/srv/app/a.js"]
            ),
            (#""script":"a.rb","cwd":"/srv/x""#, ["ruby", "/srv/x/a.rb"]),
        ]
    )
    func scripts(members: String, exec: [String]) throws {
        #expect(try app(members).exec == exec)
    }

    @Test("a % is text, and no placeholder of Torpor's")
    func percent() throws {
        let stat = #""script":"/usr/bin/stat","args":["-c","%u","%i/%f"],"interpreter":"none""#
        #expect(try app(stat).exec == ["/bin/sh", "-c", "exec /usr/bin/stat -c %''u %i/%f"])
        let many = #""script":"f.js","instances":2,"args":"-f %i-%s 5%","env":{"F":"%i %d","A":"%d"}"#
        let file = #"{"apps":[{"name":"web",\#(many)}]}"#
        let found = try Imported("ecosystem.json", file)
        #expect(
            try found["web@1"].exec == [
                "/bin/sh", "-c", "export F=%'''i %d'; exec node /srv/app/f.js -f %''i-%s 5%",
            ]
        )
        let environment = try found["web@1"].environment
        #expect(environment["F"] == nil && environment["A"] == "%d" && environment["NODE_APP_INSTANCE"] == "1")
        let folder = #"{"apps":[{"name":"web","script":"a.js","cwd":"/srv/%i","instances":2}]}"#
        #expect(try Imported("ecosystem.json", folder).remarks("web").contains { $0.hasPrefix("directory has %i,") })
        #expect(
            try Imported("Procfile", "web: stat -c %u /tmp")["web"].exec == [
                "/bin/sh", "-c", "exec stat -c %''u /tmp",
            ]
        )
        let unit = "[Service]\nExecStart=/usr/bin/stat -c %%u /tmp\n"
        #expect(
            try Imported("web.service", unit)["web"].exec == [
                "/bin/sh", "-c", "exec /usr/bin/stat -c %''u /tmp",
            ]
        )
    }

    @Test("it is always restarted, at last each fifteen seconds, and ended by SIGINT")
    func usual() throws {
        let app = try app(#""script":"a.js""#)
        #expect(app.rules.restart == .always && app.rules.backoff.cap == .seconds(15))
        #expect(!ConfigurationLoader.restartSchedule(for: app).givesUp)
        #expect(app.stopSignal == 2 && app.rules.grace == .milliseconds(1600) && app.directory == "/srv/app")
    }

    @Test("it is given up only where max_restarts says so, and never when all its runs last for min_uptime")
    func restarts() throws {
        let few = try app(#""script":"a.js","max_restarts":5,"min_uptime":2000"#).rules.backoff
        #expect(few.limit == 5 && few.initial == .zero && few.window == .seconds(10))
        #expect(try app(#""script":"a.js","max_restarts":0"#).rules.backoff.limit == 10_000)
        let growing = try app(#""script":"a.js","max_restarts":3,"exp_backoff_restart_delay":100"#).rules
        #expect(growing.backoff.window == .milliseconds(3_475), "three runs of a second, and the delays between them")
        #expect(growing.backoff.stableAfter == .seconds(30))
        let file = #"{"apps":[{"script":"a.js","restart_delay":100}]}"#
        let remarks = try Imported("ecosystem.json", file).result.remarks
        #expect(remarks.contains { $0.text.hasPrefix("Without max_restarts Torpor gives up no app") })
    }

    @Test(
        "a value that means nothing is told",
        arguments: [
            (#""kill_timeout":"abc""#, "kill_timeout"), (#""env":"PORT=3""#, "env is a string"),
            (#""autorestart":"perhaps""#, "autorestart"), (#""max_restarts":"x""#, "max_restarts"),
            (#""min_uptime":[1]"#, "min_uptime"), (#""cwd":{}"#, "cwd"), (#""env_production":[1]"#, "env_production"),
            (#""cron_restart":"never""#, "not a time in cron's syntax"),
        ]
    )
    func values(member: String, word: String) throws {
        let found = try Imported("ecosystem.json", #"{"apps":[{"name":"a","script":"a.js",\#(member)}]}"#)
        #expect(found.remarks("a").contains { $0.contains(word) }, "\(found.remarks("a"))")
    }

    @Test("what cron starts again is a timer's where it ends by itself, and else told how")
    func cron() throws {
        let job = try app(#""script":"a.js","autorestart":false,"cron_restart":"*/15 2-4 * * 1-5""#)
        #expect(job.rules.isOneshot && job.rules.launchDeadline == nil && job.launch == .foreground)
        #expect(job.timers.map(\.calendar) == [["Mon..Fri 02..04:00/15"]])
        let server = #"{"apps":[{"name":"a","script":"a.js","cron_restart":"0 3 * * *"}]}"#
        let remarks = try Imported("ecosystem.json", server).remarks("a")
        #expect(
            remarks.contains {
                $0.contains("[apps.a-restart]") && $0.contains(#"restart = "never""#)
                    && $0.contains(#"timers = [{ calendar = "03:00", accuracy = "1s" }]"#)
            },
            "\(remarks)"
        )
    }

    @Test("PM2's own server of files is no program")
    func serve() throws {
        let text = #"{"apps":[{"name":"a","script":"serve","env":{"PM2_SERVE_PATH":"."}}]}"#
        let found = try Importer.read("/srv/app/ecosystem.json", in: tree(["ecosystem.json": text]))
        #expect(found.translatedCount == 0 && found.programs[0].remarks[0].text.contains("PM2_SERVE_PATH"))
    }

    @Test("its keys are Torpor's")
    func keys() throws {
        let app = try app(
            #""script":"a.js","autorestart":true,"max_restarts":5,"min_uptime":"10s","restart_delay":4000,"max_memory_restart":"150M","kill_timeout":3000,"env":{"PORT":3000,"A":"b"},"uid":"www-data","error_file":"/var/log/e","namespace":"n""#
        )
        #expect(
            app.rules.backoff.limit == 5 && app.rules.backoff.initial == .seconds(4) && app.rules.grace == .seconds(3)
        )
        #expect(app.rules.backoff.stableAfter == .seconds(10) && app.memoryLimit == 150 << 20 && app.user == "www-data")
        #expect(
            app.environment == ["PORT": "3000", "A": "b"] && app.standardError == .log && app.tags == ["n"]
        )
    }

    @Test("an environment is chosen by name, and others are told")
    func environments() throws {
        let text = #""script":"a.js","env":{"A":"1","B":"1"},"env_production":{"A":"2"}"#
        #expect(try app(text).environment == ["A": "1", "B": "1"])
        #expect(try app(text, environment: "production").environment == ["A": "2", "B": "1"])
    }

    @Test("an environment that is not there is told, with the one that was probably meant")
    func environmentName() throws {
        let text = #"{"apps":[{"name":"a","script":"a.js","env_production":{"A":"1"}}]}"#
        let meant = ("prodction", "has no env_prodction: did you mean --env production?")
        for (name, told) in [meant, ("x", "has no env_x")] {
            let found = try Imported("ecosystem.json", ["ecosystem.json": text], environment: name)
            #expect(found.remarks("a").contains(told), "\(found.remarks("a"))")
        }
    }

    @Test("as many instances as it says, or as there are processors")
    func instances() throws {
        let found = try Imported(
            "ecosystem.json",
            #"{"apps":[{"name":"a","script":"a.js","instances":"max","exec_mode":"cluster"},{"name":"b","script":"b.js","instances":-2}]}"#
        )
        #expect(found.apps.keys.sorted() == ["a@0", "a@1", "a@2", "a@3", "b@0", "b@1"])
        #expect(found.remarks("a").contains { $0.contains("cluster") && $0.contains("EADDRINUSE") })
        #expect(try found["a@2"].environment["NODE_APP_INSTANCE"] == "2")
    }

    @Test(
        "in cluster mode each instance has a socket at the one port",
        arguments: [#""exec_mode":"cluster","interpreter":"python3""#, #""node_args":"""#]
    )
    func cluster(mode: String) throws {
        let text = #"{"apps":[{"name":"a","script":"a.js","instances":2,"env":{"PORT":3000},\#(mode)}]}"#
        let found = try Imported("ecosystem.json", text)
        let app = try found["a@1"]
        #expect(app.sockets.map(\.name) == ["3000"] && app.sockets.first?.plan.reusePort == true)
        #expect(found.remarks("a").contains { $0.contains("port 3000") && $0.contains("from-pm2.md") })
    }

    @Test("in cluster mode node loads the package's listen.cjs, where it is there and the command loads none")
    func listening() throws {
        func imported(_ keys: String, has helper: Bool = true) throws -> (exec: [String], remarks: [String]) {
            let text = #"{"apps":[{"name":"a","script":"a.js","instances":2,"env":{"PORT":3000},\#(keys)}]}"#
            var machine = tree(["ecosystem.json": text])
            let read = machine.read
            if helper { machine.read = { $0 == "/usr/share/torpor/listen.cjs" ? [] : read($0) } }
            let found = try Imported("ecosystem.json", in: machine)
            return (try found["a@1"].exec, found.remarks("a"))
        }
        let usual = try imported(#""node_args":"--inspect""#)
        #expect(
            usual.exec == ["node", "--require", "/usr/share/torpor/listen.cjs", "--inspect", "/srv/app/a.js"]
        )
        #expect(usual.remarks.contains { $0.contains("/usr/share/torpor/listen.cjs, which node loads first") })
        let own = try imported(#""node_args":"--require ./listen.cjs""#)
        #expect(own.exec == ["node", "--require", "./listen.cjs", "/srv/app/a.js"])
        #expect(own.remarks.contains { $0.contains("listens on that one by the file") }, "\(own.remarks)")
        let none = try imported(#""node_args":"""#, has: false)
        #expect(none.exec == ["node", "/srv/app/a.js"] && none.remarks.contains { $0.contains("EADDRINUSE unless") })
        for keys in [#""exec_mode":"cluster","interpreter":"python3""#, #""exec_mode":"fork""#] {
            #expect(try !imported(keys).exec.contains("--require"))
        }
    }

    @Test("in cluster mode a single process has a socket too, if it listens there without a change")
    func single() throws {
        func imported(_ keys: String, has helper: Bool = true) throws -> (app: AppSpecification, remarks: [String]) {
            let text = #"{"apps":[{"name":"a","script":"a.js","env":{"PORT":3000},\#(keys)}]}"#
            var machine = tree(["ecosystem.json": text])
            let read = machine.read
            if helper { machine.read = { $0 == "/usr/share/torpor/listen.cjs" ? [] : read($0) } }
            let found = try Imported("ecosystem.json", in: machine)
            return (try found["a"], found.remarks("a"))
        }
        let cluster = #""exec_mode":"cluster","instances":1"#
        let usual = try imported(cluster)
        #expect(usual.app.sockets.map(\.name) == ["3000"] && usual.app.sockets.first?.plan.reusePort == false)
        #expect(usual.app.exec == ["node", "--require", "/usr/share/torpor/listen.cjs", "/srv/app/a.js"])
        #expect(usual.remarks.contains { $0.hasPrefix("its socket listens on all addresses") }, "\(usual.remarks)")
        #expect(usual.remarks.contains { $0.contains("has a socket on port 3000") }, "\(usual.remarks)")
        let own = try imported(cluster + #","node_args":"--require ./listen.cjs""#, has: false)
        #expect(own.app.sockets.count == 1 && own.app.exec == ["node", "--require", "./listen.cjs", "/srv/app/a.js"])
        for keys in [#""exec_mode":"fork""#, #""instances":1"#, cluster + #","interpreter":"python3""#] {
            #expect(try imported(keys).app.sockets.isEmpty, "\(keys)")
        }
        let none = try imported(cluster, has: false)
        #expect(none.app.sockets.isEmpty && none.app.environment["NODE_APP_INSTANCE"] == "0")
        for (keys, variable) in [(#""instances":1"#, "NODE_APP_INSTANCE"), (#""instance_var":"N""#, "N")] {
            #expect(try imported(keys).app.environment[variable] == "0", "\(keys)")
        }
        #expect(try imported(#""autorestart":true"#).app.environment["NODE_APP_INSTANCE"] == nil)
        #expect(none.remarks.contains { $0.contains("exec_mode is left out: it has one instance") }, "\(none.remarks)")
    }

    @Test("readiness by a port is not advised where Torpor itself holds the port")
    func waitReady() throws {
        func remark(_ keys: String) throws -> String {
            let text = #"{"apps":[{"name":"a","script":"a.js","wait_ready":true,"env":{"PORT":3000}\#(keys)}]}"#
            return try #require(Imported("ecosystem.json", text).remarks("a").first { $0.hasPrefix("wait_ready") })
        }
        #expect(try remark("").contains(#"ready = { tcp = "127.0.0.1:PORT" }, or ready = "notify""#))
        #expect(try remark("").contains("if (process.send) process.send('ready'). PM2 lets an app run"))
        let cluster = try remark(#","instances":2"#)
        #expect(cluster.contains(#"Write ready = "notify" and"#) && !cluster.contains("tcp"), "\(cluster)")
    }

    @Test(
        "watch is told with the app that does it",
        arguments: [
            ("true", #"[{ changed = "/srv/app", rerun = true }]"#),
            (
                #"["server","../lib"]"#,
                #"[{ changed = "/srv/app/server", rerun = true }, { changed = "/srv/lib", rerun = true }]"#
            ),
            (#""server""#, #"[{ changed = "/srv/app/server", rerun = true }]"#),
        ]
    )
    func watch(value: String, paths: String) throws {
        let found = try Imported("ecosystem.json", #"{"apps":[{"name":"a","script":"a.js","watch":\#(value)}]}"#)
        let app =
            #"[apps.a-watch] with type = "oneshot", restart = "never", launch = "on-demand", launch_deadline = "none", "#
            + #"exec = ["torpor", "restart", "--only-running", "a"] and paths = \#(paths), with an entry"#
        #expect(found.remarks("a").contains { $0.contains(app) }, "\(found.remarks("a"))")
    }

    @Test(
        "what a file of variables has that dotenv reads otherwise is told, with its line",
        arguments: [
            ("A=1\n# one\nexport B='x # y'\n\nC=\"a b\" \nD=\n", nil),
            ("A=1\nTOKEN=ok # comment\n", "line 2 of /srv/app/.env"),
            ("A=\"x\" # one\nB=\"a\\nb\"\nC=c\n", "lines 1 and 2 of /srv/app/.env"),
            ("A=1\nB\n", "/srv/app/.env:2: expected NAME=VALUE"),
            ("A=\"1\n2\"\n", nil),
        ]
    )
    func dotenv(file: String, place: String?) throws {
        let ecosystem = #"{"apps":[{"name":"a","script":"a.js","env_file":".env"}]}"#
        let found = try Imported("ecosystem.json", ["ecosystem.json": ecosystem, ".env": file])
        #expect(try found["a"].environmentFiles.map(\.path) == ["/srv/app/.env"])
        let told = found.remarks("a").filter { $0.contains("/srv/app/.env") }
        #expect(
            told.count == (place == nil ? 0 : 1) && place.map { told.first?.contains($0) == true } != false,
            "\(told)"
        )
        let foreman = try Imported("Procfile", ["Procfile": "a: a.sh\n", ".env": file])
        let also = foreman.result.remarks.filter { $0.text.contains("/srv/app/.env") }
        #expect(also.count == (place == nil ? 0 : 1), "\(also)")
    }

    @Test("programs that run as root because nothing names a user are told, of every kind of source")
    func root() throws {
        let user = #"{"apps":[{"name":"a","script":"a.js"},{"name":"b","script":"b.js","uid":"www-data"}]}"#
        let program = "[program:a]\ncommand=/bin/a\n"
        let unit = "[Service]\nExecStart=/bin/a\n"
        let sources: [(name: String, text: String, told: String?)] = [
            ("ecosystem.json", user, "a runs as root"),
            ("ecosystem.json", #"{"apps":[{"name":"b","script":"b.js","uid":"www-data"}]}"#, nil),
            ("supervisord.conf", program + "[program:b]\ncommand=/bin/b\n", "a and b run as root"),
            ("supervisord.conf", "[supervisord]\nuser=www-data\n" + program, nil),
            // This one is launched only by hand.
            ("supervisord.conf", program + "user=nobody-here\n", nil),
            ("Procfile", "web: web.sh\n", "web runs as root"),
            ("a.service", unit, "a runs as root"),
            ("a.service", unit + "User=www-data\n", nil),
        ]
        for (name, text, told) in sources {
            let remarks = try Imported(name, text).result.remarks.map(\.text)
            let found = remarks.filter { $0.contains("as root under the supervisor of the machine: write user") }
            #expect(found.count == (told == nil ? 0 : 1), "\(name): \(remarks)")
            if let told { #expect(found.first?.hasPrefix("Without a user, \(told)") == true, "\(found)") }
        }
        // Whoever is not root has no such apps.
        var result = try Importer.read("/srv/app/ecosystem.json", in: tree(["ecosystem.json": user]))
        var system = machine()
        system.effectiveUserID = 1000
        result.validate(at: "/srv/app/torpor.toml", system: system)
        #expect(!result.remarks.contains { $0.text.contains("as root") })
    }

    @Test("in fork mode they have none, and a variable that is counted up counts")
    func fork() throws {
        func app(_ keys: String) throws -> Imported {
            let text = #"{"apps":[{"name":"a","script":"a.js","instances":2,"env":{"PORT":3000},\#(keys)}]}"#
            return try Imported("ecosystem.json", text)
        }
        #expect(try app(#""exec_mode":"fork""#)["a@0"].sockets.isEmpty)
        let counted = try app(#""increment_var":"PORT","instance_var":"N""#)
        #expect(try counted["a@3001"].environment["PORT"] == "3001" && counted["a@3001"].environment["N"] == "3001")
        #expect(try counted["a@3000"].sockets.isEmpty)
        // PM2 begins with 0 where env does not have the variable.
        let fromZero = try app(#""increment_var":"WORKER""#)
        #expect(try fromZero["a@1"].environment["WORKER"] == "1")
        #expect(!fromZero.remarks("a").contains { $0.contains("increment_var") })
    }

    @Test("comments, names without quotes and YAML are read")
    func loose() throws {
        let text = "{\n // one\n apps : [{ /* two */ name : 'a', script: './a.js', url: 'http://x', }]\n}"
        #expect(try Imported("process.json", text, kind: .pm2)["a"].exec == ["node", "/srv/app/a.js"])
        #expect(
            try Imported("pm2.yml", "apps:\n  - script: ./b.sh\n    name: b\n")["b"].exec == ["bash", "/srv/app/b.sh"]
        )
        #expect(try Imported("pm2.json", #"[{"script":"c.js"}]"#)["c"].exec == ["node", "/srv/app/c.js"])
    }

    @Test("a program is not run, and what is no JSON is refused")
    func wrong() {
        #expect(
            refusal("ecosystem.config.js", "module.exports = {}")?.contains("is a program, which is not run") == true
        )
        #expect(
            refusal("ecosystem.json", "module.exports = { apps: [] }")?.contains("is a program, which is not run")
                == true
        )
        #expect(refusal("ecosystem.json", "{\"apps\":\n")?.contains("is not JSON") == true)
        #expect(refusal("ecosystem.json", "{ apps: [") != nil && refusal("ecosystem.json", "4") != nil)
    }
}
