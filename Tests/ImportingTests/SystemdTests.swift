// SPDX-License-Identifier: Apache-2.0

import Configuration
import Foundation
import Importing
import Lifecycle
import Testing

@Suite("Units of systemd become apps")
struct SystemdTests {
    func app(
        _ keys: String,
        unit: String = "",
        name: String = "web.service",
        app: String = "web"
    ) throws -> AppSpecification {
        let text = "[Unit]\n\(unit)\n[Service]\nExecStart=/bin/web\n\(keys)\n[Install]\nWantedBy=multi-user.target\n"
        return try Imported(name, text)[app]
    }

    @Test(
        "a command is read by systemd's rules",
        arguments: [
            ("/bin/a 'b c' \"d\\\"e\" f\\x20g", ["/bin/a", "b c", "d\"e", "f g"]),
            ("/bin/a \\\n  b \\\n  c", ["/bin/a", "b", "c"]),
            ("/bin/a %n %p %% %t/x %h", ["/bin/a", "web.service", "web", "%", "/run/x", "/root"]),
            (
                "/bin/a -p ${PORT} $OPTIONS x$$y",
                ["/bin/sh", "-c", "set -f; exec /bin/a -p \"${PORT}\" ${OPTIONS} 'x$y'"]
            ),
            (":/bin/a $X", ["/bin/a", "$X"]), ("@/bin/a shown b", ["/bin/a", "b"]), ("+-/bin/a", ["/bin/a"]),
        ]
    )
    func commands(line: String, exec: [String]) throws {
        #expect(try Imported("web.service", "[Service]\nExecStart=\(line)\n")["web"].exec == exec)
    }

    @Test("without more it is not restarted, and has a minute and a half to end")
    func usual() throws {
        let app = try app("")
        #expect(app.rules.restart == .never && app.rules.grace == .seconds(90) && app.launch == .foreground)
        #expect(try Imported("web.service", "[Service]\nExecStart=/bin/a\n")["web"].launch == .onDemand)
    }

    @Test("its description is the title, unless it is a sentence")
    func description() throws {
        #expect(try app("", unit: "Description=The shop of %p").presentation.title == "The shop of web")
        let sentence = String(repeating: "very ", count: 20) + "long"
        #expect(try app("", unit: "Description=\(sentence)").presentation.title == nil)
        #expect(try app("").presentation.title == nil)
        // What cannot be one is left out, and the rest is imported.
        #expect(try app("", unit: "Description=a\tb").presentation.title == nil)
        #expect(try app("", unit: "Description=%i").presentation.title == nil)
    }

