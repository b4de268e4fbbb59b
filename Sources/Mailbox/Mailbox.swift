// SPDX-License-Identifier: Apache-2.0

import Varlink

/// The messages that wait for one app, in the order of arrival. Their number and total size are limited. A new message
/// may be combined with a waiting message of the same topic and key (``Coalescing``); the result has the place of the
/// waiting message in the order.
///
/// This type does no I/O: the owner must store each ``Mailbox/Change``.
public struct Mailbox: Sendable {
    /// Limits on the messages that may wait.
    public struct Limits: Sendable, Hashable {
        /// The most messages.
        public var count: Int
        /// The most bytes in total, as ``Mail/size`` counts.
        public var bytes: Int

        /// Creates limits; the default is 1,000 messages and 1 MiB.
        public init(count: Int = 1_000, bytes: Int = 1 << 20) {
            self.count = count
            self.bytes = bytes
        }
    }

    /// Why a message was not accepted.
    public enum Refusal: Error, Sendable, Hashable, CustomStringConvertible {
        /// The mailbox already has the maximum number of messages, which is this value.
        case tooMany(Int)
        /// With the message, the mailbox would exceed its size limit, which is this number of bytes.
        case tooLarge(Int)
        /// The sender, an app, already has this many messages in the mailbox, which is its share of them.
        case tooManyOfSender(String, Int)
        /// With the message, the sender, an app, would exceed its share of the mailbox, which is this number of bytes.
        case tooLargeOfSender(String, Int)
        /// The sender, an app, already has this many URLs or activities in the mailbox, which is its share of them.
        case tooManyOfKind(ScarceMail, String, Int)
        /// The payload does not fit the message's `coalescing`; the text is a sentence.
        case payload(String)

        private static let remedy = "wake the app, or take some out with ‘torpor mailbox APP --drop ID’"

        /// The reason as a sentence that starts after the app's name.
        public var description: String {
            switch self {
            case .tooMany(let count): "has a full mailbox: \(count) messages wait in it; \(Self.remedy)"
            case .tooLarge(let bytes): "has a full mailbox: no more than \(bytes) bytes may wait in it; \(Self.remedy)"
            case .tooManyOfSender(let sender, let count):
                "has a full mailbox for \(sender): \(count) of its messages wait there, and one app may have at most half "
                    + "of mailbox_limit; \(Self.remedy)"
            case .tooLargeOfSender(let sender, let bytes):
                "has a full mailbox for \(sender): no more than \(bytes) bytes of one app, half of mailbox_size, may wait "
                    + "there; \(Self.remedy)"
            case .tooManyOfKind(let kind, let sender, let count):
                "has \(count) \(kind.name) of \(sender) waiting already, and one app may have at most half of "
                    + "\(kind.mostWaiting); \(Self.remedy)"
            case .payload(let sentence): sentence
            }
        }
    }

    /// The effect of adding a message to the mailbox.
    public enum Change: Sendable, Hashable {
        /// The message was added.
        case added(Mail)
        /// The new message was combined with this message, which was queued already.
        case changed(Mail)
        /// The new message and this message, which was queued already, have cancelled each other: together they change
        /// nothing.
        case cancelled(Mail)
    }

    /// The messages, in the order of their first arrival.
    public private(set) var items: [Mail] = []
    /// The total size of the messages in bytes.
    public private(set) var bytes = 0
    /// What each sender has of the messages.
    private var shares = MailShares()

    /// A mailbox without messages.
    public init() {}

    /// Creates a mailbox with messages read from the store; they are sorted by number.
    public init(keeping items: [Mail]) {
        self.items = items.sorted { $0.id < $1.id }
        bytes = items.reduce(0) { $0 + $1.size }
        for mail in items { shares.add(mail) }
    }

    /// Adds a message. `at` is in microseconds since 1970. `id` becomes the message's number, unless the message is
    /// combined with one that waits already.
    ///
    /// A message of another app is also refused if its sender would have more than half of the mailbox, or of the URLs
    /// or activities that may wait in it.
    ///
    /// - Throws: ``Refusal``; then nothing changes.
    public mutating func add(
        _ draft: MailDraft,
        id: Int64,
        at: Int64,
        limits: Limits = Limits()
    ) throws(Refusal) -> Change {
        try Self.check(draft)
        try Self.check(draft.payload)
        if let index = items.lastIndex(where: { !$0.isInFlight && $0.draft.coalesces(with: draft) }) {
            let earlier = items[index]
            var mail = earlier
            let before = mail.size
            mail.draft.payload = Self.coalesce(mail.draft.payload, draft.payload, draft.coalescing)
            mail.draft.sender = draft.sender
            mail.draft.chain = draft.chain
            mail.draft.wake = MailWake.stronger(mail.draft.wake, draft.wake)
            mail.count += 1
            mail.lastAt = max(mail.lastAt, at)
            if draft.coalescing == .net, mail.draft.payload["before"] == mail.draft.payload["after"] {
                items.remove(at: index)
                bytes -= before
                shares.remove(earlier)
                return .cancelled(mail)
            }
            try Self.check(mail.draft.payload)
            guard mail.size <= before || bytes - before + mail.size <= limits.bytes else {
                throw .tooLarge(limits.bytes)
            }
            if draft.isOfOtherApp, mail.size > before { try shares.checkSize(of: mail, replacing: earlier, limits) }
            bytes += mail.size - before
            shares.remove(earlier)
            shares.add(mail)
            items[index] = mail
            return .changed(mail)
        }
        let mail = Mail(id: id, draft: draft, firstAt: at, lastAt: at)
        if draft.isOfOtherApp {
            try shares.checkCount(of: mail, limits)
            try shares.checkSize(of: mail, replacing: nil, limits)
        }
        guard items.count < limits.count else { throw .tooMany(items.count) }
        guard bytes + mail.size <= limits.bytes else { throw .tooLarge(limits.bytes) }
        items.append(mail)
        bytes += mail.size
        shares.add(mail)
        return .added(mail)
    }

