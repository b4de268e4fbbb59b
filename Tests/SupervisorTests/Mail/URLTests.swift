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

@Suite("URLs wait for an app, and are told in the foreground") struct URLTests {
    private func queued(_ mail: FakeMail) -> [String] {
        (mail.web.channel?.queue ?? []).map { outgoing in
            outgoing.mail.flatMap { mail.boxes.mail($0, of: mail.web)?.url ?? "mail" } ?? outgoing.message.rawValue
        }
    }

    private func open(_ mail: FakeMail, _ url: String, key: String? = nil) throws -> Int64 {
        try mail.boxes.open(.url(url), from: "person", key: key, mail.web)
    }

    private static let delegate = "ready = \"delegate\"\ntopics = { \"*\" = {} }"

    @Test("In the background they wait, other mail does not, and they come before didBecomeActive") func order() throws
    {
        let mail = try FakeMail(Self.delegate)
        mail.host.hearing = [0]
        try mail.shell.request(.start(background: true), "web")
        mail.shell.engine.deliver(.ready, to: 0)
        try mail.post("news")
        for number in 1...3 { _ = try open(mail, "notes:\(number)") }
        mail.boxes.deliver(to: mail.web)
        #expect(queued(mail) == ["mail"] && mail.boxes.url(for: mail.web) == "notes:1")
        mail.boxes.enqueue(mail.web, comesToForeground: true)
        #expect(queued(mail) == ["mail", "notes:1", "notes:2", "notes:3"])
    }

    @Test("Sixteen wait at most, one that is asked twice waits once, and one that is none is refused") func bounds()
        throws
    {
        let mail = try FakeMail(Self.delegate)
        let first = try open(mail, "notes:0", key: "token")
        #expect(try open(mail, "notes:0", key: "token") == first)
        for number in 1..<16 { _ = try open(mail, "notes:\(number)") }
        #expect(throws: URLRefusal.self) { try open(mail, "notes:16") }
        #expect(throws: URLRefusal.self) { try open(mail, "file:///etc/passwd") }
        #expect(mail.boxes.waiting(for: mail.web).count == 16)
        mail.boxes.withdraw(first, of: mail.web)
        #expect(mail.boxes.waiting(for: mail.web).count == 15)
    }

    @Test("Another app has eight at most, and leaves room for others") func share() throws {
        let other = "[apps.db]\nexec = [\"/bin/true\"]\n[apps.files]\nexec = [\"/bin/true\"]\n"
        let mail = try FakeMail(Self.delegate + "\n" + other)
        func open(_ url: String, from name: String) throws -> String {
            var outcome: Result<PostResult, PostRefusal>?
            mail.boxes.open(.url(url), from: mail.shell.app(name), nil, mail.web) { outcome = $0 }
            try mail.turn { outcome != nil }
            switch try #require(outcome) {
            case .success: return "queued"
            case .failure(.full(let sentence)): return sentence
            case .failure: return "failed"
            }
        }
        for number in 1...8 { #expect(try open("notes:\(number)", from: "db") == "queued") }
        #expect(try open("notes:9", from: "db").hasPrefix("web has 8 URLs of db waiting already"))
        #expect(try open("notes:9", from: "files") == "queued")
        _ = try self.open(mail, "notes:10")
        #expect(mail.boxes.waiting(for: mail.web).count == 10)
    }

    @Test("An app that hears nothing takes none, and nobody posts about the supervisor's own topics") func deaf() throws
    {
        let mail = try FakeMail()
        #expect(throws: URLRefusal.self) { try open(mail, "notes:1") }
        // A mark behind the point makes another character of it, but programs compare bytes.
        guard case .failure(.invalid) = try mail.post("torpor.\u{301}url") else {
            Issue.record("a reserved topic was accepted")
            return
        }
        guard case .failure(.invalid) = try mail.post("torpor.url") else {
            Issue.record("it was posted")
            return
        }
        #expect(mail.boxes.waiting(for: mail.web).isEmpty)
    }

    @Test("By a signal it hears that there is one, and it waits until it is taken") func signal() throws {
        let mail = try FakeMail("signals = { openURL = \"URG\" }")
        _ = try open(mail, "notes:1")
        try mail.shell.start("web")
        #expect(mail.shell.told(of: "web").contains { $0.contains("told openURL (torpor.url) by SIGURG") })
        #expect(mail.boxes.waiting(for: mail.web).map(\.url) == ["notes:1"])
    }

    @Test("Those that it declines, or does not handle, are kept as unhandled") func declined() throws {
        let mail = try FakeMail(Self.delegate)
        let ids = [try open(mail, "notes:1"), try open(mail, "notes:2")]
        mail.boxes.willSend(ids[0], to: mail.web)
        mail.boxes.declineURLs(mail.web)
        #expect(mail.boxes.waiting(for: mail.web).map(\.id) == [ids[0]], "that one is being told")
        mail.boxes.passOver(ids[0], by: mail.web)
        #expect(mail.boxes.unhandled.ids(of: mail.web) == [ids[1], ids[0]])
    }
}
