// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// How messages about the same topic are combined while they wait. The raw values are those in configurations and
/// `torpor post`.
public enum Coalescing: String, Sendable, Hashable, CaseIterable {
    /// Each message is delivered separately.
    case all
    /// Only the latest message is delivered.
    case latest
    /// Only the latest message is delivered, with the number of messages.
    case count
    /// The payloads, JSON objects, are combined as merge patches (RFC 7396).
    case merge
    /// The payload has `before` and `after`: delivered is the change from the first `before` to the last `after`, and
    /// nothing if they are equal (plugged in and out again). Each `key` is combined separately.
    case net
}

/// How an app may be woken for mail. The raw values are stored.
public enum MailWake: String, Sendable, Hashable, CaseIterable {
    /// Into the background.
    case background
    /// Into the foreground.
    case foreground

    /// The stronger of two.
    static func stronger(_ one: MailWake?, _ other: MailWake?) -> MailWake? {
        one == .foreground || other == .foreground ? .foreground : one ?? other
    }
}

/// A message to an app that is not in its mailbox yet.
public struct MailDraft: Sendable, Hashable {
    /// What it is about; messages with the same topic may be combined.
    public var topic: String
    /// The name of the message to a delegate.
    public var message: String
    /// What it says.
    public var payload: JSON
    /// How it is combined with messages that wait already.
    public var coalescing: Coalescing
    /// A subject within the topic: only messages with the same key are combined.
    public var key: String?
    /// The sender: an app's name, or the source of the event.
    public var sender: String
    /// How the app is woken for it; nil to wait until the app runs anyway.
    public var wake: MailWake?
    /// The apps that received it before and did not handle it; nil if there are none.
    public var chain: MailChain?
    /// It has no sender: it is about a timer, file or device of the app, or about the machine. It has served its
    /// purpose once the app was woken and got it.
    public var isOwnEvent = false

    /// Makes one from its parts.
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
    /// Its number; numbers increase and are never reused.
    public let id: Int64
    /// The message.
    public internal(set) var draft: MailDraft
    /// The number of messages combined in it.
    public internal(set) var count: Int64
    /// When the first of them came, in microseconds since 1970.
    public let firstAt: Int64
    /// When the last of them came, in microseconds since 1970.
    public internal(set) var lastAt: Int64
    /// It was sent and is not answered yet: new messages are not combined with it.
    public internal(set) var isInFlight = false
    /// The number of the app's runs in which it was sent and not answered: runs that ended without being asked to,
    /// and the current one.
    public internal(set) var attempts = 0
    /// The run in which it was sent; nil while it waits.
    public internal(set) var run: UInt32?

    /// A stored message.
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

    /// Sets the apps that received it before.
    public mutating func setChain(_ chain: MailChain) { draft.chain = chain }

    /// Its approximate size in bytes.
    public var size: Int {
        64 + draft.topic.utf8.count + (draft.key?.utf8.count ?? 0) + draft.payload.serialised().count
    }

    /// The parameters of the message to a delegate.
    public var parameters: JSON {
        var object: JSONObject = [
            "id": .int(id), "topic": .string(draft.topic), "key": .optional(draft.key), "payload": draft.payload,
            "sender": .string(draft.sender), "count": .int(count), "first_at": .int(firstAt), "last_at": .int(lastAt),
        ]
        if let url {
            object["url"] = .string(url)
            for name in ["source", "type"] { object[name] = draft.payload[name] ?? .null }
        }
        // As separate members, so that apps need not know about mail.
        if draft.topic == TransferMail.topic {
            for member in draft.payload.objectValue?.members ?? [] { object[member.name] = member.value }
        }
        if draft.topic == AlertMail.topic {
            object["payload"] = .null
            for member in draft.payload.objectValue?.members ?? [] { object[member.name] = member.value }
        }
        return .object(object)
    }

    /// The URL to open; nil if it is not about a URL.
    public var url: String? { draft.topic == OpenedURL.topic ? draft.payload["url"]?.stringValue : nil }
}
