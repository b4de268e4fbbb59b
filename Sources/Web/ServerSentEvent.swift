// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A message of a stream for browsers (https://html.spec.whatwg.org/multipage/server-sent-events.html).
public enum ServerSentEvent {
    /// One with JSON, which has no line breaks.
    public static func message(_ name: String, _ data: JSON, id: Int64? = nil) -> [UInt8] {
        var text = "event: \(name)\n"
        if let id { text += "id: \(id)\n" }
        return Array(text.utf8) + Array("data: ".utf8) + data.serialised() + [10, 10]
    }

    /// Nothing, so that both sides see that the other one is there.
    public static let heartbeat = Array(": \n\n".utf8)

    /// How long a browser waits before it connects again.
    public static func retry(_ milliseconds: Int) -> [UInt8] { Array("retry: \(milliseconds)\n\n".utf8) }
}
