// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// How messages about the same topic are combined while they wait (coalescing). The raw values are those that
/// configurations and `torpor post` use.
public enum Coalescing: String, Sendable, Hashable, CaseIterable {
    /// Each message is delivered separately.
    case all
    /// Only the latest message is delivered.
    case latest
    /// Only the latest message is delivered, with the number of messages combined in it.
    case count
    /// The payloads, which must be JSON objects, are combined: each is applied to the earlier ones as a merge patch
    /// (RFC 7396).
    case merge
    /// The payload has `before` and `after`. The app gets the change from the first `before` to the last `after`, or
    /// nothing if they are equal (plugged in and removed again). Each `key` is combined separately.
    case net
}

/// How an app may be woken for a message. The raw values are stored on disk.
public enum MailWake: String, Sendable, Hashable, CaseIterable {
    /// Wake the app into the background.
    case background
    /// Wake the app into the foreground.
    case foreground

    /// The stronger of two ways to wake the app; nil is the weakest.
    static func stronger(_ one: MailWake?, _ other: MailWake?) -> MailWake? {
        one == .foreground || other == .foreground ? .foreground : one ?? other
    }
}

/// A message to an app, before a mailbox has accepted it and given it a number.
public struct MailDraft: Sendable, Hashable {
    /// What the message is about. Messages with the same topic may be combined.
    public var topic: String
    /// The name of the message when it is sent to a delegate.
    public var message: String
    /// The content of the message.
    public var payload: JSON
    /// How the message is combined with messages that wait already.
    public var coalescing: Coalescing
    /// A subject within the topic: only messages with the same key are combined. nil counts as a key of its own.
    public var key: String?
    /// The sender of the message: the name of an app, or the source of the event.
    public var sender: String
    /// How the app is woken for the message; nil if the message waits until something else wakes the app.
    public var wake: MailWake?
    /// The apps that got the message before and did not handle it; nil if there are none.
    public var chain: MailChain?
    /// Whether the message has no sender, because it is about the app's own timer, file or device, or about the
    /// machine. Such a message is done once the app was woken and got it.
    public var isOwnEvent = false
    /// Whether another app sends the message. Such a message is accepted only within the sender's share of the mailbox.
    public var isOfOtherApp = false

    /// The token of the request that posted the message, by which a repeated request is recognised while the message
    /// waits; nil if there is none. It is not persisted.
    public var token: UInt64?

    /// Creates a message from its parts.
    public init(
        topic: String,
        message: String,
        payload: JSON = .null,
        coalescing: Coalescing = .all,
        key: String? = nil,
        sender: String
    ) {
        self.topic = topic
        self.message = message
        self.payload = payload
        self.coalescing = coalescing
        self.key = key
        self.sender = sender
    }

    func coalesces(with other: MailDraft) -> Bool {
        coalescing != .all && topic == other.topic && key == other.key && message == other.message
            && coalescing == other.coalescing
    }
}

/// A message in an app's mailbox, waiting or being delivered.
public struct Mail: Sendable, Hashable {
    /// The number of the message. Numbers increase and are never reused.
    public let id: Int64
    /// The content of the message, with its topic and sender.
    public internal(set) var draft: MailDraft
    /// How many messages were combined into this message.
    public internal(set) var count: Int64
    /// When the first of the combined messages came, in microseconds since 1970.
    public let firstAt: Int64
    /// When the last of the combined messages came, in microseconds since 1970.
    public internal(set) var lastAt: Int64
    /// Whether the message was sent and is not answered yet, so that new messages are not combined with it.
    public internal(set) var isInFlight = false
    /// How many runs (launches) of the app got the message without answering it: the current one, and those that
    /// ended although no end was requested.
    public internal(set) var attempts = 0
    /// The run (incarnation) of the app in which the message was sent; nil while it waits.
    public internal(set) var run: UInt32?

    /// Creates a message with values read from the store.
    public init(
        id: Int64,
        draft: MailDraft,
        count: Int64 = 1,
        firstAt: Int64,
        lastAt: Int64,
        attempts: Int = 0,
        run: UInt32? = nil
    ) {
        self.id = id
        self.draft = draft
        self.count = count
        self.firstAt = firstAt
        self.lastAt = lastAt
        self.attempts = attempts
        self.run = run
    }

    /// Sets the apps that got the message before.
    public mutating func setChain(_ chain: MailChain) { draft.chain = chain }

    /// The approximate size of the message in bytes, which counts towards the limits of the mailbox.
    public var size: Int {
        64 + draft.topic.utf8.count + (draft.key?.utf8.count ?? 0) + draft.payload.serialised().count
    }

    /// The parameters with which the message is sent to a delegate.
    public var parameters: JSON {
        var object: JSONObject = [
            "id": .int(id), "topic": .string(draft.topic), "key": .optional(draft.key), "payload": draft.payload,
            "sender": .string(draft.sender), "count": .int(count), "first_at": .int(firstAt), "last_at": .int(lastAt),
        ]
        if let url {
            object["url"] = .string(url)
            for name in ["source", "type"] { object[name] = draft.payload[name] ?? .null }
        }
        // An app gets the members of a transfer's payload as parameters of their own, beside `payload`.
        if draft.topic == TransferMail.topic {
            for member in draft.payload.objectValue?.members ?? [] { object[member.name] = member.value }
        }
        if [AlertMail.topic, ActivityMail.topic, ActivityMail.sourceTopic].contains(draft.topic) {
            object["payload"] = .null
            for member in draft.payload.objectValue?.members ?? [] { object[member.name] = member.value }
        }
        return .object(object)
    }

    /// Whether a client may wait for the app's answer to the message: true if the message has a URL or an activity.
    public var isAwaited: Bool { url != nil || draft.message == ActivityMail.continuing }

    /// The URL that the app should open; nil if the message is not about a URL.
    public var url: String? { draft.topic == OpenedURL.topic ? draft.payload["url"]?.stringValue : nil }
}
