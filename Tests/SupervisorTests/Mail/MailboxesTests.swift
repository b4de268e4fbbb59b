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

@Suite("What waits for an app, and that it is told it") struct MailboxesTests {
    private func draft(_ topic: String, _ wake: MailWake? = nil) -> MailDraft {
        var draft = MailDraft(topic: topic, message: "didReceiveEvent", sender: "x")
        draft.wake = wake
        return draft
    }

    private func queued(_ mail: FakeMail) -> [Int64] { mail.web.channel?.queue.compactMap(\.mail) ?? [] }

    // MARK: By its channel

    @Test("An app that runs is handed all of it in the order of arrival, 64 at a time") func batches() throws {
        let mail = try FakeMail()
        mail.host.hearing = [0]
        for number in 0..<70 { try mail.boxes.add(draft("t\(number)"), for: mail.web) }
        let ids = mail.boxes.waiting(for: mail.web).map(\.id)
        #expect(ids == ids.sorted() && Set(ids).count == 70)
        try mail.shell.start("web")
        #expect(queued(mail) == Array(ids[..<64]))
        let pumped = mail.host.pumped
        #expect(pumped > 0)
        // What is told already is not told again.
        mail.boxes.deliver(to: mail.web)
        #expect(queued(mail).count == 64 && mail.host.pumped == pumped)
        for id in ids[..<3] {
            mail.web.channel?.queue.removeFirst()
            mail.boxes.acknowledged(id, by: mail.web)
        }
        mail.boxes.enqueue(mail.web)
        #expect(queued(mail) == Array(ids[3..<67]))
        #expect(mail.waiting.count == 67)
    }

    @Test("What an incarnation did not answer is told to the next one, and may become one with others again")
    func nextRun()
        throws
    {
        let mail = try FakeMail("topics = { a = { coalesce = \"latest\" } }\nrestart = \"never\"")
        mail.host.hearing = [0]
        try mail.shell.start("web")
        mail.host.onWake = { [unowned boxes = mail.boxes] in boxes.deliver(to: $0) }
        let first = try #require(try mail.post("a").get().id)
        mail.boxes.willSend(first, to: mail.web)
        #expect(try mail.post("a").get().change == "added", "what is on its way stays as it is")
        try mail.shell.request(.forceQuit, "web")
        mail.web.channel = nil
        mail.boxes.incarnationEnded(mail.web)
        #expect(mail.boxes.waiting(for: mail.web).map(\.isInFlight) == [false, false])
        #expect(try mail.post("a").get().change == "changed")
        try mail.shell.start("web")
        #expect(queued(mail) == mail.boxes.waiting(for: mail.web).map(\.id))
    }

    @Test("A suspended app is told nothing, and all when it goes on") func suspended() throws {
        let mail = try FakeMail()
        mail.host.hearing = [0]
        try mail.shell.start("web")
        try mail.shell.suspend("web")
        try mail.post("a")
        #expect(queued(mail).isEmpty)
        #expect(mail.boxes.waiting(for: mail.web).count == 1)
        try mail.shell.request(.resume, "web")
        #expect(queued(mail).count == 1)
    }

    @Test("What was answered in the last moment of a torpord is not told again by the next one") func takenOver() throws
    {
        let mail = try FakeMail(isLoaded: false)
        mail.host.hearing = [0]
        try mail.shell.start("web")
        let run = try #require(Mailboxes.run(of: mail.web))
        let channel = mail.host.channel(of: mail.web)
        for id in [Int64(7), 8, 9] {
            channel.add(.didReceiveEvent, isAwaited: false, mail: id)
            mail.boxes.isUnderWay(id, to: mail.web)
        }
        var contents = StoreContents()
        // The first was sent to it; the second only stood behind it.
        let sent = Mail(id: 8, draft: draft("b"), firstAt: 1, lastAt: 1, attempts: 1, run: run)
        contents.mail[8] = StoredMail(sent, of: "web")
        contents.mail[9] = StoredMail(Mail(id: 9, draft: draft("c"), firstAt: 1, lastAt: 1), of: "web")
        mail.load(contents)
        #expect(queued(mail) == [8, 9])
        #expect(channel.answeredID == 1 && mail.host.pumped == 1)
        #expect(mail.boxes.waiting(for: mail.web).map(\.isInFlight) == [true, false])
        var drop = MailboxRequest(app: "web")
        drop.drop = [8, 9]
        #expect(mail.boxes.mailbox(drop, of: mail.web, by: "person").mail.map(\.id) == [9])
    }

    // MARK: By signals: one that this process, which stands for the app's, does not mind

    private static let bySignal = "signals = { didReceiveEvent = \"URG\" }\n"

