// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import Varlink

/// A real torpor-web beside a real torpord.
final class WebFixture {
    let directory: String
    let port: UInt16
    private(set) var pids: [Int32] = []
    private var streams: [Stream] = []
    var url: String { "http://127.0.0.1:\(port)" }
    var token: String {
        ((try? File.readString(directory + "/web/token")) ?? "").trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Starts one for the socket of a supervisor, and waits until it answers.
    init(
        _ daemon: Daemon,
        _ words: [String] = [],
        wrapper: [String] = [],
        unix: String? = nil
    ) throws {
        directory = daemon.directory
        port = try TestAddress.port()
        let listen = unix.map { "unix:\($0)" } ?? "127.0.0.1:\(port)"
        try File.makeDirectories(directory + "/web", mode: 0o777)
        chmod(directory + "/web", 0o777)
        try start(
            wrapper + [Built.path("torpor-web"), "--socket", daemon.socket, "--listen", listen] + words,
            output: "web.log"
        )
        let probe = unix.map { ["--unix-socket", $0, "http://localhost/healthz"] } ?? [url + "/healthz"]
        try eventually("torpor-web answers") {
            try Spawn.run(["/usr/bin/curl", "-s", "--max-time", "5"] + probe).output.contains("ok")
        }
    }

    deinit {
        for pid in pids {
            kill(pid, SIGKILL)
            waitpid(pid, nil, 0)
        }
    }

    @discardableResult
    func start(_ words: [String], output: String) throws -> Int32 {
        let pid = try Spawn.start(
            words,
            environment: ["TPTEST": directory, "STATE_DIRECTORY": directory + "/web"],
            output: directory + "/" + output
        )
        pids.append(pid)
        return pid
    }

    /// Ends what was started; torpor-web must end well.
    func end(at location: SourceLocation = #_sourceLocation) {
        for (index, pid) in pids.enumerated() {
            kill(pid, SIGTERM)
            var status: Int32 = 0
            waitpid(pid, &status, 0)
            if index == 0 { #expect(status == 0, "\(log)", sourceLocation: location) }
        }
        pids = []
    }

    /// One that has ended.
    func forget(_ pid: Int32) { pids.removeAll { $0 == pid } }

    var log: String { (try? File.readString(directory + "/web.log")) ?? "" }

    func eventually(
        _ what: String,
        within bound: Duration = .seconds(60),
        at location: SourceLocation = #_sourceLocation,
        _ condition: () throws -> Bool
    ) throws {
        let end = Clock.monotonic() + bound
        while try !condition() {
            guard Clock.monotonic() < end else {
                let told = streams.map { "\n\($0.path): …\($0.text.suffix(2000))" }.joined()
                Issue.record("\(what) did not come: \(log)\(told)", sourceLocation: location)
                throw Trouble(what)
            }
            usleep(5_000)
        }
    }

    struct Answer {
        let status: Int
        let head: String
        let body: String
        var json: JSON { (try? JSON.parse(body)) ?? .null }
        var error: String { json["error"]?.stringValue ?? "" }

        func header(_ name: String) -> String? {
            head.split(separator: "\r\n").first { $0.lowercased().hasPrefix(name.lowercased() + ":") }
                .map { String($0.drop { $0 != ":" }.dropFirst().drop { $0 == " " }) }
        }
    }

    /// What curl gets; with the token unless it is another one.
    func ask(_ path: String, _ words: [String] = [], token: String?? = .none) throws -> Answer {
        let shown: String? =
            switch token {
            case .none: self.token
            case .some(let other): other
            }
        let authorization = shown.map { ["-H", "Authorization: Bearer \($0)"] } ?? []
        let target = path.hasPrefix("http") ? path : url + path
        let (code, output) = try Spawn.run(
            ["/usr/bin/curl", "-sS", "-i", "--path-as-is", "--max-time", "25"] + authorization + words + [target]
        )
        guard code == 0, let end = output.range(of: "\r\n\r\n"),
            let status = output.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
        else { throw Trouble("curl \(path) ended with \(code): \(output)") }
        return Answer(status: status, head: String(output[..<end.lowerBound]), body: String(output[end.upperBound...]))
    }

    /// Asks for a change, as a program does.
    func post(_ path: String, _ body: String = "", _ words: [String] = [], token: String?? = .none) throws -> Answer {
        try ask(path, ["-X", "POST", "-H", "X-Torpor-Request: 1", "-d", body] + words, token: token)
    }

    /// A stream that is written into a file.
    func stream(_ name: String, _ words: [String] = []) throws -> Stream {
        let authorization = ["-H", "Authorization: Bearer \(token)"]
        let path = directory + "/" + name
        let pid = try start(
            ["/usr/bin/curl", "-sN"] + authorization + words + [url + "/api/v1/stream"],
            output: name
        )
        let stream = Stream(path: path, pid: pid)
        streams.append(stream)
        return stream
    }

    struct Stream {
        let path: String
        let pid: Int32
        var text: String { (try? File.readString(path, limit: 16 << 20)) ?? "" }

        /// What was told of torpord, by snapshots and by itself.
        var supervisors: [JSON] {
            messages.compactMap { name, _, data in
                name == "snapshot" ? data["supervisor"] : name == "supervisor" ? data : nil
            }
        }

        /// The messages that are whole, in their order.
        var messages: [(name: String, id: Int64?, data: JSON)] {
            text.components(separatedBy: "\n\n").dropLast().compactMap { block in
                var name = ""
                var id: Int64?
                var data = JSON.null
                for line in block.split(separator: "\n") {
                    if line.hasPrefix("event: ") { name = String(line.dropFirst(7)) }
                    if line.hasPrefix("id: ") { id = Int64(line.dropFirst(4)) }
                    if line.hasPrefix("data: ") { data = (try? JSON.parse(String(line.dropFirst(6)))) ?? .null }
                }
                return name.isEmpty ? nil : (name, id, data)
            }
        }

        /// The last state of an app that it told.
        func state(of app: String) -> String? {
            var state: String?
            for (name, _, data) in messages {
                let apps = (name == "snapshot" ? data["apps"] : name == "apps" ? data["changed"] : nil)?.arrayValue
                for one in apps ?? [] where one["name"]?.stringValue == app { state = one["state"]?.stringValue }
            }
            return state
        }
    }

    /// Waits until it is stopped. A shell whose vfork was stopped before its exec waits for that child, and stops before
    /// it does anything else: the signal is pending.
    func waitUntilStopped(_ pid: Int32, at location: SourceLocation = #_sourceLocation) throws {
        try eventually("process \(pid) is stopped", at: location) {
            let letter = Self.letter(pid)
            return letter == "T" || (letter == "D" && Self.hasPending(SIGSTOP, pid))
        }
    }

    private static func hasPending(_ signal: Int32, _ pid: Int32) -> Bool {
        ["SigPnd", "ShdPnd"].contains { field in
            let mask = (try? ProcFS.statusField(pid, field)).flatMap { $0 }.flatMap { UInt64($0, radix: 16) } ?? 0
            return mask >> UInt64(signal - 1) & 1 == 1
        }
    }

    /// The letter of /proc/PID/stat.
    static func letter(_ pid: Int32) -> String {
        let text = (try? File.readString("/proc/\(pid)/stat")) ?? ""
        return text.split(separator: ")").last.flatMap { $0.split(separator: " ").first }.map(String.init) ?? ""
    }
}
