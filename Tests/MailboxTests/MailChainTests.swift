// SPDX-License-Identifier: Apache-2.0

import Mailbox
import Testing
import Varlink

@Suite("Who is told what nobody handled yet") struct MailChainTests {
    @Test("Each is asked once, in order, and those of a later app come behind") func order() {
        var chain = MailChain(sender: "shop")
        chain.passedOver("a", source: 1, next: ["b", "a", "c", "b"])
        #expect(chain.takeNext() == "b" && chain.waiting == ["c"])
        chain.passedOver("b", source: 2, next: ["a", "d", "c"])
        #expect(chain.waiting == ["c", "d"] && chain.asked == ["a", "b"] && chain.source == 2)
        #expect(chain.takeNext() == "c")
        #expect(chain.takeNext() == "d")
        #expect(chain.takeNext() == nil)
        #expect(chain.sender == "shop")
    }

    @Test("At most eight are told, however they name each other") func limit() {
        var chain = MailChain(sender: "shop")
        var name: String? = "a0"
        var told = 0
        while let asked = name {
            told += 1
            chain.passedOver(asked, source: Int64(told), next: (0..<100).map { "a\($0)" })
            name = chain.takeNext()
        }
        #expect(told == 8 && chain.asked == (0..<8).map { "a\($0)" })
    }

    @Test("It is read as it was written, and anything else is none") func kept() throws {
        var chain = MailChain(sender: "ü")
        chain.passedOver("a", source: 17, next: ["b", "c"])
        #expect(MailChain(try JSON.parse(chain.json.description)) == chain)
        #expect(MailChain(.null) == nil && MailChain(["asked": .array([])]) == nil)
    }
}

@Suite("How often mail was told for nothing") struct AttemptTests {
    private func box() throws -> Mailbox {
        var box = Mailbox()
        for id in 1...3 as ClosedRange<Int64> {
            _ = try box.add(MailDraft(topic: "t\(id)", message: "m", sender: "x"), id: id, at: id)
        }
        return box
    }

    @Test("A run counts once, and only when it ended unasked") func runs() throws {
        var box = try box()
        let first = box.beginAttempt(2, in: 5)
        #expect(first?.attempts == 1 && first?.run == 5)
        #expect(box.beginAttempt(2, in: 5) == nil, "told again in the same run")
        #expect(box.beginAttempt(9, in: 5) == nil, "there is none of that number")
        #expect(box.endAttempts(counts: true) { $0 == 4 }.isEmpty, "another run")
        #expect(box.endAttempts(counts: true) { $0 == 5 }.map(\.id) == [2])
        #expect(box[2]?.attempts == 1 && box[2]?.run == nil)
        _ = box.beginAttempt(2, in: 6)
        #expect(box.endAttempts(counts: false) { _ in true }.map(\.attempts) == [1])
        _ = box.beginAttempt(2, in: 7)
        #expect(box.endAttempts(counts: true) { _ in true }.map(\.attempts) == [2])
        #expect(box[1]?.attempts == 0 && box[3]?.attempts == 0)
    }

    @Test("What was being told waits again, and may become one with others") func waits() throws {
        var box = try box()
        _ = box.beginAttempt(1, in: 1)
        box.setInFlight(1, true)
        _ = box.endAttempts(counts: true) { _ in true }
        #expect(box[1]?.isInFlight == false)
        var again = MailDraft(topic: "late", message: "m", coalescing: .latest, sender: "x")
        _ = try box.add(again, id: 10, at: 10)
        _ = box.beginAttempt(10, in: 2)
        _ = box.endAttempts(counts: true) { _ in true }
        again.payload = .int(2)
        // It may be the topic that ends the app, whatever it says.
        guard case .changed(let mail) = try box.add(again, id: 11, at: 11) else {
            Issue.record("it did not become one")
            return
        }
        #expect(mail.id == 10 && mail.attempts == 1)
    }
}
