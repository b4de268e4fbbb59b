// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// Server-sent events for browsers (https://html.spec.whatwg.org/multipage/server-sent-events.html).
public enum ServerSentEvent {
    /// Makes an event with JSON as data. The JSON must be on one line.
    public static func message(_ name: String, _ data: JSON, id: Int64? = nil) -> [UInt8] {
        var text = "event: \(name)\n"
        if let id { text += "id: \(id)\n" }
        return Array(text.utf8) + Array("data: ".utf8) + data.serialised() + [10, 10]
    }

    /// An empty comment that lets both sides detect a dead connection.
    public static let heartbeat = Array(": \n\n".utf8)

    /// Sets the browser's delay before it reconnects.
    public static func retry(_ milliseconds: Int) -> [UInt8] { Array("retry: \(milliseconds)\n\n".utf8) }
}
