// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol
import Foundation
import Linux
import Testing
import Varlink

struct Trouble: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// A folder with torpor-desktop, a session's bus and sockets, and the test as its torpord.
final class Bench {
    static let bound = Duration.seconds(60)

    let directory: String
    private(set) var program: ChildProcess?
    private(set) var socket: Descriptor?
    private var framer = MessageFramer()
    private var bus: ChildProcess?
    private(set) var helpers: [Helper] = []
    /// Everything that the program said.
    private(set) var reports: [DesktopReport] = []

    /// The folder of the session's sockets.
    var session: String { directory + "/run" }
    var address: String { "unix:path=\(session)/bus" }
    var log: String { (try? File.readString(directory + "/log")) ?? "" }

    /// What the session's programs have in their environment.
    var environment: [String] {
        [
            "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=\(directory)", "XDG_RUNTIME_DIR=\(session)",
            "DBUS_SESSION_BUS_ADDRESS=\(address)", "NO_AT_BRIDGE=1",
        ]
    }

    init(hasBus: Bool = true, starts: Bool = true, _ environment: [String] = []) throws {
        var template = Array((NSTemporaryDirectory() + "td-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw Trouble("mkdtemp: \(errno)") }
        directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        try File.makeDirectory(session, mode: 0o700)
        if hasBus { try startBus() }
        if starts { try start(environment) }
    }

    deinit {
        program?.kill()
        program = nil
        for helper in helpers { helper.end() }
        stopBus()
        try? FileManager.default.removeItem(atPath: directory)
    }

    // MARK: The bus

    /// Starts the session's bus, which may start the services of that folder.
    func startBus() throws {
        let services = directory + "/services"
        try? File.makeDirectory(services, mode: 0o755)
        let configuration = """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
             "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig>
              <type>session</type>
              <listen>\(address)</listen>
              <auth>EXTERNAL</auth>
              <servicedir>\(services)</servicedir>
              <policy context="default">
                <allow send_destination="*" eavesdrop="true"/>
                <allow eavesdrop="true"/>
                <allow own="*"/>
              </policy>
            </busconfig>

            """
        try File.write(directory + "/bus.conf", configuration)
        bus = try child(["/usr/bin/dbus-daemon", "--config-file=\(directory)/bus.conf", "--nofork", "--nopidfile"])
        let path = session + "/bus"
        try eventually("the bus") { Sockets.isServed(path: path) }
    }

    func stopBus() {
        bus?.kill()
        bus?.reap()
        bus = nil
    }

    /// Starts a program of the session.
    func child(
        _ words: [String],
        _ more: [String] = [],
        output: Int32? = nil,
        input: Int32? = nil
    ) throws -> ChildProcess {
        let log = try File.open(directory + "/log", [.write, .create, .append])
        let none = try File.open("/dev/null", .readWrite)
        return try ChildProcess(
            words[0],
            arguments: words,
            environment: environment + more,
            descriptors: [(0, input ?? none.raw), (1, output ?? log.raw), (2, log.raw)]
        )
    }

    func add(_ helper: Helper) { helpers.append(helper) }

    // MARK: The program

    func start(_ more: [String] = []) throws {
        let (here, there) = try Sockets.pair(.stream)
        let log = try File.open(directory + "/log", [.write, .create, .append])
        let none = try File.open("/dev/null", .readWrite)
        program = try ChildProcess(
            Built.path("torpor-desktop"),
            arguments: ["torpor-desktop"],
            environment: environment + more,
            descriptors: [(0, none.raw), (1, log.raw), (2, log.raw), (3, there.raw)]
        )
        there.close()
        socket = here
        framer = MessageFramer()
    }

    func say(_ command: DesktopCommand) throws { try say(command.json.serialised() + [0]) }

    func say(_ bytes: [UInt8]) throws {
        guard let socket else { throw Trouble("no program") }
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = try socket.withRaw { raw throws(Errno) in try Sockets.send(raw, Array(rest), wait: true) } ?? 0
            rest = rest.dropFirst(sent)
        }
    }

    /// The next report.
    func hear(at location: SourceLocation = #_sourceLocation) throws -> DesktopReport {
        guard let socket else { throw Trouble("no program") }
        let end = Clock.monotonic() + Self.bound
        while true {
            if let message = try framer.next() {
                let report = try DesktopReport(json: JSON.parse(message))
                reports.append(report)
                return report
            }
            let left = max(.zero, end - Clock.monotonic())
            let isReady = try socket.withRaw { raw throws(Errno) in try Descriptor.wait(raw, timeout: left) }
            guard isReady else {
                Issue.record("it said nothing more:\n\(log)\n\(reports.suffix(5))", sourceLocation: location)
                throw Trouble("silence")
            }
            let bytes = try socket.withRaw { raw throws(Errno) in try Descriptor.read(raw, maximum: 65_536) } ?? []
            guard !bytes.isEmpty else {
                Issue.record("it ended:\n\(log)", sourceLocation: location)
                throw Trouble("end")
            }
            framer.append(bytes)
        }
    }

    /// Waits for a report.
    @discardableResult
    func hear<Found>(
        at location: SourceLocation = #_sourceLocation,
        _ pick: (DesktopReport) throws -> Found?
    ) throws -> Found {
        while true {
            if let found = try pick(hear(at: location)) { return found }
        }
    }

    func hear(_ report: DesktopReport, at location: SourceLocation = #_sourceLocation) throws {
        try hear(at: location) { $0 == report ? () : nil }
    }

    /// Says hello as another torpord does; what is repeated to it.
    func greet(at location: SourceLocation = #_sourceLocation) throws -> (ids: [Int64], server: DesktopServer?) {
        try say(.hello)
        return try hear(at: location) { report in
            if case .here(let ids, let server, DesktopProtocol.version) = report { (ids, server) } else { nil }
        }
    }

    /// Shows an alert, and waits until it is on the screen.
    @discardableResult
    func show(_ alert: DesktopAlert, at location: SourceLocation = #_sourceLocation) throws -> ScreenPlace? {
        try say(.show(alert))
        return try hear(shown: alert.id, at: location)
    }

    /// Waits until an alert is on the screen; where.
    @discardableResult
    func hear(shown id: Int64, at location: SourceLocation = #_sourceLocation) throws -> ScreenPlace? {
        try hear(at: location) { report -> ScreenPlace?? in
            if case .shown(id, let place) = report { .some(place) } else { nil }
        }
    }

    /// Closes the socket, as a torpord does that ends.
    func hangUp() { socket = nil }

    /// Waits until it is so, or fails.
    func eventually(_ what: String, at location: SourceLocation = #_sourceLocation, _ condition: () -> Bool) throws {
        let end = Clock.monotonic() + Self.bound
        while !condition() {
            guard Clock.monotonic() < end else {
                Issue.record("\(what) did not come:\n\(log)", sourceLocation: location)
                throw Trouble(what)
            }
            usleep(2_000)
        }
    }
}

/// A Python program of the session, which executes what it is told, line by line.
final class Helper {
    private let process: ChildProcess
    private let input: Descriptor
    private let output: Descriptor
    private var rest: [UInt8] = []