    @Test("An app that hears by a signal has heard all that it stands for, but for what is to be kept") func signals()
        throws
    {
        let mail = try FakeMail(Self.bySignal + "topics = { a = {}, kept = { keep = true } }")
        for topic in ["a", "kept", "a"] { try mail.post(topic) }
        try mail.shell.start("web")
        #expect(mail.waiting == ["kept"])
        #expect(mail.shell.told(of: "web").filter { $0.contains("by SIGURG") }.count == 3)
        // Once a run.
        mail.boxes.deliver(to: mail.web)
        #expect(mail.shell.told(of: "web").filter { $0.contains("by SIGURG") }.count == 3)
        var look = TakeRequest()
        look.keep = true
        let taken = mail.boxes.take(look, mail.web)
        #expect(taken.map(\.topic) == ["kept"] && mail.waiting == ["kept"])
        var done = TakeRequest()
        done.done = taken.map(\.id)
        #expect(mail.boxes.take(done, mail.web).isEmpty && mail.waiting.isEmpty)
    }

    @Test("A suspended one has its signal before it goes on") func beforeResume() throws {
        let mail = try FakeMail(Self.bySignal + "topics = { \"*\" = {} }")
        try mail.shell.start("web")
        try mail.shell.suspend("web")
        try mail.post("a")
        #expect(mail.waiting == ["a"])
        mail.boxes.deliverBeforeResume(to: mail.web)
        #expect(mail.waiting.isEmpty && mail.shell.state("web") == .suspended)
    }

    // MARK: Waking, taking, forgetting

    @Test("When it may be woken again, what is for the foreground does, else the oldest that is to wake it")
    func retry()
        throws
    {
        let mail = try FakeMail()
        try mail.boxes.add(draft("silent"), for: mail.web)
        mail.boxes.retry(mail.web)
        #expect(mail.host.retried.isEmpty)
        try mail.boxes.add(draft("first", .background), for: mail.web)
        try mail.boxes.add(draft("second", .background), for: mail.web)
        mail.boxes.retry(mail.web)
        try mail.boxes.add(draft("front", .foreground), for: mail.web)
        mail.boxes.retry(mail.web)
        #expect(mail.host.retried.map(\.draft.topic) == ["first", "front"])
    }

