// SPDX-License-Identifier: Apache-2.0

import Configuration
import Testing

@Suite("What is wrong is said with its place")
struct DiagnosticTests {
    @Test(
        "a wrong value of an app's key",
        arguments: [
            // Keys
            ("restrat = \"never\"", "1: apps.web.restrat: there is no such key; did you mean \"restart\"?"),
            ("zzzzzzzzzzzz = 1", "1: apps.web.zzzzzzzzzzzz: there is no such key"),
            // Habits
            ("cwd = \"/srv\"", "1: apps.web.cwd: there is no such key; write directory = \"/path\""),
            (
                "restart_sec = 5",
                "1: apps.web.restart_sec: there is no such key; write restart_backoff = { initial = \"1s\" }"
            ),
            (
                "WorkingDirectory = \"/srv\"",
                "1: apps.web.WorkingDirectory: there is no such key; write directory = \"/path\""
            ),
            (
                "limits.user_name = 1", "8: apps.web.limits.user_name: there is no such key"
            ),
            (
                "restart_backoff.limits = 1",
                "17: apps.web.restart_backoff.limits: there is no such key; did you mean \"limit\"?"
            ),
            (
                "signals.didEnterBackgrund = \"SIGUSR1\"",
                "9: apps.web.signals.didEnterBackgrund: there is no such key; did you mean \"didEnterBackground\"?"
            ),
            ("limits.nofiles = 1", "8: apps.web.limits.nofiles: there is no such key; did you mean \"nofile\"?"),
            (
                "resources.actve.cpu_weight = 1",
                "11: apps.web.resources.actve: there is no such key; did you mean \"active\"?"
            ),
            (
                "resources.active.cpu_wight = 1",
                "18: apps.web.resources.active.cpu_wight: there is no such key; did you mean \"cpu_weight\"?"
            ),
            ("ready = { tpc = \"a:1\" }", "11: apps.web.ready.tpc: there is no such key; did you mean \"tcp\"?"),
            // Types
            ("directory = 4", "13: apps.web.directory: expected a string, found an integer"),
            ("tags = \"demo\"", "8: apps.web.tags: expected an array of strings, found a string"),
            ("tags = [\"a\", 4]", "14: apps.web.tags[1]: expected a string, found an integer"),
            ("exits_on_suspend = \"yes\"", "20: apps.web.exits_on_suspend: expected true or false, found a string"),
            ("priority = \"high\"", "12: apps.web.priority: expected an integer, found a string"),
            ("restart_backoff = 5", "19: apps.web.restart_backoff: expected a table, found an integer"),
            (
                "restart_backoff.factor = \"two\"",
                "26: apps.web.restart_backoff.factor: expected a number, found a string"
            ),
            ("grace = 2026-01-01", "9: apps.web.grace: expected a duration like \"5s\", found a date or time"),
            (
                "ready = 1",
                "9: apps.web.ready: expected \"exec\", \"notify\", \"delegate\" or a table with tcp, http, command or file, found an integer"
            ),
            // Choices
            (
                "restart = \"alway\"",
                "11: apps.web.restart: \"alway\" is not one of \"never\", \"on-failure\", \"always\"; did you mean \"always\"?"
            ),
            ("type = \"forking\"", "8: apps.web.type: \"forking\" is not one of \"service\", \"oneshot\""),
            (
                "ready = \"notfy\"",
                "9: apps.web.ready: \"notfy\" is not \"exec\", \"notify\", \"delegate\" or a table with tcp, http, command or file; "
                    + "did you mean \"notify\"?"
            ),
            // Durations
            (
                "grace = 5000",
                "9: apps.web.grace: expected a duration, found an integer: write \"5000s\", or \"5000ms\" if you mean "
                    + "milliseconds"
            ),
            ("grace = 5", "9: apps.web.grace: expected a duration, found an integer: write \"5s\""),
            ("grace = 1.5", "9: apps.web.grace: expected a duration, found a float: write \"1.5s\""),
            ("grace = \"5\"", "9: apps.web.grace: \"5\" has no unit: write \"5s\""),
            ("grace = \"5x\"", "9: apps.web.grace: \"x\" is not a unit of time: use us, ms, s, min, h or d"),
            ("grace = \"-5s\"", "9: apps.web.grace: \"-5s\" is negative: write \"5s\""),
            ("grace = \"soon\"", "9: apps.web.grace: \"soon\" is not a number with a unit: write \"5s\""),
            ("grace = \"\"", "9: apps.web.grace: it is empty: write \"5s\""),
            ("grace = \"1m1h\"", "9: apps.web.grace: the units of \"1m1h\" must go from the largest to the smallest"),
            ("grace = \"99999999d\"", "9: apps.web.grace: \"99999999d\" is too long: the longest is \"36500d\""),
            ("grace = \"9999999999999999999999d\"", "9: apps.web.grace: \"9999999999999999999999d\" is too large"),
            (
                "launch_deadline = \"0s\"",
                "19: apps.web.launch_deadline: must be longer than zero; \"none\" switches it off"
            ),
            (
                "expiry_warning = \"none\"",
                "18: apps.web.expiry_warning: \"none\" is not allowed here: write a duration like \"5s\""
            ),
            ("extension_limit = \"0s\"", "19: apps.web.extension_limit: must be longer than zero"),
            // Sizes
            (
                "memory_limit = 64",
                "16: apps.web.memory_limit: expected a size, found an integer: write \"64B\" or \"64MiB\""
            ),
            ("memory_limit = \"64\"", "16: apps.web.memory_limit: \"64\" has no unit: write \"64B\" or \"64MiB\""),
            (
                "memory_limit = \"64 Zebras\"",
                "16: apps.web.memory_limit: \" Zebras\" is not a unit of size: "
                    + "use B, KiB, MiB, GiB and TiB (or K, M, G and T), KB, MB, GB and TB"
            ),
            ("memory_limit = \"0B\"", "16: apps.web.memory_limit: must be more than zero; \"none\" switches it off"),
            ("memory_limit = \"99999999TB\"", "16: apps.web.memory_limit: \"99999999TB\" is too large"),
            ("memory_limit = true", "16: apps.web.memory_limit: expected a size like \"64MiB\", found a boolean"),
            // Ranges
            ("nice = 20", "8: apps.web.nice: 20 is out of range: from -20 to 19"),
            ("instance_first = -1", "18: apps.web.instance_first: -1 is out of range: from 0 to 1000000000"),
            ("instances = 0", "13: apps.web.instances: 0 is out of range: from 1 to 1000"),
            (
                "restart_backoff.factor = 0.5",
                "26: apps.web.restart_backoff.factor: 0.5 is out of range: from 1.0 to 100.0"
            ),
            ("success_exit_status = [256]", "24: apps.web.success_exit_status[0]: 256 is out of range: from 0 to 255"),
            ("limits.nofile = -1", "17: apps.web.limits.nofile: -1 is negative: write 0 or more, or \"unlimited\""),
            // Signals
            (
                "stop_signal = \"SIGTREM\"",
                "15: apps.web.stop_signal: \"SIGTREM\" is not a signal; did you mean \"SIGTERM\"?"
            ),
            (
                "stop_signal = 15",
                "15: apps.web.stop_signal: expected a signal's name, found an integer: write \"SIGUSR1\""
            ),
            (
                "stop_signal = \"SIGSTOP\"",
                "15: apps.web.stop_signal: SIGSTOP cannot be used here: Torpor itself needs it"
            ),
            (
                "signals.performFetch = \"KILL\"",
                "24: apps.web.signals.performFetch: KILL cannot be used here: Torpor itself needs it"
            ),
            // Values with a form of their own
            ("umask = 27", "9: apps.web.umask: expected a string of octal digits, found an integer: write \"0027\""),
            ("umask = \"0999\"", "9: apps.web.umask: \"0999\" is not an octal mode up to \"0777\""),
            (
                "limits.nofile = \"many\"",
                "17: apps.web.limits.nofile: \"many\" is not a limit: write 4096, \"unlimited\" or \"SOFT:HARD\""
            ),
            ("limits.tasks = 0", "16: apps.web.limits.tasks: must be a single number of 1 or more, or \"unlimited\""),
            (
                "limits.tasks = \"1:2\"",
                "16: apps.web.limits.tasks: must be a single number of 1 or more, or \"unlimited\""
            ),
            (
                "resources.active.cpu_max = 50",
                "28: apps.web.resources.active.cpu_max: expected a share of one processor like \"50%\", found an integer"
            ),
            (
                "resources.active.cpu_max = \"half\"",
                "28: apps.web.resources.active.cpu_max: \"half\" is not a share of a processor: write \"50%\" for half "
                    + "of one, \"200%\" for two, at least \"1%\", or \"none\""
            ),
            (
                "resources.active = { memory_high = \"1MiB\", memory_low = \"2MiB\" }",
                "1: apps.web.resources: active.memory_low must not be more than memory_high"
            ),
            ("limits.core = \"2:1\"", "15: apps.web.limits.core: the soft limit of \"2:1\" is above the hard one"),
            (
                "environment.\"A=B\" = \"\"",
                "13: apps.web.environment.\"A=B\": the name of a variable must not be empty or contain ="
            ),
            ("environment_file = \"-\"", "20: apps.web.environment_file: must name a file after -"),
            (
                "stderr = \"lgo\"",
                "10: apps.web.stderr: \"lgo\" is neither \"log\" nor a path: write \"./lgo\" for a file of that name"
            ),
            ("user = \"\"", "8: apps.web.user: must not be empty"),
            ("directory = \"a\\u0000b\"", "13: apps.web.directory: must not contain NUL"),
            ("before_start = \"/bin/a b\"", "16: apps.web.before_start: expected an array of commands, found a string"),
            (
                "before_start = [{ deadline = \"1s\" }]",
                "17: apps.web.before_start[0]: command is missing: write command = [\"/path/to/program\"]"
            ),
            ("before_start = [[]]", "17: apps.web.before_start[0]: must begin with a program"),
            (
                "snapshot = 1",
                "12: apps.web.snapshot: expected a command as an array of strings, a table with command, http or file, or "
                    + "\"none\", found an integer"
            ),
            ("snapshot = { deadline = \"1s\" }", "12: apps.web.snapshot: needs exactly one of command, http and file"),
            (
                "snapshot = { command = [\"/a\"], file = \"/b\" }",
                "12: apps.web.snapshot: needs exactly one of command, http and file"
            ),
            (
                "snapshot = { fil = \"/b\" }", "14: apps.web.snapshot.fil: there is no such key; did you mean \"file\"?"
            ),
            (
                "snapshot = { http = \"ftp://x\" }",
                "21: apps.web.snapshot.http: \"ftp://x\" does not begin with http://"
            ),
            ("title = \"\"", "9: apps.web.title: must not be empty"),
            (
                "title = [\"a\"]",
                "9: apps.web.title: expected a string, or a table of strings by language, with the key default, "
                    + "found an array"
            ),
            ("title = { de = \"a\" }", "9: apps.web.title: needs the key default, for all other languages"),
            (
                "title = { default = \"a\", d3 = \"b\" }",
                "26: apps.web.title.d3: must be \"default\" or a language, such as \"de\" or \"pt-BR\""
            ),
            ("title = \"a\\u202Eb\"", "9: apps.web.title: must be one line, without control characters"),
            ("title = \" \"", "9: apps.web.title: must not be empty"),
            (
                "title = \"\(String(repeating: "é", count: 81))\"",
                "9: apps.web.title: must not be longer than 80 characters"
            ),
            ("title = \"a\\tb\"", "9: apps.web.title: must be one line, without control characters"),
            ("ready = {}", "9: apps.web.ready: needs exactly one of tcp, http, command and file"),
            (
                "ready = { tcp = \"a:1\", file = \"/a\" }",
                "9: apps.web.ready: needs exactly one of tcp, http, command and file"
            ),
            (
                "ready = { tcp = \"localhost\" }",
                "17: apps.web.ready.tcp: \"localhost\" is not an address with a port: write \"127.0.0.1:8000\""
            ),
            (
                "ready = { tcp = \"localhost:70000\" }",
                "17: apps.web.ready.tcp: \"localhost:70000\" is not an address with a port: write \"127.0.0.1:8000\""
            ),
            (
                "ready = { http = \"http://a b\" }",
                "18: apps.web.ready.http: \"http://a b\" is not an address: write \"http://127.0.0.1:8000/health\""
            ),
            // Accounts
            (
                "user = \"nobdy\"",
                "8: warning: apps.web.user: there is no user \"nobdy\" on this machine: the app is not launched until "
                    + "the user exists"
            ),
            (
                "group = \"nobdy\"",
                "9: warning: apps.web.group: there is no group \"nobdy\" on this machine: the app is not launched "
                    + "until the group exists"
            ),
            (
                "supplementary_groups = [\"nobdy\"]",
                "24: warning: apps.web.supplementary_groups: there is no group \"nobdy\" on this machine: the app is not "
                    + "launched until the group exists"
            ),
            // Keys that do not go together
            (
                "exits_on_suspend = true\nlaunch = \"background\"",
                "line 4 10: apps.web.launch: an app with exits_on_suspend is launched only into the foreground"
            ),
            (
                "restart_backoff = { initial = \"1s\", cap = \"1ms\" }",
                "19: apps.web.restart_backoff: cap must not be shorter than initial"
            ),
            (
                "memory_limit = \"1MB\"\nmemory_needed = \"2MB\"",
                "line 4 17: apps.web.memory_needed: must not be more than memory_limit"
            ),
            ("expiry_warning = \"30s\"", "18: apps.web.expiry_warning: must be shorter than task_time"),
            (
                "background_modes = [\"voip\"]\nkeep_alive = \"9min\"",
                "line 4 14: apps.web.keep_alive: must be at least 10min: write \"10min\", or lower keep_alive_minimum "
                    + "of [supervisor]"
            ),
            (
                "keep_alive = \"10min\"",
                "14: warning: apps.web.keep_alive: does nothing without background_modes = [\"voip\"]"
            ),
            ("answers = true", "11: warning: apps.web.answers: does nothing without signals"),
            (
                "background_modes = [\"external-accessory\", \"fetch\"]",
                "20: warning: apps.web.background_modes: \"external-accessory\" does nothing without devices, or "
                    + "\"accessories\" in notifications"
            ),
            (
                "wake_after_force_quit = [\"localtion\"]",
                "25: warning: apps.web.wake_after_force_quit: \"localtion\" is not a background mode; did you mean "
                    + "\"location\"?"
            ),
        ]
    )
    func wrongValue(keys: String, complaint: String) {
        let expected =
            complaint.hasPrefix("line 4 ")
            ? "torpor.toml:4:" + complaint.dropFirst(7) : "torpor.toml:3:" + complaint
        #expect(complaints(app: keys) == [expected])
    }

