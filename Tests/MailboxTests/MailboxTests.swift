// SPDX-License-Identifier: Apache-2.0

import Mailbox
import Testing
import Varlink

@Suite("A mailbox")
struct MailboxTests {
    private func draft(
        _ topic: String,
        _ payload: JSON = .null,
        _ coalescing: Coalescing = .all,
        key: String? = nil
    ) -> MailDraft {
        MailDraft(topic: topic, message: "m", payload: payload, coalescing: coalescing, key: key, sender: "test")
    }

    /// Puts drafts in one after the other, at 1, 2, 3…
    private func filled(_ drafts: [MailDraft]) throws -> Mailbox {
        var box = Mailbox()
        for (i, draft) in drafts.enumerated() { _ = try box.add(draft, id: Int64(i + 1), at: Int64(i + 1)) }
        return box
    }

    @Test("keeps the order of first arrival, whatever coalesces later")
    func order() throws {
        let box = try filled([draft("b", .int(1), .latest), draft("a"), draft("b", .int(2), .latest), draft("c")])
        #expect(box.items.map(\.draft.topic) == ["b", "a", "c"])
        #expect(box.items[0].draft.payload == .int(2))
        #expect(box.items[0].count == 2 && box.items[0].firstAt == 1 && box.items[0].lastAt == 3)
    }

    @Test("tells each by itself where nothing coalesces")
    func all() throws {
        #expect(try filled([draft("a"), draft("a"), draft("a")]).items.count == 3)
    }

    @Test("merges objects as a merge patch does")
    func merge() throws {
        let box = try filled([
            draft("s", ["a": .int(1), "b": ["x": .int(1), "y": .int(2)]], .merge),
            draft("s", ["a": .null, "b": ["y": .int(3)], "c": .bool(true)], .merge),
        ])
        #expect(box.items.count == 1)
        #expect(box.items[0].draft.payload == ["b": ["x": .int(1), "y": .int(3)], "c": .bool(true)])
    }

    @Test("takes what was undone for nothing")
    func net() throws {
        let plug: JSON = ["before": .bool(false), "after": .bool(true)]
        let pull: JSON = ["before": .bool(true), "after": .bool(false)]
        var box = try filled([draft("usb", plug, .net, key: "1"), draft("usb", plug, .net, key: "2")])
        guard case .cancelled(let mail) = try box.add(draft("usb", pull, .net, key: "1"), id: 3, at: 3) else {
            Issue.record("it was not cancelled")
            return
        }
        #expect(mail.id == 1)
        #expect(box.items.map(\.draft.key) == ["2"])
        #expect(box.bytes == box.items[0].size)
    }

    @Test("tells what comes while something is being told by itself")
    func inFlight() throws {
        var box = try filled([draft("t", .int(1), .latest)])
        box.setInFlight(1, true)
        _ = try box.add(draft("t", .int(2), .latest), id: 2, at: 2)
        _ = try box.add(draft("t", .int(3), .latest), id: 3, at: 3)
        #expect(box.items.map(\.id) == [1, 2])
        #expect(box.items.map(\.draft.payload) == [.int(1), .int(3)])
        box.remove(1)
        #expect(box.items.map(\.id) == [2])
    }

