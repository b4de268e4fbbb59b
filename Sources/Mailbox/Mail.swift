// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// How what is told of one topic becomes one thing to tell while it waits. The raw values are what configurations and
/// `torpor post` call them.
public enum Coalescing: String, Sendable, Hashable, CaseIterable {
    /// Each is told by itself.
    case all
    /// Only the last one is told.
    case latest
    /// Only the last one is told, with how many there were.
    case count
    /// Their payloads, JSON objects, become one, as a merge patch does it (RFC 7396).
    case merge
    /// The payload has `before` and `after`: told is from the first `before` to the last `after`, and nothing where they
    /// are the same (plugged in and out again is nothing). Each `key` by itself.
    case net
}

/// How an app is woken for what waits for it, if it may be. The raw values are what is kept.
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

/// Something that an app shall be told, before it has a place in its mailbox.
public struct MailDraft: Sendable, Hashable {
    /// What it is about; what is of one topic coalesces.
    public var topic: String
    /// The name of the message that a delegate gets.
    public var message: String
    /// What it says.
    public var payload: JSON
    /// How it becomes one with what waits already.
    public var coalescing: Coalescing
    /// What of the topic it is about: only what has the same key coalesces.
    public var key: String?
    /// Who sent it: an app's name, or where it comes from.
    public var sender: String
    /// How the app is woken for it; nil where it waits until the app runs anyway.
    public var wake: MailWake?
    /// Who was told it before and did not handle it; nil where nobody was.
    public var chain: MailChain?
    /// Nobody sent it: a timer, a file or a device of the app's, or news of the machine. That the app was woken for it, and
    /// told, is all that it is for.
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

/// Something that waits to be told to an app, or is being told.
public struct Mail: Sendable, Hashable {
    /// Its number, which grows from one to the next and is never given again.
    public let id: Int64
    /// What it says.
    public internal(set) var draft: MailDraft
    /// How many became one in it.
    public internal(set) var count: Int64
    /// When the first of them came, microseconds since 1970.
    public let firstAt: Int64
    /// When the last of them came, microseconds since 1970.
    public internal(set) var lastAt: Int64
    /// It was told and is not answered: what comes now is told by itself.
    public internal(set) var isInFlight = false
    /// In how many runs of the app it was told, and not answered to the end of the run: those that ended unasked, and the
    /// one in which it is being told.
    public internal(set) var attempts = 0
    /// The run in which it is being told; nil while it waits.
    public internal(set) var run: UInt32?

    /// One that was kept.
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

    /// Says who was told it before.
    public mutating func setChain(_ chain: MailChain) { draft.chain = chain }

    /// About what it takes, bytes.
    public var size: Int {
        64 + draft.topic.utf8.count + (draft.key?.utf8.count ?? 0) + draft.payload.serialised().count
    }

    /// What a delegate is told with it.
    public var parameters: JSON {
        var object: JSONObject = [
            "id": .int(id), "topic": .string(draft.topic), "key": .optional(draft.key), "payload": draft.payload,
            "sender": .string(draft.sender), "count": .int(count), "first_at": .int(firstAt), "last_at": .int(lastAt),
        ]
        if let url {
            object["url"] = .string(url)
            for name in ["source", "type"] { object[name] = draft.payload[name] ?? .null }
        }
        // As members of its own, so that nobody has to know that they are mail.
        if draft.topic == TransferMail.topic {
            for member in draft.payload.objectValue?.members ?? [] { object[member.name] = member.value }
        }
        return .object(object)
    }

    /// The URL that it is to open; nil where it is none.
    public var url: String? { draft.topic == OpenedURL.topic ? draft.payload["url"]?.stringValue : nil }
}
