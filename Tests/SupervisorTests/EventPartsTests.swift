// SPDX-License-Identifier: Apache-2.0

import Supervisor
import Testing
import TorporAPI
import Varlink

@testable import ControlService

@Suite("Replies with many events") struct EventPartsTests {
    private static func events(_ count: Int, _ text: String) -> [EventRecord] {
        (0..<count).map { number in
            EventRecord(
                at: Int64.max - Int64(number),
                app: "an-app@17",
                incarnation: 1_000,
                kind: "transfer",
                from: "background",
                to: "suspended",
                text: text,
                reason: "a reason",
                details: ["n": .int(1), "text": .string(text)]
            )
        }
    }

    @Test(
        "Their JSON is bounded, also where it has six bytes for one",
        arguments: ["x", "\u{1}", "\"", "ä", "\u{202e}", "\u{85}", "😀"]
    )
    func bounded(piece: String) {
        let events = Self.events(10_000, String(repeating: piece, count: 2_000 / piece.utf8.count))
        let count = EventParts.fitting(events)
        #expect(count > 0 && count < events.count)
        let bytes = Replies.events(Array(events.prefix(count)), sequence: .max).serialised().count
        #expect(bytes <= BoundedReply.mostBytes + 100 && bytes > BoundedReply.mostBytes / 4)
    }

    @Test("All of usual events, and one that is too large by itself") func whole() {
        #expect(EventParts.fitting(Self.events(5_000, "is active")) == 5_000)
        #expect(EventParts.fitting([]) == 0)
        let large = Self.events(2, String(repeating: "x", count: BoundedReply.mostBytes))
        #expect(EventParts.fitting(large) == 1 && EventParts.fitting(large.reversed()) == 1)
    }
}