    @Test("refuses what is too much, and still coalesces")
    func full() throws {
        let limits = Mailbox.Limits(count: 2, bytes: 400)
        var box = try filled([draft("a", .int(1), .latest), draft("b")])
        #expect(throws: Mailbox.Refusal.tooMany(2)) { try box.add(draft("c"), id: 3, at: 3, limits: limits) }
        _ = try box.add(draft("a", .int(2), .latest), id: 3, at: 3, limits: limits)
        let long = JSON.string(String(repeating: "x", count: 400))
        #expect(throws: Mailbox.Refusal.tooLarge(400)) {
            try box.add(draft("a", long, .latest), id: 3, at: 3, limits: limits)
        }
        #expect(box.items[0].draft.payload == .int(2) && box.items[0].count == 2)
        #expect(box.bytes == box.items.reduce(0) { $0 + $1.size })
    }

    @Test("leaves other senders half of its messages, whatever one app posts")
    func shareOfMessages() throws {
        func draft(of sender: String, isOfOtherApp: Bool = true) -> MailDraft {
            var draft = MailDraft(topic: "t", message: "m", sender: sender)
            draft.isOfOtherApp = isOfOtherApp
            return draft
        }
        let limits = Mailbox.Limits(count: 6, bytes: 10_000)
        var box = Mailbox()
        for id in 1...3 as ClosedRange<Int64> {
            _ = try box.add(draft(of: "bob@\(id)"), id: id, at: id, limits: limits)
        }
        #expect(throws: Mailbox.Refusal.tooManyOfSender("bob", 3)) {
            try box.add(draft(of: "bob@4"), id: 4, at: 4, limits: limits)
        }
        // What an earlier torpord has kept counts too.
        var kept = Mailbox(keeping: box.items)
        #expect(throws: Mailbox.Refusal.tooManyOfSender("bob", 3)) {
            try kept.add(draft(of: "bob"), id: 4, at: 4, limits: limits)
        }
        _ = try box.add(draft(of: "ada"), id: 4, at: 4, limits: limits)
        _ = try box.add(draft(of: "root", isOfOtherApp: false), id: 5, at: 5, limits: limits)
        box.remove(2)
        _ = try box.add(draft(of: "bob@2"), id: 6, at: 6, limits: limits)
        #expect(throws: Mailbox.Refusal.tooManyOfSender("bob", 3)) {
            try box.add(draft(of: "bob@2"), id: 7, at: 7, limits: limits)
        }
        // A client may use all of it.
        _ = try box.add(draft(of: "root", isOfOtherApp: false), id: 7, at: 7, limits: limits)
        #expect(throws: Mailbox.Refusal.tooMany(6)) {
            try box.add(draft(of: "root", isOfOtherApp: false), id: 8, at: 8, limits: limits)
        }
    }

    @Test("leaves other senders half of the URLs and activities that may wait")
    func shareOfKinds() throws {
        var box = Mailbox()
        func url(of sender: String, isOfOtherApp: Bool = true) -> MailDraft {
            var draft = OpenedURL.draft(.url("notes:1"), from: sender, key: nil)
            draft.isOfOtherApp = isOfOtherApp
            return draft
        }
        // A user asks for activities, and they count for the app to which they belong.
        func activity(of source: String?) -> MailDraft {
            var draft = MailDraft(
                topic: ActivityMail.topic,
                message: ActivityMail.continuing,
                payload: ["source": .optional(source)],
                sender: "person"
            )
            draft.isOfOtherApp = source != nil
            return draft
        }
        var id: Int64 = 0
        func add(_ draft: MailDraft) throws {
            id += 1
            _ = try box.add(draft, id: id, at: id)
        }
        for number in 1...8 { try add(url(of: "bob@\(number)")) }
        #expect(throws: Mailbox.Refusal.tooManyOfKind(.urls, "bob", 8)) { try add(url(of: "bob")) }
        for number in 1...2 { try add(activity(of: "bob@\(number)")) }
        #expect(throws: Mailbox.Refusal.tooManyOfKind(.activities, "bob", 2)) { try add(activity(of: "bob")) }
        // What an earlier torpord has kept counts too.
        box = Mailbox(keeping: box.items)
        #expect(throws: Mailbox.Refusal.tooManyOfKind(.urls, "bob", 8)) { try add(url(of: "bob")) }
        for draft in [url(of: "ada"), url(of: "bob", isOfOtherApp: false), activity(of: "ada"), activity(of: nil)] {
            try add(draft)
        }
        box.remove(1)
        box.remove(2)
        try add(url(of: "bob"))
    }

    @Test("leaves other senders half of its bytes, also when an app's messages are merged")
    func shareOfBytes() throws {
        func draft(_ topic: String, _ length: Int, _ coalescing: Coalescing = .all) -> MailDraft {
            var draft = self.draft(topic, .string(String(repeating: "x", count: length)), coalescing)
            draft.isOfOtherApp = true
            return draft
        }
        let limits = Mailbox.Limits(count: 100, bytes: 2_000)
        // Alone, a message may be larger than the share: it could not be sent otherwise.
        var large = Mailbox()
        _ = try large.add(draft("a", 1_500), id: 1, at: 1, limits: limits)
        #expect(throws: Mailbox.Refusal.tooLargeOfSender("test", 1_000)) {
            try large.add(draft("b", 1), id: 2, at: 2, limits: limits)
        }
        var box = Mailbox()
        _ = try box.add(draft("a", 10, .latest), id: 1, at: 1, limits: limits)
        _ = try box.add(draft("b", 500), id: 2, at: 2, limits: limits)
        #expect(throws: Mailbox.Refusal.tooLargeOfSender("test", 1_000)) {
            try box.add(draft("a", 600, .latest), id: 3, at: 3, limits: limits)
        }
        #expect(box.items.map(\.count) == [1, 1])
        box.remove(2)
        _ = try box.add(draft("a", 600, .latest), id: 3, at: 3, limits: limits)
        #expect(box.items.map(\.count) == [2])
        // Cancelled messages take nothing.
        let plug: JSON = ["before": .bool(false), "after": .bool(true)]
        let pull: JSON = ["before": .bool(true), "after": .bool(false)]
        var usb = Mailbox()
        for (id, payload) in [plug, pull, plug, pull].enumerated() {
            var change = MailDraft(topic: "usb", message: "m", payload: payload, coalescing: .net, sender: "test")
            change.isOfOtherApp = true
            _ = try usb.add(change, id: Int64(id), at: 1, limits: Mailbox.Limits(count: 2, bytes: 2_000))
        }
        #expect(usb.items.isEmpty)
        _ = try usb.add(draft("b", 1), id: 9, at: 9, limits: Mailbox.Limits(count: 2, bytes: 2_000))
    }

    @Test("refuses a payload that its coalescing cannot use")
    func wrongPayload() {
        var box = Mailbox()
        #expect(throws: Mailbox.Refusal.self) { try box.add(draft("a", .int(1), .merge), id: 1, at: 1) }
        #expect(throws: Mailbox.Refusal.self) { try box.add(draft("a", ["after": .int(1)], .net), id: 1, at: 1) }
        #expect(box.items.isEmpty)
    }

    @Test("refuses a payload that is nested too deeply or too large, also one that several became")
    func payloadLimits() throws {
        var box = Mailbox()
        let deep = (0..<JSON.payloadDepthLimit).reduce(JSON.null) { inner, _ in .array([inner]) }
        _ = try box.add(draft("a", deep), id: 1, at: 1)
        #expect(throws: Mailbox.Refusal.self) { try box.add(draft("a", ["x": deep]), id: 2, at: 2) }
        let half = JSON.string(String(repeating: "x", count: 40 << 10))
        _ = try box.add(draft("m", ["a": half], .merge), id: 2, at: 2)
        #expect(throws: Mailbox.Refusal.self) { try box.add(draft("m", ["b": half], .merge), id: 3, at: 3) }
        #expect(box.items.map(\.count) == [1, 1] && box.items[1].draft.payload == ["a": half])
    }

    @Test("merges thousands of members, some of which come, change and go")
    func mergeMany() throws {
        func object(_ numbers: Range<Int>, _ value: (Int) -> JSON) -> JSON {
            .object(JSONObject(members: numbers.map { JSONObject.Member(name: "n\($0)", value: value($0)) }))
        }
        let box = try filled([
            draft("s", object(0..<2_000) { _ in .int(1) }, .merge),
            draft("s", object(1_000..<3_000) { $0 < 1_500 ? .null : .int(2) }, .merge),
        ])
        let members = try #require(box.items.first?.draft.payload.objectValue?.members)
        #expect(members.map(\.name) == (Array(0..<1_000) + Array(1_500..<3_000)).map { "n\($0)" })
        #expect(members.map(\.value) == (0..<2_500).map { .int($0 < 1_000 ? 1 : 2) })
    }
}
