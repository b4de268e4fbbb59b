// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("Nothing that was posted is lost, and nothing is told twice", .serialized)
struct DurableTests {
    @Test("whoever is lost while it waits", arguments: [Loss.killed, .keeper, .both, .upgraded])
    func waiting(loss: Loss) throws {
        try withRecovery(Posting.head, files: Delegates.files(), loss: loss) { daemon in
            try daemon.done(.start, "web", { $0.background = true })
            try daemon.done(.suspend, "web")
            for number in 0..<20 as Range<Int64> { try daemon.post("news", .int(number)) }
            try daemon.post("latest", .int(1))
            try daemon.lose(loss)
            try daemon.post("latest", .int(2))
            #expect(try daemon.mailbox().mail.count == 21)
            try daemon.done(.resume, "web")
            try daemon.eventually("all of it is told") { try daemon.told().count >= 21 }
            #expect(try daemon.told() == (0..<20).map { .int($0) } + [.int(2)])
            try daemon.eventually("nothing waits any more") { try daemon.mailbox().mail.isEmpty }
        }
    }

    @Test("by torpord's that are killed again and again while it is told")
    func killedWhileTelling() throws {
        // Slow enough that each is killed in the midst of it.
        let files = Delegates.files("didReceiveEvent=later(0.01)")
        try withRecovery(Posting.head, files: files) { daemon in
            try daemon.done(.start, "web", { $0.background = true })
            var next: Int64 = 0
            for round in 0..<6 {
                for _ in 0..<40 {
                    let number = next
                    next += 1
                    try daemon.post("news", .int(number))
                }
                usleep(useconds_t(20_000 + round * 17_000))
                try daemon.lose(.killed)
            }
            try daemon.eventually("all of it is told") { try daemon.told().count >= Int(next) }
            try daemon.eventually("nothing waits any more") { try daemon.mailbox().mail.isEmpty }
            #expect(try daemon.told() == (0..<next).map { .int($0) })
            #expect(try daemon.summary("web").incarnation == 1)
        }
    }

    @Test("by a boot of the machine, after which what is urgent wakes the app")
    func boot() throws {
        let daemon = try Daemon(Posting.head, files: Delegates.files(), nested: true)
        try daemon.waitUntilItAnswers()
        try daemon.post("news", .int(1))
        try daemon.post("latest", .int(2)) { $0.urgent = false }
        // Everything goes at once, as with the power, and what is in memory with it.
        for pid in Truth.processes(marked: daemon.directory) { kill(pid, SIGSTOP) }
        for pid in Truth.processes(marked: daemon.directory) { kill(pid, SIGKILL) }
        try daemon.eventually("all is gone") {
            _ = daemon.reap()
            return Truth.processes(marked: daemon.directory).isEmpty
        }
        try FileManager.default.removeItem(atPath: daemon.runtime)
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try daemon.eventually("it is remembered") { try daemon.mailbox().mail.map(\.topic) == ["news", "latest"] }
        try daemon.post("latest", .int(3)) { $0.urgent = true }
        try daemon.eventually("it is told") { try daemon.told() == [.int(1), .int(3)] }
        try daemon.endEverything()
    }

    @Test("by an app that ends before it has answered: the next incarnation hears it, what was answered it does not")
    func incarnations() throws {
        let answers = "didReceiveEvent=lambda m: 'done' if m['parameters']['payload'] < 2 else None"
        try withDaemon(Posting.head, files: Delegates.files(answers)) { daemon in
            try daemon.done(.start, "web")
            for number in 0..<5 as Range<Int64> { try daemon.post("news", .int(number)) }
            try daemon.eventually("two are answered and one is told") {
                try daemon.told().count == 3 && daemon.mailbox().mail.count == 3
            }
            #expect(try daemon.mailbox().mail.map(\.inFlight) == [true, false, false])
            let pid = try #require(try daemon.summary("web").pid)
            kill(pid, SIGKILL)
            try daemon.waitFor("web", "not-running")
            #expect(try daemon.mailbox().mail.map(\.inFlight) == [false, false, false])
            // It may get its mail before didBecomeActive, which then waits for an answer that does not come.
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.eventually("it is told") { try daemon.told(incarnation: 2).count == 1 }
            #expect(try daemon.told(incarnation: 2) == [.int(2)])
        }
    }

    @Test("what takes a whole mailbox is told in time, and its posts share the waits for the disk")
    func many() throws {
        try withDaemon(Posting.head, files: Delegates.files()) { daemon in
            try daemon.done(.start, "web", { $0.background = true })
            try daemon.done(.suspend, "web")
            let began = Clock.monotonic()
            let client = try daemon.connect()
            for number in 0..<1_000 as Range<Int64> {
                var request = PostRequest(app: "web", topic: "news")
                request.payload = .int(number)
                _ = try client.call(ManagerRequest.post(request).call, timeoutMilliseconds: 20_000)
            }
            let posted = Clock.monotonic() - began
            #expect(try daemon.refusal("news")?.name == "MailboxFull")
            try daemon.done(.resume, "web")
            try daemon.eventually("all of it is told", within: .seconds(60)) { try daemon.told().count == 1_000 }
            #expect(try daemon.told() == (0..<1_000).map { .int($0) })
            print("1,000 posts one after the other: \(posted)")
        }
    }
}
