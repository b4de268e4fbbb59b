// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A message that an app works on although no transition waits for the answer: mail, performFetch and the like.
public struct WorkInfo: Hashable, Sendable {
    /// The name of the message, such as `didReceiveEvent`.
    public var name: String
    /// The number of the message in the mailbox; nil if it is no mail.
    public var message: Int64?
    /// The topic of the mail.
    public var topic: String?
    /// In how many runs of the app the mail was delivered, including this one.
    public var attempt: Int64?
    /// For how long the app has worked on it, in milliseconds; pauses of the app do not count.
    public var workingMilliseconds: Int64
    /// Milliseconds until the answer is late; nil without a limit, or if it is late already.
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

    /// Encodes a JSON object.
    public var json: JSON {
        [
            "name": .string(name), "message": .optional(message), "topic": .optional(topic),
            "attempt": .optional(attempt), "working_ms": .int(workingMilliseconds),
            "remaining_ms": .optional(remainingMilliseconds), "late": .bool(isLate),
        ]
    }
}

extension AppStatus {
    /// Where the app's data is, which bundle the app comes from, where other programs find the app on the network, and
    /// what it works on.
    struct Places: Hashable, Sendable {
        var data: String?
        var bundle: String?
        var bundleVerified: String?
        var bundlePutBack: String?
        var announcements: [AnnouncementInfo] = []
        var work: WorkInfo?
    }
}
