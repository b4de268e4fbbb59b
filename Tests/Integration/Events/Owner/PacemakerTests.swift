// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// The resource agent for Pacemaker, called as Pacemaker calls it.
@Suite("ocf:torpor:app") struct PacemakerTests {
    private static let root = "/usr/lib/ocf"
    private static let isThere: Bool = {
        let isThere = FileManager.default.fileExists(atPath: root + "/lib/heartbeat/ocf-shellfuncs")
        if !isThere { print("skipped: the agent for Pacemaker: there is no ocf-shellfuncs (resource-agents)") }
        return isThere
    }()

    private static let isTestable: Bool = {
        let lacks = ["/usr/sbin/ocf-tester", "/usr/bin/xmllint"].filter { !FileManager.default.fileExists(atPath: $0) }
        if !lacks.isEmpty { print("skipped: ocf-tester: \(lacks) are missing (resource-agents, libxml2-utils)") }
        return lacks.isEmpty
    }()

    private static func toml(_ keys: String = "") -> String {
        """
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        owner = "external"
        launch = "background"
        background_time = "50ms"
        restart_backoff = { initial = "0s", limit = 1 }
        topics = { handover = "latest" }
        \(keys)

        """
    }

    private struct Agent {
        let daemon: Daemon
        var kind = "hot"
        var lease = ""
        var binary = Built.path("torpor")

        private var environment: [String: String] {
            [
                "OCF_ROOT": PacemakerTests.root, "OCF_RA_VERSION_MAJOR": "1", "OCF_RA_VERSION_MINOR": "1",
                "OCF_RESOURCE_INSTANCE": "web:0", "OCF_RESOURCE_TYPE": "app", "HA_RSCTMP": daemon.directory + "/ha",
                "HA_LOGFILE": daemon.directory + "/ha.log", "HA_LOGFACILITY": "none", "PATH": "/usr/sbin:/usr/bin:/bin",
                "OCF_RESKEY_app": "web", "OCF_RESKEY_kind": kind, "OCF_RESKEY_socket": daemon.socket,
                "OCF_RESKEY_binary": binary, "OCF_RESKEY_lease": lease, "OCF_RESKEY_CRM_meta_interval": "20000",
            ]
        }

        func call(_ action: String) throws -> Int32 {
            try Spawn.run([Sources.root + "/packaging/pacemaker/app", action], environment: environment).code
        }

        /// What `action` returns, and the monitor after it.
        func then(_ action: String) throws -> [Int32] { [try call(action), try call("monitor")] }
    }

    @Test(
        "a hot standby sleeps, is promoted, demoted and stopped; each is what the monitor says",
        .enabled(if: isThere)
    )
    func hot() throws {
        try withDaemon(Self.toml(), files: ["app.py": NotifyApps.obedient]) { daemon in
            let agent = Agent(daemon: daemon)
            #expect(try agent.call("monitor") == 7)
            #expect(try agent.call("validate-all") == 0)
            #expect(try agent.then("start") == [0, 0])
            let pid = try daemon.process(of: "web")
            #expect(Truth.isStopped(pid))
            #expect(try agent.then("promote") == [0, 8])
            #expect(try daemon.summary("web").state == "background" && daemon.process(of: "web") == pid)
            #expect(try daemon.mailbox("web").mail.map(\.topic) == ["handover"])
            // The owner may sleep.
            try daemon.done(.suspend, "web")
            #expect(try agent.call("monitor") == 8)
            #expect(try agent.then("demote") == [0, 0])
            // Evicted, as the kernel does it.
            kill(pid, SIGKILL)
            try daemon.waitFor("web", "not-running")
            #expect(try agent.call("monitor") == 190)
            #expect(try agent.then("stop") == [0, 7])
            // Each may be asked twice.
            #expect(try agent.then("stop") == [0, 7])
            #expect(try agent.then("start") == [0, 0])
            #expect(try agent.then("start") == [0, 0])
            #expect(try agent.then("stop") == [0, 7])
        }
    }

    @Test("a cold one has no process before it is promoted; one that Torpor gave up is failed", .enabled(if: isThere))
    func cold() throws {
        try withDaemon(Self.toml(), files: ["app.py": NotifyApps.obedient]) { daemon in
            let agent = Agent(daemon: daemon, kind: "cold")
            #expect(try agent.then("start") == [0, 0])
            #expect(daemon.processes(of: "web").isEmpty)
            #expect(try agent.then("promote") == [0, 8])
            // It is restarted once.
            for _ in 1...2 {
                let pid = try daemon.process(of: "web")
                kill(pid, SIGKILL)
                try daemon.eventually("it is another one, or given up") {
                    try daemon.summary("web").failed || daemon.summary("web").pid.map { $0 != pid } ?? false
                }
            }
            #expect(try agent.call("monitor") == 9)
            #expect(try agent.then("demote") == [0, 0])
            #expect(try agent.then("stop") == [0, 7])
        }
    }

