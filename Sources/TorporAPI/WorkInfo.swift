// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A message that an app is working on, and for whose answer no transition waits: mail, performFetch and the like.
public struct WorkInfo: Hashable, Sendable {
    /// The name of the message, such as `didReceiveEvent`.
    public var name: String
    /// The number of the message in the mailbox; nil if the message is not mail.
    public var message: Int64?
    /// The topic of the message, if it is mail.
    public var topic: String?
    /// The number of runs of the app in which the message was delivered, including this run; nil if the message is not
    /// mail.
    public var attempt: Int64?
    /// How long the app has worked on the message, in milliseconds. Time during which the app was suspended or stopped
    /// does not count.
    public var workingMilliseconds: Int64
    /// Milliseconds until the answer is late; nil if there is no limit, or if the answer is late already.
    public var remainingMilliseconds: Int64?
    /// Whether the answer is late.
    public var isLate: Bool

    /// Memberwise initializer.
    public init(
        name: String,
        message: Int64? = nil,
        topic: String? = nil,
        attempt: Int64? = nil,
        workingMilliseconds: Int64,
        remainingMilliseconds: Int64?,
        isLate: Bool
    ) {
        self.name = name
        self.message = message
        self.topic = topic
        self.attempt = attempt
        self.workingMilliseconds = workingMilliseconds
        self.remainingMilliseconds = remainingMilliseconds
        self.isLate = isLate
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        name = try fields.string("name")
        message = try fields.optionalInt("message")
        topic = try fields.optionalString("topic")
        attempt = try fields.optionalInt("attempt")
        workingMilliseconds = try fields.int("working_ms")
        remainingMilliseconds = try fields.optionalInt("remaining_ms")
        isLate = try fields.optionalBool("late") ?? false
    }

    static func optional(_ fields: Fields, _ name: String) throws(FieldError) -> WorkInfo? {
        guard let json = fields[name], !json.isNull else { return nil }
        return try WorkInfo(json: json)
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "name": .string(name), "message": .optional(message), "topic": .optional(topic),
            "attempt": .optional(attempt), "working_ms": .int(workingMilliseconds),
            "remaining_ms": .optional(remainingMilliseconds), "late": .bool(isLate),
        ]
    }
}

extension AppStatus {
    /// The fields of ``AppStatus`` that most apps do not have: where the app's data is, which bundle it comes from,
    /// where other programs find it on the network, and the message that it is working on.
    struct Places: Hashable, Sendable {
        var data: String?
        var bundle: String?
        var bundleVerified: String?
        var bundlePutBack: String?
        var announcements: [AnnouncementInfo] = []
        var work: WorkInfo?
    }
}

extension AppStatus {
    /// The app's processes, parents before their children; at most so many as the supervisor shows.
    public var processes: [ProcessInfo] {
        get { shownProcesses.list }
        set { shownProcesses.list = newValue }
    }

    /// How many further processes the app has; nil if ``processes`` contains all.
    public var processesLeftOut: Int64? {
        get { shownProcesses.leftOut }
        set { shownProcesses.leftOut = newValue }
    }
}
