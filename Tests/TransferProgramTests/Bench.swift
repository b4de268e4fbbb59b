// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import TestAddresses
import Testing
import TransferProtocol
import Varlink

struct Trouble: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// A folder with torpor-transfer, its parts and its files, and the test as its torpord.
final class Bench {
    static let bound = Duration.seconds(60)

    let directory: String
    private(set) var program: ChildProcess?
    private(set) var socket: Descriptor?
    private var framer = MessageFramer()
    private var servers: [Server] = []
    /// All that it said.
    private(set) var reports: [TransferReport] = []
    /// Commands that are answered by themselves.
    var goes = true
    /// Of the program, `K=V`.
    var environment: [String] = []

    var root: String { directory + "/root" }
    var parts: String { directory + "/parts" }
    /// The folder of the servers.
    var served: String { directory + "/served" }
    var log: String { (try? File.readString(directory + "/log")) ?? "" }

    init(_ arguments: [String] = [], starts: Bool = true) throws {
        var template = Array((NSTemporaryDirectory() + "tt-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw Trouble("mkdtemp: \(errno)") }
        directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        for folder in [root, parts, served] { try File.makeDirectory(folder, mode: 0o755) }
        if starts { try start(arguments) }
    }

    deinit {
        program = nil
        for server in servers { server.end() }
        // A small disk of PrivateMounts, where there is one: MNT_DETACH.
        umount2(directory + "/disk", 2)
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// Starts the program, with all roots that there are.
    func start(_ arguments: [String] = [], parts: String? = nil, root: String? = nil) throws {
        let (here, there) = try Sockets.pair(.stream)
        let log = try File.open(directory + "/log", [.write, .create, .append])
        let none = try File.open("/dev/null", .readWrite)
        let words =
            ["torpor-transfer", "--parts", parts ?? self.parts, "--root", root ?? self.root] + arguments
        let environment = ["PATH=/usr/bin:/bin", "HOME=\(directory)"] + environment
        program = try ChildProcess(
            Built.path("torpor-transfer"),
            arguments: words,
            environment: environment,
            descriptors: [(0, none.raw), (1, log.raw), (2, log.raw), (3, there.raw)]
        )
        there.close()
        socket = here
        framer = MessageFramer()
    }

    func say(_ command: TransferCommand) throws { try say(command.json.serialised() + [0]) }

    func say(_ bytes: [UInt8]) throws {
        guard let socket else { throw Trouble("no program") }
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = try socket.withRaw { raw throws(Errno) in try Sockets.send(raw, Array(rest), wait: true) } ?? 0
            rest = rest.dropFirst(sent)
        }
    }

    /// The next report.
    func hear(at location: SourceLocation = #_sourceLocation) throws -> TransferReport {
        guard let socket else { throw Trouble("no program") }
        let end = Clock.monotonic() + Self.bound
        while true {
            if let message = try framer.next() {
                let report = try TransferReport(json: JSON.parse(message))
                reports.append(report)
                return report
            }
            let left = end - Clock.monotonic()
            let isReady = try socket.withRaw { raw throws(Errno) in try Descriptor.wait(raw, timeout: max(.zero, left))
            }
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

    /// What is of interest of the next reports.
    @discardableResult
    func hear<Found>(
        at location: SourceLocation = #_sourceLocation,
        _ pick: (TransferReport) throws -> Found?
    ) throws -> Found {
        while true {
            let report = try hear(at: location)
            if goes {
                switch report {
                case .head(let id, _, _), .source(let id, _): try say(.go(id: id))
                default: break
                }
            }
            if let found = try pick(report) { return found }
        }
    }

    /// How one ends.
    func end(of id: Int64, at location: SourceLocation = #_sourceLocation) throws -> TransferEnd {
        try hear(at: location) { report in
            if case .ended(id, let end) = report { return end }
            return nil
        }
    }

    /// Runs one try to its end, and acknowledges it.
    func run(_ order: TransferOrder, at location: SourceLocation = #_sourceLocation) throws -> TransferEnd {
        try say(.start(order))
        let end = try end(of: order.id, at: location)
        try say(.acknowledge(id: order.id))
        return end
    }

    /// What the last `head` of one said.
    func head(of id: Int64) -> (validator: TransferValidator, offset: Int64)? {
        for report in reports.reversed() {
            if case .head(id, let validator, let offset) = report { return (validator, offset) }
        }
        return nil
    }

    /// Runs tries as torpord does, without its pauses, until it is done or failed.
    func runToTheEnd(_ order: TransferOrder, at location: SourceLocation = #_sourceLocation) throws -> TransferEnd {
        var order = order
        for _ in 0..<200 {
            let end = try run(order, at: location)
            if end.outcome != .retry { return end }
            if let head = head(of: order.id) { order.validator = head.validator }
        }
        throw Trouble("it is tried again and again")
    }

    func download(_ id: Int64, _ url: String, to file: String? = nil) -> TransferOrder {
        TransferOrder(id: id, direction: .download, url: url, root: 0, file: file ?? "file-\(id)", method: "GET")
    }

    func upload(_ id: Int64, _ file: String, to url: String, method: String = "PUT") -> TransferOrder {
        TransferOrder(id: id, direction: .upload, url: url, root: 0, file: file, method: method)
    }

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

    /// Bytes that no compression makes fewer, written to a file in the servers' folder.
    @discardableResult
    func serve(_ name: String, bytes count: Int) throws -> [UInt8] {
        let bytes = Self.noise(count)
        try File.write(served + "/" + name, bytes)
        return bytes
    }

    static func noise(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        let words = (0...count / 8).map { _ in UInt64.random(in: .min ... .max, using: &generator) }
        return words.withUnsafeBytes { Array($0.prefix(count)) }
    }

    func add(_ server: Server) { servers.append(server) }

    /// A request that came to the server that lies.
    struct Asked {
        var method: String
        var target: String
        /// By names in lower case.
        var fields: [String: String]
    }

    /// What came to the server that lies.
    func requests() throws -> [Asked] {
        try File.read(served + "/requests", limit: 1 << 26).split(separator: UInt8(ascii: "\n")).map { line in
            let json = try JSON.parse(line)
            return Asked(
                method: json["method"]?.stringValue ?? "",
                target: json["target"]?.stringValue ?? "",
                fields: json["fields"]?.objectValue.map { object in
                    Dictionary(uniqueKeysWithValues: object.members.map { ($0.name, $0.value.stringValue ?? "") })
                } ?? [:]
            )
        }
    }

    /// Starts the server that lies; its URL.
    func lyingServer() throws -> String { try start("lying-server", served, "127.0.0.1") }

    /// Starts the proxy, which wants to know who asks; its URL.
    func proxy(_ login: String) throws -> String { try start("proxy", login, directory + "/asked") }

    /// What the proxy was asked.
    var asked: [String] {
        ((try? File.readString(directory + "/asked")) ?? "").split(separator: "\n").map(String.init)
    }

    private func start(_ name: String, _ arguments: String...) throws -> String {
        let port = try TestAddress.port()
        let script = String(#filePath.prefix(upTo: #filePath.lastIndex(of: "/")!)) + "/\(name).py"
        let log = directory + "/\(name).log"
        add(try Server(["/usr/bin/python3", "-B", script, TestAddress.host, "\(port)"] + arguments, log: log))
        try eventually(name) { (try? File.readString(log))?.contains("ready") ?? false }
        return "http://\(TestAddress.host):\(port)"
    }
}

/// A server that a test started.
final class Server {
    private let process: ChildProcess
    private let input: Descriptor

    init(_ words: [String], log: String) throws {
        let (read, write) = try Descriptor.pipe()
        let output = try File.open(log, [.write, .create, .append])
        process = try ChildProcess(
            words[0],
            arguments: words,
            environment: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"],
            descriptors: [(0, read.raw), (1, output.raw), (2, output.raw)]
        )
        input = write
    }

    var pid: Int32 { process.pid }

    /// Ends it: those of several processes end theirs at SIGTERM.
    func end() {
        input.close()
        try? Pidfd.sendSignal(process.pidfd.raw, Signal.terminate)
        if process.reap(within: .seconds(10)) == nil { process.kill() }
        process.reap()
    }
}

/// The programs of this build.
enum Built {
    static let folder: String = {
        for start in [ThisProcess.executable] + CommandLine.arguments.map({ Optional($0) }) {
            var folder = start.flatMap { File.parent(of: $0) }
            for _ in 0..<4 {
                guard let here = folder else { break }
                if File.isExecutable(here + "/torpor-transfer") { return here }
                folder = File.parent(of: here)
            }
        }
        return FileManager.default.currentDirectoryPath + "/.build/debug"
    }()

    static func path(_ name: String) -> String { folder + "/" + name }
}
