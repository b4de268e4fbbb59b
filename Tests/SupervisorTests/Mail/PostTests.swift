// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventSources
import Lifecycle
import Linux
import Mailbox
import Store
import Testing
import TorporAPI
import Varlink

@testable import Supervisor

@Suite("What is posted to an app") struct PostTests {
    private func refusal(_ result: Result<PostResult, PostRefusal>) -> String {
        switch result {
        case .success: "taken"
        case .failure(.notSubscribed): "not subscribed"
        case .failure(.full): "full"
        case .failure(.invalid(let error)): error.field
        case .failure(.failed(let sentence)): sentence
        }
    }

    @Test("It waits for an app that does not run, and is on the disk when the sender has its answer") func waits()
        throws
    {
        let mail = try FakeMail()
        mail.host.outcome = .woken
        let result = try mail.post("news") {
            $0.payload = ["n": .int(1)]
            $0.urgent = true
        }.get()
        #expect(result.change == "added" && result.outcome == "woken")
        #expect(mail.host.events.map(\.name) == ["news"] && mail.host.events[0].wake != nil)
        let stored = try mail.stored().mail
        #expect(stored.values.map(\.id) == [try #require(result.id)])
        #expect(stored.values.first?.payload == "{\"n\":1}" && stored.values.first?.sender == "person")
    }

    @Test("What is not urgent wakes nobody, and of a remote one only who has the mode for it") func urgency() throws {
        let mail = try FakeMail("topics = { loud = { urgent = true }, low = {} }")
        try mail.post("low")
        try mail.post("loud")
        try mail.post("loud") { $0.urgent = false }
        try mail.post("loud") { $0.remote = true }
        #expect(mail.host.events.map { $0.wake != nil } == [false, true, false, false])
        #expect(mail.boxes.waiting(for: mail.web).map { $0.draft.wake } == [nil, .background, nil, nil])
    }

    @Test("What cannot be taken is refused with the field that is wrong, and nothing waits") func refusals() throws {
        let mail = try FakeMail("topics = { news = {} }")
        #expect(refusal(try mail.post("other")) == "not subscribed")
        #expect(refusal(try mail.post("")) == "topic")
        #expect(refusal(try mail.post("a\u{1}")) == "topic")
        #expect(refusal(try mail.post("news") { $0.key = String(repeating: "k", count: 129) }) == "key")
        #expect(refusal(try mail.post("news") { $0.coalesce = "some" }) == "coalesce")
        #expect(refusal(try mail.post("news") { $0.coalesce = "merge" }) == "payload")
        #expect(mail.waiting.isEmpty && mail.host.events.isEmpty)
        #expect(refusal(try mail.post("news") { $0.key = String(repeating: "k", count: 128) }) == "taken")
    }

    @Test("A full mailbox refuses until something was taken out, and what coalesces has a place still") func full()
        throws
    {
        let mail = try FakeMail("topics = { a = {}, b = { coalesce = \"latest\" } }\nmailbox_limit = 2")
        try mail.post("b")
        try mail.post("a")
        #expect(refusal(try mail.post("a")) == "full")
        #expect(try mail.post("b").get().change == "changed")
        #expect(mail.waiting == ["b", "a"])
        var request = TakeRequest()
        request.max = 1
        #expect(mail.boxes.take(request, mail.web).map(\.topic) == ["b"])
        #expect(refusal(try mail.post("a")) == "taken")
        #expect(try mail.stored().mail.count == 2)
    }

    @Test("What is asked for twice by one name is taken once; what was refused may be asked for again") func tokens()
        throws
    {
        let mail = try FakeMail("topics = { \"*\" = {} }\nmailbox_limit = 1")
        let token = RequestToken.random()
        #expect(try mail.post("a") { $0.token = token }.get().change == "added")
        let repeated = try mail.post("a") { $0.token = token }.get()
        #expect(repeated.change == "repeated" && repeated.outcome == "waits")
        #expect(mail.waiting == ["a"])
        let other = RequestToken.random()
        #expect(refusal(try mail.post("b") { $0.token = other }) == "full")
        _ = mail.boxes.take(TakeRequest(), mail.web)
        #expect(try mail.post("a") { $0.token = token }.get().outcome == "told")
        #expect(try mail.post("b") { $0.token = other }.get().change == "added")
    }

    @Test("Plugged in and out again is nothing, here and on the disk") func cancelled() throws {
        let mail = try FakeMail("topics = { dev = { coalesce = \"net\" } }")
        try mail.post("dev") { $0.payload = ["before": false, "after": true] }
        let second = try mail.post("dev") { $0.payload = ["before": true, "after": false] }.get()
        #expect(second.change == "cancelled" && second.id == nil)
        #expect(mail.waiting.isEmpty)
        #expect(try mail.stored().mail.isEmpty)
    }