    @Test("its keys are Torpor's")
    func keys() throws {
        let app = try app(
            """
            Type=notify
            Restart=on-failure
            RestartSec=5
            TimeoutStopSec=1min 20s
            KillSignal=SIGINT
            KillMode=mixed
            WatchdogSec=30s
            SuccessExitStatus=143 SIGUSR1
            Environment="A=b c" D=e
            WorkingDirectory=/srv
            User=www-data
            SupplementaryGroups=video audio
            UMask=0027
            Nice=5
            LimitNOFILE=1024:4096
            MemoryMax=1G
            CPUWeight=50
            ExecStartPre=-/bin/pre x
            ExecStopPost=/bin/post
            TasksMax=100
            StandardOutput=null
            """,
            unit: "StartLimitBurst=4\nStartLimitIntervalSec=1min"
        )
        #expect(app.ready == .notify && app.rules.restart == .onFailure && app.rules.backoff.initial == .seconds(5))
        #expect(
            app.rules.backoff.limit == 4 && app.rules.backoff.window == .seconds(60) && app.rules.grace == .seconds(80)
        )
        #expect(app.stopSignal == 2 && app.killMode == .main && app.rules.watchdog == .seconds(30))
        #expect(app.rules.successExitCodes == [143] && app.rules.successSignals == [1, 2, 10, 13, 15])
        #expect(app.environment == ["A": "b c", "D": "e"] && app.directory == "/srv" && app.user == "www-data")
        #expect(
            app.supplementaryGroups == ["video", "audio"] && app.umask == 0o27 && app.nice == 5 && app.log == .null
        )
        #expect(app.limits.map(\.name) == ["nofile", "tasks"] && app.memoryLimit == 1 << 30)
        for state in [AppState.active, .inactive, .background] { #expect(app.resources[state]?.cpuWeight == 50) }
        #expect(app.beforeStart.map(\.command) == [["/bin/sh", "-c", "/bin/pre x || :"]])
        #expect(app.afterStop.map(\.command) == [["/bin/post"]])
    }

    @Test(
        "as many starts as systemd allows in a time are no restart too many",
        arguments: [
            ("", 5), ("StartLimitBurst=1", 1), ("StartLimitBurst=0", 10_000), ("StartLimitIntervalSec=0", 10_000),
        ]
    )
    func startLimit(unit: String, limit: Int) throws {
        #expect(try app("Restart=always", unit: unit).rules.backoff.limit == limit)
    }

    @Test("files of tmpfiles.d and sysusers.d that belong to a service are named")
    func folders() throws {
        let unit = "[Service]\nExecStart=/bin/w\n"
        let files = [
            "lib/systemd/system/web.service": unit, "lib/tmpfiles.d/web.conf": "d /run/web\n",
            "lib/sysusers.d/web.conf": "u web\n", "lib/tmpfiles.d/other.conf": "",
        ]
        let remarks = try Imported("lib/systemd/system/web.service", files).remarks("web")
        for start in ["tmpfiles.d/web.conf makes files and folders", "sysusers.d/web.conf makes a user or group"] {
            #expect(remarks.contains { $0.hasPrefix("/srv/app/lib/" + start) }, "\(remarks)")
        }
        let alone = try Imported("web.service", ["web.service": unit, "tmpfiles.d/web.conf": ""]).remarks("web")
        #expect(!alone.contains { $0.contains("tmpfiles.d") }, "\(alone)")
    }

    @Test("the machine's name is what it is called at the import, which is told")
    func host() throws {
        let found = try Imported("web.service", "[Service]\nExecStart=/bin/w %H %l\n")
        #expect(try found["web"].exec == ["/bin/w", "box.example.org", "box"])
        #expect(found.remarks("web").contains { $0.contains("%H of ExecStart becomes \"box.example.org\"") })
    }

    @Test(
        "a path unit wakes its service, named itself, beside it or by Unit=",
        arguments: ["job.path", "job.service", ""]
    )
    func paths(name: String) throws {
        let files = [
            "job.service": "[Service]\nExecStart=/bin/job\n",
            "job.path": "[Path]\nPathExistsGlob=/in/*.csv\nDirectoryNotEmpty=/spool\nMakeDirectory=yes\n",
        ]
        let found = try Imported(name, files)
        #expect(try found["job"].launch == .onDemand && found["job"].paths.count == 2)
        #expect(found.remarks("job").contains { $0.contains("MakeDirectory=yes of its path") })
        let service = files["job.service"] ?? ""
        let renamed = "[Path]\nPathChanged=/in\nUnit=job.service\n"
        #expect(try Imported("", ["job.service": service, "in.path": renamed])["job"].paths.count == 1)
        let other = try Imported("", ["job.service": service, "a.path": "[Path]\nPathExists=/a\n"])
        #expect(other.result.remarks.contains { $0.text.contains("a.path is left out") })
    }

    @Test("units that start nothing are told")
    func others() throws {
        let found = try Imported("", ["a.service": "[Service]\nExecStart=/bin/a\n", "b.mount": "", "c.target": ""])
        #expect(found.result.remarks.contains { $0.text.hasPrefix("b.mount and c.target are left out") })
    }

    @Test("what systemd makes a user for does not run as root")
    func dynamicUser() throws {
        let text = "[Service]\nExecStart=/bin/web\nDynamicUser=yes\n[Install]\nWantedBy=multi-user.target\n"
        let socket = "[Socket]\nListenStream=8080\n"
        let found = try Imported("web.service", ["web.service": text, "web.socket": socket])
        #expect(try found["web"].launch == .onDemand && found["web"].sockets.isEmpty)
        #expect(found.remarks("web").contains { $0.contains("only by hand, and its sockets are commented out") })
        #expect(found.result.toml.contains("# sockets = "))
        let named = try Imported(
            "web.service",
            text.replacing("DynamicUser=yes", with: "DynamicUser=yes\nUser=www-data")
        )
        #expect(try named["web"].launch == .foreground && named["web"].user == "www-data")
    }

    @Test("files of variables win over Environment=, as with systemd")
    func variables() throws {
        let app = try app("Environment=A=1\nEnvironmentFile=-/etc/default/web")
        #expect(app.environmentFiles.map(\.isOptional) == [true] && app.environment.isEmpty)
        #expect(app.exec == ["/bin/sh", "-c", "[ \"${A+x}\" ] || export A=1; exec /bin/web"])
    }

    @Test("variables that torpord sets itself are those of Environment=, unless a file has them")
    func given() throws {
        let keys = "Environment=PATH=/v/bin:/bin HOME=/srv LANG=de_DE.UTF-8 A=1\nEnvironmentFile=-/srv/app/web.env"
        let files = [
            "web.service": "[Service]\nExecStart=/bin/web\n\(keys)\n",
            "web.env": "# of the service\nLANG=C\n",
        ]
        let found = try Imported("web.service", files)
        let app = try found["web"]
        #expect(app.environment == ["PATH": "/v/bin:/bin", "HOME": "/srv"])
        #expect(app.exec == ["/bin/sh", "-c", "[ \"${A+x}\" ] || export A=1; exec /bin/web"])
        #expect(found.remarks("web").contains { $0.hasPrefix("PATH of Environment is in environment") })
    }

    @Test(
        "a command after the end has systemd's variables for how it ended",
        arguments: [
            ("exit-failure", "3", "exit-code exited 3"), ("signal", "SIGKILL", "signal killed KILL"),
            ("core-dump", "SIGSEGV", "core-dump dumped SEGV"), ("stopped", "0", "success exited 0"),
            ("launch-deadline", "SIGKILL", "timeout killed KILL"), ("memory-limit", "SIGKILL", "oom-kill killed KILL"),
        ]
    )
    func ending(reason: String, status: String, told: String) throws {
        let line = "ExecStopPost=/bin/sh -c 'echo \"$SERVICE_RESULT $EXIT_CODE $0\"' ${EXIT_STATUS}"
        let commands = try app(line + "\nExecStopPost=/bin/x").afterStop.map(\.command)
        #expect(commands.count == 2 && commands.last == ["/bin/x"])
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try #require(commands.first?.first))
        process.arguments = commands.first.map { Array($0.dropFirst()) }
        process.environment = ["PATH": "/bin", "TORPOR_EXIT_REASON": reason, "TORPOR_EXIT_STATUS": status]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let bytes = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(String(decoding: bytes, as: UTF8.self) == told + "\n")
    }

    @Test("the command of the unit that OnFailure names runs when it has failed")
    func onFailure() throws {
        let web = "[Unit]\nOnFailure=mail@%n.service other.service\n[Service]\nUser=www-data\nExecStart=/bin/web\n"
        let mail = "[Service]\nType=oneshot\nEnvironment=TO=ops\nExecStart=-/bin/mail %i ${MONITOR_EXIT_STATUS}\n"
        let found = try Importer.read(
            "/srv/app/web.service",
            in: tree(["web.service": web, "mail@.service": mail + "ExecStart=/usr/bin/systemctl status %i\n"])
        )
        let remarks = found.programs[0].remarks.map(\.text).filter { $0.contains("OnFailure") }
        #expect(remarks.contains { $0.contains("runs as the app's user, not as root") })
        #expect(remarks.contains { $0.contains("/usr/bin/systemctl asks systemd") })
        #expect(remarks.contains { $0.contains("other.service is not in the same folder") })
        let app = try Imported("web.service", ["web.service": web, "mail@.service": mail])["web"]
        let command = try #require(app.onFailure.first)
        #expect(app.onFailure.count == 1 && command.deadline == .seconds(90) && !command.each)
        let last = try #require(command.command.last)
        #expect(last == "/usr/bin/env TO=ops /bin/mail web.service \"${MONITOR_EXIT_STATUS}\" || :", "\(last)")
        #expect(command.command.first == "/bin/sh" && command.command[2].contains("export SERVICE_RESULT"))
    }

    @Test("exit codes that end it for good, or start it again, are kept")
    func statuses() throws {
        let app = try app(
            "Restart=on-failure\nSuccessExitStatus=3 4\nRestartPreventExitStatus=2\nRestartForceExitStatus=4"
        )
        #expect(app.rules.successExitCodes == [2, 3])
    }

    @Test("what only sends a signal at the end is the stop signal")
    func stop() throws {
        #expect(try app("ExecStop=/bin/kill -s QUIT $MAINPID").stopSignal == 3)
        #expect(try app("ExecStop=/bin/kill -INT $MAINPID").stopSignal == 2)
    }

    @Test("a service that forks is told, and no app")
    func forking() throws {
        let found = try Importer.read(
            "/srv/app/w.service",
            in: tree(["w.service": "[Service]\nType=forking\nExecStart=/bin/w -d\n"])
        )
        #expect(found.translatedCount == 0 && found.programs[0].remarks[0].text.contains("Type=forking"))
    }

    @Test("a template has numbers for instances, and a unit of a template its name")
    func templates() throws {
        let text = "[Service]\nExecStart=/bin/w %i\n"
        #expect(try Imported("w@.service", text)["w@1"].exec == ["/bin/w", "1"])
        #expect(try Imported("w@a.service", text)["w-a"].exec == ["/bin/w", "a"])
    }

    @Test("a folder of units with their sockets, timers and order")
    func folder() throws {
        let found = try Imported(
            "",
            [
                "web.service":
                    "[Unit]\nRequires=db.service\nAfter=db.service network.target\n[Service]\nExecStart=/bin/web\n",
                "web.socket": "[Socket]\nListenStream=8080\nListenStream=/run/w.sock\nSocketMode=0660\nBacklog=5\n",
                "db.service":
                    "[Unit]\nBefore=job.service\n[Service]\nExecStart=/bin/db\n[Install]\nWantedBy=x.target\n",
                "job.service": "[Service]\nType=oneshot\nExecStart=/bin/a\nExecStart=/bin/b 'c d'\n",
                "job.timer": "[Timer]\nOnCalendar=daily\nPersistent=yes\nRandomizedDelaySec=5min\n",
                "x.timer": "[Timer]\nOnBootSec=1\n",
            ]
        )
        let web = try found["web"]
        #expect(
            web.requires == ["db"] && web.launch == .onDemand && web.sockets.count == 2 && web.sockets[1].mode == 0o660
        )
        let job = try found["job"]
        #expect(job.rules.isOneshot && job.after == ["db"] && job.timers.map(\.calendar) == [["daily"]])
        #expect(
            job.timers[0].isPersistent && job.timers[0].randomDelay == .seconds(300) && job.rules.launchDeadline == nil
        )
        #expect(job.exec == ["/bin/sh", "-c", "set -e -f\n/bin/a\n/bin/b 'c d'"])
        #expect(found.result.remarks.contains { $0.text.contains("x.timer") })
    }

    @Test("what is said of a unit of a folder names its file and line, and that of a drop-in the drop-in")
    func places() throws {
        let files = [
            "web.service": "[Service]\nExecStart=/bin/web\nWhat=1\n",
            "db.service": "[Service]\nWhat=2\nExecStart=/bin/db\n",
            "db.service.d/x.conf": "[Service]\nWhat=3\n",
        ]
        let remarks = try Imported("", files).result.programs.flatMap(\.remarks).filter { $0.text.contains("What") }
        #expect(
            remarks.map { "\($0.file ?? ""):\($0.line ?? 0)" } == [
                "db.service:2", "db.service.d/x.conf:2", "web.service:3",
            ]
        )
    }

    @Test("a unit for default.target is one of the machine unless its folder says that it is a user's")
    func defaultTarget() throws {
        let text = "[Service]\nExecStart=/bin/web\n[Install]\nWantedBy=default.target\n"
        let found = try Imported("web.service", ["web.service": text], variables: ["HOME": "/home/me"])
        #expect(try found["web"].directory == nil && found["web"].launch == .foreground)
        #expect(found.remarks("web").contains { $0.contains("WantedBy=default.target") })
        let user = try Imported("user/web.service", ["user/web.service": text], variables: ["HOME": "/home/me"])
        #expect(try user["web"].directory == "/home/me" && user.remarks("web").isEmpty)
    }

    @Test("standard error that had a file is in the log, and told")
    func standardError() throws {
        let found = try Imported("w.service", "[Service]\nExecStart=/bin/w\nStandardError=append:/var/log/none/e\n")
        #expect(try found["w"].standardError == .log)
        #expect(found.remarks("w").contains { $0.contains("append:/var/log/none/e") })
    }

    @Test("limits have units of their own, and one that is none takes no other with it")
    func limits() throws {
        let found = try Imported(
            "w.service",
            "[Service]\nExecStart=/bin/w\nLimitMEMLOCK=64M\nLimitCPU=1min:2min\nLimitRTTIME=5ms\nLimitNOFILE=infinity\nLimitCORE=x\n"
        )
        let limits = try found["w"].limits
        #expect(limits.map(\.name) == ["cpu", "memlock", "nofile", "rttime"])
        #expect(limits.map(\.soft) == [60, 64 << 20, .max, 5000] && limits[0].hard == 120)
        #expect(found.remarks("w").contains { $0.contains("LimitCORE=x") })
    }

    @Test("sandboxes, folders and unknown keys are told")
    func told() throws {
        let found = try Imported(
            "w.service",
            "[Service]\nExecStart=/bin/w\nPrivateTmp=yes\nStateDirectory=w\nWhat=1\nExecReload=/bin/x\n"
        )
        let remarks = found.remarks("w").joined(separator: "\n")
        for word in ["PrivateTmp", "/var/lib/w", "What=1", "ExecReload"] {
            #expect(remarks.contains(word), "\(remarks)")
        }
    }

    @Test(
        "what is no unit is refused or told",
        arguments: ["", "[Service]\n", "x", "[Service]\nExecStart='\n", "[Service]\nExecStart=@/bin/a\n"]
    )
    func wrong(text: String) throws {
        let found = try Importer.read("/srv/app/w.service", in: tree(["w.service": text]))
        #expect(found.translatedCount == 0)
    }
}
