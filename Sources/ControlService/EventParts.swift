// SPDX-License-Identifier: Apache-2.0

import TorporAPI
import Varlink

/// Bounds the size of replies that have events.
enum EventParts {
    /// About the most bytes in one reply. torpord writes a reply in its loop, and clients read at most 16 MiB.
    static let mostBytes = 4 << 20

    /// How many of these events one reply can have: at least one, if there is one.
    static func fitting(_ events: some Sequence<EventRecord>) -> Int {
        var (count, bytes) = (0, 0)
        for event in events {
            bytes += size(of: event)
            if count > 0, bytes > mostBytes { break }
            count += 1
        }
        return count
    }

    /// The most bytes that the event takes as JSON.
    private static func size(of event: EventRecord) -> Int {
        // The names of members, numbers and states take fewer than 400 bytes.
        400 + size(of: event.app ?? "") + size(of: event.text) + size(of: event.reason ?? "")
            + (event.details == .emptyObject ? 0 : event.details.serialised().count)
    }

    /// The most bytes that a text takes: six for a control character, and also for one outside of ASCII, which has at
    /// least two bytes.
    private static func size(of text: String) -> Int {
        text.utf8.reduce(0) { bytes, byte in
            switch byte {
            case ..<0x20, 0x7f: bytes + 6
            case 0x80...: bytes + 3
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes + 2
            default: bytes + 1
            }
        }
    }
}
