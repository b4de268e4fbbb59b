// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import EventSources
import Lifecycle
import Linux
import Mailbox
import Store
import Testing
import TorporAPI
import Varlink

@testable import Supervisor

@Suite("What nobody handles, and what ends whoever is told it") struct UnhandledTests {
    private static let many = """
        topics = { "*" = { next = ["ops", "tag:last"] }, alone = "all" }
        restart = "never"
        [apps.ops]
        exec = ["/bin/true"]
        launch = "on-demand"
        topics = { orders = { urgent = true } }
        [apps.third]
        exec = ["/bin/true"]
        launch = "on-demand"
        tags = ["last"]
        topics = { orders = "latest" }
        """

    private func posted(_ mail: FakeMail, _ topic: String, _ payload: JSON = .null) throws -> Int64 {
        try #require(try mail.post(topic) { $0.payload = payload }.get().id)
    }

    private func kept(_ mail: FakeMail, _ query: UnhandledQuery = UnhandledQuery()) throws -> [StoredUnhandled] {
        var rows: [StoredUnhandled]?
        // A disk that is busy with others is asked again.
        func ask() {
            mail.boxes.unhandled.list(query) { result in
                rows = try? result.get()
                if rows == nil { ask() }
            }
        }
        ask()
        try mail.turn { rows != nil }
        return rows ?? []
    }

    /// Launches the app, has it told that, and ends the run.
    private func run(_ mail: FakeMail, telling id: Int64?, endsBy end: ExitCause) throws {
        try mail.shell.start("web")
        if let id { mail.boxes.willSend(id, to: mail.web) }
        mail.shell.engine.deliver(.mainExited(end), to: mail.web.id)
        mail.shell.engine.deliver(.allGone, to: mail.web.id)
        try #require(mail.shell.state("web") == .notRunning)
        mail.boxes.incarnationEnded(mail.web)
    }

    // MARK: Attempts

    @Test("What ends three runs is told no more, and the next message is") func crashed() throws {
        let mail = try FakeMail("topics = { \"*\" = {} }\nrestart = \"never\"")
        let bad = try posted(mail, "bad", ["n": .int(3)])
        let good = try posted(mail, "good")
        for _ in 0..<2 { try run(mail, telling: bad, endsBy: .exited(code: 1)) }
        #expect(mail.waiting == ["bad", "good"] && mail.boxes.unhandled.count(of: mail.web) == 0)
        try run(mail, telling: bad, endsBy: .signaled(11, coreDumped: false))
        #expect(mail.boxes.waiting(for: mail.web).map(\.id) == [good])
        let rows = try kept(mail)
        #expect(rows.map(\.why) == ["crashed"] && rows.map(\.run) == [3] && rows.map(\.mail.id) == [bad])
        #expect(rows.first?.mail.payload == #"{"n":3}"# && rows.first?.mail.standing.attempts == 3)
        let told = mail.shell.told(of: "web").filter { $0.hasPrefix("unhandled: ") }
        #expect(told.count == 1 && told.first?.contains("ended 3 times while handling") ?? false, "\(told)")
        // It is on the disk like that.
        let stored = try mail.stored()
        #expect(stored.mail.keys.sorted() == [good] && stored.unhandled.keys.sorted() == [bad])
    }

    @Test("Runs that end as somebody asked, or in which it was not told, count for nothing") func harmless() throws {
        let mail = try FakeMail("topics = { \"*\" = {} }\nrestart = \"never\"\nmail_attempts = 1")
        let id = try posted(mail, "a")
        try run(mail, telling: nil, endsBy: .exited(code: 1))
        try mail.shell.start("web")
        mail.boxes.willSend(id, to: mail.web)
        try mail.shell.request(.forceQuit, "web")
        #expect(mail.boxes.waiting(for: mail.web).map(\.attempts) == [0])
        try run(mail, telling: id, endsBy: .exited(code: 0))
        #expect(mail.waiting.isEmpty && mail.boxes.unhandled.count(of: mail.web) == 1)
    }

