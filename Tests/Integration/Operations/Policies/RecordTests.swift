// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import PolicyLibraries
import Testing
import TorporAPI
import Varlink

@Suite("Recording what policies are asked, and simulating others with it") struct RecordTests {
    /// ‘torpor events --record’ while something happens.
    private final class Recorder {
        let file: String
        private let pid: Int32
        private let daemon: Daemon
        private var status: Int32?

        init(_ daemon: Daemon, _ arguments: [String] = ["--every", "100ms"]) throws {
            file = daemon.directory + "/trace.jsonl"
            self.daemon = daemon
            let command = [Built.path("torpor"), "events", "--record", file, "--socket", daemon.socket] + arguments
            pid = try Spawn.start(command, environment: ["TPTEST": daemon.directory], output: file + ".out")
            try waitForLines(2)
        }

        deinit {
            if status == nil {
                kill(pid, SIGKILL)
                waitpid(pid, nil, 0)
            }
        }

        var lines: [JSON] {
            let text = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
            return text.split(separator: "\n").compactMap { try? JSON.parse(Array($0.utf8)) }
        }

        var output: String { (try? String(contentsOfFile: file + ".out", encoding: .utf8)) ?? "" }

        func waitForLines(_ count: Int) throws {
            try daemon.eventually("\(count) lines are recorded: \(output)") { lines.count >= count }
        }

        func waitUntil(_ what: String, _ isSo: ([JSON]) -> Bool) throws {
            try daemon.eventually("the recording has \(what)") { isSo(lines) }
        }

        /// As Ctrl-C does.
        func interrupt() throws {
            kill(pid, SIGINT)
            try waitForEnd()
        }

        @discardableResult
        func waitForEnd() throws -> Int32 {
            var raw: Int32 = 0
            try daemon.eventually("the recorder ends") { waitpid(pid, &raw, WNOHANG) == pid }
            status = raw
            return raw
        }
    }

    private func mobile(_ options: String = "") throws -> (name: String, lines: String) {
        let folder = try Libraries.makeFolder("recorded")
        try copyProgram(Built.path("libMobilePolicy.so"), to: folder + "/libMobilePolicy.so")
        return ("mobile", "path = \"\(folder)/libMobilePolicy.so\"\ndeadline = \"5s\"\n\(options)")
    }

    private static let apps =
        Governed.sleeper("a", "background_time = \"100ms\"\ntags = [\"demo\"]")
        + Governed.sleeper("b", "background_time = \"100ms\"\nlaunch = \"on-demand\"")

    /// a and b come to the foreground in turn.
    private func use(_ daemon: Daemon) throws {
        try daemon.waitFor("a", "active")
        try daemon.done(.start, "b")
        try daemon.waitFor("a", "suspended")
        try daemon.done(.foreground, "a")
        try daemon.waitFor("b", "suspended")
    }

    private func summary(_ recorder: Recorder, _ policy: String, _ options: [String]) throws -> JSON {
        let (code, output) = try Traces.simulate(recorder.file, policy, options + ["--json"])
        #expect(code == 0, "\(output)")
        return try JSON.parse(output)
    }

    private func texts(_ document: JSON, _ difference: String) -> [String] {
        (document["decisions"]?.arrayValue ?? []).filter { $0["difference"]?.stringValue == difference }
            .compactMap { $0["text"]?.stringValue }
    }