    @Test("a monitor renews what the node owns, and owns nothing that has ended in the meantime", .enabled(if: isThere))
    func lease() throws {
        try withDaemon(Self.toml(), files: ["app.py": NotifyApps.obedient]) { daemon in
            var agent = Agent(daemon: daemon, lease: "600s")
            #expect(try agent.then("start") == [0, 0])
            #expect(try agent.then("promote") == [0, 8])
            try daemon.done(.own, "web") { $0.forMilliseconds = 100_000 }
            #expect(try agent.call("monitor") == 8)
            #expect(try daemon.summary("web").ownedMilliseconds ?? 0 > 100_000)
            // The ownership ends just before it is renewed.
            let torpor = agent.binary
            agent.binary = daemon.directory + "/torpor"
            try File.write(
                agent.binary,
                """
                #!/bin/sh
                if [ "$1" = own ]; then '\(torpor)' disown web --socket '\(daemon.socket)' >/dev/null; fi
                exec '\(torpor)' "$@"

                """
            )
            chmod(agent.binary, 0o755)
            #expect(try agent.call("monitor") == 0)
            #expect(try daemon.summary("web").owner == "none")
        }
    }

    @Test("without torpord a node has no app; what is not configured is said", .enabled(if: isThere))
    func nothing() throws {
        let daemon = try Daemon(Self.toml(), files: ["app.py": NotifyApps.obedient])
        try daemon.waitUntilItAnswers()
        var agent = Agent(daemon: daemon)
        #expect(try agent.call("nonsense") == 3)
        #expect(try agent.call("meta-data") == 0)
        agent.kind = "lukewarm"
        #expect(try agent.call("validate-all") == 6)
        agent.kind = "hot"
        try daemon.done(.start, "web") { $0.force = true }
        #expect(try agent.call("monitor") == 1)
        try daemon.stop()
        #expect(try agent.call("monitor") == 7)
        #expect(try agent.call("stop") == 0)
    }

    @Test("ocf-tester finds no fault with the agent", .enabled(if: isTestable))
    func tested() throws {
        try withDaemon(Self.toml(), files: ["app.py": NotifyApps.obedient]) { daemon in
            let options = ["app=web", "socket=" + daemon.socket, "binary=" + Built.path("torpor")]
            let (code, output) = try Spawn.run(
                ["/usr/sbin/ocf-tester", "-n", "web"] + options.flatMap { ["-o", $0] }
                    + [Sources.root + "/packaging/pacemaker/app"],
                environment: [
                    "OCF_ROOT": Self.root, "HA_RSCTMP": daemon.directory + "/ha", "HA_LOGFACILITY": "none",
                    "HA_LOGFILE": daemon.directory + "/ha.log", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                ]
            )
            #expect(code == 0 && output.contains("passed all tests"), "\(output)")
        }
    }

    @Test("the watcher tells Pacemaker of an app that is given up, and of no restart or stop")
    func watcher() throws {
        try withDaemon(Self.toml(), files: ["app.py": NotifyApps.obedient]) { daemon in
            let folder = daemon.directory
            let files = [
                "bin/crm_resource": "#!/bin/sh\necho \"$*\" >>\"\(folder)/failed\"\n",
                "ha/torpor-app-shop:0.started": "web\n",
            ]
            for name in ["bin", "ha"] { try File.makeDirectories(folder + "/" + name) }
            for (name, text) in files { try File.write(folder + "/" + name, text) }
            chmod(folder + "/bin/crm_resource", 0o755)
            let watcher = try Spawn.start(
                [
                    Sources.root + "/packaging/pacemaker/torpor-pacemaker-watch", "--torpor", Built.path("torpor"),
                    "--socket", daemon.socket,
                ],
                environment: ["PATH": "\(folder)/bin:/usr/bin:/bin", "HA_RSCTMP": folder + "/ha"],
                output: folder + "/watcher"
            )
            // torpor, its child, follows the events as long as it lives.
            defer {
                for pid in Spawn.children(of: watcher) + [watcher] { kill(pid, SIGKILL) }
                waitpid(watcher, nil, 0)
            }
            try daemon.eventually("it follows the events") { !Spawn.children(of: watcher).isEmpty }
            // Pacemaker starts after it, and only then says what this node is called.
            try File.write(folder + "/bin/crm_node", "#!/bin/sh\necho north\n")
            chmod(folder + "/bin/crm_node", 0o755)
            try daemon.done(.own, "web")
            for _ in 1...2 {
                let pid = try daemon.process(of: "web")
                kill(pid, SIGKILL)
                try daemon.eventually("it is another one, or given up") {
                    try daemon.summary("web").failed || daemon.summary("web").pid.map { $0 != pid } ?? false
                }
            }
            func told() -> String { (try? File.readString(folder + "/failed")) ?? "" }
            try daemon.eventually("it is told") { !told().isEmpty }
            try daemon.done(.own, "web") { $0.forMilliseconds = 50 }
            try daemon.eventually("it is told of the ownership too") { told().split(separator: "\n").count == 2 }
            #expect(told().split(separator: "\n").allSatisfy { $0 == "--fail --resource shop --node north" })
        }
    }
}

extension Spawn {
    /// The processes whose parent this one is.
    fileprivate static func children(of pid: Int32) -> [Int32] {
        let path = "/proc/\(pid)/task/\(pid)/children"
        return ((try? File.readString(path)) ?? "").split(separator: " ").compactMap { Int32($0) }
    }
}
