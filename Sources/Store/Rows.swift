// SPDX-License-Identifier: Apache-2.0

/// The state of an app that is stored across boots.
public struct AppRow: Sendable, Hashable {
    /// The app's name.
    public var name: String
    /// The goal that a user set, by its name in `Lifecycle`. Nil if no user set one, so that the configuration decides.
    public var goal: String?
    /// Whether a user stopped the app. If so, neither an event nor the start of the supervisor launches it.
    public var isStopped = false
    /// Whether the stop ends with this boot, so that the start after the next boot launches the app as before.
    public var isStoppedUntilBoot = false
    /// Whether a user force-quit the app during this boot. If so, no event launches it.
    public var isForceQuit = false
    /// Whether the restart policy has given up on the app.
    public var isFailed = false
    /// How often the restart policy has restarted the app since the last reset.
    public var restarts: Int64 = 0
    /// The number of consecutive restarts since the app last ran long enough to count as stable.
    public var attempt: Int64 = 0
    /// The number of the app's last run (launch).
    public var incarnation: Int64 = 0
    /// How the app's last run ended.
    public var lastExit: StoredExit?
    /// When the app was restarted, in microseconds since 1970, the oldest first.
    public var ledger: [Int64] = []

    /// Forgets a stop that has ended with the boot.
    mutating func forgetStopUntilBoot() {
        if isStoppedUntilBoot { (isStopped, isStoppedUntilBoot) = (false, false) }
    }

    /// Creates the row of an app without stored state.
    public init(name: String) { self.name = name }

    /// The times of restarts in ``ledger``, corrected for a caller that counts them at `now` (microseconds since 1970).
    /// Times in the future, which exist if the clock was set back, are replaced by `now`. Times older than `window`
    /// microseconds are removed.
    public func ledger(at now: Int64, window: Int64) -> [Int64] {
        ledger.map { min($0, now) }.filter {
            let (age, overflow) = now.subtractingReportingOverflow($0)
            return !overflow && age < window
        }
    }
}

/// How a run (launch) of an app ended.
public struct StoredExit: Sendable, Hashable {
    /// The termination reason, as a word.
    public var reason: String
    /// The exit status, if the app exited by itself.
    public var code: Int32?
    /// The signal's name, if a signal terminated the app.
    public var signal: String?
    /// When the run ended, microseconds since 1970.
    public var at: Int64

    /// Creates an exit from its parts.
    public init(reason: String, code: Int32? = nil, signal: String? = nil, at: Int64) {
        self.reason = reason
        self.code = code
        self.signal = signal
        self.at = at
    }
}

/// An event that torpord has logged.
public struct StoredEvent: Sendable, Hashable {
    /// The event's unique number, which defines the order of events; 0 until ``Store/append(_:)`` assigns it. Numbers
    /// increase across boots and databases: the number is the time in microseconds since 1970, or one more than the
    /// last number if the clock stood still or was set back. So the number is never less than `at`.
    public var sequence: Int64 = 0
    /// When the event happened, microseconds since 1970.
    public var at: Int64
    /// The app; nil for events that concern the supervisor.
    public var app: String?
    /// The number of the app's run (launch), counted from 1; nil if the event belongs to no run.
    public var incarnation: Int64?
    /// The kind of event, one word.
    public var kind: String
    /// For a change of state, the state before.
    public var from: String?
    /// For a change of state, the state after.
    public var to: String?
    /// The event as a sentence for users.
    public var text: String
    /// The termination reason, or the client that requested the change.
    public var reason: String?
    /// Further data for programs, a JSON text.
    public var details: String?

    /// Creates an event from the fields that all events have.
    public init(at: Int64, app: String? = nil, kind: String, text: String) {
        self.at = at
        self.app = app
        self.kind = kind
        self.text = text
    }

    /// The approximate size of the event in memory, bytes.
    var size: Int {
        160 + text.utf8.count + (app?.utf8.count ?? 0) + (reason?.utf8.count ?? 0) + (details?.utf8.count ?? 0)
    }
}

/// The report of how a run (launch) of an app ended.
public struct StoredReport: Sendable, Hashable {
    /// The app's name.
    public var app: String
    /// The number of the app's run (launch), counted from 1.
    public var incarnation: Int64
    /// When the run ended, microseconds since 1970.
    public var at: Int64
    /// The report, a JSON text.
    public var json: String

    /// Creates a report from its parts.
    public init(app: String, incarnation: Int64, at: Int64, json: String) {
        self.app = app
        self.incarnation = incarnation
        self.at = at
        self.json = json
    }

    /// The approximate size of the report in memory, bytes.
    var size: Int { 80 + app.utf8.count + json.utf8.count }
}

/// Selects events.
public struct EventQuery: Sendable, Hashable {
    /// Select only events of these apps; nil selects events of all apps and of the supervisor.
    public var apps: [String]?
    /// Select only events at or after this time, microseconds since 1970.
    public var since: Int64?
    /// Select only events before this time, microseconds since 1970.
    public var until: Int64?
    /// Select only events with a greater sequence number.
    public var after: Int64?
    /// The maximum number of events.
    public var limit = 1_000
    /// Whether to select the newest events instead of the oldest if there are more than `limit`.
    public var prefersNewest = false