    @Test("the policy that was recorded decides the same again, twice to the byte; with other options it does not")
    func mobileAgain() throws {
        let policy = try mobile()
        try withDaemon(Governed.toml([policy], apps: Self.apps)) { daemon throws in
            try daemon.waitForPolicy("mobile", "is there") { $0.state == "ready" }
            try daemon.waitFor("a", "active")
            let recorder = try Recorder(daemon)
            try use(daemon)
            try recorder.waitUntil("what became of b") { lines in
                lines.contains { line in
                    (line["advice"]?.arrayValue ?? []).contains { $0["app"] == 1 && $0["value"] == 4 }
                }
            }
            try recorder.interrupt()
            let text = try String(contentsOfFile: recorder.file, encoding: .utf8)
            #expect(text.hasSuffix("}\n") && recorder.lines.count == text.split(separator: "\n").count)
            let header = recorder.lines[0]
            #expect(header["torpor_policy_trace"] == 1 && header["policies"]?.arrayValue?.first?["name"] == "mobile")
            let library = "\(Built.path("libMobilePolicy.so"))"
            let once = try Traces.simulate(recorder.file, library)
            let twice = try Traces.simulate(recorder.file, library)
            #expect(once.code == 0 && once.output == twice.output)
            let taken = ["a → background", "a → suspended", "b → background", "b → suspended"]
            let same = try summary(recorder, library, [])
            #expect(texts(same, "same") == taken, "\(once.output)")
            #expect(same["summary"]?["new"] == 0 && same["summary"]?["missing"] == 0, "\(once.output)")
            // Two may be in front: nobody is sent away, and who is away is suspended all the same.
            let two = try summary(recorder, library, ["--option", "max_active=2"])
            #expect(texts(two, "missing") == ["a → background", "b → background"])
            #expect(texts(two, "same") == ["a → suspended", "b → suspended"])
            let awake = try summary(recorder, library, ["--option", "keep_running=[\"a\"]"])
            #expect(texts(awake, "missing") == ["a → suspended"] && texts(awake, "new").isEmpty)
        }
    }

    @Test("what nobody decides is recorded without a policy too, and one is tried with it")
    func withoutPolicies() throws {
        try withDaemon(Self.apps) { daemon throws in
            try daemon.waitFor("a", "active")
            let recorder = try Recorder(daemon)
            try daemon.done(.start, "b")
            try daemon.done(.background, "a")
            try recorder.waitUntil("that a's time is used up") { lines in
                lines.contains { ($0["events"]?.arrayValue ?? []).contains { $0["kind"] == "time-used" } }
            }
            try recorder.interrupt()
            #expect(recorder.lines[0]["policies"] == [])
            // Launches wait for nobody's word then.
            #expect(try daemon.summary("b").state == "active")
            let document = try summary(recorder, Built.path("libMobilePolicy.so"), [])
            #expect(texts(document, "new").contains("a → suspended"))
            #expect(document["summary"]?["same"] == 0)
            try daemon.done(.stop, "b")
            try daemon.done(.start, "b")
        }
    }

    @Test("lines with fresh measurements come by themselves, and a recording ends by itself")
    func untilTheEnd() throws {
        try withDaemon(Self.apps) { daemon throws in
            try daemon.waitFor("a", "active")
            let recorder = try Recorder(daemon, ["--every", "100ms", "--for", "1s", "--json"])
            #expect(try recorder.waitForEnd() == 0)
            let lines = recorder.lines
            // As many as a busy machine comes to.
            #expect((4...16).contains(lines.count), "\(lines.count)")
            let first = lines[1]
            let app = try #require(first["apps"]?.arrayValue?.first { $0["name"] == "a" })
            #expect(app["tags"] == ["demo"] && app["state"] == 2 && app["place"] == 0)
            #expect(first["apps"]?.arrayValue?.count == 2 && first["system"]?["processors"] != nil)
            // Nothing but what has changed is written again.
            for line in lines.dropFirst(2) { #expect(line["apps"]?.arrayValue?.contains { $0["name"] != nil } != true) }
            let document = try JSON.parse(recorder.output)
            #expect(document["rounds"]?.intValue == Int64(lines.count - 1) && document["interruptions"] == 0)
            #expect(document["file"]?.stringValue == recorder.file)
        }
    }

    @Test("a recording goes on with the next torpord, and says so")
    func nextTorpord() throws {
        let policy = try mobile()
        try withDaemon(Governed.toml([policy], apps: Self.apps)) { daemon throws in
            try daemon.waitForPolicy("mobile", "is there") { $0.state == "ready" }
            try daemon.waitFor("a", "active")
            let recorder = try Recorder(daemon)
            kill(try daemon.torpord(), SIGKILL)
            try recorder.waitUntil("a second beginning") { lines in
                lines.count { $0["torpor_policy_trace"] != nil } == 2
                    && lines.last?["torpor_policy_trace"] == nil
            }
            try daemon.waitForPolicy("mobile", "is there again") { $0.state == "ready" }
            try use(daemon)
            try recorder.interrupt()
            #expect(
                recorder.output.contains("torpor: the recording was interrupted and continues with the present state\n")
            )
            let document = try summary(recorder, Built.path("libMobilePolicy.so"), [])
            #expect(document["summary"]?["interruptions"] == 1)
            #expect(texts(document, "same").contains("a → background"))
        }
    }