    @Test(
        "a wrong file",
        arguments: [
            ("[apps.web]\n", "1:7: apps.web: exec is missing: write exec = [\"/path/to/program\"]"),
            ("[apps.web]\nexec = []", "2:8: apps.web.exec: must begin with a program"),
            (
                "[apps.web]\nexec = \"/bin/a -b\"",
                "2:8: apps.web.exec: expected an array of strings, found a string: write [\"/bin/a\", \"-b\"]"
            ),
            ("[apps.\"a b\"]\nexec = [\"a\"]", "1:7: apps.\"a b\": a name consists of letters, digits, -, _ and ."),
            ("[apps.\".a\"]\nexec = [\"a\"]", "1:7: apps.\".a\": a name must not begin with . or -"),
            (
                "[apps.\"a@1\"]\nexec = [\"a\"]",
                "1:7: apps.\"a@1\": the name must not contain @, which separates it from an instance's number or a "
                    + "scene's name"
            ),
            ("[apps.\"\"]\nexec = [\"a\"]", "1:7: apps.\"\": a name has from 1 to 63 characters"),
            ("apps.web = 4", "1:12: apps.web: expected a table: write [apps.web], found an integer"),
            ("[app.web]\n", "1:2: app: there is no such key; did you mean \"apps\"?"),
            ("include = \"a\"", "1:11: include: expected an array of strings, found a string"),
            ("include = [\"a.toml\"]", "1:12: include[0]: there is no file \"a.toml\""),
            ("include = [\"torpor.toml\"]", "1:12: include[0]: includes itself: torpor.toml → torpor.toml"),
            ("[supervisor]\nonexit = 1", "2:1: supervisor.onexit: there is no such key; did you mean \"on_exit\"?"),
            (
                "[supervisor]\nsession = \"c 1\"",
                "2:11: supervisor.session: \"c 1\" is not \"auto\", \"none\", a seat such as \"seat0\" or the ID of a "
                    + "session as ‘loginctl’ shows it"
            ),
            (
                "[supervisor]\nmemory.settling = \"0s\"",
                "2:19: supervisor.memory.settling: must be longer than zero"
            ),
            (
                "[supervisor.memory]\nwarning_available = 10",
                "2:21: supervisor.memory.warning_available: expected a percentage like \"10%\", found an integer"
            ),
            (
                "[supervisor.memory]\nwarning_available = \"60%\"",
                "2:21: supervisor.memory.warning_available: \"60%\" is not a share of memory: write \"0%\" to \"50%\""
            ),
            (
                "[supervisor.memory]\ncritical_available = \"20%\"",
                "1:1: supervisor.memory: critical_available must not be more than warning_available"
            ),
            (
                "[supervisor.memory]\nwarning_stall = \"2s\"",
                "2:17: supervisor.memory.warning_stall: must be from 10ms to 1s: it is a time within each second"
            ),
            (
                "[supervisor]\nmain = \"wbe\"\n[apps.web]\nexec = [\"a\"]",
                "2:8: supervisor.main: there is no app \"wbe\"; did you mean \"web\"?"
            ),
            (
                "[supervisor]\nmain = \"web\"\n[apps.web]\nexec = [\"a\"]\ninstances = 2",
                "2:8: supervisor.main: \"web\" has instances: write the name of one, such as \"web@1\""
            ),
            (
                "[supervisor]\npolicies = [\"mobil\"]\n[policies.mobile]\npath = \"a\"",
                "2:12: supervisor.policies: there is no [policies.mobil] for the policy \"mobil\"; did you mean "
                    + "\"mobile\"?"
            ),
            (
                "[supervisor]\npolicies = [\"a\"]\n[policies.a]\n",
                "3:11: policies.a: path is missing: write path = \"libNAME.so\" (Torpor comes with "
                    + "libJetsamPolicy.so, libMobilePolicy.so, libSchedulePolicy.so, libServerPolicy.so)"
            ),
            (
                "[supervisor]\npolicies = [\"server\"]",
                "2:12: supervisor.policies: there is no [policies.server] for the policy \"server\": add it, with "
                    + "path = \"libServerPolicy.so\""
            ),
            (
                "[policies.a]\npath = \"a\"",
                "1:11: warning: policies.a: is not used: [supervisor] policies does not name \"a\""
            ),
            ("[defaults]\nrestrat = 1", "2:1: defaults.restrat: there is no such key; did you mean \"restart\"?"),
            ("a = 1\na = 2", "2:5: Error while parsing key-value pair: cannot redefine existing integer 'a'"),
        ]
    )
    func wrongFile(text: String, complaint: String) {
        let found = complaints(load(text)).filter { !$0.hasSuffix("mobile\"") }
        #expect(found == ["torpor.toml:" + complaint])
    }

