// SPDX-License-Identifier: Apache-2.0

import Foundation
import Lifecycle
import Linux
import Permissions
import Testing

@testable import Configuration

@Suite("Apps of bundles") struct BundleReaderTests {
    static let manifest = """
        name = "notes"
        version = "1.0"
        needs = ["swap"]
        [app]
        exec = ["bin/notes", "data"]
        environment = { A = "bundle", B = "bundle" }
        data_folders = true
        restart = "never"
        [permissions]
        network = { purpose = "Fetches the weather" }

        """

    static func load(
        _ toml: String,
        _ manifest: String?,
        hasFirstLaunch: Bool = false
    ) -> Result<TorporConfiguration, DiagnosticList> {
        var system = machine(["torpor.toml": toml])
        system.bundle = { name, state in
            guard let manifest else { return .failure(.missing) }
            let path = "\(state)/bundles/\(name)/current/manifest.toml"
            let text = Array(manifest.utf8)
            return .success(InstalledManifest(path: path, text: text, hasFirstLaunch: hasFirstLaunch))
        }
        return ConfigurationLoader.load(path: "torpor.toml", environment: [:], system: system)
    }

    @Test("The machine's keys win over the manifest's, and the program is in the bundle")
    func precedence() throws {
        let toml =
            "[apps.a]\nbundle = \"notes\"\nrestart = \"always\"\nsandbox = true\nenvironment = { A = \"machine\" }\n"
        let configuration = try Self.load(toml, Self.manifest, hasFirstLaunch: true).get()
        #expect(configuration.warnings.isEmpty)
        let app = try #require(configuration.apps.first)
        let place = "/var/lib/torpor/bundles/notes/1.0"
        #expect(app.bundle?.path == place)
        // The manifest is no file of the configuration's owner.
        #expect(configuration.files == ["torpor.toml"])
        #expect(app.bundle?.text == Array(Self.manifest.utf8))
        #expect(app.bundle?.variables == ["B"])
        #expect(app.exec == [place + "/bin/notes", "data"])
        #expect(app.directory == place)
        #expect(app.environment == ["A": "machine", "B": "bundle", "PYTHONDONTWRITEBYTECODE": "1"])
        #expect(app.rules.restart == .always)
        #expect(app.sandbox.declarations.map(\.name) == ["network"])
        #expect(app.data.version == "1.0")
        #expect(app.data.firstLaunch == place + "/first-launch")
    }

    @Test("The state directory counts, wherever the file sets it, and a directory of the machine's own")
    func places() throws {
        let toml = "[apps.a]\nbundle = \"notes\"\ndirectory = \"/srv\"\n[supervisor]\nstate_directory = \"/s\"\n"
        let app = try #require(try Self.load(toml, Self.manifest).get().apps.first)
        #expect(app.exec.first == "/s/bundles/notes/1.0/bin/notes")
        #expect(app.directory == "/srv")
        #expect(app.data.firstLaunch == nil)
    }

    @Test("A configuration with a bundle is the same when it is read again from its texts")
    func sources() throws {
        let toml = "[apps.a]\nbundle = \"notes\"\n[supervisor]\nstate_directory = \"/s\"\n"
        let configuration = try Self.load(toml, Self.manifest, hasFirstLaunch: true).get()
        let sources = try #require(ConfigurationSources(decoding: configuration.sources.encoded()))
        let again = try ConfigurationLoader.load(sources: sources, environment: [:], userID: 0).get()
        #expect(again.apps == configuration.apps)
        #expect(again.sources == configuration.sources)
    }

    static func app(_ keys: String) -> String {
        "name = \"notes\"\nversion = \"1.0\"\n[app]\nexec = [\"bin/a\"]\n" + keys
    }