    @Test("a client that does not read is cut off, and others are told on")
    func slowReader() throws {
        func toml(_ turn: Int) -> String {
            let tags = (0..<200).map { "\"a-rather-long-tag-\(turn)-\($0)\"" }.joined(separator: ",")
            return (0..<100).map {
                Governed.sleeper("app-\($0)", "launch = \"on-demand\"\ntags = [\(tags)]")
            }.joined()
        }
        try withDaemon(toml(0)) { daemon throws in
            let lazy = try Sockets.connect(path: daemon.socket)
            var call = ManagerRequest.recordPolicies(RecordRequest()).call.json.serialised()
            call.append(0)
            try Descriptor.writeAll(lazy.raw, call)
            let recorder = try Recorder(daemon)
            var turn = 0
            // Some 500 KB a turn.
            try daemon.eventually("the client is cut off", within: .seconds(300)) {
                turn += 1
                _ = try Daemon.writeConfiguration(toml(turn), in: daemon.directory)
                try daemon.call(.apply(ApplyRequest()))
                return daemon.log.contains("policies are asked: it did not read what it was sent")
            }
            #expect(turn > 5)
            try daemon.eventually("the other one has the last of it") {
                let text = (try? String(contentsOfFile: recorder.file, encoding: .utf8)) ?? ""
                return text.contains("a-rather-long-tag-\(turn)-0\"")
            }
            try recorder.interrupt()
        }
    }

    @Test("no more than eight record at a time")
    func most() throws {
        try withDaemon(Self.apps) { daemon throws in
            var call = ManagerRequest.recordPolicies(RecordRequest()).call.json.serialised()
            call.append(0)
            let clients = try (0..<8).map { _ in try Sockets.connect(path: daemon.socket) }
            for client in clients {
                try Descriptor.writeAll(client.raw, call)
                // Its header.
                #expect(try Descriptor.wait(client.raw, timeout: .seconds(60)))
            }
            let (code, output) = try Spawn.run(
                [Built.path("torpor"), "events", "--record", "-", "--socket", daemon.socket, "--for", "1s"]
            )
            #expect(
                code == 1 && output == "torpor: 8 clients record already, which is the most: end one of them\n"
            )
        }
    }

    @Test(
        "what does not go together is refused",
        arguments: [
            ["--every", "1s"], ["--for", "1s"], ["--record", "-", "-f"], ["--record", "-", "--every", "1ms"],
            ["--record", "-", "web"], ["--record", "-", "--json"],
        ]
    )
    func usage(_ arguments: [String]) throws {
        let (code, output) = try Spawn.run([Built.path("torpor"), "events"] + arguments)
        #expect(code == 2, "\(output)")
    }

    @Test("a recording that cannot be written is told, and one that is there is not emptied without a supervisor")
    func unwritable() throws {
        let kept = try Traces.write([Traces.header])
        defer { try? File.remove(kept) }
        let nobody = try Spawn.run([
            Built.path("torpor"), "events", "--record", kept, "--socket", "/nonexistent/io.torpor",
        ])
        #expect(nobody.code == 5)
        #expect(try File.readString(kept) == Traces.header + "\n")
        try withDaemon(Self.apps) { daemon throws in
            let words = [Built.path("torpor"), "events", "--socket", daemon.socket, "--for", "1s", "--record"]
            let (code, output) = try Spawn.run(words + ["/nonexistent/trace"])
            #expect(code == 1 && output.hasPrefix("torpor: /nonexistent/trace cannot be written: "), "\(output)")
            let full = try Spawn.run(words + ["/dev/full"])
            #expect(full.code == 1 && full.output.hasPrefix("torpor: /dev/full cannot be written: "), "\(full.output)")
        }
    }
}
