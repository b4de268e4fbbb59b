// SPDX-License-Identifier: Apache-2.0

import Engine
import EngineHarness
import EventSources
import Lifecycle
import Mailbox
import Store
import Testing
import TorporAPI
import Varlink

@testable import Supervisor

@Suite("What apps are told of transfers is mail") struct TransferMailTests {
    private func ended(_ transfer: Int64, session: String = "s") -> MailDraft {
        TransferMail.ended(
            as: Message.transferDidFinish.rawValue,
            transfer: transfer,
            session: session,
            direction: "download",
            url: "http://h/\(transfer)",
            path: "/s/\(transfer)",
            bytes: 7,
            status: 200,
            sha256: "ab",
            reason: nil,
            error: nil,
            total: nil,
            attempts: 1
        )
    }

    private func over(_ session: String = "s") -> MailDraft {
        TransferMail.sessionOver(as: Message.handleEventsForBackgroundTransfer.rawValue, session: session)
    }

    private func login(_ transfer: Int64, _ realm: String) -> MailDraft {
        TransferMail.needsLogin(
            as: Message.transferNeedsLogin.rawValue,
            transfer: transfer,
            session: "s",
            url: "http://h/\(transfer)",
            realm: realm,
            scheme: "basic"
        )
    }

    private func names(_ mail: FakeMail) -> [String] { mail.boxes.waiting(for: mail.web).map(\.draft.message) }

    @Test("The token of its request is known by its mail, and told nobody") func tokens() {
        func mail(_ token: UInt64) -> MailDraft {
            TransferMail.ended(
                as: "transferDidFinish",
                transfer: 7,
                session: "s",
                direction: "download",
                url: "http://example.org/",
                path: "/f",
                bytes: 1,
                status: 200,
                sha256: nil,
                reason: nil,
                error: nil,
                total: nil,
                attempts: 1,
                token: token
            )
        }
        for token in [0, 1, UInt64.max] {
            let mail = Mail(id: 1, draft: mail(token), firstAt: 0, lastAt: 0)
            #expect(TransferMail.token(in: mail) == token && TransferMail.transfer(in: mail) == 7)
        }
        #expect(mail(1).payload == mail(2).payload)
    }

