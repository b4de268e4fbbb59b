// SPDX-License-Identifier: Apache-2.0

/// A message from the app's mailbox: from another app or a program, or about a timer, a file, a device or the system.
public struct ReceivedMail: Hashable, Sendable {
    /// The delegate's message: `didReceiveEvent`, `didReceiveNotification` or `didReceiveRemoteNotification`.
    public let name: String
    /// The message's parameters: an object.
    public let parameters: JSON

    /// The mail's unique number: of all messages with the same number, only one is delivered.
    public var id: Int64 { parameters["id"]?.intValue ?? 0 }
    /// The mail's topic.
    public var topic: String { parameters["topic"]?.stringValue ?? "" }
    /// The mail's key within the topic.
    public var key: String? { parameters["key"]?.stringValue }
    /// The mail's content.
    public var payload: JSON { parameters["payload"] ?? .null }
    /// The sender.
    public var sender: String { parameters["sender"]?.stringValue ?? "" }
    /// How many messages were coalesced into this mail.
    public var count: Int64 { parameters["count"]?.intValue ?? 1 }
}

/// A message for which this library has no method.
public struct OtherMessage: Hashable, Sendable {
    /// The message's name.
    public let name: String
    /// The message's parameters: an object.
    public let parameters: JSON
}

/// An app's answer to a URL or a message from its mailbox.
public struct MailResult: Hashable, Sendable {
    let name: String
    /// The app has handled the URL or message.
    public static let done = MailResult(name: "done")
    /// The app cannot handle the URL or message: another app may get it.
    public static let unhandled = MailResult(name: "unhandled")

    /// The result of a method that returns nothing.
    static func of(_ method: () async throws -> Void) async throws -> MailResult {
        do {
            try await method()
            return .done
        } catch is NotImplemented {
            return .unhandled
        }
    }
}

/// The source of a URL.
public struct OpenSource: Hashable, Sendable {
    /// The app that opened the URL; nil for a user.
    public let app: String?
    /// The media type of a file, such as `text/markdown`; nil for other targets, or if it is unknown.
    public let type: String?
}

/// How short memory is.
public struct MemoryLevel: Hashable, Sendable {
    /// The level's name in the message; later supervisors may have more levels.
    public let name: String
    /// The machine is short of memory.
    public static let warning = MemoryLevel(name: "warning")
    /// The machine is so short of memory that apps are about to be terminated.
    public static let critical = MemoryLevel(name: "critical")
    /// The app comes near its own `memory_limit`.
    public static let limit = MemoryLevel(name: "limit")
}

/// A change of the app's settings or identity; changes during suspension are coalesced into one.
public struct SettingsChange: Hashable, Sendable {
    let mail: ReceivedMail

    /// The names of the settings that changed; empty if a file changed.
    public var changed: [String] {
        mail.payload["changed"]?.arrayValue?.compactMap(\.stringValue) ?? []
    }
    /// The path of the changed file, one of `settings_files` or `identity_files`; the last one if several changed.
    public var path: String? { mail.payload["path"]?.stringValue }
}

/// A change of the clock; a property that did not change is nil.
public struct TimeChange: Hashable, Sendable {
    let mail: ReceivedMail

    /// Whether the clock was set.
    public var clockWasSet: Bool { mail.payload["clock"]?.boolValue ?? false }
    /// The time zone, such as `Europe/Berlin`.
    public var timeZone: String? { mail.payload["time_zone"]?.stringValue }
    /// The offset of local time from UTC, in seconds to the east.
    public var secondsFromUTC: Int? { mail.payload["utc_offset_s"]?.intValue.map { Int($0) } }
    /// The day, such as `2026-11-23`.
    public var day: String? { mail.payload["day"]?.stringValue }
}