    @Test("Where it cannot be stored nothing was posted, and it may be asked for again") func noDisk() throws {
        let mail = try FakeMail(canStore: false)
        let token = RequestToken.random()
        let result = refusal(try mail.post("a") { $0.token = token })
        #expect(result.hasPrefix("nothing was posted: it cannot be stored ("))
        #expect(mail.waiting.isEmpty)
        #expect(mail.web.tokens.standing(of: token) == .unknown)
    }

    @Test("Where it cannot be stored and was sent meanwhile, it was posted") func sentMeanwhile() throws {
        let mail = try FakeMail(canStore: false)
        try mail.shell.start("web")
        mail.host.hearing = [0]
        mail.host.onWake = { [unowned boxes = mail.boxes] in
            boxes.deliver(to: $0)
            boxes.willSend(boxes.waiting(for: $0)[0].id, to: $0)
        }
        #expect(try mail.post("a").get().outcome == "told")
        #expect(mail.waiting == ["a"])
    }

    @Test("Where it cannot be stored and waits behind what its delegate handles, nothing was posted") func behindOther()
        throws
    {
        let mail = try FakeMail(canStore: false)
        try mail.shell.start("web")
        mail.host.hearing = [0]
        mail.host.onWake = { [unowned boxes = mail.boxes] in boxes.deliver(to: $0) }
        let result = refusal(try mail.post("a"))
        #expect(result.hasPrefix("nothing was posted: it cannot be stored ("))
        #expect(mail.waiting.isEmpty)
        #expect(mail.web.channel?.queue.contains { $0.mail != nil } == false)
    }

    @Test("What comes before it is known what waits is taken when it is") func beforeLoad() throws {
        let mail = try FakeMail("topics = { a = { coalesce = \"latest\" } }", isLoaded: false)
        var outcome: Result<PostResult, PostRefusal>?
        mail.boxes.post(PostRequest(app: "web", topic: "a"), from: "person", to: mail.web) { outcome = $0 }
        #expect(mail.waiting.isEmpty)
        let draft = MailDraft(topic: "a", message: "didReceiveEvent", coalescing: .latest, sender: "x")
        var contents = StoreContents()
        let kept = Mail(id: 9, draft: draft, firstAt: 1, lastAt: 1)
        contents.mail[9] = StoredMail(kept, of: "web")
        contents.mail[10] = StoredMail(Mail(id: 10, draft: draft, firstAt: 1, lastAt: 1), of: "gone")
        mail.load(contents)
        try mail.turn { outcome != nil }
        #expect(try outcome?.get().change == "changed")
        #expect(mail.boxes.waiting(for: mail.web).map { [$0.id, $0.count] } == [[9, 2]])
    }

    @Test("An app fills half of another's mailbox at most, also through one that passes mail on") func share() throws {
        let mail = try FakeMail(
            """
            topics = { "*" = {} }
            mailbox_limit = 4
            [apps.db]
            exec = ["/bin/true"]
            [apps.via]
            exec = ["/bin/true"]
            topics = { "*" = { next = ["web"] } }
            """
        )
        let (db, via) = (mail.shell.app("db"), mail.shell.app("via"))
        func post(_ topic: String, to app: AppRuntime) throws -> Result<PostResult, PostRefusal> {
            var outcome: Result<PostResult, PostRefusal>?
            mail.boxes.post(PostRequest(app: app.name, topic: topic), from: "db", of: db, to: app) { outcome = $0 }
            try mail.turn { outcome != nil }
            return try #require(outcome)
        }
        #expect(refusal(try post("a", to: mail.web)) == "taken")
        let passed = try #require(try post("b", to: via).get().id)
        mail.boxes.passOver(passed, by: via)
        #expect(mail.waiting == ["a", "b"])
        guard case .failure(.full(let sentence)) = try post("c", to: mail.web) else {
            Issue.record("one app has more than its share")
            return
        }
        #expect(sentence.hasPrefix("web has a full mailbox for db: 2 of its messages wait there"))
        let other = try #require(try post("c", to: via).get().id)
        mail.boxes.passOver(other, by: via)
        #expect(mail.waiting == ["a", "b"] && mail.boxes.unhandled.count(of: via) == 1)
        for topic in ["d", "e"] { #expect(refusal(try mail.post(topic)) == "taken") }
        #expect(refusal(try mail.post("f")) == "full")
    }

    @Test("Apps post to those that accept them") func acceptance() throws {
        let mail = try FakeMail(
            """
            accepts_from = ["db", "tag:ui", "w-*"]
            [apps.db]
            exec = ["/bin/true"]
            instances = 2
            [apps.panel]
            exec = ["/bin/true"]
            tags = ["ui"]
            [apps.w-1]
            exec = ["/bin/true"]
            [apps.x]
            exec = ["/bin/true"]
            tags = ["u"]
            """
        )
        let who = mail.shell.engine.apps.filter { mail.boxes.refusal(ofPostsFrom: $0, to: mail.web) == nil }.map(\.name)
        #expect(who.sorted() == ["db@1", "db@2", "panel", "w-1", "web"])
    }
}
