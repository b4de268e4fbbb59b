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

    @Test("without more it restarts on failure, as often and as long as supervisord, and ends after ten seconds")
    func usual() throws {
        let app = try app("")
        #expect(app.exec == ["/bin/web"] && app.rules.restart == .onFailure && app.rules.grace == .seconds(10))
        #expect(app.rules.backoff.limit == 3 && app.rules.backoff.stableAfter == .seconds(1) && app.killMode == .main)
        #expect(app.launch == .foreground)
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
        #expect(app.rules.backoff.limit == 5 && app.rules.successExitCodes == [2] && app.stopSignal == 3)
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

    @Test("what must be known at once is taken from the variables of the import, or told")
    func now() throws {
        #expect(try app("user=%(ENV_WHO)s\n", variables: ["WHO": "www-data"]).user == "www-data")
        let found = try Imported("supervisord.conf", "[program:web]\ncommand=/bin/web\nuser=%(ENV_WHO)s\n")
        #expect(try found["web"].user == nil)
        #expect(found.remarks("web").contains { $0.contains("WHO is not set here") })
    }

    @Test("many processes are instances, or apps of their own where they are numbered otherwise")
    func processes() throws {
        let same = try Imported(
            "supervisord.conf",
            "[program:w]\ncommand=/bin/w\nnumprocs=3\nprocess_name=%(program_name)s_%(process_num)02d\n"
        )
        #expect(same.apps.keys.sorted() == ["w@1", "w@2", "w@3"])
        let numbered = try Imported(
            "supervisord.conf",
            "[program:w]\ncommand=/bin/w -p %(process_num)s\nnumprocs=2\nnumprocs_start=9300\n"
        )
        #expect(try numbered["w-9301"].exec == ["/bin/w", "-p", "9301"])
        let fromOne = try Imported(
            "supervisord.conf",
            "[program:w]\ncommand=/bin/w %(process_num)d\nnumprocs=2\nnumprocs_start=1\n"
        )
        #expect(try fromOne["w@2"].exec == ["/bin/w", "2"])
    }

    @Test("a lower priority is started first, and a group is a tag")
    func order() throws {
        let text =
            "[group:g]\nprograms=a, b\n[program:b]\ncommand=b\npriority=20\n[program:a]\ncommand=a\npriority=10\n[program:c]\ncommand=c\n"
        let found = try Imported("supervisord.conf", text)
        #expect(try found["b"].after == ["a"] && found["c"].after == ["b"] && found["a"].tags == ["g"])
        #expect(try found["c"].tags == [])
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
