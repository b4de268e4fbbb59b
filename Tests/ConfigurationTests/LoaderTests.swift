// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Linux
import Mailbox
import Testing

@testable import Configuration

@Suite("What a configuration means")
struct LoaderTests {
    static let others = "[apps.b]\nexec = [\"b\"]\n[apps.c]\nexec = [\"c\"]\n"

    @Test("every key of an app is read back", arguments: ["apps.a", "defaults"])
    func everyKey(table: String) throws {
        #expect(Self.everything.keys.sorted() == AppKeys.all.map(\.name).sorted())
        var text = "[\(table)]\n"
        for (key, value) in Self.everything.sorted(by: { $0.key < $1.key })
        where !["instances", "instance_first", "sandbox", "scenes", "protected"].contains(key) {
            // A bundle is one app's.
            if table != "defaults" || key != "bundle" { text += "\(key) = \(value)\n" }
        }
        let isDefaults = table == "defaults"
        let result = load(
            text + (isDefaults ? "[apps.a]\n[apps.b]\nafter = []\nrequires = []\ncontainer.name = \"b\"\n" : "")
                + (isDefaults ? "[apps.c]\nafter = []\nrequires = []\ncontainer.name = \"c\"\n" : Self.others)
        )
        let configuration = try result.get()
        #expect(configuration.apps.map(\.name) == ["a", "b", "c"])
        var expected = Self.expected()
        if isDefaults { expected.bundle = nil }
        #expect(configuration.apps[0] == expected)
    }

    @Test("every value in that test differs from the default", arguments: everything.keys.sorted())
    func everyValueMatters(key: String) throws {
        // Only of several instances is there a first one.
        let others = (key == "instance_first" ? "instances = 2\n" : "") + Self.others
        let plain = try load("[apps.a]\nexec = [\"plain\"]\nsignals.performFetch = \"HUP\"\n" + others).get()
        let text =
            key == "signals"
            ? "[apps.a]\nexec = [\"plain\"]\nsignals = { performFetch = \"HUP\", didEnterBackground = \"USR1\" }\n"
            : key == "exec"
                ? "[apps.a]\nsignals.performFetch = \"HUP\"\nexec = [\"/bin/a\"]\n"
                : "[apps.a]\nexec = [\"plain\"]\nsignals.performFetch = \"HUP\"\n\(key) = \(Self.everything[key] ?? "")\n"
        #expect(try load(text + others).get().apps != plain.apps)
    }

