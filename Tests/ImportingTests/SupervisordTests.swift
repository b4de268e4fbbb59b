// SPDX-License-Identifier: Apache-2.0

import Configuration
import Importing
import Lifecycle
import Testing

@Suite("A configuration of supervisord becomes apps")
struct SupervisordTests {
    func app(_ keys: String, head: String = "", variables: [String: String] = [:]) throws -> AppSpecification {
        let text = head + "[program:web]\ncommand=/bin/web\n" + keys
        return try Imported("supervisord.conf", text, variables: variables)["web"]
    }

    @Test("without more it restarts on failure, is up after a second, and ends after ten seconds")
    func usual() throws {
        let app = try app("")
        #expect(app.exec == ["/bin/web"] && app.rules.restart == .onFailure && app.rules.grace == .seconds(10))
        #expect(app.rules.backoff.stableAfter == .seconds(1) && app.killMode == .main && app.launch == .foreground)
        guard case .probe(let probe) = app.ready else { return #expect(Bool(false), "\(app.ready)") }
        #expect(probe.kind == .command(["/bin/sleep", "1"]) && app.rules.launchDeadline == nil)
    }

    @Test(
        "what ends by itself is restarted for ever, as soon as it was up for startsecs",
        arguments: ["", "startsecs=30\n"]
    )
    func forEver(keys: String) throws {
        let text = "[program:web]\ncommand=w\nautorestart=true\nstartretries=2\n" + keys
        let found = try Imported("supervisord.conf", text)
        #expect(!ConfigurationLoader.restartSchedule(for: try found["web"]).givesUp)
        #expect(found.remarks("web").contains { $0.hasPrefix("startretries is left out") })
        #expect(found.result.remarks.contains { $0.text.hasPrefix("No program is given up") })
    }

    @Test("names that are too long are shortened, and each is said; the apps are translated")
    func longNames() throws {
        let long = String(repeating: "x", count: 70)
        let text = "[program:\(long)]\ncommand=w\n[program:\(long)y]\ncommand=w\n[program:a]\ncommand=w\n"
        let found = try Imported("supervisord.conf", text)
        let short = String(long.prefix(63))
        let other = String(long.prefix(58)) + "-2"
        #expect(try found[short].exec == ["w"] && found[other].exec == ["w"])
        #expect(found.remarks(long).contains("was called \"\(long)\": a name has at most 63 characters"))
        #expect(found.remarks(long + "y").contains("was called \"\(long)y\": a name has at most 63 characters"))
    }

    @Test("of a program that opens /dev/stderr the journal is not recommended")
    func openedError() throws {
        let keys = "stdout_logfile=syslog\n"
        let plain = "stdout_logfile = syslog is not translated: log = \"journal\" comes closest"
        let text =
            "[program:web]\ncommand=/bin/web\n\(keys)[program:nginx]\n"
            + "command=nginx -g \"daemon off; error_log /dev/stderr;\"\n\(keys)"
        let found = try Imported("supervisord.conf", text)
        #expect(found.remarks("web").contains(plain))
        let exception = ", but its program could not open /dev/stderr then"
        #expect(found.remarks("nginx").contains { $0.hasPrefix(plain + exception) }, "\(found.remarks("nginx"))")
    }

    @Test("what is up as soon as it runs has no readiness of its own")
    func atOnce() throws {
        let app = try app("startsecs=0\n")
        #expect(app.ready == .exec)
        #expect(app.rules.backoff.stableAfter == .seconds(1), "one that ends at once gets longer and longer delays")
    }

    @Test("what is another for every program is said once")
    func general() throws {
        let found = try Imported("supervisord.conf", "[program:a]\ncommand=cat\n[program:b]\ncommand=b\n")
        for start in ["Standard input is /dev/null", "SUPERVISOR_ENABLED", "No program is given up"] {
            #expect(found.result.remarks.count { $0.text.hasPrefix(start) } == 1, "\(found.result.remarks)")
        }
        #expect(found.remarks("a").isEmpty)
    }

    @Test("limits are raised to what is asked for, and never lowered")
    func limits() throws {
        func limits(_ keys: String, files: SourceTree.Bound, processes: SourceTree.Bound) throws -> [String] {
            let text = "[supervisord]\n" + keys + "[program:w]\ncommand=w\n"
            var source = tree(["supervisord.conf": text])
            source.openFiles = files
            source.processes = processes
            let app = try Imported("supervisord.conf", in: source)["w"]
            return app.limits.map { "\($0.name) \($0.soft):\($0.hard)" }
        }
        typealias Bound = SourceTree.Bound
        let (few, many) = (Bound(soft: 1024, hard: 4096), Bound(soft: 20_000, hard: 20_000))
        #expect(try limits("minfds=2048\n", files: few, processes: many) == ["nofile 2048:4096"])
        #expect(
            try limits("minfds=5000\nminprocs=30000\n", files: few, processes: many) == [
                "nofile 5000:5000", "nproc 30000:30000",
            ]
        )
        var low = tree(["supervisord.conf": "[supervisord]\nminfds=2048\n[program:w]\ncommand=w\n"])
        low.openFiles = few
        let told = try Imported("supervisord.conf", in: low).result.remarks
        #expect(told.contains { $0.text.hasPrefix("minfds: 4096, the hard limit in limits.nofile, is that ") })
        // Not the limits of the shell in which the import runs.
        #expect(try limits("minfds=4096\nminprocs=200\n", files: many, processes: many) == ["nofile 4096:20000"])
        let open = Bound(soft: 1_048_576, hard: .max)
        #expect(try limits("minfds=4096\n", files: open, processes: many) == ["nofile 4096:524288"])
        #expect(try limits("minfds=1024\n", files: many, processes: many).isEmpty)
    }