    @Test("What has no room in a reply is listed by the next one, and is not taken before") func parts() throws {
        let mail = try FakeMail("topics = { \"*\" = {} }\nmailbox_size = \"none\"")
        let text = JSON.string(String(repeating: "\u{1}", count: 10_000))
        for number in 1...100 {
            var draft = self.draft("\(number)")
            draft.payload = text
            try mail.boxes.add(draft, for: mail.web)
        }
        let all = mail.boxes.waiting(for: mail.web).map(\.id)
        var request = MailboxRequest(app: "web")
        var listed: [Int64] = []
        for isLast in [false, true] {
            let status = mail.boxes.mailbox(request, of: mail.web, by: "p")
            #expect(status.json.serialised().count <= BoundedReply.mostBytes + 200)
            #expect(status.hasMore == !isLast)
            listed += status.mail.map(\.id)
            request.after = listed.last
        }
        #expect(listed == all)
        var look = TakeRequest()
        look.keep = true
        var last = look
        last.only = [try #require(all.last), 1_000_000]
        #expect(mail.boxes.take(last, mail.web).map(\.id) == all.suffix(1) && mail.waiting.count == 100)
        let first = mail.boxes.take(look, mail.web).map(\.id)
        #expect(first.count > 50 && first.count < 100 && mail.waiting.count == 100)
        #expect(mail.boxes.take(TakeRequest(), mail.web).map(\.id) == first)
        #expect(mail.boxes.waiting(for: mail.web).map(\.id) == Array(all.dropFirst(first.count)))
        request = MailboxRequest(app: "web")
        request.take = true
        #expect(mail.boxes.mailbox(request, of: mail.web, by: "p").mail.map(\.id) == Array(all.dropFirst(first.count)))
        #expect(mail.waiting.isEmpty)
    }

    @Test("What is on its way to the app is neither dropped nor taken by a person") func persons() throws {
        let mail = try FakeMail()
        var ids: [Int64] = []
        for topic in ["a", "b", "c"] { ids.append(try #require(try mail.post(topic).get().id)) }
        mail.boxes.willSend(ids[0], to: mail.web)
        var request = MailboxRequest(app: "web")
        #expect(mail.boxes.mailbox(request, of: mail.web, by: "p").mail.map(\.inFlight) == [true, false, false])
        request.drop = [ids[0], ids[1], 99]
        #expect(mail.boxes.mailbox(request, of: mail.web, by: "p").mail.map(\.topic) == ["b"])
        request = MailboxRequest(app: "web")
        request.take = true
        #expect(mail.boxes.mailbox(request, of: mail.web, by: "p").mail.map(\.topic) == ["c"])
        #expect(mail.waiting == ["a"])
        #expect(try mail.stored().mail.values.map(\.topic) == ["a"])
        #expect(mail.shell.told(of: "web").contains { $0.contains("a message about b was dropped from its mailbox") })
    }

    @Test("Numbers grow, also behind what was kept, and are never given again") func numbers() throws {
        let mail = try FakeMail(isLoaded: false)
        var contents = StoreContents()
        let future = Int64(5_000_000_000_000_000)
        contents.mail[future] = StoredMail(Mail(id: future, draft: draft("a"), firstAt: 1, lastAt: 1), of: "web")
        mail.load(contents)
        let id = try #require(try mail.post("b").get().id)
        #expect(id == future + 1)
        mail.boxes.acknowledged(id, by: mail.web)
        #expect(try mail.post("b").get().id == future + 2)
    }

    @Test("An app that is gone leaves nothing to whoever gets its place") func forgotten() throws {
        let mail = try FakeMail()
        try mail.post("a")
        mail.boxes.willSend(mail.boxes.waiting(for: mail.web)[0].id, to: mail.web)
        let engine = mail.shell.engine
        let web = mail.web
        engine.perform(try engine.coordinator.reconfigure([], now: engine.loop.now))
        engine.settle()
        #expect(mail.shell.hands.forgotten == ["web"])
        #expect(mail.boxes.waiting(for: web).isEmpty && mail.boxes.bytes(of: web) == 0)
    }

    // MARK: Topics

    @Test("An app asks for a topic, and has it in its next life and the supervisor's") func subscribes() throws {
        let mail = try FakeMail("topics = { a = {} }")
        var request = SubscribeRequest(topic: "dev.*")
        request.coalesce = "latest"
        request.urgent = true
        #expect(try mail.subscribe(request) == nil)
        #expect(try mail.post("dev.1").get().change == "added")
        #expect(try mail.post("dev.1").get().change == "changed")
        let contents = try mail.stored()
        #expect(contents.subscriptions.count == 1)
        let next = try FakeMail("topics = { a = {} }")
        next.boxes.rememberSubscriptions(contents)
        #expect(next.boxes.rule(for: "dev.2", next.web) == mail.boxes.rule(for: "dev.2", mail.web))
        request.end = true
        #expect(try mail.subscribe(request) == nil)
        #expect(mail.boxes.rule(for: "dev.1", mail.web) == nil && mail.web.subscriptions == nil)
        #expect(try mail.stored().subscriptions.isEmpty)
    }

    @Test("An app does not subscribe to the supervisor's own topics, but can end what an earlier version took")
    func ownTopics() throws {
        let mail = try FakeMail()
        var request = SubscribeRequest(topic: "torpor.url")
        let error = try #require(throws: FieldError.self) { try mail.boxes.subscribe(request, mail.web) { _ in } }
        #expect("\(error)".contains("topics that begin with torpor. are the supervisor's own"), "\(error)")
        #expect(mail.web.subscriptions == nil)
        request.end = true
        #expect(try mail.subscribe(request) == nil)
    }

    @Test("An app asks for 256 topics at most, and may change those that it has") func mostTopics() throws {
        let mail = try FakeMail()
        for number in 0..<256 {
            try mail.boxes.subscribe(SubscribeRequest(topic: "t\(number)"), mail.web) { _ in }
        }
        #expect(throws: FieldError.self) { try mail.subscribe(SubscribeRequest(topic: "more")) }
        var change = SubscribeRequest(topic: "t7")
        change.keep = true
        #expect(try mail.subscribe(change) == nil)
        #expect(mail.boxes.rule(for: "t7", mail.web)?.keep == true)
        change.wake = "never"
        #expect(throws: FieldError.self) { try mail.subscribe(change) }
    }

    @Test("A subscription is on disk before the app knows of it, and is taken back where it cannot be stored")
    func durable() throws {
        let mail = try FakeMail()
        #expect(try mail.subscribe(SubscribeRequest(topic: "news")) == nil)
        #expect(try mail.stored().subscriptions.keys.map(\.topic) == ["news"])

        let full = try FakeMail(canStore: false)
        let problem = try full.subscribe(SubscribeRequest(topic: "news")) ?? ""
        #expect(problem.hasPrefix("the subscription was not changed: it cannot be stored ("), "\(problem)")
        #expect(full.web.subscriptions == nil)
    }
}