    @Test("A run that hung in it counts, also if a person ends it") func hung() throws {
        let mail = try FakeMail("topics = { \"*\" = {} }\nrestart = \"never\"\nmail_attempts = 2")
        let (bad, good) = (try posted(mail, "bad"), try posted(mail, "good"))
        for (id, late) in [(bad, bad), (good, bad), (bad, bad)] {
            try mail.shell.start("web")
            mail.boxes.willSend(id, to: mail.web)
            mail.boxes.missedDeadline(late, by: mail.web)
            try mail.shell.request(.forceQuit, "web")
            try #require(mail.shell.state("web") == .notRunning)
            mail.boxes.incarnationEnded(mail.web)
        }
        #expect(mail.boxes.waiting(for: mail.web).map(\.id) == [good])
        #expect(mail.boxes.waiting(for: mail.web).map(\.attempts) == [0], "that one it had answered, or not been told")
        #expect(mail.boxes.unhandled.count(of: mail.web) == 1)
    }

    @Test("What woke an app that then exits with success wakes it again, as often as it may end it") func wakesAgain()
        throws
    {
        let mail = try FakeMail("topics = { \"*\" = {}, jobs = { urgent = true } }")
        let (job, other) = (try posted(mail, "jobs"), try posted(mail, "other"))
        for count in 1...2 {
            try run(mail, telling: job, endsBy: .exited(code: 0))
            try mail.turn { mail.host.retried.count == count }
        }
        #expect(mail.host.retried.map(\.id) == [job, job])
        try run(mail, telling: job, endsBy: .exited(code: 0))
        #expect(mail.waiting == ["other"])
        // What wakes nothing waits for something else that does, and so does what the app was not told.
        try run(mail, telling: other, endsBy: .exited(code: 0))
        try run(mail, telling: nil, endsBy: .exited(code: 0))
        try mail.shell.engine.loop.settle()
        #expect(mail.host.retried.count == 2)
    }

    @Test("The attempt stands on the disk before it is told, and how the run ended is asked once it is known")
    func takenOver() throws {
        let mail = try FakeMail("topics = { \"*\" = {} }\nrestart = \"never\"\nmail_attempts = 1")
        let id = try posted(mail, "a")
        try mail.shell.start("web")
        mail.boxes.willSend(id, to: mail.web)
        let standing = try #require(try mail.stored().mail[id]?.standing)
        #expect(standing.attempts == 1 && standing.run == 1)
    }

    @Test("Of a run that ended before it was known what waits, it counts", arguments: [1, 0, nil] as [Int32?])
    func endedBeforeLoad(code: Int32?) throws {
        let counts = code != nil
        let mail = try FakeMail("topics = { \"*\" = {} }\nrestart = \"never\"\nmail_attempts = 1", isLoaded: false)
        if let code {
            try run(mail, telling: nil, endsBy: .exited(code: code))
        } else {
            try mail.shell.start("web")
            try mail.shell.request(.forceQuit, "web")
        }
        var contents = StoreContents()
        var stored = StoredMail(id: 7, app: "web", topic: "a", message: "didReceiveEvent", at: 1)
        stored.standing.attempts = 1
        stored.standing.run = 1
        contents.mail[7] = stored
        // Nobody has heard how this one ended: the machine lost its power.
        stored.id = 8
        stored.standing.run = 0
        contents.mail[8] = stored
        mail.load(contents)
        #expect(mail.boxes.waiting(for: mail.web).map(\.id) == (counts ? [8] : [7, 8]))
        #expect(mail.boxes.waiting(for: mail.web).allSatisfy { $0.attempts == 0 && $0.run == nil })
        #expect(mail.boxes.unhandled.count(of: mail.web) == (counts ? 1 : 0))
    }