    @Test(
        "A bundle that is missing or cannot be used is a warning that names the place, and its app has no version",
        arguments: [
            (nil, "there is no bundle"), ("name = \"notes\"", "manifest.toml:1"), ("[", "manifest.toml:1"),
            (manifest.replacing("restart", with: "restartt"), "manifest.toml:8: app.restartt: there is no such key"),
            (manifest.replacing("1.0", with: "../x"), "version"),
            (manifest.replacing("\"notes\"", with: "\"other\""), "the manifest of \"other\""),
            ("name = \"notes\"\nversion = \"1.0\"\n[app]\n", "exec is missing"),
            (app("ready = \"maybe\""), "app.ready"),
            (app("ready = { port = 1 }"), "app.ready"), (app("health = 5"), "app.health"),
            (app("type = \"oneshot\"\nstop_signal = \"SIGWHAT\""), "app.stop_signal"),
            (app("title = \"\""), "app.title"), (app("settings = 1\n[settings]"), "app.settings"),
            (app("[app.settings.a]\ntype = \"string\"\n[settings.b]\ntype = \"string\""), "stands in [app] too"),
        ] as [(String?, String)]
    )
    func faults(manifest: String?, warning: String) throws {
        let configuration = try Self.load("[apps.a]\nbundle = \"notes\"\n[apps.b]\nexec = [\"b\"]\n", manifest).get()
        #expect(configuration.apps.map(\.name) == ["a", "b"])
        #expect(configuration.apps[0].bundle?.version == nil)
        #expect(configuration.apps[0].exec.isEmpty)
        #expect(configuration.warnings.count == 1)
        #expect(configuration.warnings.first?.message.contains(warning) ?? false, "\(configuration.warnings)")
        #expect(configuration.warnings.first?.path == "apps.a.bundle")
    }

    @Test("A manifest may have these keys, and every other is for the machine's owner")
    func allowed() throws {
        let allowed = BundleManifest.appKeys
        #expect(allowed.isSubset(of: AppKeys.all.map(\.name)))
        // Each new key must be thought about: one that is not listed is refused.
        for key in AppKeys.all.map(\.name) where !allowed.contains(key) {
            let found = BundleManifest.check(Array(Self.app("\(key) = 1\n").utf8), hasFirstLaunch: false, file: "m")
            guard case .failure(let list) = found else {
                Issue.record("\(key) is allowed")
                continue
            }
            let messages = list.diagnostics.map(\.message)
            #expect(messages.contains { $0.contains("machine's owner") }, "\(key): \(messages)")
        }
        for key in [
            "user", "limits", "environment_file", "sockets", "nice", "priority", "requires", "umask", "container",
        ] {
            #expect(!allowed.contains(key))
        }
    }

    @Test(
        "What an allowed key may say is bounded",
        arguments: [
            ("directory = \"/root\"", "app.directory: must be inside"), ("directory = \"..\"", "must be inside"),
            ("directory = \"../2.0\"", "must be inside"), ("icon = \"/etc/shadow\"", "must be inside"),
            ("icon = { default = \"a.png\", dark = \"../x\" }", "must be inside"),
            ("launch_image = \"/root/x\"", "must be inside"), ("environment = { PATH = \"bin\" }", "PATH"),
            ("sandbox = false", "cannot refuse"), ("ready = { file = \"x\" }", "machine's owner"),
            ("ready = { tcp = \"192.0.2.1:80\" }", "this machine itself"),
            ("health = { http = \"http://example.org/\" }", "this machine itself"),
            ("health = { http = \"http://127.0.0.1.example.org/\" }", "this machine itself"),
            (
                "health = { tcp = \"127.0.0.{settings.n}:80\" }\n[settings.n]\ntype = \"integer\"\ndefault = 1",
                "this machine itself"
            ),
            (
                "directory = \"{settings.d}\"\n[settings.d]\ntype = \"string\"\ndefault = \"x\"\nwritable = true",
                "must be inside"
            ),
            ("ready = { command = [\"/home/alice/deploy\"] }", "the program of command"),
            ("health = { command = [\"bin/../../x\"] }", "the program of command"),
            ("health = { command = [\"true\"], interval = \"1us\" }", "at least 100ms"),
            (
                "[settings.n]\ntype = \"string\"\ndefault = \"a\"\npattern = \"(a*){1,4000}\"",
                "is not an extended regular expression"
            ),
        ]
    )
    func bounds(keys: String, warning: String) throws {
        let configuration = try Self.load("[apps.a]\nbundle = \"notes\"\n", Self.app(keys)).get()
        #expect(configuration.apps[0].bundle?.version == nil)
        #expect(configuration.warnings.contains { $0.message.contains(warning) }, "\(configuration.warnings)")
    }