    @Test("all at once, in the order of their places")
    func allAtOnce() {
        let text = """
            [apps.web]
            restart = "sometimes"
            grace = 5
            requires = ["bd"]
            [apps.db]
            exec = ["/bin/db"]
            nice = 99
            [supervisor]
            on_exit = 1
            """
        #expect(
            complaints(load(text)) == [
                "torpor.toml:1:7: apps.web: exec is missing: write exec = [\"/path/to/program\"]",
                "torpor.toml:2:11: apps.web.restart: \"sometimes\" is not one of \"never\", \"on-failure\", \"always\"",
                "torpor.toml:3:9: apps.web.grace: expected a duration, found an integer: write \"5s\"",
                "torpor.toml:4:12: apps.web.requires: there is no app \"bd\"; did you mean \"db\"?",
                "torpor.toml:7:8: apps.db.nice: 99 is out of range: from -20 to 19",
                "torpor.toml:9:11: supervisor.on_exit: expected a string, found an integer",
            ]
        )
    }

    @Test("a missing file, a folder and a file that is too large")
    func unreadableFiles() {
        #expect(complaints(load([:])) == ["torpor.toml: there is no such file"])
        var system = machine([:])
        system.read = { _ in .failure(.unusable("it is not a regular file")) }
        let result = ConfigurationLoader.load(path: "x", environment: [:], system: system)
        #expect(complaints(result) == ["x: it is not a regular file"])
        let folder = ConfigurationLoader.load(path: "/", environment: [:])
        #expect(complaints(folder) == ["/: it is not a regular file"])
        let device = ConfigurationLoader.load(path: "/dev/zero", environment: [:])
        #expect(complaints(device) == ["/dev/zero: it is not a regular file"])
    }

    @Test("only root can use other users and groups")
    func otherUsers() {
        let text =
            "[apps.a]\nexec = [\"a\"]\nuser = \"root\"\ngroup = \"video\"\n[apps.b]\nexec = [\"b\"]\nuser = \"web\""
        #expect(complaints(load(text)) == [])
        #expect(
            complaints(load(text, userID: 33)) == [
                "torpor.toml:3:8: apps.a.user: only root can run an app as \"root\": remove it, or run torpord as root",
                "torpor.toml:4:9: apps.a.group: only root can give an app the group \"video\": remove it, or run torpord as root",
            ]
        )
    }

    @Test("apps that wait for each other are named")
    func cycles() {
        let text = """
            [apps]
            a = { exec = ["a"], requires = ["b"] }
            b = { exec = ["b"], after = ["c"], instances = 2 }
            c = { exec = ["c"], requires = ["a"] }
            d = { exec = ["d"], after = ["d"] }
            e = { exec = ["e"], after = ["b@1", "b@3", "x"] }
            """
        #expect(
            complaints(load(text)) == [
                "torpor.toml:2:32: apps.a.requires: the apps wait for each other: a → b → c → a",
                "torpor.toml:5:29: apps.d.after: the apps wait for each other: d → d",
                "torpor.toml:6:29: apps.e.after: there is no app \"x\"",
                "torpor.toml:6:29: apps.e.after: there is no instance \"b@3\": the instances are \"b@1\" to \"b@2\"",
            ]
        )
    }

    @Test("a chain of apps that is longer than a stack is walked")
    func longChain() {
        var text = "[apps]\n"
        for number in 0..<20_000 { text += "a\(number) = { exec = [\"a\"], after = [\"a\(number + 1)\"] }\n" }
        text += "a20000 = { exec = [\"a\"], after = [\"a0\"] }"
        #expect(complaints(load(text)).count == 1)
    }
}