    /// The message with that number; nil if the mailbox does not contain it.
    public subscript(id: Int64) -> Mail? { items.first { $0.id == id } }

    /// Records that a message is being delivered, or that it waits again.
    public mutating func setInFlight(_ id: Int64, _ isInFlight: Bool) {
        if let index = items.firstIndex(where: { $0.id == id }) { items[index].isInFlight = isInFlight }
    }

    /// Records that a message no longer wakes the app. Returns the changed message; nil if there is no such message, or
    /// if it did not wake the app anyway.
    public mutating func forgetWake(_ id: Int64) -> Mail? {
        guard let index = items.firstIndex(where: { $0.id == id }), items[index].draft.wake != nil else { return nil }
        items[index].draft.wake = nil
        return items[index]
    }

    /// Records that a message is about to be sent in a run (launch) of the app. Returns the changed message; nil if the
    /// message was already sent in this run, or if the mailbox does not contain it.
    ///
    /// However often a message is sent in one run, that is one attempt. ``endAttempts(counts:where:)`` decides whether
    /// the attempt is counted.
    public mutating func beginAttempt(_ id: Int64, in run: UInt32) -> Mail? {
        guard let index = items.firstIndex(where: { $0.id == id }), items[index].run != run else { return nil }
        items[index].attempts += 1
        items[index].run = run
        return items[index]
    }

    /// Records that runs (launches) of the app have ended. Returns the messages that these runs got but did not
    /// answer: they are queued again.
    ///
    /// - Parameter counts: whether the runs ended without a request, so that a message may be the cause.
    public mutating func endAttempts(counts: Bool, where isOver: (UInt32) -> Bool) -> [Mail] {
        var ended: [Mail] = []
        for index in items.indices {
            guard let run = items[index].run, isOver(run) else { continue }
            items[index].run = nil
            items[index].isInFlight = false
            if !counts { items[index].attempts = max(0, items[index].attempts - 1) }
            ended.append(items[index])
        }
        return ended
    }

    /// Removes and returns the message with that number; nil if the mailbox does not contain it.
    @discardableResult
    public mutating func remove(_ id: Int64) -> Mail? {
        guard let index = items.firstIndex(where: { $0.id == id }) else { return nil }
        let mail = items.remove(at: index)
        bytes -= mail.size
        shares.remove(mail)
        return mail
    }

    // MARK: Coalescing

    private static func check(_ payload: JSON) throws(Refusal) {
        guard payload.isNested(atMost: JSON.payloadDepthLimit) else {
            throw .payload("takes payloads that are nested at most \(JSON.payloadDepthLimit) deep")
        }
        guard payload.serialised().count <= JSON.payloadSizeLimit else {
            throw .payload(
                "takes payloads of at most \(JSON.payloadSizeLimit >> 10) KiB, including what is merged into them"
            )
        }
    }

    private static func check(_ draft: MailDraft) throws(Refusal) {
        switch draft.coalescing {
        case .all, .latest, .count: break
        case .merge:
            if draft.payload.objectValue == nil { throw .payload("cannot merge a payload that is not a JSON object") }
        case .net:
            guard draft.payload["before"] != nil, draft.payload["after"] != nil else {
                throw .payload("needs a payload with before and after, which \"net\" compares")
            }
        }
    }

    private static func coalesce(_ first: JSON, _ second: JSON, _ coalescing: Coalescing) -> JSON {
        switch coalescing {
        case .all, .latest, .count: return second
        case .merge: return merge(first, second)
        case .net:
            guard var object = second.objectValue else { return second }
            object["before"] = first["before"]
            return .object(object)
        }
    }

    /// The result of applying the merge patch `second` to `first` (RFC 7396).
    private static func merge(_ first: JSON, _ second: JSON) -> JSON {
        guard let patch = second.objectValue else { return second }
        var members = first.objectValue?.members ?? []
        // A dictionary avoids a linear search per member: a payload may have thousands of them.
        var places = Dictionary(members.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { $1 })
        var gone: Set<Int> = []
        for member in patch.members {
            let place = places[member.name]
            if member.value.isNull {
                if let place { gone.insert(place) }
                continue
            }
            let merged = merge(place.map { members[$0].value } ?? .null, member.value)
            if let place {
                members[place].value = merged
                gone.remove(place)
            } else {
                places[member.name] = members.count
                members.append(JSONObject.Member(name: member.name, value: merged))
            }
        }
        return .object(JSONObject(members: members.indices.filter { !gone.contains($0) }.map { members[$0] }))
    }
}