    @Test("every key of the supervisor and of a policy is read back")
    func supervisorKeys() throws {
        let configuration = try load(
            """
            [supervisor]
            focus = "i3"
            gpsd = "[::1]:2000"
            history_max_age = "none"
            history_max_count = 5
            history_max_size = "9MiB"
            interrupt_on = ["audio"]
            log_directory = "/l"
            log_level = "debug"
            main = "web@2"
            min_free = "1.5GB"
            on_exit = "leave"
            operators = ["o"]
            posters = ["p"]
            exporters = ["e"]
            orphans = "end"
            policies = ["p"]
            policy_directory = "/p"
            readers = ["r"]
            runtime_directory = "run"
            session = "seat0"
            sleep = false
            state_directory = "/s"
            [supervisor.protected]
            lock_with = ["sleep"]
            protected_deadline = "3s"
            unlock = ["cat", "/k"]
            [supervisor.memory]
            critical_available = "2.5%"
            critical_stall = "300ms"
            enabled = false
            settling = "1s"
            warning_available = "20%"
            warning_stall = "10ms"
            [supervisor.transfers]
            connections = 9
            min_free = "10%"
            per_app = 3
            per_host = 1
            rate = "1MiB"
            [policies.p]
            path = "libp.so"
            isolation = "none"
            mode = "advise"
            deadline = "20ms"
            options = { a = 1, b = [true, 1.5, 2026-01-02], c = { d = "e" } }
            [apps.web]
            exec = ["/bin/a"]
            instances = 2
            """
        ).get()
        let supervisor = configuration.supervisor
        #expect(supervisor.historyMaxAge == nil && supervisor.historyMaxCount == 5)
        #expect(supervisor.historyMaxSize == 9 << 20)
        #expect(supervisor.logDirectory == "/l")
        let missing = configuration.warnings.map(\.message).filter { $0.hasPrefix("there is no group") }
        #expect(missing.count == 4)
        #expect(missing[0].contains("\"o\" on this machine: no user has these rights through the group"))
        #expect(supervisor.logLevel == .debug)
        #expect(supervisor.main == "web@2")
        let memory = supervisor.memory
        #expect(!memory.enabled && memory.rules.settling == .seconds(1))
        #expect(memory.rules.warningStall == .milliseconds(10) && memory.rules.criticalStall == .milliseconds(300))
        #expect(memory.rules.warningAvailable == 0.2 && memory.rules.criticalAvailable == 0.025)
        #expect(supervisor.minFree == .bytes(1_500_000_000))
        #expect(supervisor.protection.lockWith == [.sleep] && supervisor.protection.deadline == .seconds(3))
        #expect(supervisor.protection.unlock == ["cat", "/k"])
        let transfers = supervisor.transfers
        #expect(transfers.connections == 9 && transfers.perApp == 3 && transfers.perHost == 1)
        #expect(transfers.rate == 1 << 20 && transfers.minFree == .part(0.1))
        #expect(supervisor.onExit == .leave)
        #expect(supervisor.operators == ["o"])
        #expect(supervisor.posters == ["p"])
        #expect(supervisor.exporters == ["e"])
        #expect(supervisor.orphans == .end)
        #expect(supervisor.focus == .i3)
        #expect(supervisor.interruptOn == [.audio])
        #expect(supervisor.gpsd == GPSAddress(address: "::1", port: 2000))
        #expect(supervisor.policies == ["p"])
        #expect(supervisor.policyDirectory == "/p")
        #expect(supervisor.readers == ["r"])
        #expect(supervisor.runtimeDirectory == "/etc/torpor/run")
        #expect(supervisor.session == .seat("seat0") && !supervisor.sleep)
        #expect(supervisor.stateDirectory == "/s")
        var policy = PolicySpecification(name: "p", path: "libp.so")
        policy.isolation = .none
        policy.mode = .advise
        policy.deadline = .milliseconds(20)
        policy.options = [
            "a": .integer(1), "b": .array([.boolean(true), .double(1.5), .date("2026-01-02")]),
            "c": .table(["d": .string("e")]),
        ]
        #expect(configuration.policies == [policy])
    }

    @Test("instances count from another number, and are given it with as many digits as it is to have")
    func firstInstance() throws {
        let configuration = try load(
            """
            [apps.web]
            instances = 3
            instance_first = 8
            exec = ["/bin/web", "%i-%02i-%03i", "%0i %2i %i0 %%02i %0"]
            sockets = [{ stream = "/run/web%02i" }]
            [apps.b]
            exec = ["b"]
            requires = ["web@10"]
            """
        ).get()
        #expect(configuration.warnings.isEmpty)
        #expect(configuration.apps.map(\.name) == ["b", "web@8", "web@9", "web@10"])
        #expect(configuration.apps[1].exec == ["/bin/web", "8-08-008", "%0i %2i 80 %08 %0"])
        #expect(configuration.apps[3].exec == ["/bin/web", "10-10-010", "%0i %2i 100 %10 %0"])
        #expect(configuration.apps[3].environment == ["TORPOR_INSTANCE": "10"] && configuration.apps[3].instance == 10)
        #expect(configuration.apps[1].sockets.map(\.plan.address) == [.path("/run/web08")])
        let zero = try load("[apps.a]\nexec = [\"a\"]\ninstances = 2\ninstance_first = 0").get()
        #expect(zero.apps.map(\.name) == ["a@0", "a@1"])
        let alone = try load("[apps.a]\nexec = [\"a\"]\ninstance_first = 0").get()
        #expect(alone.apps.map(\.name) == ["a"])
        #expect(alone.warnings.map(\.message) == ["does nothing without instances"])
    }

    @Test("instances are apps of their own, and naming the template means all of them")
    func instances() throws {
        let configuration = try load(
            """
            [apps.web]
            instances = 3
            exec = ["/bin/web", "--port", "800%i", "%"]
            environment = { PORT = "800%i" }
            ready = { tcp = "127.0.0.1:800%i" }
            [apps.proxy]
            exec = ["p%i"]
            requires = ["web"]
            after = ["web@2"]
            [apps.web10]
            exec = ["a"]
            instances = 11
            """
        ).get()
        #expect(configuration.apps.prefix(4).map(\.name) == ["proxy", "web@1", "web@2", "web@3"])
        #expect(configuration.apps.last?.name == "web10@11")
        let second = configuration.apps[2]
        #expect(second.template == "web")
        #expect(second.instance == 2)
        #expect(second.exec == ["/bin/web", "--port", "8002", "%"])
        #expect(second.environment == ["PORT": "8002", "TORPOR_INSTANCE": "2"])
        #expect(second.ready == .probe(Probe(.tcp(host: "127.0.0.1", port: 8002))))
        #expect(second.rules.readiness == .probe)
        let proxy = configuration.apps[0]
        #expect(proxy.exec == ["p%i"])
        #expect(proxy.requires == ["web@1", "web@2", "web@3"])
        #expect(proxy.after == ["web@2"])
        #expect(proxy.environment == [:])
    }