@Suite("A key that is another supervisor's names Torpor's")
struct ForeignKeyTests {
    @Test(
        "each habit",
        arguments: [
            ("command = \"x\"", "exec ="), ("script = \"x\"", "exec ="), ("cmd = \"x\"", "exec ="),
            ("working_directory = \"/\"", "directory ="), ("env = {}", "environment ="),
            ("autostart = true", "launch ="), ("oneshot = true", "type = \"oneshot\""),
            ("autorestart = true", "restart ="), ("user_name = \"web\"", "user ="), ("depends_on = []", "requires ="),
            ("stopsignal = \"QUIT\"", "stop_signal ="), ("log_file = \"/x\"", "log ="), ("replicas = 2", "instances ="),
        ]
    )
    func habit(key: String, right: String) {
        let complaint = complaints(app: key)
        #expect(complaint.contains { $0.contains("there is no such key") && $0.contains(right) }, "\(complaint)")
    }

    @Test("in an app whose name has a dot, and in [defaults]")
    func elsewhere() {
        let dotted = complaints(load("[apps.\"my.web\"]\nexec = [\"/bin/web\"]\ncwd = \"/\"\n"))
        #expect(dotted.contains { $0.contains("write directory =") })
        let defaults = complaints(load("[defaults]\ncwd = \"/\"\n[apps.web]\nexec = [\"/bin/web\"]\n"))
        #expect(defaults.contains { $0.contains("write directory =") })
    }
}
