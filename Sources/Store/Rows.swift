// SPDX-License-Identifier: Apache-2.0

/// What is stored of an app across boots.
public struct AppRow: Sendable, Hashable {
    /// The app's name.
    public var name: String
    /// The goal that a user set, as named in `Lifecycle`; nil: the configuration decides.
    public var goal: String?
    /// A user stopped it: neither the supervisor's start nor an event launches it.
    public var isStopped = false
    /// A user force-quit it during this boot: no event launches it.
    public var isForceQuit = false
    /// The restart policy has given up.
    public var isFailed = false
    /// Restarts by the policy since the last reset.
    public var restarts: Int64 = 0
    /// Consecutive restarts without a stable run in between.
    public var attempt: Int64 = 0
    /// The number of its last run.
    public var incarnation: Int64 = 0
    /// How its last run ended.
    public var lastExit: StoredExit?
    /// Times of its restarts, microseconds since 1970, oldest first.
    public var ledger: [Int64] = []

    /// An app without stored state.
    public init(name: String) { self.name = name }

    /// The ledger at `now`: future times, left by a clock that was set back, are replaced by now; times outside the
    /// window are removed. Both in microseconds.
    public func ledger(at now: Int64, window: Int64) -> [Int64] {
        ledger.map { min($0, now) }.filter {
            let (age, overflow) = now.subtractingReportingOverflow($0)
            return !overflow && age < window
        }
    }
}

/// How a run ended.
public struct StoredExit: Sendable, Hashable {
    /// A termination reason.
    public var reason: String
    /// The exit status, if it exited.
    public var code: Int32?
    /// The signal's name, if a signal terminated it.
    public var signal: String?
    /// Microseconds since 1970.
    public var at: Int64

    /// Creates one from its parts.
    public init(reason: String, code: Int32? = nil, signal: String? = nil, at: Int64) {
        self.reason = reason
        self.code = code
        self.signal = signal
        self.at = at
    }
}

/// An event.
public struct StoredEvent: Sendable, Hashable {
    /// Its unique number, which defines the order of all events; 0 until ``Store/append(_:)`` assigns it. It
    /// increases across boots and databases. It is the time in microseconds since 1970, or one more than the last if
    /// the clock stood still or was set back; so it is never less than `at`.
    public var sequence: Int64 = 0
    /// Microseconds since 1970.
    public var at: Int64
    /// The app; nil for events of the supervisor.
    public var app: String?
    /// The run of the app, counted from 1.
    public var incarnation: Int64?
    /// The kind of event, one word.
    public var kind: String
    /// The previous state, for a change of state.
    public var from: String?
    /// The new state.
    public var to: String?
    /// A sentence for users.
    public var text: String
    /// A termination reason, or the requester.
    public var reason: String?
    /// Further data for programs, a JSON text.
    public var details: String?

    /// Creates one from what all events have.
    public init(at: Int64, app: String? = nil, kind: String, text: String) {
        self.at = at
        self.app = app
        self.kind = kind
        self.text = text
    }

    /// Its approximate size in memory, bytes.
    var size: Int {
        160 + text.utf8.count + (app?.utf8.count ?? 0) + (reason?.utf8.count ?? 0) + (details?.utf8.count ?? 0)
    }
}

/// A termination report.
public struct StoredReport: Sendable, Hashable {
    /// The app's name.
    public var app: String
    /// The run of the app, counted from 1.
    public var incarnation: Int64
    /// Microseconds since 1970.
    public var at: Int64
    /// The report, a JSON text.
    public var json: String

    /// Creates one from its parts.
    public init(app: String, incarnation: Int64, at: Int64, json: String) {
        self.app = app
        self.incarnation = incarnation
        self.at = at
        self.json = json
    }

    /// Its approximate size in memory, bytes.
    var size: Int { 80 + app.utf8.count + json.utf8.count }
}

/// Selects events.
public struct EventQuery: Sendable, Hashable {
    /// Only events of these apps.
    public var apps: [String]?
    /// Only from this time on, microseconds since 1970.
    public var since: Int64?
    /// Only before this time, microseconds since 1970.
    public var until: Int64?
    /// Only with a greater sequence.
    public var after: Int64?
    /// The maximum number.
    public var limit = 1_000
    /// If there are more than `limit`: select the newest instead of the oldest.
    public var prefersNewest = false

    /// All events.
    public init() {}
}

/// How long events are kept; the limit that is reached first counts.
public struct Retention: Sendable, Hashable {
    /// Maximum age in microseconds; nil: unlimited.
    public var maxAge: Int64?
    /// Maximum number of events.
    public var maxCount: Int64

    /// Creates one from its parts.
    public init(maxAge: Int64? = 30 * 86_400_000_000, maxCount: Int64 = 100_000) {
        self.maxAge = maxAge
        self.maxCount = maxCount
    }
}

/// The content of a database when it was opened.
public struct StoreContents: Sendable, Hashable {
    /// Where it was last written.
    public enum Origin: String, Sendable, Hashable {
        /// Nowhere: it is new, or could not be read.
        case nobody
        /// By a torpord during this boot.
        case thisBoot
        /// By a torpord during an earlier boot of this machine.
        case earlierBoot
        /// By a torpord on another machine.
        case otherMachine
    }

    /// The apps' state, by name.
    public var apps: [String: AppRow] = [:]
    /// Queued mail, by number.
    public var mail: [Int64: StoredMail] = [:]
    /// Unhandled mail, by number, without payload.
    public var unhandled: [Int64: StoredUnhandled] = [:]
    /// When recurring events last occurred.
    public var schedules: [StoredSchedule.Key: StoredSchedule] = [:]
    /// The topics that apps subscribed to while they ran.
    public var subscriptions: [StoredSubscription.Key: StoredSubscription] = [:]
    /// The values of apps' settings.
    public var settings: [StoredSetting.Key: StoredSetting] = [:]
    /// Unfinished transfers of apps, by number.
    public var transfers: [Int64: StoredTransfer] = [:]
    /// Scheduled and open alerts of apps, and badges, by number.
    public var alerts: [Int64: StoredAlert] = [:]
    /// Where it was last written.
    public var origin = Origin.nobody
    /// The greatest sequence of its events; 0 if there are none.
    public var lastSequence: Int64 = 0

    /// The content of an empty database.
    public init() {}

    /// Whether it has no data of any app.
    var holdsNothing: Bool {
        apps.isEmpty && mail.isEmpty && unhandled.isEmpty && schedules.isEmpty && subscriptions.isEmpty
            && settings.isEmpty && transfers.isEmpty && alerts.isEmpty
    }

    /// Frees the content that was handed out.
    mutating func letGo() {
        apps = [:]
        mail = [:]
        unhandled = [:]
        schedules = [:]
        subscriptions = [:]
        settings = [:]
        transfers = [:]
        alerts = [:]
    }

    /// Removes what is not valid in this boot or on this machine. What users have set stays valid.
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
