// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import Configuration

@Suite("The texts of a configuration stand in for the disk")
struct SourcesTests {
    /// Encoded, decoded and read again, without a disk.
    private func again(
        _ configuration: TorporConfiguration,
        environment: [String: String] = [:],
        userID: UInt32 = 0
    ) throws -> TorporConfiguration {
        let sources = try #require(ConfigurationSources(decoding: configuration.sources.encoded()))
        return try ConfigurationLoader.load(sources: sources, environment: environment, userID: userID).get()
    }

    @Test("every example comes back as it was")
    func examples() throws {
        var system = ConfigurationSystem.live
        system.userID = { _ in 1 }
        system.groupID = { _ in 1 }
        let environment = ["XDG_RUNTIME_DIR": "/run/user/7", "HOME": "/home/x"]
        for example in SchemaTests.examples() {
            for userID in [UInt32(0), 1] {
                let first = ConfigurationLoader.load(
                    path: example.path,
                    environment: environment,
                    userID: userID,
                    system: system
                )
                // Some name accounts that only root can use.
                if userID != 0, case .failure = first { continue }
                let configuration = try first.get()
                let second = try again(configuration, environment: environment, userID: userID)
                #expect(second == configuration, "\(example.path)")
            }
        }
    }

    private static let files = [
        "torpor.toml": """
        include = ["conf.d/*.toml", "*/web.toml", "/srv/x.toml"]
        [supervisor]
        readers = ["video"]
        """,
        "conf.d/a.toml": """
        include = ["../other/deep.toml"]
        [apps.a]
        exec = ["a"]
        user = "web"
        directory = "d"
        """,
        "conf.d/b.toml": "[apps.b]\nexec = [\"b\"]\nlog_max_files = 2\nanswers = true",
        "other/deep.toml": "[apps.deep]\nexec = [\"deep\"]\nstdin = \"./in\"",
        "site/web.toml": "[apps.web]\nexec = [\"web\"]\ninstances = 3",
        "/srv/x.toml": "[apps.x]\nexec = [\"x\"]\ngroup = \"web\"",
    ]

    @Test("includes, globs, relative paths, accounts and warnings are as they were")
    func includes() throws {
        let configuration = try load(Self.files).get()
        #expect(
            configuration.files == [
                "torpor.toml", "conf.d/a.toml", "other/deep.toml", "conf.d/b.toml", "site/web.toml", "/srv/x.toml",
            ]
        )
        #expect(configuration.apps.count == 7)
        #expect(configuration.warnings.count == 1)
        #expect(try again(configuration) == configuration)
    }

    @Test("files that changed, went or came on the disk make no difference")
    func disk() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "torpor-sources-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.createDirectory(
            at: folder.appending(path: "conf.d"),
            withIntermediateDirectories: true
        )
        func write(_ name: String, _ text: String) throws {
            try text.write(to: folder.appending(path: name), atomically: true, encoding: .utf8)
        }
        try write("torpor.toml", "include = [\"conf.d/*.toml\"]\n[apps.top]\nexec = [\"/bin/true\"]")
        try write("conf.d/a.toml", "[apps.a]\nexec = [\"/bin/a\"]")
        try write("conf.d/b.toml", "[apps.b]\nexec = [\"/bin/b\"]")
        let path = folder.appending(path: "torpor.toml").path
        func read() -> Result<TorporConfiguration, DiagnosticList> {
            ConfigurationLoader.load(path: path, environment: ["HOME": "/h"])
        }
        let configuration = try read().get()
        let userID = ConfigurationSystem.live.effectiveUserID

        try write("conf.d/a.toml", "this is no TOML")
        #expect(throws: DiagnosticList.self) { try read().get() }
        #expect(try again(configuration, environment: ["HOME": "/h"], userID: userID) == configuration)
        try write("conf.d/a.toml", "[apps.z]\nexec = [\"/bin/z\"]")
        try write("conf.d/c.toml", "[apps.c]\nexec = [\"/bin/c\"]")
        #expect(try read().get() != configuration)
        #expect(try again(configuration, environment: ["HOME": "/h"], userID: userID) == configuration)
        try FileManager.default.removeItem(at: folder)
        #expect(try again(configuration, environment: ["HOME": "/h"], userID: userID) == configuration)
    }

    @Test("an account that is gone since is for the launch to say")
    func accounts() throws {
        let configuration = try load(Self.files).get()
        var system = machine(Self.files)
        system.userID = { _ in nil }
        let read = try ConfigurationLoader.load(path: "torpor.toml", environment: [:], system: system).get()
        #expect(read.warnings.contains { $0.isAboutMissingAccount })
        #expect(try again(configuration).apps.first { $0.name == "a" }?.user == "web")
    }

    @Test("bytes that are torn, damaged or of another version are refused")
    func damage() throws {
        let bytes = try load(Self.files).get().sources.encoded()
        #expect(ConfigurationSources(decoding: bytes) != nil)
        for length in 0..<bytes.count { #expect(ConfigurationSources(decoding: Array(bytes[..<length])) == nil) }
        #expect(ConfigurationSources(decoding: bytes + [0]) == nil)
        for index in bytes.indices {
            var other = bytes
            other[index] ^= 0x40
            #expect(ConfigurationSources(decoding: other) == nil, "byte \(index)")
        }
        #expect(ConfigurationSources(decoding: ConfigurationSources(workingDirectory: "/", files: []).encoded()) == nil)
    }

    @Test("a glob whose last part is plain finds the folders that hold it")
    func plainAfterPattern() throws {
        let configuration = try load([
            "torpor.toml": "include = [\"*/app.toml\"]",
            "a/app.toml": "[apps.a]\nexec = [\"a\"]",
            "b/other.toml": "wrong",
        ]).get()
        #expect(configuration.files == ["torpor.toml", "a/app.toml"])
    }
}
