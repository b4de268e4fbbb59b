// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("What nobody handles is kept, and what ends an app ends it three times", .serialized)
struct UnhandledTests {
    /// Dies of a payload of 3 and of each 20th.
    private static let dying = """
        didReceiveEvent=lambda m: os._exit(3) if m["parameters"]["payload"] == 3 or m["parameters"]["payload"] % 20 == 19 \
        else "done"
        """
    private static let head = Posting.head.replacing(
        "restart = \"never\"",
        with: "restart = \"on-failure\"\nrestart_backoff = { initial = \"0s\", limit = 1000 }"
    )

    private func unhandled(
        _ daemon: Daemon,
        _ change: (inout UnhandledRequest) -> Void = { _ in }
    ) throws
        -> [UnhandledInfo]
    {
        var request = UnhandledRequest()
        request.payload = true
        change(&request)
        let reply = try daemon.call(.unhandled(request))
        return try (reply["unhandled"]?.arrayValue ?? []).map { try UnhandledInfo(json: $0) }
    }

    private func torpor(_ daemon: Daemon, _ words: [String]) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor")] + words + ["--socket", daemon.socket])
    }

    @Test("A delegate that connects again instead of an answer is told three times, then the next message")
    func reconnects() throws {
        let program = """
            import os, sys
            sys.path.insert(0, "\(Sources.root)/Clients/python")
            import torpor
            from tp import record
            class Web(torpor.Delegate):
                def did_receive_event(self, message):
                    record("told %s" % message.payload)
                    if message.payload == 1:
                        os.execv(sys.executable, [sys.executable, "-S"] + sys.argv)
            torpor.App(Web()).run()
            """
        try withDaemon(Self.head, files: ["app.py": program]) { daemon in
            try daemon.done(.start, "web", { $0.background = true })
            for number in 1...2 as ClosedRange<Int64> { try daemon.post("news", .int(number)) }
            try daemon.waitForRecord("web", "told 2")
            try daemon.eventually("nothing waits any more") { try daemon.mailbox().mail.isEmpty }
            #expect(daemon.records("web") == ["told 1", "told 1", "told 1", "told 2"])
            #expect(try unhandled(daemon).map(\.payload) == [.int(1)])
            try daemon.waitForEvent("web", "closed its connection 3 times while handling a message about news")
            #expect(try daemon.summary("web").incarnation == 1)
        }
    }

    @Test("An app that ends by the third of ten messages handles nine, and lives", arguments: [3, 0])
    func third(code: Int) throws {
        // Whether the exit status says that it failed makes no difference.
        let head = Self.head.replacing("\"on-failure\"", with: "\"always\"")
        let dying = Self.dying.replacing("_exit(3)", with: "_exit(\(code))")
        try withDaemon(head, files: Delegates.files(dying)) { daemon in
            try daemon.done(.start, "web", { $0.background = true })
            for number in 1...10 as ClosedRange<Int64> { try daemon.post("news", .int(number)) }
            try daemon.eventually("nothing waits any more") { try daemon.mailbox().mail.isEmpty }
            try daemon.eventually("it has answered the last") {
                try daemon.heard("web").contains { $0.what == "message" && $0.parameters["payload"] == .int(10) }
            }
            let told = try daemon.told()
            #expect(told.filter { $0 == .int(3) }.count == 3)
            #expect(
                told.filter { $0 != .int(3) } == ((1...10) as ClosedRange<Int64>).filter { $0 != 3 }.map { .int($0) }
            )
            let kept = try unhandled(daemon)
            #expect(kept.map(\.payload) == [.int(3)] && kept.map(\.why) == ["crashed"] && kept.map(\.attempts) == [3])
            #expect(kept.map(\.incarnation) == [3])
            let status = try daemon.status("web")
            #expect(status.summary.incarnation == 4 && !status.summary.failed && status.unhandled == 1)
            #expect(Truth.isAlive(try #require(status.summary.pid)))
            #expect(status.reports.contains { $0.incarnation == 3 } == (code != 0))
            // After the cause is mended it is told again, and answered.
            try File.write(daemon.directory + "/app.py", "from delegate import *\nobey(Delegate())\n")
            try daemon.done(.restart, "web")
            _ = try daemon.call(.replayUnhandled(ReplayRequest(id: kept[0].id)))
            try daemon.eventually("it is told again") { try daemon.told(incarnation: 5) == [.int(3)] }
            #expect(try unhandled(daemon).isEmpty)
        }
    }

    @Test("Nothing is lost and nothing blocks, whoever is killed meanwhile", arguments: [Loss.killed, .keeper, .both])
    func killed(loss: Loss) throws {
        try withRecovery(Self.head, files: Delegates.files(Self.dying), loss: loss) { daemon in
            try daemon.done(.start, "web", { $0.background = true })
            var next: Int64 = 0
            var random = SystemRandomNumberGenerator()
            let rounds = ProcessInfo.processInfo.environment["TORPOR_UNHANDLED_KILLS"].flatMap { Int($0) } ?? 5
            for _ in 0..<rounds {
                for _ in 0..<12 {
                    next += 1
                    try daemon.post("news", .int(next == 3 ? 4 : next))
                }
                usleep(.random(in: 0...60_000, using: &random))
                try daemon.lose(loss)
                if try daemon.summary("web").pid == nil {
                    _ = try? daemon.done(.start, "web", { $0.background = true })
                }
            }
            let bad = ((1...next) as ClosedRange<Int64>).filter { $0 % 20 == 19 }.map { JSON.int($0) }
            try daemon.eventually("nothing waits any more", within: .seconds(60)) {
                if try daemon.summary("web").pid == nil {
                    _ = try? daemon.done(.start, "web", { $0.background = true })
                }
                return try daemon.mailbox().mail.isEmpty
            }
            let kept = try unhandled(daemon)
            #expect(kept.compactMap(\.payload) == bad)
            #expect(kept.allSatisfy { $0.why == "crashed" && $0.attempts == 3 })
            let told = try daemon.told()
            for number in 1...next where number != 3 && !bad.contains(.int(number)) {
                #expect(told.contains(.int(number)), "\(number) was told to nobody")
            }
            #expect(try daemon.summary("web").failed == false)
        }
    }

    @Test("It goes on to those that the topic names, and is kept where it ends") func chain() throws {
        let toml = """
            [apps.web]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            launch = "on-demand"
            ready = "delegate"
            topics = { orders = { next = ["ops", "tag:last"] } }
            [apps.ops]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            launch = "on-demand"
            ready = "delegate"
            topics = { orders = { urgent = true } }
            [apps.third]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            launch = "on-demand"
            ready = "delegate"
            tags = ["last"]
            topics = { orders = { urgent = true } }

            """
        let answers = """
            didReceiveEvent=lambda m: \
            "unhandled" if APP != "third" or m["parameters"]["payload"] == 2 else "done"
            """
        try withDaemon(toml, files: Delegates.files(answers)) { daemon in
            try daemon.post("orders", .int(1)) { $0.urgent = true }
            try daemon.eventually("the third is told") { try daemon.told("third") == [.int(1)] }
            #expect(try daemon.told("web") == [.int(1)] && daemon.told("ops") == [.int(1)])
            let heard = try daemon.heard("third").first { $0.name == "didReceiveEvent" }
            #expect(heard?.parameters["sender"] == "root")
            try daemon.post("orders", .int(2))
            try daemon.eventually("it is kept") { try unhandled(daemon).count == 1 }
            let kept = try unhandled(daemon)
            #expect(kept.map(\.app) == ["web"] && kept.map(\.why) == ["unhandled"])
            #expect(kept.map(\.asked) == [["web", "ops", "third"]])
            #expect(try unhandled(daemon) { $0.apps = ["ops"] }.isEmpty)
            // To a message of the lifecycle it is as good as done.
            let dropped = try daemon.call(.dropUnhandled(DropRequest(ids: kept.map(\.id))))
            #expect(dropped["ids"]?.arrayValue?.count == 1)
            #expect(try unhandled(daemon).isEmpty)
        }
    }

    @Test("The command line lists, shows, tells again and drops, and says what is wrong") func commands() throws {
        let toml = Posting.head + "mail_attempts = 1\n"
        let answers = "didReceiveEvent=lambda m: 'unhandled' if m['parameters']['payload'] == 1 else 'done'"
        try withDaemon(toml, files: Delegates.files(answers)) { daemon in
            #expect(try torpor(daemon, ["unhandled"]).output == "no unhandled messages\n")
            try daemon.done(.start, "web")
            try daemon.post("news", .int(1))
            try daemon.eventually("it is kept") { try unhandled(daemon).count == 1 }
            let id = "\(try unhandled(daemon)[0].id)"
            let listed = try torpor(daemon, ["unhandled", "web"])
            #expect(listed.code == 0 && listed.output.contains(id) && listed.output.contains("unhandled"), "\(listed)")
            let shown = try torpor(daemon, ["unhandled", "--show", id])
            #expect(try JSON.parse(shown.output)["payload"] == .int(1), "\(shown)")
            let again = try torpor(daemon, ["unhandled", "--replay", id])
            #expect(again.code == 0 && again.output.hasPrefix("web gets it"), "\(again)")
            try daemon.eventually("it is kept again, under another number") {
                try unhandled(daemon).map { "\($0.id)" }.contains { $0 != id }
            }
            let gone = try torpor(daemon, ["unhandled", "--drop", id])
            #expect(gone.code == 1 && gone.output.contains("no unhandled message \(id)"), "\(gone)")
            let all = try torpor(daemon, ["unhandled", "web", "--drop-all"])
            #expect(all.output == "1 message dropped\n", "\(all)")
            for words in [
                ["--drop-all"], ["web", "--show", id], ["--to", "web"], ["--show", id, "--drop", id],
                ["--replay", id, "--to", "web*"],
            ] {
                let refused = try torpor(daemon, ["unhandled"] + words)
                #expect(refused.code == 2 && refused.output.hasPrefix("torpor: "), "\(words): \(refused)")
            }
        }
    }
}
