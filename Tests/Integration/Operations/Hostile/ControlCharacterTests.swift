// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// Control characters take six bytes each in JSON, and clients take no message of more than 16 MiB.
@Suite("An app that writes control characters") struct ControlCharacterTests {
    /// As JSON, its output has 29 MB; the arguments of its processes have 6 MB of what is read of them.
    private static let program = """
        import os, time
        for number in range(300):
            os.write(1, b"\\1" * 16000 + b"\\n")
        for number in range(250):
            if os.fork() == 0:
                os.execv("/bin/sleep", ["\\1" * 60000, "1000"])
        os.write(1, b"end\\n")
        time.sleep(1000)
        """

    private static let toml = """
        [apps.loud]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        launch = "on-demand"
        restart = "never"
        """

    private static let most = (4 << 20) + (64 << 10)

    private static func logs(_ daemon: Daemon, lines: Int64) throws -> JSON {
        var request = LogsRequest(app: "loud")
        (request.lines, request.isOneReply) = (lines, true)
        return try daemon.call(.logs(request))
    }

    private static func texts(_ reply: JSON) -> [String] {
        (reply["lines"]?.arrayValue ?? []).compactMap { $0["text"]?.stringValue }
    }

    private static func torpor(_ daemon: Daemon, _ words: String...) throws {
        let (code, output) = try Spawn.run([Built.path("torpor"), "--socket", daemon.socket] + words)
        #expect(code == 0, "\(words): \(output.prefix(500))")
    }

    @Test("makes no reply longer than clients read: its output, its status and its reports")
    func replies() throws {
        try withDaemon(Self.toml, files: ["app.py": Self.program]) { daemon in
            try daemon.done(.start, "loud")
            try daemon.eventually("all is written") { Self.texts(try Self.logs(daemon, lines: 1)) == ["end"] }

            let last = try Self.logs(daemon, lines: 1_000)
            #expect(last.serialised().count < Self.most && last["truncated"] == true)
            let texts = Self.texts(last)
            #expect(texts.last == "end" && texts.count > 30)
            #expect(texts.dropLast().allSatisfy { $0.utf8.count == 16_000 })
            #expect(try Self.logs(daemon, lines: 20)["truncated"] == false)

            try daemon.eventually("its processes run") { try daemon.status("loud").processes.count > 250 }
            let status = try daemon.call(.status(app: "loud"))
            #expect(status.serialised().count < Self.most)
            let lines = try AppStatus(json: status["status"] ?? .null).log
            #expect(lines.count == 10 && lines[0].text.hasSuffix("\u{1}…"))
            try Self.torpor(daemon, "status", "loud")
            try Self.torpor(daemon, "status", "--json")

            let main = try #require(try daemon.summary("loud").pid)
            kill(main, SIGSEGV)
            try daemon.eventually("it has a report") { try daemon.reports("loud").count == 1 }
            let report = try daemon.reports("loud")[0]
            #expect(report.log.count == 10 && report.json.serialised().count < 64 << 10)
            try Self.torpor(daemon, "report")
            try Self.torpor(daemon, "report", "--json")
        }
    }
}
