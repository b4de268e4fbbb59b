// SPDX-License-Identifier: Apache-2.0

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

@Suite("What an app must refresh") struct RefreshTests {
    private static let delegate = "ready = \"delegate\"\ntopics = { \"*\" = {}, \"feed/*\" = { refresh = true } }"

    private func names(_ mail: FakeMail) -> [[String]] {
        mail.boxes.waiting(for: mail.web).filter { $0.draft.message == "refresh" }
            .map { $0.draft.payload["names"]?.arrayValue?.compactMap(\.stringValue) ?? [] }
    }

    @discardableResult
    private func ask(_ mail: FakeMail, _ names: [String]) throws -> Result<Void, PostRefusal> {
        var outcome: Result<Void, PostRefusal>?
        mail.boxes.needsRefresh(names, of: mail.web, from: "web") { outcome = $0 }
        try mail.turn { outcome != nil }
        return try #require(outcome)
    }

    private func queued(_ mail: FakeMail) -> [String] {
        (mail.web.channel?.queue ?? []).map { outgoing in
            outgoing.mail.flatMap { mail.boxes.mail($0, of: mail.web)?.draft.topic } ?? outgoing.message.rawValue
        }
    }

    @Test("gathers while it is in the background, and comes before URLs, after all that other mail") func order() throws
    {
        let mail = try FakeMail(Self.delegate)
        mail.host.hearing = [0]
        try mail.shell.request(.start(background: true), "web")
        mail.shell.engine.deliver(.ready, to: 0)
        _ = try mail.boxes.open(.url("notes:1"), from: "person", key: nil, mail.web)
        try ask(mail, ["inbox", "to do", "inbox"])
        try ask(mail, ["calendar", "inbox"])
        try mail.post("news")
        mail.boxes.deliver(to: mail.web)
        #expect(queued(mail) == ["news"])
        #expect(names(mail) == [["inbox", "to do", "calendar"]])
        #expect(mail.host.events.allSatisfy { $0.source != .message || $0.name == "news" })
        mail.boxes.enqueue(mail.web, comesToForeground: true)
        #expect(queued(mail) == ["news", "torpor.refresh", "torpor.url"])
    }

    @Test("in an active app it comes at once; what is named while it is told comes again") func active() throws {
        let mail = try FakeMail()
        mail.host.hearing = [0]
        try mail.shell.start("web")
        try ask(mail, ["inbox"])
        #expect(queued(mail) == ["torpor.refresh"])
        let first = try #require(mail.boxes.waiting(for: mail.web).first).id
        mail.boxes.willSend(first, to: mail.web)
        try ask(mail, ["inbox"])
        #expect(names(mail) == [["inbox"], ["inbox"]])
    }

    @Test("of more than 64 names one is left, which stands for all") func bounds() throws {
        let mail = try FakeMail(Self.delegate)
        try ask(mail, (0..<64).map { "n\($0)" })
        #expect(names(mail).first?.count == 64)
        try ask(mail, ["one more"])
        #expect(names(mail) == [["*"]])
        try ask(mail, ["inbox"])
        #expect(names(mail) == [["*"]])
        for bad in [[], [""], ["a\nb"], [String(repeating: "x", count: 129)], (0..<65).map { "n\($0)" }] {
            guard case .failure(.invalid(let error)) = try ask(mail, bad) else {
                Issue.record("\(bad) is taken")
                continue
            }
            #expect(error.field == "names")
        }
    }

    @Test("a topic with refresh keeps only its name, and wakes nothing") func topics() throws {
        let mail = try FakeMail(Self.delegate)
        for _ in 0..<3 { try mail.post("feed/a") { $0.urgent = true } }
        let result = try mail.post("feed/b").get()
        #expect(result.change == "changed" && result.outcome == "waits")
        #expect(names(mail) == [["feed/a", "feed/b"]] && mail.waiting == ["torpor.refresh"])
        #expect(mail.host.events.isEmpty)
        guard case .failure(.invalid) = try mail.post("torpor.refresh") else {
            Issue.record("a client posts to the topic itself")
            return
        }
    }

    @Test("the next torpord has the names") func kept() throws {
        let mail = try FakeMail(Self.delegate)
        try ask(mail, ["inbox"])
        let next = Mailboxes(mail.shell.engine, mail.shell.recorder, mail.host)
        next.load(try mail.stored())
        #expect(next.waiting(for: mail.web).map(\.draft.message) == ["refresh"])
        next.gather(["to do"], of: mail.web, from: "web")
        let last = try #require(next.waiting(for: mail.web).last)
        #expect(last.draft.payload["names"] == ["inbox", "to do"] && next.waiting(for: mail.web).count == 1)
    }
}