    @Test("defaults reach the apps of their file and of those it includes, and tables are merged")
    func defaults() throws {
        let configuration = try load([
            "torpor.toml": """
            include = ["conf.d/*.toml", "none.d/*.toml"]
            [defaults]
            grace = "9s"
            nice = 1
            environment = { A = "1", B = "1" }
            requires = ["db"]
            [apps.db]
            exec = ["db"]
            """,
            "conf.d/a.toml": """
            [defaults]
            nice = 2
            environment = { B = "2" }
            [apps.a]
            exec = ["a"]
            directory = "x"
            environment = { C = "3" }
            """,
            "conf.d/b.toml": "[apps.b]\nexec = [\"b\"]\nrequires = []",
            "conf.d/.hidden.toml": "wrong",
            "conf.d/c.txt": "wrong",
        ]).get()
        #expect(configuration.files == ["torpor.toml", "conf.d/a.toml", "conf.d/b.toml"])
        let (a, b, db) = (configuration.apps[0], configuration.apps[1], configuration.apps[2])
        #expect(a.environment == ["A": "1", "B": "2", "C": "3"])
        #expect(a.nice == 2)
        #expect(b.nice == 1)
        #expect(a.directory == "/etc/torpor/conf.d/x")
        #expect(a.rules.grace == .seconds(9))
        #expect(a.requires == ["db"])
        #expect(b.requires == [])
        #expect(db.requires == [])
    }

    @Test("defaults of a file without apps are a warning")
    func defaultsOfNone() {
        let warning = "d.toml:1:2: warning: defaults: has no effect: it is for the apps of this file"
        let files = [
            "torpor.toml": "include = [\"d.toml\"]\n[apps.web]\nexec = [\"a\"]\n",
            "d.toml": "[defaults]\ngrace = \"3s\"\n",
        ]
        let found = complaints(load(files))
        #expect(found.count == 1 && found.first?.hasPrefix(warning) == true, "\(found)")
        let others = [
            "d.toml": "include = [\"e.toml\"]\n[defaults]\ngrace = \"3s\"\n", "e.toml": "apps.e.exec = [\"a\"]",
        ]
        #expect(complaints(load(files.merging(others) { $1 })).isEmpty)
    }

    @Test("includes that go round, and an app or a key said twice, name both places")
    func includeMistakes() {
        let cycle = load(["torpor.toml": "include = [\"a.toml\"]", "a.toml": "\ninclude = [\"./torpor.toml\"]"])
        #expect(
            complaints(cycle) == ["a.toml:2:12: include[0]: includes itself: torpor.toml → a.toml → torpor.toml"]
        )
        let twice = load([
            "torpor.toml": "include = [\"a.toml\"]\n[apps.web]\nexec = [\"a\"]\n[supervisor]\non_exit = \"leave\"",
            "a.toml": "supervisor.on_exit = \"leave\"\n[apps.web]\nexec = [\"a\"]",
        ])
        #expect(
            complaints(twice) == [
                "torpor.toml:2:7: apps.web: is already declared at a.toml:2",
                "torpor.toml:5:11: supervisor.on_exit: is already set at a.toml:1",
            ]
        )
        var system = machine(["torpor.toml": "include = [\"conf.d/*.toml\"]"])
        system.names = { _ in ["gone.toml"] }
        #expect(
            complaints(ConfigurationLoader.load(path: "torpor.toml", environment: [:], system: system)).contains {
                $0.hasSuffix("\"conf.d/gone.toml\" leads to no file: correct or remove the symlink")
            }
        )
        let again = load(["torpor.toml": "include = [\"a.toml\", \"?.toml\"]", "a.toml": "apps.a.exec = [\"a\"]"])
        #expect(complaints(again) == [])
        #expect(complaints(load(["torpor.toml": "include = [\"a.toml\"]", "a.toml": "x"])).count == 1)
    }
}