    @Test("That a session is over is told first, the ends in their order, and both before anything that came later")
    func order() throws {
        let mail = try FakeMail()
        mail.host.hearing = [0]
        try mail.post("before")
        for transfer in [Int64(3), 1, 2] { mail.boxes.tellTransfer(ended(transfer), wakes: false, mail.web) }
        mail.boxes.tellTransfer(over(), wakes: false, mail.web)
        try mail.post("after")
        let waiting = mail.boxes.waiting(for: mail.web)
        #expect(waiting.count == 6)
        try mail.shell.start("web")
        let queue = try #require(mail.web.channel?.queue)
        #expect(
            queue.compactMap(\.mail) == [4, 0, 1, 2, 3, 5].map { waiting[$0].id },
            "\(queue.map(\.message))"
        )
        #expect(waiting.compactMap { TransferMail.transfer(in: $0) } == [3, 1, 2])
    }

    @Test("The end of a session wakes into the background, any other does not")
    func wakes() throws {
        let mail = try FakeMail()
        mail.boxes.tellTransfer(ended(1), wakes: false, mail.web)
        mail.boxes.tellTransfer(over("episodes"), wakes: false, mail.web)
        #expect(mail.host.events.isEmpty)
        mail.boxes.tellTransfer(ended(2, session: "episodes"), wakes: true, mail.web)
        try #require(mail.host.events.count == 1)
        let event = mail.host.events[0]
        #expect(event.source == .transfer && event.name == "episodes" && event.modes.isEmpty)
        #expect(event.text.contains("episodes") && event.mail?.wake == .background)
        #expect(mail.boxes.waiting(for: mail.web).map(\.draft.wake) == [nil, nil, .background])
    }

    @Test("It counts neither against how many may wait for an app nor against how much")
    func limits() throws {
        let mail = try FakeMail("topics = { \"*\" = {} }\nmailbox_limit = 2\nmailbox_size = \"600B\"")
        for transfer in 0..<100 { mail.boxes.tellTransfer(ended(Int64(transfer)), wakes: false, mail.web) }
        #expect(mail.boxes.waiting(for: mail.web).count == 100)
        #expect(throws: Never.self) { try mail.post("a").get() }
        #expect(throws: (any Error).self) {
            try mail.post("b") { $0.payload = .string(String(repeating: "x", count: 600)) }.get()
        }
        #expect(throws: Never.self) { try mail.post("b").get() }
        #expect(throws: (any Error).self) { try mail.post("c").get() }
        mail.boxes.tellTransfer(ended(100), wakes: false, mail.web)
        #expect(mail.boxes.transferMail(of: mail.web).count == 101 && mail.boxes.waiting(for: mail.web).count == 103)
        for transfer in 0...100 { mail.boxes.forgetTransfer(Int64(transfer), mail.web) }
        #expect(mail.waiting == ["a", "b"])
        #expect(throws: (any Error).self) { try mail.post("c").get() }
    }

    @Test("What is said again of the same is told once, with the newest of it")
    func coalescing() throws {
        let mail = try FakeMail()
        for realm in ["old", "new"] { mail.boxes.tellTransfer(login(1, realm), wakes: false, mail.web) }
        for session in ["s", "t", "s"] { mail.boxes.tellTransfer(over(session), wakes: false, mail.web) }
        for transfer in [Int64(1), 2] { mail.boxes.tellTransfer(ended(transfer), wakes: false, mail.web) }
        #expect(
            names(mail) == [
                "transferNeedsLogin", "handleEventsForBackgroundTransfer", "handleEventsForBackgroundTransfer",
                "transferDidFinish", "transferDidFinish",
            ]
        )
        #expect(mail.boxes.waiting(for: mail.web)[0].parameters["realm"] == "new")
    }

    @Test("What is forgotten is told no more, but for what is on its way; all else of the app stays")
    func forgotten() throws {
        let mail = try FakeMail()
        mail.host.hearing = [0]
        try mail.post("a")
        for transfer in [Int64(1), 2] {
            mail.boxes.tellTransfer(login(transfer, "r"), wakes: false, mail.web)
            mail.boxes.tellTransfer(ended(transfer), wakes: false, mail.web)
        }
        mail.boxes.tellTransfer(over(), wakes: false, mail.web)
        try mail.shell.start("web")
        let first = try #require(
            mail.boxes.transferMail(of: mail.web).first { $0.draft.message == "transferNeedsLogin" }
        )
        mail.boxes.willSend(first.id, to: mail.web)
        mail.boxes.forgetTransfer(1, mail.web)
        let left = mail.boxes.waiting(for: mail.web)
        #expect(left.filter { TransferMail.transfer(in: $0) == 1 }.map(\.id) == [first.id])
        #expect(left.filter { TransferMail.transfer(in: $0) == 2 }.count == 2 && left.count == 5)
        let stored = try mail.stored().mail
        #expect(Set(stored.keys) == Set(left.map(\.id)))
    }

    @Test("Its members are the message's own, and the number of the mail stays that of the mail")
    func members() throws {
        let mail = try FakeMail()
        mail.boxes.tellTransfer(ended(7), wakes: false, mail.web)
        let told = try #require(mail.boxes.waiting(for: mail.web).first)
        let parameters = told.parameters
        #expect(parameters["id"]?.intValue == told.id && parameters["transfer"] == 7)
        #expect(parameters["url"] == "http://h/7" && parameters["path"] == "/s/7" && parameters["session"] == "s")
        #expect(parameters["bytes"] == 7 && parameters["status"] == 200 && parameters["error"] == .null)
        #expect(parameters["topic"] == "torpor.transfers" && parameters["sender"] == "torpord")
    }
}