    @Test("its keys are Torpor's")
    func keys() throws {
        let app = try app(
            """
            autostart = no
            autorestart=true   ; inline
            startsecs=7
            startretries=5
            exitcodes=0,2
            stopsignal=QUIT
            stopwaitsecs=30
            stopasgroup=true
            user=www-data
            directory=/srv/web
            umask=027
            stdout_logfile=/dev/stdout
            stdout_logfile_maxbytes=0
            redirect_stderr=true

            """
        )
        #expect(app.launch == .onDemand && app.rules.restart == .always && app.rules.backoff.stableAfter == .seconds(7))
        #expect(app.rules.successExitCodes == [2] && app.stopSignal == 3)
        #expect(app.rules.grace == .seconds(30) && app.killMode == .all && app.user == "www-data")
        #expect(app.directory == "/srv/web" && app.umask == 0o27 && app.log == .inherit)
    }

    @Test("a command is split as by a shell, and % names are put in")
    func command() throws {
        let text = "[program:web]\ncommand=%(here)s/run \"a b\" 'c;d' \\\" %(program_name)s 100%% ; said\n"
        #expect(
            try Imported("supervisord.conf", text)["web"].exec == ["/srv/app/run", "a b", "c;d", "\"", "web", "100%"]
        )
    }

    @Test("variables of supervisord are left to a shell, where they may be another one's each time")
    func late() throws {
        let text =
            "[program:web]\ncommand=run -k %(ENV_KEY)s --x=\"%(ENV_A)s b\"\nenvironment=PATH=\"/opt:%(ENV_PATH)s\",B='x,y',C=1\n"
        let app = try Imported("supervisord.conf", text)["web"]
        #expect(
            app.exec == [
                "/bin/sh", "-c", "export PATH=/opt:\"${PATH}\"; set -f; exec run -k ${KEY} --x=\"${A}\"' b'",
            ]
        )
        #expect(app.environment == ["B": "x,y", "C": "1"])
    }

    @Test("variables of supervisord that the program hides have their values of the import, or those of [supervisord]")
    func hidden() throws {
        let text = """
            [supervisord]
            environment=A="sup"
            [program:web]
            user=www-data
            command=%(ENV_HOME)s/bin/run %(ENV_C)s %(ENV_A)s
            environment=A="inner",B="%(ENV_A)s-x",C="own",D="%(ENV_C)s"

            """
        let found = try Imported("supervisord.conf", text, variables: ["HOME": "/root", "C": "outer"])
        #expect(try found["web"].exec == ["/root/bin/run", "outer", "sup"])
        #expect(try found["web"].environment == ["A": "inner", "B": "sup-x", "C": "own", "D": "outer"])
        let remarks = found.remarks("web")
        #expect(
            remarks.contains { $0.contains("command: %(ENV_HOME)s becomes \"/root\", %(ENV_C)s becomes \"outer\"") }
        )
        let missing = try Imported("supervisord.conf", "[program:web]\ncommand=%(ENV_HOME)s/run\n")
        #expect(missing.apps.isEmpty && missing.remarks("web").contains { $0.contains("HOME, which is not set here") })
    }

    @Test("variables that are set at the import have their values of then: the service has none, which is told")
    func setHere() throws {
        let text = """
            [supervisord]
            environment=ROOT="%(ENV_BASE)s/shop",FULL="100%%%%"
            [program:web]
            command=%(ENV_BASE)s/bin/web %(ENV_ROOT)s %(ENV_PATH)s
            environment=DB="%(ENV_DB)s",DB2="%(ENV_DB)s"

            """
        let found = try Imported("supervisord.conf", text, variables: ["BASE": "/srv", "DB": "pg://h", "PATH": "/bin"])
        let web = try found["web"]
        #expect(web.exec == ["/bin/sh", "-c", "set -f; exec /srv/bin/web /srv/shop ${PATH}"])
        #expect(web.environment == ["ROOT": "/srv/shop", "FULL": "100%", "DB": "pg://h", "DB2": "pg://h"])
        let told = found.remarks("web").filter { $0.contains("as a service") }
        #expect(
            told == [
                "command: %(ENV_BASE)s becomes \"/srv\", as it is set here: Torpor, as a service, would have no value",
                "environment: %(ENV_DB)s becomes \"pg://h\", as it is set here: Torpor, as a service, would have no value",
            ]
        )
        let general = found.result.remarks.filter { $0.text.contains("environment of [supervisord]") }
        #expect(general.count == 1 && general.first?.line == 2 && general.first?.text.contains("\"/srv\"") == true)
    }

    @Test("a %% before a letter is text for the program too, and no placeholder of Torpor's")
    func percent() throws {
        let text = "[program:w]\ncommand=run -n w%(process_num)d --log=%%n-%%i.log %%02i %%u 5%%\n"
        let many = try Imported("supervisord.conf", text + "numprocs=2\nenvironment=F=\"%%i.%(process_num)d\"\n")
        #expect(
            try many["w@1"].exec == [
                "/bin/sh", "-c", "export F=%''i.1; exec run -n w1 --log=%n-%''i.log %''02i %''u 5%",
            ]
        )
        let one = try Imported("supervisord.conf", text)
        #expect(try one["w"].exec == ["/bin/sh", "-c", "exec run -n w0 --log=%n-%i.log %02i %''u 5%"])
        let plain = try Imported("supervisord.conf", "[program:w]\ncommand=run %%i %%ux 5%%\n")
        #expect(try plain["w"].exec == ["run", "%i", "%ux", "5%"])
    }

    @Test("what must be known at once is taken from the variables of the import, or told")
    func now() throws {
        #expect(try app("user=%(ENV_WHO)s\n", variables: ["WHO": "www-data"]).user == "www-data")
        let found = try Imported("supervisord.conf", "[program:web]\ncommand=/bin/web\nuser=%(ENV_WHO)s\n")
        #expect(try found["web"].user == nil)
        #expect(found.remarks("web").contains { $0.contains("WHO is not set here") })
    }

    @Test("many processes are instances, which count from where supervisord counts")
    func processes() throws {
        func apps(_ keys: String) throws -> Imported {
            try Imported("supervisord.conf", "[program:w]\ncommand=/bin/w %(process_num)s\n" + keys)
        }
        let same = try apps("numprocs=3\nprocess_name=%(program_name)s_%(process_num)02d\n")
        #expect(same.apps.keys.sorted() == ["w@0", "w@1", "w@2"])
        #expect(same.remarks("w").contains("its processes are w@0 to w@2"))
        let numbered = try apps("numprocs=2\nnumprocs_start=9300\n")
        #expect(try numbered["w@9301"].exec == ["/bin/w", "9301"])
        #expect(try apps("numprocs=2\nnumprocs_start=1\n")["w@2"].exec == ["/bin/w", "2"])
        #expect(try apps("numprocs_start=5\n")["w"].exec == ["/bin/w", "5"])
        let (off, why) = try (apps("numprocs=0\n"), "numprocs is 0, so supervisord runs none of it")
        #expect(try off["w"].launch == .onDemand && off.remarks("w").contains { $0.hasPrefix(why) })
        #expect(try apps("startsecs=-1\n")["w"].ready == .exec)
    }

    @Test("a number with zeros before it is one table too")
    func digits() throws {
        let text =
            "[program:w]\ncommand=/bin/w -n %(program_name)s_%(process_num)02d\nnumprocs=11\nenvironment=N=\"%(process_num)03d\"\n"
        let found = try Imported("supervisord.conf", text)
        #expect(found.result.programs.count == 1 && found.apps.count == 11)
        #expect(try found["w@3"].exec == ["/bin/w", "-n", "w_03"] && found["w@10"].exec == ["/bin/w", "-n", "w_10"])
        #expect(try found["w@3"].environment["N"] == "003")
    }

    @Test("standard error is in the log with the output, also where it had a file with a bound, and is told")
    func standardError() throws {
        let found = try Imported(
            "supervisord.conf",
            "[program:w]\ncommand=w\nstderr_logfile=/var/log/none/w.err\nstderr_logfile_maxbytes=5MB\nstderr_logfile_backups=3\n"
        )
        let app = try found["w"]
        #expect(app.standardError == .log && app.log == .file && app.logMaxSize == 5 << 20 && app.logMaxFiles == 3)
        #expect(found.remarks("w").contains { $0.contains("/var/log/none/w.err") && $0.contains("nothing rotates it") })
    }

    @Test("what supervisord says for all programs is theirs: its user, its folder, how many files they may open")
    func defaults() throws {
        let head = "[supervisord]\nuser=www-data\ndirectory=/srv\numask=027\nminfds=4096\nenvironment=A=\"1\",B=\"2\"\n"
        let app = try app("environment=B=\"3\"\n", head: head)
        #expect(app.user == "www-data" && app.directory == "/srv" && app.umask == 0o27)
        #expect(app.limits.map(\.name) == ["nofile"] && app.limits[0].soft == 4096 && app.limits[0].hard == 524_288)
        #expect(app.environment == ["A": "1", "B": "3"])
        #expect(try self.app("user=nobody\n", head: "[supervisord]\nuser=root\n").user == "nobody")
        #expect(try self.app("", head: "[supervisord]\nuser=root\n").user == nil)
    }

    @Test("variables that are not set at the import are told, with their line")
    func unset() throws {
        let text =
            "[program:w]\ncommand=w %(ENV_NOPE)s %(ENV_HERE)s %(ENV_NOPE)s\nenvironment=A=\"%(ENV_B)s%(ENV_C)s\"\n"
        let found = try Imported("supervisord.conf", text, variables: ["HERE": "1"])
        let told = found.result.programs[0].remarks.filter { $0.text.contains("not set here") }
        #expect(told.map(\.line) == [2, 3], "\(told)")
        #expect(
            told[0].text.hasPrefix("command: NOPE is not set") && told[1].text.hasPrefix("environment: B and C are")
        )
        let all = try Imported("supervisord.conf", text, variables: ["HERE": "1", "NOPE": "", "B": "b", "C": "c"])
        #expect(!all.remarks("w").contains { $0.contains("not set here") })
    }

    @Test("the machine's name is put in at the import, which is told")
    func host() throws {
        let found = try Imported("supervisord.conf", "[program:w]\ncommand=w %(host_node_name)s\n")
        #expect(try found["w"].exec == ["w", "box.example.org"])
        #expect(found.remarks("w").contains { $0.contains("%(host_node_name)s becomes \"box.example.org\"") })
    }

    @Test("a program that a group names and that is not there is told")
    func missing() throws {
        let text = "[group:g]\nprograms=a,nosuch\n[program:a]\ncommand=a\n"
        let remarks = try Imported("supervisord.conf", text).result.remarks
        #expect(remarks.contains { $0.text.hasPrefix("There is no program \"nosuch\"") && $0.line == 2 })
    }

    @Test("a folder of files that a configuration elsewhere includes is read by itself")
    func folder() throws {
        let files = [
            "10-a.conf": "[program:a]\ncommand=%(here)s/a\n", "20-b.ini": "[program:b]\ncommand=b\n", "x.conf": "x\n",
        ]
        for kind in [nil, SourceKind.supervisord] {
            let found = try Imported("", files, kind: kind)
            #expect(try found["a"].exec == ["/srv/app/a"] && found["b"].exec == ["b"])
        }
        #expect(throws: ImportError.self) { try Importer.read("/srv/app", in: tree(["nginx.conf": "server { }\n"])) }
    }

    @Test("paths of output are told as they stand there, and two keys say nothing")
    func output() throws {
        let keys = "numprocs=2\nstdout_logfile=/var/log/none/w_%(process_num)02d.log\n"
        let found = try Imported("supervisord.conf", "[program:w]\ncommand=w\n" + keys)
        #expect(found.remarks("w").contains { $0.contains("/w_%(process_num)02d.log (stdout_logfile)") })
        let none = "stdout_logfile=NONE\nstdout_logfile_maxbytes=1MB\nstderr_logfile_maxbytes=1MB\n"
        let silent = try Imported("supervisord.conf", "[program:w]\ncommand=w\n" + none).remarks("w")
        #expect(
            silent.filter { $0.contains("maxbytes") }
                == ["stdout_logfile_maxbytes and stderr_logfile_maxbytes have no effect: there is no file"]
        )
    }

    @Test("no program waits for the startsecs of one with a lower priority, and the remark has the order")
    func priorities() throws {
        let group = "[group:late]\nprograms=a,b\npriority=1000\n"
        let programs = [("a", 2), ("b", 1), ("c", 5)].map {
            "[program:\($0.0)]\ncommand=\($0.0)\npriority=\($0.1)\nstartsecs=10\n"
        }.joined()
        let found = try Imported("supervisord.conf", group + programs)
        for name in ["a", "b", "c"] {
            let app = try found[name]
            #expect(app.after.isEmpty && app.requires.isEmpty, "\(name)")
            #expect(app.rules.backoff.stableAfter == .seconds(10), "what startsecs means for retries stays")
        }
        let remarks = found.result.remarks.map(\.text)
        #expect(remarks.contains { $0.contains(#"the order was "c", "b", "a")"#) }, "\(remarks)")
        let same = ["x", "y"].map { "[program:\($0)]\ncommand=\($0)\npriority=5\n" }.joined()
        let one = try Imported("supervisord.conf", same)
        #expect(!one.result.remarks.contains { $0.text.hasPrefix("priority") }, "one priority is no order")
    }

    @Test("the remark on priorities names all programs, and only of very many some")
    func many() throws {
        func told(_ count: Int) throws -> String {
            let text = (0..<count).map { "[program:p\($0)]\ncommand=x\npriority=\($0)\n" }.joined()
            let remarks = try Imported("supervisord.conf", text).result.remarks.map(\.text)
            return try #require(remarks.first { $0.hasPrefix("priority is left out") })
        }
        let names = (0..<13).map { "\"p\($0)\"" }.joined(separator: ", ")
        #expect(try told(13).contains("the order was \(names))"))
        let text = try told(200)
        #expect(text.contains(#""p49", …, "p150""#) && text.contains(#""p199""#), "\(text)")
    }

    @Test("what environment of [supervisord] sets is expanded in all settings of programs")
    func variablesOfSupervisord() throws {
        let head = """
            [supervisord]
            environment=BASE="/opt/base",HOUSE="%(ENV_HOME)s/house",COUNT="3",WHO="alice",HOME="/other"

            """
        func app(_ keys: String) throws -> AppSpecification {
            try self.app(keys, head: head, variables: ["HOME": "/root", "BASE": "/wrong"])
        }
        #expect(try app("directory=%(ENV_BASE)s/srv\n").directory == "/opt/base/srv")
        #expect(try app("directory=%(ENV_HOUSE)s\n").directory == "/root/house")
        #expect(try app("stopwaitsecs=%(ENV_COUNT)s\n").rules.grace == .seconds(3))
        let found = try Imported(
            "supervisord.conf",
            head + "[program:web]\ncommand=w\nuser=%(ENV_WHO)s\ndirectory=%(ENV_NONE)s\n",
            variables: ["HOME": "/root"]
        )
        #expect(found.result.toml.contains("user = \"alice\""))
        #expect(found.remarks("web").contains { $0.hasPrefix("directory is left out: the variable NONE") })
    }

    @Test("what would be more than torpord may read, or may run, is refused in a sentence")
    func tooMuch() {
        let names = (0..<1000).map { "[program:p\($0)]\ncommand=x\n" }.joined()
        let variables = (0..<1000).map { "V\($0)=\"\($0)\"" }.joined(separator: ",")
        #expect(
            refusal("supervisord.conf", "[supervisord]\nenvironment=\(variables)\n" + names)?.contains("in parts")
                == true
        )
        #expect(
            refusal("supervisord.conf", names.replacing("=x", with: "=x\nnumprocs=1000"))?.contains("16384 processes")
                == true
        )
        let long = String(repeating: "p", count: 10_000)
        let command = String(repeating: "%(program_name)s ", count: 1000)
        let found = try? Importer.read(
            "/srv/app/supervisord.conf",
            in: tree(["supervisord.conf": "[program:\(long)]\ncommand=\(command)\n"])
        )
        #expect(found?.programs.first?.obstacle?.contains("longer than 131072 bytes") == true)
    }

    @Test("a group is a tag")
    func tags() throws {
        let text =
            "[group:g]\nprograms=a, b\n[program:b]\ncommand=b\npriority=20\n[program:a]\ncommand=a\npriority=10\n[program:c]\ncommand=c\n"
        let found = try Imported("supervisord.conf", text)
        #expect(try found["a"].tags == ["g"] && found["b"].tags == ["g"] && found["c"].tags == [])
        let two = try Imported("supervisord.conf", text + "[group:h]\nprograms=a\n")
        #expect(try two["a"].tags == ["g", "h"] && two["b"].tags == ["g"])
        #expect(two.remarks("a").contains { $0.hasPrefix("is in the groups g and h, ") })
    }

    @Test("files of [include] are read, with their own folder")
    func include() throws {
        let files = [
            "supervisord.conf": "[include]\nfiles = conf.d/*.conf no.conf\n",
            "conf.d/a.conf": "[program:a]\ncommand=%(here)s/a\n",
        ]
        let found = try Imported("supervisord.conf", files)
        #expect(try found["a"].exec == ["/srv/app/conf.d/a"])
        #expect(found.result.remarks.contains { $0.text.contains("no.conf") })
        #expect(
            refusal("supervisord.conf", "[include]\nfiles = none/*.conf\n")
                == "/srv/app/supervisord.conf names no program: there is no file \"none/*.conf\", which files of [include] names"
        )
    }

    @Test("what a later file of [include] says of a section counts before the earlier ones, key by key")
    func overriding() throws {
        let files = [
            "supervisord.conf":
                "[include]\nfiles = zz/*.conf aa/*.conf\n[program:a]\ncommand=/bin/main\nuser=nobody\n",
            "zz/z.conf": "[program:a]\ncommand=%(here)s/a\nstopwaitsecs=4\n[group:g]\nprograms=a\n",
            "aa/a.conf": "[program:a]\nstopwaitsecs=6\n[program:b]\ncommand=%(here)s/b\n[group:g]\nprograms=a,b\n",
        ]
        let found = try Imported("supervisord.conf", files)
        #expect(try found["a"].exec == ["/srv/app/zz/a"] && found["a"].user == "nobody")
        #expect(try found["a"].rules.grace == .seconds(6))
        #expect(try found["b"].exec == ["/srv/app/aa/b"])
        #expect(try found["a"].tags == ["g"] && found["b"].tags == ["g"])
    }

    @Test("a pattern of [include] may name folders, sets and the machine, as in supervisord")
    func patterns() throws {
        func program(_ name: String) -> String { "[program:\(name)]\ncommand=/bin/\(name)\n" }
        let files = [
            "sites/shop/supervisor.conf": program("shop"), "sites/blog/supervisor.conf": program("blog"),
            "sites/.old/supervisor.conf": program("old"), "h-box.conf": program("box"), "h-9.conf": program("nine"),
            "h-box.example.org.conf": program("host"),
        ]
        func names(_ patterns: String) throws -> [String] {
            let main = "[include]\nfiles = \(patterns)\n[program:top]\ncommand=/bin/top\n"
            let found = try Imported("supervisord.conf", files.merging(["supervisord.conf": main]) { $1 })
            return found.result.programs.map(\.name).sorted()
        }
        #expect(try names("sites/*/supervisor.conf") == ["blog", "shop", "top"])
        #expect(try names("sites/[!s]*/*.conf") == ["blog", "top"])
        #expect(try names("sites/.*/*.conf") == ["old", "top"])
        #expect(try names("h-[a-z]*.conf") == ["box", "host", "top"])
        #expect(try names("h-[]0-9].conf [.conf") == ["nine", "top"])
        #expect(try names("h-%(host_node_name)s.conf") == ["host", "top"])
    }

    @Test("what is said of a file of [include] names that file")
    func places() throws {
        let files = [
            "supervisord.conf": "[include]\nfiles = conf.d/*.conf\n[program:b]\ncommand=b\nwhat=1\n",
            "conf.d/a.conf": "[program:a]\ncommand=a\nwhat=1\n",
        ]
        let programs = try Imported("supervisord.conf", files).result.programs
        let remarks = programs.flatMap(\.remarks).filter { $0.text.contains("what") }
        #expect(remarks.map(\.line) == [5, 3] && remarks.map(\.file) == [nil, "a.conf"])
    }

    @Test("event listeners, unknown keys, and files of output are told")
    func told() throws {
        let text =
            "[eventlistener:l]\ncommand=x\n[program:web]\ncommand=w\ndepend=x\nstdout_logfile=/var/log/w.log\nstopsignal=STOP\n[what]\nx=1\n"
        let found = try Imported("supervisord.conf", text)
        #expect(found.result.programs.count == 2 && found.result.translatedCount == 1)
        let remarks = found.remarks("web").joined(separator: "\n")
        #expect(remarks.contains("depend") && remarks.contains("/var/log/w.log") && remarks.contains("SIGSTOP"))
        #expect(found.result.toml.contains("# stop_signal = \"SIGSTOP\"") && found.result.toml.contains("# [apps.l]"))
        #expect(found.result.remarks.contains { $0.text.contains("[what]") })
    }

    @Test(
        "what has no command, or one that cannot be read, is no app",
        arguments: ["", "command=\n", "command='x\n", "command=%(x)s\n", "command=100%\n"]
    )
    func wrong(keys: String) throws {
        let found = try Importer.read("/srv/app/s.conf", in: tree(["s.conf": "[program:web]\n" + keys]))
        #expect(found.translatedCount == 0 && found.programs[0].remarks.count == 1)
    }

    @Test("an app whose user is not there does not run as another one")
    func user() throws {
        let found = try Imported("supervisord.conf", "[program:web]\ncommand=w\nuser=nobody-here\n")
        #expect(try found["web"].user == nil && found["web"].launch == .onDemand)
    }
}
