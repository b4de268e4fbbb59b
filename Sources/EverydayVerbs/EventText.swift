// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import TorporAPI
import Varlink

/// Renders events as sentences.
enum EventText {
    static func sentence(_ event: EventRecord) -> String {
        var text = Terminal.coloured(Terminal.harmless(event.text), Terminal.colour(ofEvent: event))
        // Add the reason only if the sentence does not contain it.
        if let reason = event.reason, !event.text.contains(reason) { text += " (\(Terminal.harmless(reason)))" }
        return text
    }

    /// Warns if events are missing from a reply, with the reason.
    static func warn(of reply: JSON) {
        if let reason = reply["incomplete"]?.stringValue {
            Complaint.say(reason, .warning)
        }
    }
}

extension Terminal {
    /// The colour of an event that records the end of an app which no user asked for; nil for other events.
    fileprivate static func colour(ofEvent event: EventRecord) -> Colour? {
        switch event.kind {
        case "state": colour(ofState: event.to ?? "")
        case "exit":
            switch event.reason {
            case "stopped", "exit-success", "shutdown", "evicted", "exits-on-suspend", "replaced", "permission-changed",
                "protected-data-open":
                .dim
            default: .red
            }
        case "notice": .yellow
        default: nil
        }
    }
}
