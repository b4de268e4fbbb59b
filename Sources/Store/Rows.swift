// SPDX-License-Identifier: Apache-2.0

/// What is kept of an app beyond a boot.
public struct AppRow: Sendable, Hashable {
    /// The app's name.
    public var name: String
    /// The goal that a person set, as `Lifecycle` names it; nil while the configuration decides.
    public var goal: String?
    /// A person stopped it: neither the supervisor's start nor an event launches it.
    public var isStopped = false
    /// A person force-quit it, in this boot: no event launches it.
    public var isForceQuit = false
    /// The restart policy gave up.
    public var isFailed = false
    /// Restarts by policy since the last reset.
    public var restarts: Int64 = 0
    /// Consecutive restarts without a stable run in between.
    public var attempt: Int64 = 0
    /// The number of the last incarnation.
    public var incarnation: Int64 = 0
    /// How the last incarnation ended.
    public var lastExit: StoredExit?
    /// When its restarts were, microseconds since 1970, the oldest first.
    public var ledger: [Int64] = []

    /// An app of which nothing is known.
    public init(name: String) { self.name = name }

    /// The ledger as it counts at `now`: times that lie in the future, because the clock was set back, are now; those
    /// older than the window are gone. Both in microseconds.
    public func ledger(at now: Int64, window: Int64) -> [Int64] {
        ledger.map { min($0, now) }.filter {
            let (age, overflow) = now.subtractingReportingOverflow($0)
            return !overflow && age < window
        }
    }
}

/// How an incarnation ended.
public struct StoredExit: Sendable, Hashable {
    /// A termination reason.
    public var reason: String
    /// The exit status, if it ended by itself.
    public var code: Int32?
    /// The signal's name.
    public var signal: String?
    /// Microseconds since 1970.
    public var at: Int64

    /// Makes one from its parts.
    public init(reason: String, code: Int32? = nil, signal: String? = nil, at: Int64) {
        self.reason = reason
        self.code = code
        self.signal = signal
        self.at = at
    }
}

/// Something that happened.
public struct StoredEvent: Sendable, Hashable {
    /// Its place in the order of all events; 0 until ``Store/append(_:)`` gives it one. It grows from event to event,
    /// also across boots and databases. It is the time in microseconds since 1970, or one more than the last where the
    /// clock stands still or was set back; so it is never less than `at`.
    public var sequence: Int64 = 0
    /// Microseconds since 1970.
    public var at: Int64
    /// The app, nil for what concerns the supervisor.
    public var app: String?
    /// Which run of the app, counted from 1.
    public var incarnation: Int64?
    /// What sort of event, one word.
    public var kind: String
    /// The state before, for a change of state.
    public var from: String?
    /// The state after it.
    public var to: String?
    /// A sentence for people.
    public var text: String
    /// A termination reason, or who asked.
    public var reason: String?
    /// What else programs may want to know, a JSON text.
    public var details: String?

    /// Makes one from what every event has.
    public init(at: Int64, app: String? = nil, kind: String, text: String) {
        self.at = at
        self.app = app
        self.kind = kind
        self.text = text
    }

    /// About what it takes in memory, bytes.
    var size: Int {
        160 + text.utf8.count + (app?.utf8.count ?? 0) + (reason?.utf8.count ?? 0) + (details?.utf8.count ?? 0)
    }
}

/// A termination report.
public struct StoredReport: Sendable, Hashable {
    /// The app's name.
    public var app: String
    /// Which run of the app, counted from 1.
    public var incarnation: Int64
    /// Microseconds since 1970.
    public var at: Int64
    /// The report, a JSON text.
    public var json: String

    /// Makes one from its parts.
    public init(app: String, incarnation: Int64, at: Int64, json: String) {
        self.app = app
        self.incarnation = incarnation
        self.at = at
        self.json = json
    }

    /// About what it takes in memory, bytes.
    var size: Int { 80 + app.utf8.count + json.utf8.count }
}

/// Which events are wanted.
public struct EventQuery: Sendable, Hashable {
    /// Only what concerns one of these apps.
    public var apps: [String]?
    /// Not before that time, microseconds since 1970.
    public var since: Int64?
    /// Not at or after that time, microseconds since 1970.
    public var until: Int64?
    /// Only those with a greater sequence.
    public var after: Int64?
    /// At most so many.
    public var limit = 1_000
    /// Where there are more than `limit`: the newest of them instead of the oldest.
    public var prefersNewest = false

    /// All events.
    public init() {}
}

/// How long events are kept; whichever is reached first.
public struct Retention: Sendable, Hashable {
    /// Microseconds; nil for as long as the count allows.
    public var maxAge: Int64?
    /// How many events.
    public var maxCount: Int64

    /// Makes one from its parts.
    public init(maxAge: Int64? = 30 * 86_400_000_000, maxCount: Int64 = 100_000) {
        self.maxAge = maxAge
        self.maxCount = maxCount
    }
}

/// What a database held when it was opened.
public struct StoreContents: Sendable, Hashable {
    /// Who wrote it last.
    public enum Origin: String, Sendable, Hashable {
        /// Nobody: it is new, or could not be read.
        case nobody
        /// A torpord of this boot.
        case thisBoot
        /// A torpord of an earlier boot of this machine.
        case earlierBoot
        /// A torpord of another machine.
        case otherMachine
    }

    /// What is known of each app, by name.
    public var apps: [String: AppRow] = [:]
    /// What waits to be told to apps, by its number.
    public var mail: [Int64: StoredMail] = [:]
    /// What nobody handled, by its number, without what it says.
    public var unhandled: [Int64: StoredUnhandled] = [:]
    /// When things happened to apps last.
    public var schedules: [StoredSchedule.Key: StoredSchedule] = [:]
    /// The topics that apps asked for when they ran.
    public var subscriptions: [StoredSubscription.Key: StoredSubscription] = [:]
    /// What settings of apps were set to.
    public var settings: [StoredSetting.Key: StoredSetting] = [:]
    /// The transfers of apps that are not over, by their numbers.
    public var transfers: [Int64: StoredTransfer] = [:]
    /// Who wrote it last.
    public var origin = Origin.nobody
    /// The greatest sequence of its events; 0 without any.
    public var lastSequence: Int64 = 0

    /// What an empty database holds.
    public init() {}

    /// Whether nothing is known of any app.
    var holdsNothing: Bool {
        apps.isEmpty && mail.isEmpty && unhandled.isEmpty && schedules.isEmpty && subscriptions.isEmpty
            && settings.isEmpty && transfers.isEmpty
    }

    /// Keeps no longer what was given away.
    mutating func letGo() {
        apps = [:]
        mail = [:]
        unhandled = [:]
        schedules = [:]
        subscriptions = [:]
        settings = [:]
        transfers = [:]
    }

    /// Takes away what does not count in this boot, or on this machine. What persons asked for always counts.
    mutating func forgetWhatIsOver() {
        switch origin {
        case .nobody, .thisBoot: return
        case .earlierBoot:
            for name in apps.keys { apps[name]?.isForceQuit = false }
        case .otherMachine:
            for (name, row) in apps {
                var fresh = AppRow(name: name)
                fresh.goal = row.goal
                fresh.isStopped = row.isStopped
                fresh.incarnation = row.incarnation
                fresh.lastExit = row.lastExit
                apps[name] = fresh
            }
        }
    }
}
