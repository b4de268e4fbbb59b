// SPDX-License-Identifier: Apache-2.0

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
        nice = 5
        [permissions]
        network = ["connect"]

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
        let toml = "[apps.a]\nbundle = \"notes\"\nnice = 7\nenvironment = { A = \"machine\" }\n"
        let configuration = try Self.load(toml, Self.manifest, hasFirstLaunch: true).get()
        #expect(configuration.warnings.isEmpty)
        let app = try #require(configuration.apps.first)
        let place = "/var/lib/torpor/bundles/notes/1.0"
        #expect(app.bundle == BundleReference(name: "notes", folder: "/var/lib/torpor/bundles/notes", version: "1.0"))
        #expect(app.bundle?.path == place)
        #expect(app.exec == [place + "/bin/notes", "data"])
        #expect(app.directory == place)
        #expect(app.environment == ["A": "machine", "B": "bundle"])
        #expect(app.nice == 7)
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

    @Test(
        "A bundle that is missing or not valid is a warning, and its app has no version",
        arguments: [
            (nil, "there is no bundle"), ("name = \"notes\"", "not valid"), ("[", "not valid"),
            (manifest.replacing("nice", with: "nicer"), "no such key"),
            (manifest.replacing("nice = 5", with: "user = \"root\""), "machine's owner"),
            (manifest.replacing("nice = 5", with: "before_start = []"), "machine's owner"),
            (manifest.replacing("1.0", with: "../x"), "version"),
        ]
    )
    func faults(manifest: String?, warning: String) throws {
        let configuration = try Self.load("[apps.a]\nbundle = \"notes\"\n[apps.b]\nexec = [\"b\"]\n", manifest).get()
        #expect(configuration.apps.map(\.name) == ["a", "b"])
        #expect(configuration.apps[0].bundle?.version == nil)
        #expect(configuration.apps[0].exec.isEmpty)
        #expect(configuration.warnings.count == 1)
        #expect(configuration.warnings.first?.message.contains(warning) ?? false, "\(configuration.warnings)")
    }

    @Test("It is one app's, and has a name")
    func names() {
        #expect(throws: DiagnosticList.self) { try Self.load("[defaults]\nbundle = \"notes\"\n", nil).get() }
        #expect(throws: DiagnosticList.self) { try Self.load("[apps.a]\nbundle = \"../x\"\n", nil).get() }
    }

    @Test("Of a whole manifest the list of files is left out")
    func installed() {
        let text = "name = \"a\"\n"
        let files = "[files]\n\"bin/a\" = {}\n"
        let without = InstalledManifest(path: "p", manifest: Array((text + files).utf8))
        #expect(without.text == Array(text.utf8) && !without.hasFirstLaunch)
        let with = InstalledManifest(path: "p", manifest: Array((text + files + "\"first-launch/b\" = {}\n").utf8))
        #expect(with.text == Array(text.utf8) && with.hasFirstLaunch)
        let kept = InstalledManifest(path: "p", kept: with.kept)
        #expect(kept.text == with.text && kept.hasFirstLaunch)
    }
}
