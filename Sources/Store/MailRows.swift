// SPDX-License-Identifier: Apache-2.0

/// Something that waits to be told to an app.
public struct StoredMail: Sendable, Hashable {
    /// Its number, which no other mail has.
    public var id: Int64
    /// The app's name.
    public var app: String
    /// What it is about.
    public var topic: String
    /// The name of the message that a delegate gets.
    public var message: String
    /// What it says, a JSON text.
    public var payload: String
    /// How it becomes one with others of its topic, one word.
    public var coalescing: String
    /// What of the topic it is about.
    public var key: String?
    /// Who sent it.
    public var sender: String
    /// How many became one in it.
    public var count: Int64 = 1
    /// When the first of them came, microseconds since 1970.
    public var firstAt: Int64
    /// When the last of them came, microseconds since 1970.
    public var lastAt: Int64
    /// How the app is woken for it, one word; nil for not at all.
    public var wake: String?

    /// Makes one from what every mail has.
    public init(
        id: Int64,
        app: String,
        topic: String,
        message: String,
        payload: String = "null",
        coalescing: String = "all",
        sender: String = "",
        at: Int64
    ) {
        self.id = id
        self.app = app
        self.topic = topic
        self.message = message
        self.payload = payload
        self.coalescing = coalescing
        self.sender = sender
        firstAt = at
        lastAt = at
    }
}

/// What is known of something that happens to an app again and again, such as a timer.
public struct StoredSchedule: Sendable, Hashable {
    /// Whose, and which.
    public struct Key: Sendable, Hashable {
        /// The app's name.
        public var app: String
        /// What it is called among the app's.
        public var name: String

        /// Makes one from its parts.
        public init(app: String, name: String) {
            self.app = app
            self.name = name
        }
    }

    /// Whose, and which.
    public var key: Key
    /// When it happened last, microseconds since 1970; nil for never.
    public var lastFired: Int64?
    /// What was learned of it, a JSON text.
    public var learned: String?

    /// Makes one from its parts.
    public init(app: String, name: String, lastFired: Int64? = nil, learned: String? = nil) {
        key = Key(app: app, name: name)
        self.lastFired = lastFired
        self.learned = learned
    }
}

/// That an app asked for a topic when it ran.
public struct StoredSubscription: Sendable, Hashable {
    /// Whose, and which.
    public struct Key: Sendable, Hashable {
        /// The app's name.
        public var app: String
        /// The topic, or a pattern.
        public var topic: String

        /// Makes one from its parts.
        public init(app: String, topic: String) {
            self.app = app
            self.topic = topic
        }
    }

    /// Whose, and which.
    public var key: Key
    /// How it wants to hear of it, a JSON text.
    public var rule: String

    /// Makes one from its parts.
    public init(app: String, topic: String, rule: String) {
        key = Key(app: app, topic: topic)
        self.rule = rule
    }
}

/// A change of what waits for apps, or of when things happen to them.
package enum MailChange: Sendable, Hashable {
    /// It waits, as this.
    case mail(StoredMail)
    /// It waits no more.
    case mailRemoval(Int64, app: String)
    case schedule(StoredSchedule)
    case scheduleRemoval(StoredSchedule.Key)
    case subscription(StoredSubscription)
    case subscriptionRemoval(StoredSubscription.Key)
}

/// Such changes as they are to be written: the newest of each.
struct MailWork: Sendable {
    var mail: [Int64: StoredMail] = [:]
    /// Those that the file never had and need not be removed from it.
    private(set) var fresh: Set<Int64> = []
    var removedMail: Set<Int64> = []
    var schedules: [StoredSchedule.Key: StoredSchedule] = [:]
    var removedSchedules: Set<StoredSchedule.Key> = []
    var subscriptions: [StoredSubscription.Key: StoredSubscription] = [:]
    var removedSubscriptions: Set<StoredSubscription.Key> = []
    /// Somebody waits until it is on the disk, also should the machine lose its power.
    var isSynced = false

    var isEmpty: Bool {
        mail.isEmpty && removedMail.isEmpty && schedules.isEmpty && removedSchedules.isEmpty
            && subscriptions.isEmpty && removedSubscriptions.isEmpty && !isSynced
    }

    /// - Parameter isFresh: nothing with this number was saved before.
    mutating func take(_ change: MailChange, isFresh: Bool = false) {
        switch change {
        case .mail(let new):
            mail[new.id] = new
            removedMail.remove(new.id)
            if isFresh { fresh.insert(new.id) }
        case .mailRemoval(let id, _):
            let wasThere = mail.removeValue(forKey: id) != nil
            // It may be written right now, then it is not in `mail` any more.
            if fresh.remove(id) == nil || !wasThere { removedMail.insert(id) }
        case .schedule(let new):
            schedules[new.key] = new
            removedSchedules.remove(new.key)
        case .scheduleRemoval(let key):
            schedules[key] = nil
            removedSchedules.insert(key)
        case .subscription(let new):
            subscriptions[new.key] = new
            removedSubscriptions.remove(new.key)
        case .subscriptionRemoval(let key):
            subscriptions[key] = nil
            removedSubscriptions.insert(key)
        }
    }

    /// Nothing of the app's is to be written: all is removed.
    mutating func remove(app: String) {
        for (id, kept) in mail where kept.app == app {
            mail[id] = nil
            fresh.remove(id)
        }
        for key in schedules.keys where key.app == app { schedules[key] = nil }
        for key in subscriptions.keys where key.app == app { subscriptions[key] = nil }
    }

    /// Takes back what could not be written, except of apps that went: what came meanwhile is newer.
    mutating func putBack(_ older: MailWork, removed apps: Set<String>) {
        for (id, kept) in older.mail where mail[id] == nil && !apps.contains(kept.app) {
            if removedMail.contains(id) {
                if older.fresh.contains(id) { removedMail.remove(id) }
                continue
            }
            mail[id] = kept
        }
        fresh.formUnion(older.fresh.filter { mail[$0] != nil })
        removedMail.formUnion(older.removedMail.filter { mail[$0] == nil })
        for (key, kept) in older.schedules
        where schedules[key] == nil && !removedSchedules.contains(key) && !apps.contains(key.app) {
            schedules[key] = kept
        }
        removedSchedules.formUnion(older.removedSchedules.filter { schedules[$0] == nil })
        for (key, kept) in older.subscriptions
        where subscriptions[key] == nil && !removedSubscriptions.contains(key) && !apps.contains(key.app) {
            subscriptions[key] = kept
        }
        removedSubscriptions.formUnion(older.removedSubscriptions.filter { subscriptions[$0] == nil })
        isSynced = isSynced || older.isSynced
    }
}

extension StoreContents {
    /// What is not in the file yet.
    mutating func apply(_ change: MailChange) {
        switch change {
        case .mail(let new): mail[new.id] = new
        case .mailRemoval(let id, _): mail[id] = nil
        case .schedule(let new): schedules[new.key] = new
        case .scheduleRemoval(let key): schedules[key] = nil
        case .subscription(let new): subscriptions[new.key] = new
        case .subscriptionRemoval(let key): subscriptions[key] = nil
        }
    }

    /// The app was removed, or goes.
    mutating func forget(app: String) {
        apps[app] = nil
        for (id, kept) in mail where kept.app == app { mail[id] = nil }
        for key in schedules.keys where key.app == app { schedules[key] = nil }
        for key in subscriptions.keys where key.app == app { subscriptions[key] = nil }
    }
}
