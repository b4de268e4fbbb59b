// SPDX-License-Identifier: Apache-2.0

import Configuration
import DesktopProtocol
import Testing

@testable import Supervisor

@Suite struct DesktopLedgerTests {
    private func alert(_ id: Int64) -> DesktopAlert { DesktopAlert(id: id, app: "a", title: "t\(id)") }

    @Test func `another helper is told what is open`() {
        var ledger = DesktopLedger()
        #expect(ledger.isEmpty && ledger.commands.isEmpty)
        let shown = [3, 1, 2].map { ledger.show(alert($0)) }
        let badges = [("b", 4), ("a", 2), ("b", 0), ("c", 0)].map { ledger.badge($0.0, $0.1) }
        #expect(!(shown + badges).contains(false))
        ledger.forget(2)
        #expect(ledger.commands == [.show(alert(1)), .show(alert(3)), .badge(entry: "a", count: 2)])
        ledger.forget(1)
        let isAsked = ledger.answer(3)
        _ = ledger.badge("a", 0)
        #expect(isAsked)
        // The answer may have to be repeated to another torpord.
        #expect(!ledger.isEmpty && ledger.commands.isEmpty)
        ledger.forget(3)
        #expect(ledger.isEmpty)
    }

    @Test func `another helper is told where alerts are on the screen`() {
        var ledger = DesktopLedger()
        let place = ScreenPlace(server: ":1.7", number: 3)
        _ = ledger.show(alert(1))
        ledger.isShown(1, at: place)
        ledger.isShown(1, at: nil)
        ledger.isShown(2, at: place)
        var shown = alert(1)
        shown.place = place
        #expect(ledger.commands == [.show(shown)])
    }

    @Test func `a helper of an earlier torpord has alerts that this one does not know`() {
        var ledger = DesktopLedger()
        _ = ledger.show(alert(1))
        let ids = ledger.greeted([7, 1, 9])
        #expect(ids == [1, 7, 9])
        ledger.forget(7)
        // It is repeated until it is acknowledged.
        let answers = [ledger.answer(9), ledger.answer(9), ledger.answer(7)]
        #expect(answers == [true, true, false])
        #expect(ledger.ids == [1])
        ledger.helperEnded()
        let isKnown = ledger.answer(9)
        #expect(!isKnown && ledger.ids == [1])
        ledger.forget(1)
        #expect(ledger.isEmpty)
    }

    @Test func `answers that no torpord asked for are ignored, and nothing grows without a bound`() {
        var ledger = DesktopLedger()
        let answers = (0..<1000).map { ledger.answer($0) }
        #expect(!answers.contains(true) && ledger.isEmpty)
        let shown = (0..<258).map { ledger.show(alert($0)) }
        #expect(shown.count { $0 } == 256)
        let again = ledger.show(alert(255))
        let ids = ledger.greeted((1000..<5000).map { Int64($0) })
        #expect(again && ids.count == 768)
        let badges = (0..<258).map { ledger.badge("\($0)", 1) }
        let other = ledger.badge("0", 2)
        #expect(badges.count { $0 } == 256 && other)
    }
}

@Suite struct DesktopPlaceTests {
    private func place(
        _ session: SessionRule,
        user: UInt32? = nil,
        own: UInt32 = 1000,
        _ environment: [String: String] = [:]
    ) -> DesktopPlace? {
        DesktopPlace(session, sessionUser: user, own: own) { environment[$0] }
    }

    @Test func `a user's supervisor acts in that user's session`() {
        let plain = place(.auto)
        #expect(plain?.user == 1000)
        #expect(plain?.variables["XDG_RUNTIME_DIR"] == "/run/user/1000")
        #expect(plain?.variables["DBUS_SESSION_BUS_ADDRESS"] == "unix:path=/run/user/1000/bus")
        let own = place(
            .auto,
            ["DBUS_SESSION_BUS_ADDRESS": "unix:path=/x", "XDG_RUNTIME_DIR": "/y", "SWAYSOCK": "/z", "SECRET": "s"]
        )
        #expect(own?.variables["DBUS_SESSION_BUS_ADDRESS"] == "unix:path=/x")
        #expect(own?.variables["XDG_RUNTIME_DIR"] == "/y" && own?.variables["SWAYSOCK"] == "/z")
        #expect(own?.variables["SECRET"] == nil)
        // It cannot act for another user.
        #expect(place(.seat("seat0"), user: 1001) == nil)
        #expect(place(.seat("seat0"), user: 1000)?.user == 1000)
    }

    @Test func `root's supervisor acts in the session that it follows, as its user`() {
        let environment = ["DBUS_SESSION_BUS_ADDRESS": "unix:path=/x", "SWAYSOCK": "/z"]
        let place = place(.seat("seat0"), user: 1000, own: 0, environment)
        #expect(place?.user == 1000)
        // The environment is root's, not that user's.
        #expect(place?.variables["DBUS_SESSION_BUS_ADDRESS"] == "unix:path=/run/user/1000/bus")
        #expect(place?.variables["SWAYSOCK"] == nil)
        #expect(self.place(.id("c1"), user: nil, own: 0, environment) == nil)
        #expect(self.place(.auto, own: 0) == nil)
        #expect(self.place(.auto, own: 0, environment)?.variables["SWAYSOCK"] == "/z")
    }

    @Test func `without a session it is said why, and which key to write`() {
        func obstacle(_ session: SessionRule, user: UInt32? = nil, own: UInt32 = 0) -> String? {
            DesktopPlace.obstacle(session, sessionUser: user, own: own) { _ in nil }
        }
        #expect(obstacle(.auto)?.contains("write session = \"seat0\" in [supervisor]") == true)
        #expect(obstacle(.seat("seat0")) == "logind knows no session at seat0 (session in [supervisor])")
        #expect(obstacle(.id("c7"))?.hasPrefix("logind knows no session with the ID c7") == true)
        #expect(obstacle(.seat("seat0"), user: 1001, own: 1000)?.contains("is that of user 1001") == true)
        #expect(obstacle(.seat("seat0"), user: 1000) == nil && obstacle(.auto, own: 1000) == nil)
    }
}
