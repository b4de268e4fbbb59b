// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("Streams whose supervisor dies") struct StreamTests {
    private static let toml = """
        [apps.count]
        exec = ["/usr/bin/python3", "-S", "@D/count.py"]
        launch = "on-demand"
        log_max_size = "200KiB"
        log_max_files = 1000
        """
    /// Numbered lines without end, until there is `enough`; then the last one says so.
    private static let files = [
        "count.py": """
        import os, sys, tp
        number = 0
        while not os.path.exists(tp.HERE + "/enough"):
            for _ in range(20):
                sys.stdout.write("line %d\\n" % number)
                number += 1
            sys.stdout.flush()
            tp.time.sleep(0.001)
        sys.stdout.write("end\\n")
        sys.stdout.flush()
        tp.wait()
        """
    ]

    private func expectEveryLine(_ lines: [Substring], at location: SourceLocation = #_sourceLocation) {
        #expect(lines.last == "end", sourceLocation: location)
        let wrong = lines.dropLast().enumerated().first { $0.element != "line \($0.offset)" }
        #expect(wrong == nil, "the first that is not where it belongs", sourceLocation: location)
    }

    @Test("logs -f: begun before the app ever ran, each line comes once and in order, through rotations and deaths")
    func logs() throws {
        try withKilledDaemon(Self.toml, files: Self.files) { daemon throws in
            // Should the app be quicker than the client, what it wrote before counts too.
            let client = try Client(daemon, "logs", "-f", "-n", "1000000", "count")
            try daemon.done(.start, "count")
            for _ in 0..<10 {
                let before = client.output.utf8.count
                try daemon.eventually("more lines come") { client.output.utf8.count > before + 20_000 }
                try daemon.killTorpord()
            }
            daemon.touch("enough")
            try daemon.eventually("the last line comes") { client.output.hasSuffix("\nend\n") }
            expectEveryLine(client.lines)
            #expect(FileManager.default.fileExists(atPath: daemon.directory + "/l/count.log.1"), "it was rotated")
        }
    }

    @Test("logs -f --json: one object a line, and nothing else")
    func logsInJSON() throws {
        try withKilledDaemon(Self.toml, files: Self.files) { daemon throws in
            let client = try Client(daemon, "logs", "-f", "--json", "-n", "1000000", "count")
            try daemon.done(.start, "count")
            try daemon.eventually("lines come") { client.lines.count > 100 }
            try daemon.killTorpord()
            daemon.touch("enough")
            try daemon.eventually("the last line comes") { client.output.contains(#""text":"end""#) }
            expectEveryLine(
                try client.lines.map { line in
                    Substring(try JSON.parse(Array(line.utf8)[...])["text"]?.stringValue ?? "")
                }
            )
        }
    }

    @Test("what there was comes whole, however much that is, through a death in the middle of it")
    func longPast() throws {
        let files = [
            "count.py": """
            import sys, tp
            sys.stdout.write("".join("line %d\\n" % number for number in range(110000)) + "end\\n")
            sys.stdout.flush()
            tp.record("done")
            tp.wait()
            """
        ]
        try withKilledDaemon(Self.toml.replacing("200KiB", with: "1MiB"), files: files) { daemon throws in
            try daemon.done(.start, "count")
            try daemon.waitForRecord("count", "done")
            func logs(_ words: String...) throws -> [Substring] {
                let client = try Client(daemon, ["logs", "count"] + words)
                #expect(try client.finish(daemon) == 0, "\(client.output.suffix(200))")
                return client.lines
            }
            try daemon.eventually("its output is in the log") { try logs("-n", "1") == ["end"] }
            try expectEveryLine(logs("-n", "1000000"))
            let sevens = try logs("--since", "2000-01-01", "--grep", "line 7")
            #expect(sevens.count == 11_111 && sevens.last == "line 79999")
            let client = try Client(daemon, "logs", "-f", "-n", "1000000", "count")
            try daemon.eventually("the first lines come") { !client.output.isEmpty }
            try daemon.killTorpord()
            try daemon.eventually("the last line comes") { client.output.hasSuffix("\nend\n") }
            expectEveryLine(client.lines)
        }
    }

    @Test("An app that leaves the configuration takes nothing along of what a client is reading")
    func forgotten() throws {
        let files = [
            "flood.py": """
            import sys, tp
            for number in range(40000):
                sys.stdout.write("line %d\\n" % number)
            sys.stdout.write("end\\n")
            sys.stdout.flush()
            tp.record("done")
            tp.wait()
            """
        ]
        try withDaemon("[apps.flood]\nexec = [\"/usr/bin/python3\", \"-S\", \"@D/flood.py\"]", files: files) {
            daemon throws in
            try daemon.waitForRecord("flood", "done")
            try daemon.eventually("all is in the log") {
                try daemon.status("flood").log.last?.text == "end"
            }
            var request = LogsRequest(app: "flood")
            request.follow = true
            request.lines = 1_000_000
            let stream = try LogStream(daemon, request)
            var lines = try stream.next()
            #expect(lines.first == "line 0" && lines.count < 40_000)
            #expect(try daemon.apply("").apps.map(\.app) == ["flood"])
            try daemon.eventually("it is forgotten") { try daemon.list().isEmpty }
            while !stream.isOver { lines += try stream.next() }
            expectEveryLine(lines)
        }
    }

    /// A client that reads when it is told to.
    private final class LogStream {
        private let socket: Descriptor
        private var framer = MessageFramer()
        private(set) var isOver = false

        init(_ daemon: Daemon, _ request: LogsRequest) throws {
            socket = try Sockets.connect(path: daemon.socket)
            _ = try Sockets.send(socket.raw, ManagerRequest.logs(request).call.json.serialised() + [0], wait: true)
        }

        /// The lines of the next reply.
        func next() throws -> [Substring] {
            while true {
                if let message = try framer.next() {
                    let response = try VarlinkResponse(json: JSON.parse(message))
                    isOver = !response.continues
                    return (response.parameters["lines"]?.arrayValue ?? []).map {
                        Substring($0["text"]?.stringValue ?? "")
                    }
                }
                guard try Descriptor.wait(socket.raw, timeout: Daemon.bound),
                    let bytes = try Descriptor.read(socket.raw, maximum: 1 << 16), !bytes.isEmpty
                else { throw Trouble("no more lines came") }
                framer.append(bytes[...])
            }
        }
    }

    @Test("A client that reads late is not dropped for what piles up, and gets every line")
    func slowReader() throws {
        let files = [
            "flood.py": """
            import os, sys, tp
            for number in range(40000):
                sys.stdout.write("line %d %s\\n" % (number, "x" * 400))
            sys.stdout.write("end\\n")
            sys.stdout.flush()
            tp.record("done")
            tp.wait()
            """
        ]
        try withKilledDaemon(
            """
            [apps.flood]
            exec = ["/usr/bin/python3", "-S", "@D/flood.py"]
            launch = "on-demand"
            """,
            files: files
        ) { daemon throws in
            var request = LogsRequest(app: "flood")
            request.follow = true
            let stream = try LogStream(daemon, request)
            // The first says that it is followed from now on.
            _ = try stream.next()
            try daemon.done(.start, "flood")
            try daemon.waitForRecord("flood", "done")
            var lines: [Substring] = []
            while lines.last != "end" {
                lines += try stream.next().map {
                    $0.hasSuffix(" " + String(repeating: "x", count: 400)) ? $0.dropLast(401) : $0
                }
            }
            #expect(lines.count == 40_001)
            expectEveryLine(lines)
        }
    }

    @Test("events -f: each event comes once, in order, through deaths")
    func events() throws {
        try withKilledDaemon(
            """
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            """
        ) { daemon throws in
            let client = try Client(daemon, "events", "-f", "--json")
            try daemon.eventually("it is connected") { !client.lines.isEmpty }
            func seen() throws -> [EventRecord] {
                try client.lines.map { try EventRecord(json: JSON.parse(Array($0.utf8)[...])) }
            }
            for round in 1...8 {
                try daemon.done(.start, "web")
                if round == 2 || round == 5 { try daemon.replaceTorpord() }
                try daemon.done(.stop, "web")
                if round == 4 || round == 7 { try daemon.replaceTorpord() }
            }
            try daemon.done(.start, "web")
            try daemon.eventually("the last start is told") {
                try seen().contains { $0.incarnation == 9 && $0.to == "active" }
            }
            let seen = try seen()
            #expect(zip(seen, seen.dropFirst()).allSatisfy { $0.sequence < $1.sequence })
            for run in 1...9 as ClosedRange<Int64> {
                let states = seen.filter { $0.app == "web" && $0.incarnation == run && $0.kind == "state" }
                let expected = ["inactive", "active"] + (run < 9 ? ["not-running"] : [])
                #expect(states.compactMap(\.to) == expected, "run \(run)")
            }
        }
    }

    @Test("events that were told in the moment before a death are there after it, each once")
    func eventsBeforeDeath() throws {
        try withKilledDaemon(
            """
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            """
        ) { daemon throws in
            for _ in 0..<10 {
                try daemon.done(.start, "web")
                try daemon.replaceTorpord()
                try daemon.done(.stop, "web")
                try daemon.replaceTorpord()
            }
            let states = try daemon.events("web").filter { $0.kind == "state" }
            #expect(zip(states, states.dropFirst()).allSatisfy { $0.sequence < $1.sequence })
            for run in 1...10 as ClosedRange<Int64> {
                let walk = states.filter { $0.incarnation == run }.compactMap(\.to)
                #expect(walk == ["inactive", "active", "not-running"], "run \(run)")
            }
        }
    }
}