    @Test("What cannot be told is kept, and what is kept already is told no more") func unreadable() throws {
        let mail = try FakeMail(isLoaded: false)
        var contents = StoreContents()
        for (id, message, payload) in [(1, "didReceiveEvent", "{"), (2, "beamUp", "1"), (3, "didReceiveEvent", "1")] {
            contents.mail[Int64(id)] = StoredMail(
                id: Int64(id),
                app: "web",
                topic: "t",
                message: message,
                payload: payload,
                at: 1
            )
        }
        let third = try #require(contents.mail[3])
        contents.unhandled[3] = StoredUnhandled(mail: third, why: "crashed", at: 2)
        mail.load(contents)
        #expect(mail.waiting.isEmpty && mail.boxes.unhandled.count(of: mail.web) == 3)
        #expect(try kept(mail).map(\.why) == ["unreadable", "unknown-message"], "the third is not in this file")
    }

    // MARK: Chains

    @Test("The next in the chain is told as its own topics say, and at the end it is kept") func chain() throws {
        let mail = try FakeMail(Self.many)
        let (ops, third) = (mail.shell.app("ops"), mail.shell.app("third"))
        let id = try posted(mail, "orders", .int(7))
        mail.boxes.passOver(id, by: mail.web)
        #expect(mail.waiting.isEmpty)
        let second = try #require(mail.boxes.waiting(for: ops).first)
        #expect(second.draft.sender == "person" && second.draft.payload == .int(7))
        #expect(second.draft.wake == .background && mail.host.events.last?.wake != nil, "it is urgent there")
        mail.boxes.passOver(second.id, by: ops)
        let last = try #require(mail.boxes.waiting(for: third).first)
        #expect(last.draft.coalescing == .latest && last.draft.wake == nil && last.draft.sender == "person")
        mail.boxes.passOver(last.id, by: third)
        let rows = try kept(mail)
        #expect(rows.map(\.mail.app) == ["web"] && rows.map(\.why) == ["unhandled"])
        let chain = rows.first?.mail.standing.chain.flatMap { try? JSON.parse($0) }.flatMap { MailChain($0) }
        #expect(chain?.asked == ["web", "ops", "third"] && chain?.sender == "person")
        #expect(mail.boxes.unhandled.count(of: mail.web) == 1 && mail.boxes.unhandled.count(of: third) == 0)
    }

    @Test("Who takes nothing of it, or has a full mailbox, is passed over; without a next it is kept at once")
    func passedOver() throws {
        let mail = try FakeMail(Self.many.replacing("urgent = true }", with: "urgent = true } }\nmailbox_limit = 1 #"))
        let (ops, third) = (mail.shell.app("ops"), mail.shell.app("third"))
        try mail.boxes.add(MailDraft(topic: "x", message: "didReceiveEvent", sender: "x"), for: ops)
        mail.boxes.passOver(try posted(mail, "orders"), by: mail.web)
        #expect(mail.boxes.waiting(for: ops).count == 1 && mail.boxes.waiting(for: third).count == 1)
        mail.boxes.passOver(try posted(mail, "news"), by: mail.web)
        mail.boxes.passOver(try posted(mail, "alone"), by: mail.web)
        #expect(try kept(mail).map(\.mail.topic) == ["news", "alone"])
        #expect(mail.waiting.isEmpty)
    }

    @Test("What nobody sent is not kept: to be woken for it may be all that it is for", arguments: [false, true])
    func ownEvents(isRead: Bool) throws {
        let mail = try FakeMail(isLoaded: !isRead)
        var draft = MailDraft(topic: "timer:nightly", message: "didReceiveEvent", sender: "timer")
        draft.isOwnEvent = true
        if isRead {
            var contents = StoreContents()
            contents.mail[7] = StoredMail(Mail(id: 7, draft: draft, firstAt: 1, lastAt: 1), of: "web")
            mail.load(contents)
        } else {
            try mail.boxes.add(draft, for: mail.web)
        }
        let id = try #require(mail.boxes.waiting(for: mail.web).first?.id)
        mail.boxes.passOver(id, by: mail.web)
        #expect(mail.waiting.isEmpty && mail.boxes.unhandled.count(of: mail.web) == 0)
    }

