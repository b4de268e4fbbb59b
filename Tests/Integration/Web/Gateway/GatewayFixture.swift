// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import Varlink

/// A folder with whatever a test starts in it: gateways, brokers, a supervisor that only takes what is posted.
final class GatewayFixture {
    let directory: String
    let supervisor: StandInSupervisor
    private var pids: [Int32] = []

    static let token = "0123456789abcdef0123456789abcdef"

    init() throws {
        directory = try Daemon.makeFolder()
        supervisor = StandInSupervisor(path: directory + "/s")
        try File.makeDirectory(directory + "/gateway-secrets", mode: 0o700)
        try File.write(directory + "/gateway-secrets/ci", Self.token + "\n")
        try supervisor.listen()
    }

    deinit {
        endAll()
        supervisor.end()
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// Waits until it is so, or fails.
    func eventually(
        _ what: String,
        within bound: Duration = .seconds(60),
        at location: SourceLocation = #_sourceLocation,
        _ condition: () throws -> Bool
    ) throws {
        let end = Clock.monotonic() + bound
        while true {
            if try condition() { return }
            guard Clock.monotonic() < end else {
                Issue.record("\(what) did not come:\n\(log)", sourceLocation: location)
                throw Trouble(what)
            }
            usleep(5_000)
        }
    }

    // MARK: Processes

    @discardableResult
    func start(_ words: [String], output: String) throws -> Int32 {
        let pid = try Spawn.start(words, environment: ["TPTEST": directory], output: directory + "/" + output)
        pids.append(pid)
        return pid
    }

    /// Ends a process that was started elsewhere together with the others.
    func adopt(_ pid: Int32) { pids.append(pid) }

    /// Ends all processes.
    func endAll() {
        for pid in pids {
            kill(pid, SIGKILL)
            waitpid(pid, nil, 0)
        }
        pids = []
    }

    /// Ends one, and gives its exit status, or minus the signal.
    @discardableResult
    func end(_ pid: Int32, _ signal: Int32 = SIGTERM) throws -> Int32 {
        pids.removeAll { $0 == pid }
        kill(pid, signal)
        var status: Int32 = 0
        let end = Clock.monotonic() + .seconds(60)
        while waitpid(pid, &status, WNOHANG) == 0 {
            guard Clock.monotonic() < end else {
                kill(pid, SIGKILL)
                waitpid(pid, nil, 0)
                throw Trouble("process \(pid) did not end")
            }
            usleep(2_000)
        }
        return status & 0x7f == 0 ? (status >> 8) & 0xff : -(status & 0x7f)
    }

    /// Writes a configuration, and starts the gateway with it; waits until it says `sentence`. Without a `socket` it posts
    /// to the stand-in.
    func gateway(_ toml: String, socket: String? = nil, until sentence: String = ": started") throws -> Int32 {
        let head = "[gateway]\nsocket = \"\(socket ?? directory + "/s")\"\nlog_level = \"debug\"\n"
        try File.write(directory + "/gateway.toml", head + toml)
        let before = occurrences(of: sentence)
        let words = [Built.path("torpor-gateway"), "--config", directory + "/gateway.toml"]
        let pid = try start(words, output: "gateway.log")
        try eventually("“\(sentence)”") { occurrences(of: sentence) > before }
        return pid
    }

    /// What gateways have said.
    var log: String { (try? String(contentsOfFile: directory + "/gateway.log", encoding: .utf8)) ?? "" }

    func occurrences(of sentence: String) -> Int { log.components(separatedBy: sentence).count - 1 }

    static func listens(_ port: UInt16) -> Bool {
        guard let socket = try? Sockets.connectTCP(address: "127.0.0.1", port: port) else { return false }
        return socket.withRaw { raw in
            (try? Descriptor.wait(raw, writable: true, timeout: .seconds(1))) == true
                && Sockets.pendingError(raw) == nil
        }
    }

    // MARK: Brokers

    /// Where a program is; nil, and it is said, where it is not installed.
    static func program(_ name: String, package: String) -> String? {
        for folder in ["/usr/sbin/", "/usr/bin/", "/usr/local/bin/"] where File.isExecutable(folder + name) {
            return folder + name
        }
        print("skipped: there is no \(name) here (package \(package))")
        return nil
    }

    /// A server of NATS with JetStream.
    func nats(_ program: String, port: UInt16) throws -> Int32 {
        let words = [program, "-a", "127.0.0.1", "-p", "\(port)", "-js", "-sd", directory + "/jetstream"]
        let pid = try start(words, output: "nats.log")
        try eventually("the server of NATS") { Self.listens(port) }
        return pid
    }

    /// A broker of MQTT, which keeps what it has for clients that are away in memory.
    func mosquitto(_ program: String, port: UInt16, _ more: String = "") throws -> Int32 {
        let text = "listener \(port) 127.0.0.1\nallow_anonymous true\n\(more)\n"
        try File.write(directory + "/mosquitto.conf", text)
        let pid = try start([program, "-c", directory + "/mosquitto.conf"], output: "mosquitto.log")
        try eventually("the broker of MQTT") { Self.listens(port) }
        return pid
    }

    // MARK: HTTP

    /// What curl gets: status code and body.
    func curl(_ words: [String], token: String? = token) throws -> (status: Int, body: String) {
        let authorization = token.map { ["-H", "Authorization: Bearer \($0)"] } ?? []
        let (code, output) = try Spawn.run(
            ["/usr/bin/curl", "-sS", "--max-time", "20", "-w", "\n%{http_code}"] + authorization + words
        )
        guard code == 0, let end = output.lastIndex(of: "\n"), let status = Int(output[output.index(after: end)...])
        else { throw Trouble("curl ended with \(code): \(output)\n\(log)") }
        return (status, String(output[..<end]))
    }
}

/// A client of NATS, in as much of its protocol as tests need (docs.nats.io/reference/reference-protocols/nats-protocol).
final class NATSClient {
    private let socket: Descriptor
    private var read: [UInt8] = []
    private var requests = 0

