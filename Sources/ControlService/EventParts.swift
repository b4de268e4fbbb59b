// SPDX-License-Identifier: Apache-2.0

import Supervisor
import TorporAPI
import Varlink

/// Bounds the size of replies that have events.
enum EventParts {
    /// How many of these events one reply can have: at least one, if there is one.
    static func fitting(_ events: some Sequence<EventRecord>) -> Int {
        BoundedReply.fitting(events) { size(of: $0) }
    }

    /// The most bytes that the event takes as JSON.
    private static func size(of event: EventRecord) -> Int {
        // The names of members, numbers and states take fewer than 400 bytes.
        400 + (event.app ?? "").serialisedSize + event.text.serialisedSize + (event.reason ?? "").serialisedSize
            + event.details.serialisedSize
    }
}