    @Test("One that stands with the next already is not put there again") func once() throws {
        let mail = try FakeMail(Self.many)
        let id = try posted(mail, "orders")
        var draft = MailDraft(topic: "orders", message: "didReceiveEvent", sender: "person")
        var chain = MailChain(sender: "person")
        chain.passedOver("web", source: id, next: [])
        draft.chain = chain
        try mail.boxes.add(draft, for: mail.shell.app("ops"))
        mail.boxes.passOver(id, by: mail.web)
        #expect(mail.waiting.isEmpty && mail.boxes.waiting(for: mail.shell.app("ops")).count == 1)
    }

    // MARK: The list

    @Test("What is told again is told as it was, and is in the list no more") func replay() throws {
        let mail = try FakeMail(Self.many)
        let id = try posted(mail, "alone", .string("ü"))
        mail.boxes.passOver(id, by: mail.web)
        var outcome: Result<PostResult, ReplayRefusal>?
        mail.boxes.replay(id, of: mail.web, to: mail.web, by: "person") { outcome = $0 }
        try mail.turn { outcome != nil }
        #expect(try outcome?.get().change == "added")
        let again = try #require(mail.boxes.waiting(for: mail.web).first)
        #expect(again.draft.payload == .string("ü") && again.draft.sender == "person" && again.attempts == 0)
        #expect(again.draft.chain == nil && again.id != id)
        #expect(try kept(mail).isEmpty && mail.boxes.unhandled.count(of: mail.web) == 0)
        // A second one comes too late.
        outcome = nil
        mail.boxes.replay(id, of: mail.web, to: mail.web, by: "person") { outcome = $0 }
        try mail.turn { outcome != nil }
        guard case .failure(.gone) = outcome else {
            Issue.record("it was told twice")
            return
        }
    }

    @Test("Who does not take it is not told it, and it stays in the list") func replayRefused() throws {
        let mail = try FakeMail(Self.many)
        let id = try posted(mail, "alone")
        mail.boxes.passOver(id, by: mail.web)
        var outcome: Result<PostResult, ReplayRefusal>?
        mail.boxes.replay(id, of: mail.web, to: mail.shell.app("ops"), by: "person") { outcome = $0 }
        try mail.turn { outcome != nil }
        guard case .failure(.refused(.notSubscribed, let topic)) = outcome else {
            Issue.record("\(String(describing: outcome))")
            return
        }
        #expect(topic == "alone" && mail.boxes.unhandled.has(id, of: mail.web))
    }

    @Test("The newest thousand of an app are kept, and no more than 16 MiB") func bounded() throws {
        let mail = try FakeMail()
        let list = mail.boxes.unhandled
        func item(_ id: Int64, bytes: Int = 4) -> StoredMail {
            var stored = StoredMail(id: id, app: "web", topic: "t", message: "didReceiveEvent", at: 1)
            stored.payload = "\"" + String(repeating: "x", count: bytes) + "\""
            return stored
        }
        for id in 1...1_003 as ClosedRange<Int64> { list.add(item(id), .unhandled, mail.web) }
        #expect(list.ids(of: mail.web).first == 4 && list.count(of: mail.web) == 1_000)
        #expect(mail.web.unhandledDropped == 3)
        #expect(try kept(mail).count == 1_000)
        for id in 2_000..<2_270 as Range<Int64> { list.add(item(id, bytes: 64 << 10), .unhandled, mail.web) }
        let rows = try kept(mail)
        let bytes = rows.reduce(0) { $0 + $1.size }
        #expect(bytes <= 16 << 20 && bytes > 15 << 20)
        #expect(rows.map(\.mail.id) == list.ids(of: mail.web))
        let one = try #require(list.ids(of: mail.web).first)
        #expect(list.drop(one, of: mail.web) && !list.drop(one, of: mail.web))
        list.forget(mail.web)
        #expect(list.count(of: mail.web) == 0)
    }
}
