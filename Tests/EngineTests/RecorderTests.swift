// SPDX-License-Identifier: Apache-2.0

import EngineHarness
import Testing
import TorporAPI

@testable import Engine

@Suite("What is recorded") struct RecorderTests {
    @Test("The text of an app's event is bounded, whatever the app has put into it") func bounded() throws {
        let shell = try FakeShell("web")
        let long = String(repeating: "ä", count: 10_000)
        shell.recorder.note(shell.app("web"), .transfer, text: "x" + long, reason: long)
        let event = try #require(shell.recorder.events.records(apps: nil, since: nil).last)
        // Of 2048 bytes, 2047 are used: another character has two.
        #expect(event.text == "x" + String(repeating: "ä", count: 1_023) + "…")
        #expect(event.reason == String(repeating: "ä", count: 1_024) + "…")
        // What torpord says of itself is whole.
        shell.recorder.note(nil, .transfer, text: long)
        #expect(shell.recorder.events.records(apps: nil, since: nil).last?.text == long)
    }

    @Test("A text is cut between characters, and a short one is as it is") func cut() {
        #expect(Readable.bounded("abc", to: 3) == "abc")
        #expect(Readable.bounded("abcd", to: 3) == "abc…")
        #expect(Readable.bounded("a€", to: 3) == "a…")
        #expect(Readable.bounded("", to: 0) == "")
        #expect(Readable.bounded("€", to: 2) == "…")
    }
}