    /// - Parameter script: a file beside this one.
    init(_ bench: Bench, _ script: String, _ arguments: String...) throws {
        let (read, write) = try Descriptor.pipe()
        let (answers, theirs) = try Descriptor.pipe()
        let path = String(#filePath.prefix(upTo: #filePath.lastIndex(of: "/")!)) + "/\(script).py"
        process = try bench.child(
            ["/usr/bin/python3", "-B", path] + arguments,
            output: theirs.raw,
            input: read.raw
        )
        (input, output) = (write, answers)
        theirs.close()
        bench.add(self)
        _ = try answer()
    }

    var pid: Int32 { process.pid }

    /// Executes Python there; what it assigns to `ret` comes back.
    @discardableResult
    func run(_ python: String) throws -> JSON {
        let line = JSON.string(python).serialised() + [10]
        try input.withRaw { raw throws(Errno) in try Descriptor.writeAll(raw, line) }
        return try answer()
    }

    private func answer() throws -> JSON {
        while true {
            if let end = rest.firstIndex(of: 10) {
                let json = try JSON.parse(rest[..<end])
                rest.removeFirst(end + 1)
                if let error = json["error"]?.stringValue { throw Trouble(error) }
                return json["ok"] ?? .null
            }
            let isReady = try output.withRaw { raw throws(Errno) in try Descriptor.wait(raw, timeout: Bench.bound) }
            guard isReady else { throw Trouble("the helper does not answer") }
            let bytes = try output.withRaw { raw throws(Errno) in try Descriptor.read(raw, maximum: 65_536) } ?? []
            guard !bytes.isEmpty else { throw Trouble("the helper ended") }
            rest += bytes
        }
    }

    func end() {
        process.kill()
        process.reap()
    }
}

/// Why tests cannot run here.
enum Obstacle {
    static let bus: String? = {
        guard File.isExecutable("/usr/bin/dbus-daemon") else { return "dbus-daemon is not installed: make deps" }
        let words = ["/usr/bin/python3", "-c", "import dbus, dbusmock, gi"]
        let none = try? File.open("/dev/null", .readWrite)
        let process = try? ChildProcess(
            words[0],
            arguments: words,
            environment: [],
            descriptors: none.map { none in [0, 1, 2].map { ($0, none.raw) } } ?? []
        )
        return process?.reap() == 0 ? nil : "python3-dbusmock is not installed: make deps"
    }()

    static let dunst: String? = {
        for program in ["dunst", "dunstctl", "Xvfb", "dbus-daemon"] where !File.isExecutable("/usr/bin/" + program) {
            return "\(program) is not installed: make test installs it"
        }
        return nil
    }()
}

/// The programs of this build.
enum Built {
    static let folder: String = {
        for start in [ThisProcess.executable] + CommandLine.arguments.map({ Optional($0) }) {
            var folder = start.flatMap { File.parent(of: $0) }
            for _ in 0..<4 {
                guard let here = folder else { break }
                if File.isExecutable(here + "/torpor-desktop") { return here }
                folder = File.parent(of: here)
            }
        }
        return FileManager.default.currentDirectoryPath + "/.build/debug"
    }()

    static func path(_ name: String) -> String { folder + "/" + name }
}
