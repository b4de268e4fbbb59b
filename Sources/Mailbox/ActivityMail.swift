// SPDX-License-Identifier: Apache-2.0

public import Varlink
import WireText

/// What a user is doing in an app, so that another app, or the app on another machine, can continue it.
public struct Activity: Sendable, Hashable {
    /// The kind of the activity, such as `org.example.note`.
    public var type: String
    /// What users see in a list of activities; empty for nothing.
    public var title: String
    /// What the app that continues the activity needs to know: an object, or null.
    public var payload: JSON
    /// A URL that stands for the activity.
    public var url: String?
    /// Whether the activity can only be continued with the state that the app has saved.
    public var needsState = false

    /// Creates an activity from its parts.
    public init(type: String, title: String = "", payload: JSON = .null, url: String? = nil) {
        (self.type, self.title, self.payload, self.url) = (type, title, payload, url)
    }

    /// The longest type, in bytes.
    public static let longestType = 128
    /// The longest title, in bytes.
    public static let longestTitle = 512
    /// The largest payload, in bytes.
    public static let largestPayload = 64 << 10

    /// Why a type is not valid, as the rest of a sentence; nil if it is.
    public static func problem(ofType type: some Collection<UInt8>) -> String? {
        let isFine =
            (1...longestType).contains(type.count)
            && type.allSatisfy {
                (0x30...0x39).contains($0) || (0x61...0x7a).contains($0 | 0x20) || [0x2d, 0x2e, 0x5f].contains($0)
            }
        return isFine ? nil : "must have 1 to \(longestType) letters, digits, dots, - and _, such as org.example.note"
    }

    /// The field that is not valid, and why, as the rest of a sentence; nil if the activity is valid.
    public var problem: (field: String, text: String)? {
        if let problem = Self.problem(ofType: Array(type.utf8)) { return ("type", problem) }
        let isPlain = title.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
        guard title.utf8.count <= Self.longestTitle, isPlain else {
            return ("title", "must have at most \(Self.longestTitle) bytes without control characters")
        }
        guard payload.isNull || payload.objectValue != nil, payload.serialised().count <= Self.largestPayload else {
            return ("payload", "must be an object of at most \(Self.largestPayload >> 10) KiB")
        }
        return url.flatMap { OpenedURL.problem($0) }.map { (field: "url", text: $0) }
    }

    /// The size of the activity in bytes, which counts towards the limit on all activities of one user.
    public var size: Int {
        64 + type.utf8.count + title.utf8.count + (url?.utf8.count ?? 0) + payload.serialised().count
    }
}

/// Messages about activities that are continued.
public enum ActivityMail {
    /// The topic of messages to the app that continues an activity. They are delivered in the foreground.
    public static let topic = "torpor.activity"
    /// The topic of messages to the app whose activity was continued.
    public static let sourceTopic = "torpor.activity-continued"
    /// The name of the message that passes the activity to the app.
    public static let continuing = "continueActivity"
    /// The most activities that may wait for an app.
    public static let mostWaiting = 4
}
