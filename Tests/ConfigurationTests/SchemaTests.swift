// SPDX-License-Identifier: Apache-2.0

import Foundation
import Lifecycle
import Testing

@testable import Configuration

@Suite("The schema and the examples")
struct SchemaTests {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "config")

    static func examples() -> [URL] {
        let paths = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
        return (paths?.compactMap { $0 as? URL } ?? []).filter { $0.pathExtension == "toml" }
    }

    static func schema() throws -> [String: Any] {
        let data = try Data(contentsOf: folder.appending(path: "torpor.schema.json"))
        return try #require(JSONSerialization.jsonObject(with: data) as? [String: Any])
    }

    /// The names of the properties at a path of keys within the schema.
    static func names(_ path: [String]) throws -> [String] {
        var here = try schema()
        for key in path { here = try #require(here[key] as? [String: Any], "\(path)") }
        return try #require(here["properties"] as? [String: Any], "\(path)").keys.sorted()
    }

    @Test("the schema has exactly the loader's keys")
    func schemaHasTheLoadersKeys() throws {
        let app = ["$defs", "app"]
        #expect(try Self.names([]) == FileReader.keys.sorted())
        #expect(try Self.names(["properties", "supervisor"]) == SupervisorKeys.all.map(\.name).sorted())
        #expect(
            try Self.names(["properties", "supervisor", "properties", "memory"])
                == MemorySpecification.keys.map(\.name).sorted()
        )
        #expect(try Self.names(["$defs", "policy"]) == SupervisorKeys.policy.map(\.name).sorted())
        #expect(try Self.names(app) == AppKeys.all.map(\.name).sorted())
        #expect(try Self.names(app + ["properties", "restart_backoff"]) == TableReader.backoff.map(\.name).sorted())
        #expect(try Self.names(app + ["properties", "transfers"]) == TransferReader.app.map(\.name).sorted())
        #expect(
            try Self.names(["properties", "supervisor", "properties", "transfers"])
                == TransferReader.supervisor.map(\.name).sorted()
        )
        #expect(
            try Self.names(["properties", "supervisor", "properties", "protected"])
                == ProtectionReader.supervisor.map(\.name).sorted()
        )
        #expect(
            try Self.names(["properties", "supervisor", "properties", "alerts"])
                == AlertReader.keys.map(\.name).sorted()
        )
        #expect(try Self.names(app + ["properties", "container"]) == ContainerReader.keys.map(\.name).sorted())
        #expect(try Self.names(app + ["properties", "wake_storm"]) == WakeStormReader.keys.map(\.name).sorted())
        #expect(try Self.names(["$defs", "topic"]) == TopicRule.keys.map(\.name).sorted())
        #expect(try Self.names(app + ["properties", "limits"]) == TableReader.limitNames.map(\.name).sorted())
        #expect(try Self.names(app + ["properties", "resources"]) == TableReader.states.map(\.rawValue).sorted())
        #expect(
            try Self.names(app + ["properties", "signals"])
                == Message.allCases.filter { !$0.isAboutScenes }.map(\.rawValue).sorted()
        )
        #expect(try Self.names(["$defs", "profile"]) == TableReader.profile.map(\.name).sorted())
        #expect(try Self.names(["$defs", "probe"]) == ReadyReader.keys.sorted())
        #expect(try Self.names(["$defs", "timer"]) == TimerReader.keys.map(\.name).sorted())
        #expect(try Self.names(["$defs", "socket"]) == SocketReader.names)
        #expect(try Self.names(["$defs", "hook"]) == TableReader.hookKeys.map(\.name).sorted())
        #expect(try Self.names(["$defs", "failureCommand"]) == TableReader.failureKeys.map(\.name).sorted())
    }

    @Test("no key is named twice")
    func keysAreUnique() {
        #expect(Set(AppKeys.all.map(\.name)).count == AppKeys.all.count)
    }

    @Test("every example is loaded without a complaint")
    func examplesLoad() {
        let examples = Self.examples()
        #expect(examples.count >= 5)
        for example in examples {
            var system = ConfigurationSystem.live
            // Whether this machine has their users and groups is not the question.
            system.userID = { _ in 1 }
            system.groupID = { _ in 1 }
            let result = ConfigurationLoader.load(path: example.path, environment: [:], userID: 0, system: system)
            #expect(complaints(result) == [])
        }
    }

    @Test("the schema accepts every example and refuses what the loader refuses")
    func schemaAgreesWithExamples() throws {
        let script = """
            import glob, json, sys
            try:
                import tomllib
                from jsonschema import Draft202012Validator
            except ImportError as error:
                print("skip: python3 has no module", error.name)
                sys.exit(0)
            folder = sys.argv[1]
            schema = json.load(open(folder + "/torpor.schema.json"))
            Draft202012Validator.check_schema(schema)
            validator = Draft202012Validator(schema)
            for file in glob.glob(folder + "/**/*.toml", recursive=True):
                for error in validator.iter_errors(tomllib.load(open(file, "rb"))):
                    print(file, list(error.path), error.message)
            for text in ["restrat = 1", "grace = 5", "grace = 'soon'", "nice = 20", "launch = 'x'", "exec = []",
                         "ready = { tcp = 'a:1', file = 'b' }", "signals.x = 'SIGHUP'", "resources.active.cpu_weight = 0",
                         "memory_limit = 64", "umask = '999'", "before_start = [{ deadline = '1s' }]",
                         "on_failure = [{ command = ['/bin/a'], deadline = 'none' }]",
                         "sockets = [{ name = 'x' }]", "sockets = [{ stream = '1', datagram = '1' }]",
                         "sockets = [{ stream = '1', wake = true }]"]:
                if validator.is_valid({"apps": {"web": tomllib.loads(text)}}):
                    print("accepted:", text)
            for text in ["settling = 1", "warning_available = 0.1", "warning_available = '51%'", "stall = '1s'"]:
                if validator.is_valid({"supervisor": {"memory": tomllib.loads(text)}, "apps": {}}):
                    print("accepted:", text)
            print("done")
            """
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["python3", "-c", script, Self.folder.path]
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        let text = String(decoding: data, as: UTF8.self)
        if text.hasPrefix("skip:") || process.terminationStatus == 127 {
            print("the examples are not checked against the schema: \(text) (apt install python3-jsonschema)")
            return
        }
        #expect(text == "done\n")
    }
}