    @Test("It does not go with a container, outside of which its checks would run")
    func container() throws {
        let toml = "[apps.a]\nbundle = \"notes\"\ncontainer = { image = \"x\" }\n"
        let configuration = try Self.load(toml, Self.manifest).get()
        #expect(configuration.apps[0].bundle?.version == nil, "the app is not launched")
        #expect(
            configuration.warnings.contains { $0.message.contains("does not go with bundle") },
            "\(configuration.warnings)"
        )
    }

    @Test("What its manifest says of more than the sandbox gives is shown")
    func warnings() throws {
        let manifest = Self.manifest + "\"files:/var/lib:ro\" = { purpose = \"Looks around\" }\n"
        let configuration = try Self.load("[apps.a]\nbundle = \"notes\"\nsandbox = true\n", manifest).get()
        #expect(configuration.warnings.contains { $0.message.contains("torpord") }, "\(configuration.warnings)")
    }

    @Test(
        "A permission of its manifest that reaches what torpord keeps is left out, unless the machine's owner names it",
        arguments: [
            ("/var/lib/torpor/bundles", true), ("/var/lib/torpor/bundles/other:ro", true), ("/var/*/torpor/b*/x", true),
            ("/var/lib/torpor/apps/other", true), ("/var/lib/{name}/bundles", true), ("/var/lib", true), ("/", true),
            ("/etc/torpor/keys", true), ("/etc/torpor/keys/maker.pub:ro", true), ("/etc/torpor/torpor.toml:ro", true),
            ("/run/torpor/torpor.sock", true), ("/etc", true), ("/var/lib:ro", false), ("/etc/other", false),
            ("/var/run/torpor", true), ("/var/r?n/torpor/torpor.sock", true), ("/var/log/torpor", true),
            ("/var/log/torpor/web:ro", true), ("/var/log", true), ("/proc/self/root/etc/torpor", true),
            ("/proc/[1s]*/root/etc", true), ("/p[r]oc/1/root", true), ("/proc/thread-self/root:ro", true),
            ("/proc/{name}/cwd", true), ("/etc/torpo[r]/torpor.toml", true), ("/etc/[[:alpha:]]orpor/keys", true),
            ("/etc/[^x]orpor/keys:ro", true), ("/var/log:ro", false), ("/proc/1/status:ro", false),
            ("/srv", false), ("/var/lib/torpors/x", false), ("/etc/torpor/keyring:ro", false),
        ]
    )
    func ownPlaces(path: String, isWithheld: Bool) throws {
        let line = "\"files:\(path)\" = { purpose = \"Looks around\" }\n"
        func load(_ keys: String) throws -> TorporConfiguration {
            var system = machine([
                "/etc/torpor/torpor.toml": "[apps.a]\nbundle = \"notes\"\nsandbox = true\n" + keys
            ])
            system.bundle = { name, state in
                let file = "\(state)/bundles/\(name)/current/manifest.toml"
                let text = Array((Self.manifest + line).utf8)
                return .success(InstalledManifest(path: file, text: text, hasFirstLaunch: false))
            }
            return try ConfigurationLoader.load(path: "/etc/torpor/torpor.toml", environment: [:], system: system).get()
        }
        func names(_ configuration: TorporConfiguration) throws -> [String] {
            let app = try #require(configuration.apps.first)
            #expect(app.bundle?.version != nil, "\(configuration.warnings)")
            return app.sandbox.declarations.map(\.name)
        }
        let configuration = try load("")
        #expect(try names(configuration) == (isWithheld ? [] : ["files:" + path]) + ["network"])
        #expect(configuration.warnings.contains { $0.message.contains("is left out") } == isWithheld)
        // The owner's word, in the owner's own words.
        let owned = try load("permissions = { \"files:\(path)\" = { purpose = \"Backups\" } }\n")
        #expect(try names(owned).contains("files:" + path))
        // At launch, only what the owner does not name is compared with torpord's own files.
        let asked = configuration.apps.flatMap(\.sandbox.declarations).filter { $0.name.hasPrefix("files:") }
        #expect(!asked.contains { !$0.isOfBundle })
        let named = owned.apps.flatMap(\.sandbox.declarations).filter { $0.name.hasPrefix("files:") }
        #expect(named.count == 1 && named.allSatisfy { !$0.isOfBundle })
    }

    @Test("A manifest that cannot be read now is read again, also from the texts that a killed torpord left")
    func unread() throws {
        var system = machine(["torpor.toml": "[apps.a]\nbundle = \"notes\"\n[apps.b]\nexec = [\"/b\"]\n"])
        system.bundle = { _, _ in .failure(.passing("x cannot be read: Input/output error")) }
        let configuration = try ConfigurationLoader.load(path: "torpor.toml", environment: [:], system: system).get()
        #expect(configuration.warnings.contains { $0.message.contains("is tried again at a launch: x cannot") })
        #expect(configuration.apps.map(\.name) == ["a", "b"])
        #expect(configuration.apps[0].bundle?.isUnread == true && configuration.apps[0].bundle?.version == nil)
        #expect(configuration.files == ["torpor.toml"])
        let sources = try #require(ConfigurationSources(decoding: configuration.sources.encoded()))
        let again = try ConfigurationLoader.load(sources: sources, environment: [:], userID: 0).get()
        #expect(again.apps == configuration.apps && again.sources == configuration.sources)
        // In its place comes the manifest, once it can be read.
        var read = sources
        let index = try #require(read.files.firstIndex { $0.text.isEmpty })
        read.files[index].text = Array(Self.manifest.utf8)
        let known = try ConfigurationLoader.load(sources: read, environment: [:], userID: 0).get()
        #expect(known.apps[0].bundle?.version == "1.0" && known.apps[0].bundle?.isUnread == false)
    }

    @Test("The program is in the bundle, or one of the system's")
    func programs() throws {
        for (program, isAllowed) in [
            ("bin/a", true), ("python3", true), ("/usr/bin/python3", true), ("/bin/sh", true), ("/root/x", false),
            ("../1.1/bin/a", false), ("/usr/../root/x", false), ("bin/../../x", false), ("{settings.p}", false),
            ("./{settings.p}", false),
        ] {
            let manifest = Self.app("[settings.p]\ntype = \"string\"\ndefault = \"x\"\nwritable = true\n")
                .replacing("bin/a", with: program)
            let app = try #require(try Self.load("[apps.a]\nbundle = \"notes\"\n", manifest).get().apps.first)
            #expect((app.bundle?.version != nil) == isAllowed, "\(program)")
        }
        for address in ["127.0.0.1:8000", "127.1.2.3:80", "[::1]:80", "localhost:80"] {
            let manifest = Self.app("ready = { tcp = \"\(address)\" }")
            let app = try #require(try Self.load("[apps.a]\nbundle = \"notes\"\n", manifest).get().apps.first)
            #expect(app.bundle?.version != nil, "\(address)")
        }
    }

    @Test("The machine's defaults win over a manifest: it loosens no sandbox and gives itself no permission")
    func defaults() throws {
        let manifest = Self.app(
            """
            sandbox = true
            watchdog = "1h"
            environment = { A = "bundle" }
            title = "Notes"
            [permissions]
            network = { purpose = "p", default = "allow" }
            camera = { purpose = "p", default = "deny" }
            "files:/srv" = { purpose = "p", default = "allow" }
            """
        )
        let toml = """
            [defaults]
            sandbox = "agent"
            watchdog = "10s"
            environment = { A = "machine" }
            [defaults.permissions]
            network = { purpose = "own", default = "deny" }
            [apps.a]
            bundle = "notes"
            [apps.b]
            bundle = "notes"
            sandbox = true
            [apps.b.permissions]
            network = { purpose = "own", default = "allow" }
            """
        let apps = try Self.load(toml, manifest).get().apps
        #expect(apps.map(\.sandbox.mode) == [.agent, .permissions])
        func initial(_ app: AppSpecification) -> [String: PermissionDeclaration.Default] {
            Dictionary(uniqueKeysWithValues: app.sandbox.declarations.map { ($0.name, $0.initial) })
        }
        #expect(initial(apps[0]) == ["network": .deny, "camera": .deny, "files:/srv": .ask])
        #expect(initial(apps[1]) == ["network": .allow, "camera": .deny, "files:/srv": .ask])
        #expect(apps[0].rules.watchdog == .seconds(10))
        #expect(apps[0].environment["A"] == "machine")
        #expect(apps[0].bundle?.variables.isEmpty == true)
        #expect(apps[0].presentation.title == "Notes")
        // What the machine says nothing of.
        let other = try #require(try Self.load("[apps.a]\nbundle = \"notes\"\n", manifest).get().apps.first)
        #expect(other.sandbox.mode == .permissions && other.rules.watchdog == .seconds(3600))
    }

    @Test(
        "What the owner's table and a manifest say together is the manifest's fault, and no error of the configuration"
    )
    func together() throws {
        let toml = "[apps.a]\nbundle = \"notes\"\nlaunch = \"background\"\n"
        let app = try #require(try Self.load(toml, Self.app("exits_on_suspend = true")).get().apps.first)
        #expect(app.bundle?.version == nil)
        // A key of the owner that is wrong stays an error, with a bundle and without.
        for manifest in [Self.manifest, nil] {
            #expect(throws: DiagnosticList.self) {
                try Self.load("[apps.a]\nbundle = \"notes\"\nnicee = 1\n", manifest).get()
            }
        }
        // Settings that only the manifest declares may be used; without the bundle that is no error.
        let filled = "[apps.a]\nbundle = \"notes\"\nready = { tcp = \"127.0.0.1:{settings.port}\" }\n"
        let settings = Self.app("[settings.port]\ntype = \"integer\"\ndefault = 8000\n")
        #expect(try Self.load(filled, settings).get().apps.first?.bundle?.version == "1.0")
        #expect(try Self.load(filled, nil).get().apps.first?.bundle?.version == nil)
    }

    @Test("A manifest's version is that of its folder, and there are not too many files")
    func versions() throws {
        var system = machine(["torpor.toml": "[apps.a]\nbundle = \"notes\"\n"])
        system.bundle = { _, _ in
            var manifest = InstalledManifest(path: "m", text: Array(Self.manifest.utf8), hasFirstLaunch: false)
            manifest.version = "2.0"
            return .success(manifest)
        }
        let configuration = try ConfigurationLoader.load(path: "torpor.toml", environment: [:], system: system).get()
        #expect(configuration.apps[0].bundle?.version == nil)
        #expect(configuration.warnings.first?.message.contains("version \"1.0\"") ?? false)
        // As many as can be read again from the record of the configuration.
        let many = (0...FileReader.countLimit).map { "[apps.a\($0)]\nbundle = \"n\($0)\"\n" }.joined()
        system = machine(["torpor.toml": many])
        system.bundle = { name, state in
            let path = state + InstalledManifest.end(of: name)
            let text = Array(Self.app("").replacing("notes", with: name).utf8)
            return .success(InstalledManifest(path: path, text: text, hasFirstLaunch: false))
        }
        let large = try ConfigurationLoader.load(path: "torpor.toml", environment: [:], system: system).get()
        #expect(large.sources.files.count == FileReader.countLimit)
        #expect(ConfigurationSources(decoding: large.sources.encoded()) != nil)
        #expect(large.warnings.count == 2)
    }

    @Test("It is one app's, and has a name")
    func names() {
        #expect(throws: DiagnosticList.self) { try Self.load("[defaults]\nbundle = \"notes\"\n", nil).get() }
        #expect(throws: DiagnosticList.self) { try Self.load("[apps.a]\nbundle = \"../x\"\n", nil).get() }
    }

    @Test("Of an installed manifest only the start is read, without the list of files")
    func installed() throws {
        let state = NSTemporaryDirectory() + "/torpor-manifest-\(UUID().uuidString)"
        defer { try? File.removeTree(state) }
        let folder = state + "/bundles/notes"
        func read() -> Result<InstalledManifest, ConfigurationSystem.ReadFailure> {
            InstalledManifest.read("notes", in: state)
        }
        #expect(read().failure == .missing)
        try File.makeDirectories(folder + "/1.0")
        try File.link(folder + "/current", to: "1.0")
        #expect(read().failure == .missing)
        let text = "name = \"a\"\n"
        try File.write(folder + "/1.0/manifest.toml", text + "[files]\n" + String(repeating: "x", count: 1 << 20))
        let manifest = try read().get()
        #expect(manifest.text == Array(text.utf8) && !manifest.hasFirstLaunch && manifest.version == "1.0")
        try File.makeDirectories(folder + "/1.0/first-launch")
        let with = try read().get()
        #expect(with.hasFirstLaunch)
        let kept = InstalledManifest(path: "p", kept: with.kept)
        #expect(kept.text == with.text && kept.hasFirstLaunch)
        try File.write(folder + "/1.0/manifest.toml", String(repeating: "#\n", count: 1 << 18))
        #expect(read().failure.map { "\($0)" }?.contains("no section [files]") ?? false)
        // A link that leads out of the folder is not followed.
        try File.remove(folder + "/current")
        try File.link(folder + "/current", to: "../../x")
        #expect(read().failure.map { "\($0)" }?.contains("leads elsewhere") ?? false)
    }
}

extension Result {
    fileprivate var failure: Failure? { if case .failure(let failure) = self { failure } else { nil } }
}
