// SPDX-License-Identifier: Apache-2.0

/// Something that waited for the app in its mailbox: what was posted to it, and what timers, files, devices and the system
/// have for it.
public struct ReceivedMail: Hashable, Sendable {
    /// The message that brings it: `didReceiveEvent`, `didReceiveNotification`, `didReceiveRemoteNotification`.
    public let name: String
    /// What belongs to the message: an object.
    public let parameters: JSON

    /// Its number, which no other has: each is told once.
    public var id: Int64 { parameters["id"]?.intValue ?? 0 }
    /// What it is about.
    public var topic: String { parameters["topic"]?.stringValue ?? "" }
    /// What of the topic it is about.
    public var key: String? { parameters["key"]?.stringValue }
    /// What it says.
    public var payload: JSON { parameters["payload"] ?? .null }
    /// Whom it comes from.
    public var sender: String { parameters["sender"]?.stringValue ?? "" }
    /// How many became one in it.
    public var count: Int64 { parameters["count"]?.intValue ?? 1 }
}

/// A message that the library knows nothing of.
public struct OtherMessage: Hashable, Sendable {
    /// Its name.
    public let name: String
    /// What belongs to it: an object.
    public let parameters: JSON
}

/// What an app says to a URL, and to what waited in its mailbox.
public struct MailResult: Hashable, Sendable {
    let name: String
    /// It has done with it what there was to do.
    public static let done = MailResult(name: "done")
    /// It has no use for it: another app may be told.
    public static let unhandled = MailResult(name: "unhandled")

    /// The result of a method that has none.
    static func of(_ method: () async throws -> Void) async throws -> MailResult {
        do {
            try await method()
            return .done
        } catch is NotImplemented {
            return .unhandled
        }
    }
}

/// Where a URL comes from.
public struct OpenSource: Hashable, Sendable {
    /// The app that opened it; nil for a person.
    public let app: String?
    /// The media type of a file, such as `text/markdown`; nil for anything else, and where it is not known.
    public let type: String?
}

/// How short memory is.
public struct MemoryLevel: Hashable, Sendable {
    /// As the supervisor says it; later versions may have more.
    public let name: String
    /// The machine's is short.
    public static let warning = MemoryLevel(name: "warning")
    /// The machine's is so short that apps are about to be ended.
    public static let critical = MemoryLevel(name: "critical")
    /// The app comes near its own `memory_limit`.
    public static let limit = MemoryLevel(name: "limit")
}

/// A change of the app's settings, or of its identity; of several while it slept there is one.
public struct SettingsChange: Hashable, Sendable {
    let mail: ReceivedMail

    /// The names of the settings that changed; none where a file did.
    public var changed: [String] {
        mail.payload["changed"]?.arrayValue?.compactMap(\.stringValue) ?? []
    }
    /// The file that changed, one of `settings_files` or `identity_files`; of several the last.
    public var path: String? { mail.payload["path"]?.stringValue }
}

/// What became of the clock; what is nil is as it was.
public struct TimeChange: Hashable, Sendable {
    let mail: ReceivedMail

    /// Whether the clock was set.
    public var clockWasSet: Bool { mail.payload["clock"]?.boolValue ?? false }
    /// The time zone, such as `Europe/Berlin`.
    public var timeZone: String? { mail.payload["time_zone"]?.stringValue }
    /// How far local time is from UTC now, in seconds to the east.
    public var secondsFromUTC: Int? { mail.payload["utc_offset_s"]?.intValue.map { Int($0) } }
    /// The day, such as `2026-11-23`.
    public var day: String? { mail.payload["day"]?.stringValue }
}
