// SPDX-License-Identifier: Apache-2.0

import Configuration
import Importing
import Lifecycle
import Linux
import Testing
import WireText

@testable import Supervisor

/// Each folder of `ComposeServices` has a compose file and, in `expected`, what a reader of the compose specification
/// and of podman-run(1) expects of its services, written by hand:
///
///     [SERVICE]          an app of the import, such as `worker@2` for an instance
///     --OPTION=VALUE     an option of podman, in any order; there are no others
///     image NAME         the image
///     word WORD          the words of the command, in order; `\n` is a line feed
///     variable NAME=X    a variable of the container; there are no others
///     app KEY=VALUE      what torpord does itself; there are no others
///     says TEXT          a part of a remark of the import
@Suite("Compose services become the podman command lines that a reader expects")
struct ComposeServiceTests {
    private static let folder = "Tests/ImportingTests/ComposeServices"
    static let cases = ((try? File.list(folder)) ?? []).sorted()

    struct Expected {
        var name = ""
        var image = ""
        var options: [String] = []
        var words: [String] = []
        var variables: [String] = []
        var facts: [String] = []
    }

    @Test("There are twenty of them")
    func count() { #expect(Self.cases.count == 20) }

    @Test("The command line is as expected", arguments: cases)
    func service(_ name: String) throws {
        let files = try Self.files(Self.folder + "/" + name)
        let (services, says) = Self.expected(try #require(files["expected"]))
        var tree = tree(files, variables: ["HOME": "/home/me"], hasPrograms: false)
        let read = tree.read
        tree.read = { $0 == "/srv/app/expected" ? nil : read($0) }
        let found = try Imported("compose.yaml", in: tree)
        #expect(!services.isEmpty)
        for service in services {
            let app = try found[service.name]
            let container = try #require(app.container)
            #expect(container.image == service.image, "\(service.name)")
            #expect(try Self.options(app, container) == service.options.sorted(), "\(service.name)")
            #expect(app.exec == service.words, "\(service.name)")
            #expect(try Self.variables(app, tree) == service.variables.sorted(), "\(service.name)")
            #expect(Self.facts(app, container) == service.facts.sorted(), "\(service.name)")
        }
        let remarks = found.result.remarks.map(\.text) + found.result.programs.flatMap { $0.remarks.map(\.text) }
        for text in says { #expect(remarks.contains { $0.contains(text) }, "\(text): \(remarks)") }
    }

    // MARK: What is expected

    private static func files(_ folder: String) throws -> [String: String] {
        var files: [String: String] = [:]
        for name in try File.list(folder) {
            let path = folder + "/" + name
            if let inner = try? Self.files(path) {
                for (rest, text) in inner { files[name + "/" + rest] = text }
            } else {
                files[name] = try File.readString(path)
            }
        }
        return files
    }

    private static func expected(_ text: String) -> (services: [Expected], says: [String]) {
        var services: [Expected] = []
        var says: [String] = []
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            if line.hasPrefix("[") {
                services.append(Expected(name: String(line.dropFirst().dropLast())))
                continue
            }
            let last = services.count - 1
            let parts = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let value = parts.count > 1 ? parts[1].replacing("\\n", with: "\n") : ""
            switch parts[0] {
            case "image": services[last].image = value
            case "word": services[last].words.append(value)
            case "variable": services[last].variables.append(value)
            case "app": services[last].facts.append(value)
            case "says": says.append(value)
            default: services[last].options.append(String(line))
            }
        }
        return (services, says)
    }

    // MARK: What is found

    /// podman's options without those that every app's container has.
    private static func options(
        _ app: AppSpecification,
        _ container: ContainerSpecification
    ) throws -> [String] {
        let name = try #require(app.containerName)
        var run = PodmanRun(container, name: name, app: app.name, template: app.template, owner: "o")
        run.addLimits(app.processLimits)
        let all = run.arguments(app.exec)
        #expect(all.suffix(app.exec.count + 1) == [container.image] + app.exec)
        // torpord passes variables of its own, and names the container and its host by the app.
        let usual: Set = [
            "--detach", "--rm", "--cgroups=disabled", "--sdnotify=ignore", "--log-driver=passthrough",
            "--label=io.torpor.app=o", "--name=torpor-" + app.name.replacing("@", with: "."),
            "--hostname=" + app.name.replacing("@", with: "-"),
        ]
        return all.dropLast(app.exec.count + 1)
            .filter { !usual.contains($0) && !$0.hasPrefix("--env=") }.sorted()
    }

    private static func variables(_ app: AppSpecification, _ tree: SourceTree) throws -> [String] {
        let files = try EnvironmentFile.load(app.environmentFiles) { path in
            guard let bytes = tree.read(path) else { return .failure(.missing) }
            return .success(bytes)
        }
        return files.merging(app.environment) { $1 }.filter { $0.key != "TORPOR_INSTANCE" }
            .map { "\($0.key)=\($0.value)" }.sorted()
    }

    private static func facts(_ app: AppSpecification, _ container: ContainerSpecification) -> [String] {
        var facts = ["restart=\(app.rules.restart.rawValue)"]
        func add(_ key: String, _ value: String?) { if let value { facts.append("\(key)=\(value)") } }
        add("requires", app.requires.isEmpty ? nil : app.requires.sorted().joined(separator: ","))
        add("after", app.after.isEmpty ? nil : app.after.sorted().joined(separator: ","))
        add("grace", app.rules.grace == .seconds(10) ? nil : app.rules.grace.map { Quantity.text($0) })
        add("signal", app.stopSignal == 15 ? nil : "\(app.stopSignal)")
        add("launch", app.launch == .foreground ? nil : app.launch.rawValue)
        add("tags", app.tags.isEmpty ? nil : app.tags.joined(separator: ","))
        add("memory", app.memoryLimit.map { "\($0)" })
        add("tasks", app.taskLimit.map { "\($0)" })
        add("cpu", app.resources[.active]?.cpuMaximum.map { "\($0)" })
        add("cpu-weight", app.resources[.active]?.cpuWeight.map { "\($0)" })
        add("memory-low", app.resources[.active]?.memoryLow.map { "\($0)" })
        add("oom", app.resources[.active]?.oomScoreAdjust.map { "\($0)" })
        add("pull", container.pull == .missing ? nil : container.pull.rawValue)
        add("oneshot", app.rules.isOneshot ? "true" : nil)
        if case .probe(let probe) = app.ready { add("ready", probe.text) }
        return facts.sorted()
    }
}