    /// Selects all events, up to the default limit.
    public init() {}
}

/// How long events are kept. Events that exceed the maximum age, number or size are removed.
public struct Retention: Sendable, Hashable {
    /// Maximum age of events in microseconds; nil for no limit.
    public var maxAge: Int64?
    /// Maximum number of events.
    public var maxCount: Int64
    /// Maximum size of all events in bytes, of which those of one app have at most half; nil for no limit.
    public var maxBytes: Int64?

    /// Creates a retention from its limits.
    public init(maxAge: Int64? = 30 * 86_400_000_000, maxCount: Int64 = 100_000, maxBytes: Int64? = 64 << 20) {
        self.maxAge = maxAge
        self.maxCount = maxCount
        self.maxBytes = maxBytes
    }
}

/// The content of a database when it was opened.
public struct StoreContents: Sendable, Hashable {
    /// Which torpord wrote the database last: on which machine, and in which boot.
    public enum Origin: String, Sendable, Hashable {
        /// No torpord: the database is new, or could not be read.
        case nobody
        /// A torpord that ran on this machine since its last boot.
        case thisBoot
        /// A torpord that ran on this machine before its last boot.
        case earlierBoot
        /// A torpord on another machine.
        case otherMachine
    }

    /// The apps' state, by name.
    public var apps: [String: AppRow] = [:]
    /// Queued messages, by number.
    public var mail: [Int64: StoredMail] = [:]
    /// Unhandled messages, by number, without their payload.
    public var unhandled: [Int64: StoredUnhandled] = [:]
    /// The rows of all tables of ``RowTable``.
    var rows: [TableRow.Key: TableRow] = [:]
    /// Which torpord wrote the database last.
    public var origin = Origin.nobody
    /// The highest sequence number of the stored events; 0 if there are none.
    public var lastSequence: Int64 = 0

    /// The content of an empty database.
    public init() {}

    /// Whether the content has no data of any app.
    var hasNoData: Bool { apps.isEmpty && mail.isEmpty && unhandled.isEmpty && rows.isEmpty }

    /// The data of each app for which `isWanted` returns true.
    public func byApp(where isWanted: (_ app: String) -> Bool) -> [String: StoreContents] {
        var parts: [String: StoreContents] = [:]
        for (name, row) in apps where isWanted(name) { parts[name, default: StoreContents()].apps[name] = row }
        for (id, row) in mail where isWanted(row.app) { parts[row.app, default: StoreContents()].mail[id] = row }
        for (id, row) in unhandled where isWanted(row.mail.app) {
            parts[row.mail.app, default: StoreContents()].unhandled[id] = row
        }
        for (key, row) in rows where isWanted(row.rowApp) {
            parts[row.rowApp, default: StoreContents()].rows[key] = row
        }
        return parts
    }

    /// Frees the memory of the content, because a caller has its own copy.
    mutating func letGo() {
        apps = [:]
        mail = [:]
        unhandled = [:]
        rows = [:]
    }

    /// Removes data that no longer applies because it is from another boot or machine, such as force-quit marks, and
    /// that an app has failed. Goals that users set are kept.
    mutating func forgetWhatIsOver() {
        switch origin {
        case .nobody, .thisBoot: return
        case .earlierBoot:
            for name in apps.keys {
                apps[name]?.isForceQuit = false
                apps[name]?.forgetStopUntilBoot()
                // What the app lacked may be there now: a network, a disk, a device.
                apps[name]?.isFailed = false
                apps[name]?.attempt = 0
                apps[name]?.ledger = []
            }
        case .otherMachine:
            for (name, row) in apps {
                var fresh = AppRow(name: name)
                fresh.goal = row.goal
                fresh.isStopped = row.isStopped && !row.isStoppedUntilBoot
                fresh.incarnation = row.incarnation
                fresh.lastExit = row.lastExit
                apps[name] = fresh
            }
        }
    }
}

/// The rows of each table, by key. Each property searches the rows of all tables on every access, so store its result.
extension StoreContents {
    /// When recurring events last occurred.
    public var schedules: [StoredSchedule.Key: StoredSchedule] { records(StoredSchedule.self) }
    /// The topics that apps subscribed to while they ran.
    public var subscriptions: [StoredSubscription.Key: StoredSubscription] { records(StoredSubscription.self) }
    /// The values of apps' settings.
    public var settings: [StoredSetting.Key: StoredSetting] { records(StoredSetting.self) }
    /// Unfinished transfers of apps, by number.
    public var transfers: [Int64: StoredTransfer] { records(StoredTransfer.self) }
    /// Scheduled and open alerts of apps, and badges, by number.
    public var alerts: [Int64: StoredAlert] {
        get { records(StoredAlert.self) }
        set { set(newValue) }
    }
    /// Users' answers to permission requests of apps.
    public var permissions: [StoredPermission.Key: StoredPermission] { records(StoredPermission.self) }
}
