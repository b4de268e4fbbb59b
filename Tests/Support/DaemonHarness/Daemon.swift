// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
package import Testing
package import TorporAPI
package import Varlink

/// A torpord of its own, with its keeper, in a temporary folder of its own.
///
/// Every process that it starts carries `TPTEST=<folder>` in its environment: so what is left over is found in /proc,
/// whatever the daemon believes.
package final class Daemon {
    /// How long any wait may last before it is a failure.
    package static let bound = Duration.seconds(60)

    package let directory: String
    package var runtime: String { directory + "/r" }
    package var socket: String { runtime + "/io.torpor" }
    /// What is started: the keeper.
    package private(set) var pid: Int32
    private let command: [String]
    private let environment: [String: String]
    private var earlier: [Int32] = []
    private var exit: ExitStatus?

    /// How a process of ours ended.
    package enum ExitStatus: Hashable {
        case exited(Int32)
        case signaled(Int32)
    }

    /// Writes the configuration and starts; `@D` in it becomes the folder.
    ///
    /// - Parameter nested: what is started is not the keeper but a process that starts it and reaps orphans, at once and
    ///   on every machine: for tests that kill the keeper.
    /// - Parameter wrapper: what torpord's program and arguments are given to, so that it starts them; `@D` as above.
    package init(
        _ toml: String,
        files: [String: String] = [:],
        environment: [String: String] = [:],
        program: String = Built.path("torpord"),
        nested: Bool = false,
        wrapper: [String] = []
    ) throws {
        directory = try Daemon.makeFolder()
        try Daemon.write(files, in: directory)
        let path = try Daemon.writeConfiguration(toml, in: directory)
        let around = wrapper.map { [directory] in $0.replacingOccurrences(of: "@D", with: directory) }
        // Where torpor-test-app writes down what it did: the first one does so before it is ready.
        if nested { try File.makeDirectories(directory + "/t") }
        command = (nested ? [Built.path("torpor-test-app"), "--nest"] : []) + around + [program, "--config", path]
        self.environment = ["TPTEST": directory].merging(environment) { $1 }
        pid = try Spawn.start(command, environment: self.environment, output: directory + "/torpord.log")
    }

    /// Starts one more in the same folders, as an init system does when the one before is gone.
    package func startAgain() throws {
        if reap() == nil { earlier.append(pid) }
        exit = nil
        pid = try Spawn.start(command, environment: environment, output: directory + "/torpord.log")
    }

    package static func makeFolder() throws -> String {
        var template = Array((NSTemporaryDirectory() + "tp-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw Trouble("mkdtemp: \(errno)") }
        let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        chmod(folder, 0o755)
        return folder
    }

    /// Each is there whole or not at all: an app may wait for it.
    package static func write(_ files: [String: String], in directory: String) throws {
        for (name, text) in files.merging(["tp.py": Scripts.helper], uniquingKeysWith: { one, _ in one }) {
            try Spawn.lock.withLock {
                try File.replace(
                    directory + "/" + name,
                    Array(text.replacingOccurrences(of: "@D", with: directory).utf8),
                    mode: 0o755
                )
            }
            chmod(directory + "/" + name, 0o755)
        }
    }

    package static func writeConfiguration(_ toml: String, in directory: String) throws -> String {
        let path = directory + "/torpor.toml"
        let head = """
            [supervisor]
            runtime_directory = "\(directory)/r"
            state_directory = "\(directory)/s"
            log_directory = "\(directory)/l"
            log_level = "debug"

            """
        // At once, since torpord may be reading it.
        try File.replace(path, Array((head + toml.replacingOccurrences(of: "@D", with: directory)).utf8))
        return path
    }

    deinit { cleanUp() }

    /// Ends whatever is left, without asking.
    private func cleanUp() {
        for _ in 0..<500 {
            let left = Truth.processes(marked: directory)
            for pid in left { kill(pid, SIGKILL) }
            if left.isEmpty, reap() != nil { break }
            usleep(10_000)
        }
        // A supervisor that was killed with all it had leaves an empty one.
        for path in Truth.cgroups(of: runtime) { try? Cgroup.removeTree(path) }
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// The exit status once it has one.
    package func reap() -> ExitStatus? {
        earlier.removeAll { waitpid($0, nil, WNOHANG) == $0 }
        if let exit { return exit }
        var status: Int32 = 0
        guard waitpid(pid, &status, WNOHANG) == pid else { return nil }
        exit = status & 0x7f == 0 ? .exited((status >> 8) & 0xff) : .signaled(status & 0x7f)
        return exit
    }

    /// What the daemon wrote on standard error.
    package var log: String { (try? String(contentsOfFile: directory + "/torpord.log", encoding: .utf8)) ?? "" }

    // MARK: Calls

    package func connect() throws -> VarlinkClient { try VarlinkClient(path: socket) }

    @discardableResult
    package func call(_ request: ManagerRequest) throws -> JSON {
        try connect().call(request.call, timeoutMilliseconds: 20_000)
    }

    /// Carries out a verb for one app and gives its result.
    package func verb(
        _ verb: Verb,
        _ app: String,
        _ change: (inout VerbRequest) -> Void = { _ in }
    ) throws -> VerbResult {
        let results = try verbs(verb, [app], change)
        // A stop also answers for those that require the app.
        guard let result = results.first(where: { $0.app == app }), results.count == 1 || verb == .stop else {
            throw Trouble("\(results.count) results for \(verb) \(app)")
        }
        return result
    }

    package func verbs(
        _ verb: Verb,
        _ apps: [String],
        _ change: (inout VerbRequest) -> Void = { _ in }
    ) throws -> [VerbResult] {
        var request = VerbRequest(verb: verb, apps: apps)
        change(&request)
        let reply = try call(.verb(request))
        return try (reply["results"]?.arrayValue ?? []).map { try VerbResult(json: $0) }
    }

    /// Carries out a verb that must succeed.
    @discardableResult
    package func done(
        _ verb: Verb,
        _ app: String,
        at location: SourceLocation = #_sourceLocation,
        _ change: (inout VerbRequest) -> Void = { _ in }
    ) throws -> VerbResult {
        let result = try self.verb(verb, app, change)
        #expect(result.ok, "\(verb) \(app): \(result.message ?? "")", sourceLocation: location)
        return result
    }

    package func list() throws -> [AppSummary] {
        try (call(.list)["apps"]?.arrayValue ?? []).map { try AppSummary(json: $0) }
    }

    package func summary(_ app: String) throws -> AppSummary {
        guard let found = try list().first(where: { $0.name == app }) else { throw Trouble("no \(app) in the list") }
        return found
    }

    package func status(_ app: String) throws -> AppStatus {
        try AppStatus(json: call(.status(app: app))["status"] ?? .null)
    }

    package func reports(_ app: String) throws -> [Report] {
        try (call(.reports(app: app))["reports"]?.arrayValue ?? []).map { try Report(json: $0) }
    }

    package func events(_ app: String? = nil) throws -> [EventRecord] {
        var request = EventsRequest()
        request.app = app
        return try (call(.events(request))["events"]?.arrayValue ?? []).map { try EventRecord(json: $0) }
    }

    /// The states that an app entered, in order.
    package func walk(_ app: String) throws -> [String] {
        try events(app).filter { $0.kind == "state" }.compactMap(\.to)
    }

    // MARK: Waiting

    /// Looks until it is so, or fails with the daemon's log.
    package func eventually(
        _ what: String,
        within bound: Duration = Daemon.bound,
        at location: SourceLocation = #_sourceLocation,
        _ isSo: () throws -> Bool
    ) throws {
        let began = Clock.monotonic()
        while try !isSo() {
            let waited = Clock.monotonic() - began
            guard waited < bound else {
                let events = (try? self.events().map { "  \($0.app ?? "-") \($0.kind) \($0.text)" }) ?? []
                let all = events.suffix(40).joined(separator: "\n")
                Issue.record(
                    "in \(bound) it did not come to be that \(what)\n\(all)\n\(log.suffix(2000))",
                    sourceLocation: location
                )
                throw Trouble("waited in vain until \(what)")
            }
            // Looking costs the daemon as much as the test: the longer it takes, the more seldom.
            ThisProcess.sleep(min(max(waited / 10, .milliseconds(2)), .milliseconds(25)))
        }
    }

    /// Waits until the daemon answers.
    package func waitUntilItAnswers(at location: SourceLocation = #_sourceLocation) throws {
        try eventually("torpord answers", at: location) {
            if let exit = reap() { throw Trouble("torpord ended with \(exit): \(log)") }
            return (try? list()) != nil
        }
    }

    package func waitFor(_ app: String, _ state: String, at location: SourceLocation = #_sourceLocation) throws {
        try eventually("\(app) is \(state)", at: location) {
            let summary = try summary(app)
            return summary.state == state && summary.transition == nil
        }
    }

    /// Waits for an event of an app whose text has this in it.
    @discardableResult
    package func waitForEvent(
        _ app: String,
        _ text: String,
        at location: SourceLocation = #_sourceLocation
    ) throws -> EventRecord {
        var found: EventRecord?
        try eventually("\(app) \(text)", at: location) {
            found = try events(app).first { $0.text.contains(text) || $0.reason == text }
            return found != nil
        }
        guard let found else { throw Trouble("no event \(text)") }
        return found
    }

    /// What an app's program wrote with `tp.record`.
    package func records(_ app: String) -> [String] {
        let text = (try? String(contentsOfFile: directory + "/rec." + app, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map(String.init)
    }

    package func waitForRecord(_ app: String, _ line: String, at location: SourceLocation = #_sourceLocation) throws {
        try eventually("\(app) recorded \(line), not only \(records(app))", at: location) {
            records(app).contains(line)
        }
    }

    // MARK: Truth

    /// The living processes of an app, by the environment that they were started with: parents before children.
    package func processes(of app: String) -> [Int32] {
        Truth.parentsFirst(
            Truth.processes(marked: directory).filter { (try? ProcFS.environment($0, "TORPOR_APP")) == app }
        )
    }

    /// The pid of torpord below the keeper.
    package func torpord() throws -> Int32 {
        guard
            let child = try ProcFS.children(pid).first(where: {
                (try? ProcFS.cmdline($0).first)?.contains("torpord") ?? false
            })
        else { throw Trouble("no torpord below the keeper") }
        return child
    }

    /// SIGTERM, and nothing may be left.
    package func stop(expecting status: ExitStatus = .exited(0), at location: SourceLocation = #_sourceLocation) throws
    {
        if reap() == nil { kill(pid, SIGTERM) }
        try waitForEnd(at: location)
        #expect(exit == status, "\(log.suffix(2000))", sourceLocation: location)
        expectNothingLeft(at: location)
    }

    package func waitForEnd(at location: SourceLocation = #_sourceLocation) throws {
        try eventually("the daemon ends", at: location) { reap() != nil }
    }

    package func expectNothingLeft(at location: SourceLocation) {
        // What was killed may take a moment to be reaped.
        let end = Clock.monotonic() + .seconds(30)
        while !Truth.processes(marked: directory).isEmpty, Clock.monotonic() < end { usleep(5_000) }
        let left = Truth.processes(marked: directory).map { "\($0) \((try? ProcFS.cmdline($0)) ?? [])" }
        #expect(left.isEmpty, "processes are left", sourceLocation: location)
        let files = (try? FileManager.default.contentsOfDirectory(atPath: runtime)) ?? []
        #expect(files.isEmpty, "the runtime directory has files left", sourceLocation: location)
        #expect(Truth.cgroups(of: runtime).isEmpty, "cgroups are left", sourceLocation: location)
    }
}

/// Something that keeps a test from going on.
package struct Trouble: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}

/// Runs a scenario with a daemon that answers, and stops it in the end.
package func withDaemon(
    _ toml: String,
    files: [String: String] = [:],
    environment: [String: String] = [:],
    at location: SourceLocation = #_sourceLocation,
    _ body: (Daemon) throws -> Void
) throws {
    let daemon = try Daemon(toml, files: files, environment: environment)
    try daemon.waitUntilItAnswers(at: location)
    try body(daemon)
    try daemon.stop(at: location)
}