    init(port: UInt16, host: String = "127.0.0.1") throws {
        socket = try Sockets.connectTCP(address: host, port: port)
        _ = try Descriptor.wait(socket.raw, writable: true, timeout: .seconds(60))
        try Descriptor.setNonBlocking(socket.raw, false)
        try send("CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\nPING\r\n")
        while try line() != "PONG" {}
    }

    private func send(_ text: String) throws { _ = try Sockets.send(socket.raw, Array(text.utf8), wait: true) }

    private func line() throws -> String {
        while true {
            if let end = read.firstIndex(of: 10) {
                let line = String(decoding: read[..<end], as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
                read.removeFirst(end + 1)
                guard line == "PING" else { return line }
                try send("PONG\r\n")
                continue
            }
            guard try Descriptor.wait(socket.raw, timeout: .seconds(15)),
                let more = try Descriptor.read(socket.raw, maximum: 1 << 16), !more.isEmpty
            else { throw Trouble("the server of NATS says nothing") }
            read += more
        }
    }

    /// Publishes, and waits until the server has it.
    func publish(_ subject: String, _ text: String, headers: [String: String] = [:]) throws {
        if headers.isEmpty {
            try send("PUB \(subject) \(text.utf8.count)\r\n\(text)\r\n")
        } else {
            let head = "NATS/1.0\r\n" + headers.map { "\($0.key): \($0.value)\r\n" }.joined() + "\r\n"
            try send("HPUB \(subject) \(head.utf8.count) \(head.utf8.count + text.utf8.count)\r\n\(head)\(text)\r\n")
        }
        try send("PING\r\n")
        while try line() != "PONG" {}
    }

    /// Publishes a request, and waits for its reply; null where nobody has subscribed.
    func request(_ subject: String, _ text: String) throws -> JSON {
        requests += 1
        let inbox = "inbox.\(UInt32.random(in: 0 ... .max))"
        try send("SUB \(inbox) \(requests)\r\nPUB \(subject) \(inbox) \(text.utf8.count)\r\n\(text)\r\n")
        while true {
            let head = try line()
            if head.hasPrefix("MSG \(inbox)") { return try JSON.parse(Array(try line().utf8)) }
            if head.hasPrefix("HMSG \(inbox)") { return .null }
        }
    }

    /// A stream on disk for these subjects.
    func makeStream(_ name: String, _ subject: String) throws {
        let reply = try request(
            "$JS.API.STREAM.CREATE.\(name)",
            "{\"name\":\"\(name)\",\"subjects\":[\"\(subject)\"],\"storage\":\"file\"}"
        )
        guard reply["error"] == nil else { throw Trouble("\(reply)") }
    }
}
