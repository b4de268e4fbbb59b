// SPDX-License-Identifier: Apache-2.0

import TorporPolicyKit

extension Server {
    static let description = PolicyDescription(
        name: "server",
        version: "1.0",
        summary: "Sends apps unused for idle_after to the background, and suspends them when their time is up.",
        events: [.started, .appsChanged, .stateChanged, .goalChanged, .timeUsed, .timer],
        needs: [.processor, .connections],
        options: [
            OptionDescription(
                "idle_after",
                "duration",
                default: "\"10min\"",
                "how long an app must be unused to count as idle, at least \"1s\""
            ),
            OptionDescription(
                "idle_cpu",
                "share",
                default: "\"2%\"",
                "how much of one processor an idle app may take, on average over idle_after"
            ),
            OptionDescription(
                "connections",
                "\"open\", \"traffic\" or \"ignore\"",
                default: "\"open\"",
                "when a connection counts as use: while it is open, when data passes, or never"
            ),
            OptionDescription(
                "suspend",
                "\"wakeable\", true or false",
                default: "\"wakeable\"",
                "which apps in the background are suspended when their time is used up: those that an event can wake, "
                    + "all, or none"
            ),
            OptionDescription(
                "protect",
                "list of apps",
                default: "[]",
                "apps that are left alone; one that was sent away before comes back to the foreground"
            ),
            OptionDescription(
                "protect_between",
                "list of daily windows",
                default: "[]",
                "when all apps are left alone, as in \"08:00-18:00\" or \"22:00-06:00\""
            ),
            OptionDescription(
                "timezone",
                "string",
                default: "the machine's",
                "the time zone of the windows, such as \"Europe/Berlin\" or \"UTC\""
            ),
            OptionDescription(
                "apps",
                "list of tables",
                default: "[]",
                "exceptions for some apps; the first table that names an app applies to it"
            ),
            OptionDescription("apps.*.apps", "list of apps", default: "required", "the apps that the table applies to"),
            OptionDescription("apps.*.idle_after", "duration", default: "idle_after", "the same for these apps"),
            OptionDescription("apps.*.idle_cpu", "share", default: "idle_cpu", "the same for these apps"),
            OptionDescription("apps.*.connections", "word", default: "connections", "the same for these apps"),
            OptionDescription(
                "apps.*.protect_between",
                "list of daily windows",
                default: "protect_between",
                "the same for these apps, instead of the general windows"
            ),
        ]
    )
}

/// Finds the rule for an app.
struct Rules {
    /// The configured rules in their order, then the rule for all other apps.
    let all: [Rule]
    private let protected: [Selector]

    /// Used instead of a rule's index for an app that the option `protect` exempts from this policy.
    static let protected = -1

    init(_ options: Options) throws(PolicyError) {
        protected = try options.selectors("protect")
        let zone = try LocalClock(options)
        let general = try Rule(options, clock: zone)
        var all: [Rule] = []
        for table in try options.tables("apps") {
            guard table.has("apps") else {
                throw table.error("apps", "is missing: it names the apps that the table applies to")
            }
            all.append(try Rule(table, among: try table.selectors("apps"), instead: general))
        }
        self.all = all + [general]
    }

    func index(for app: App) -> Int {
        if app.matches(protected) { return Self.protected }
        return all.dropLast().firstIndex { app.matches($0.apps) } ?? all.count - 1
    }
}

/// Which apps are suspended when their background time is over.
enum Suspended: String {
    /// Only apps that an event can wake are suspended.
    case wakeable
    case all
    case none

    init(_ options: Options) throws(PolicyError) {
        guard options.has("suspend") else {
            self = .wakeable
            return
        }
        do { self = try options.boolean("suspend", default: true) ? .all : .none } catch {
            guard try options.string("suspend", default: "") == Suspended.wakeable.rawValue else {
                throw options.error("suspend", "must be \"wakeable\", true or false")
            }
            self = .wakeable
        }
    }

    func has(_ app: App) -> Bool { self == .all || (self == .wakeable && !app.isNeverWoken) }
}

/// When an app counts as idle, and when it may be sent to the background. This is a class so that looking up a rule
/// for each app copies nothing.
final class Rule {
    /// What counts as use of a connection.
    enum Connections: String, CaseIterable {
        case open
        case traffic
        case ignore
    }

    let apps: [Selector]
    let idleAfter: Duration
    /// The duration ``idleAfter`` in microseconds.
    let idleTime: Int64
    /// The share of one processor that an idle app may use, on average over ``idleAfter``.
    let idleShare: Double
    let connections: Connections
    private let windows: [DailyWindow]
    private let clock: LocalClock

    /// Reads the rule for all apps.
    init(_ options: Options, clock: LocalClock) throws(PolicyError) {
        apps = []
        idleAfter = try options.duration("idle_after", default: .seconds(600), in: Self.idleTimes)
        idleTime = idleAfter.microseconds
        idleShare = try options.share("idle_cpu", default: 0.02, in: Self.shares)
        connections = try options.word("connections", default: .open)
        windows = try DailyWindow.windows(options, "protect_between")
        self.clock = clock
    }

    /// Reads a rule for some apps. Takes options that the rule lacks from the rule `general`.
    init(_ options: Options, among apps: [Selector], instead general: Rule) throws(PolicyError) {
        self.apps = apps
        idleAfter = try options.duration("idle_after", default: general.idleAfter, in: Self.idleTimes)
        idleTime = idleAfter.microseconds
        idleShare = try options.share("idle_cpu", default: general.idleShare, in: Self.shares)
        connections = try options.word("connections", default: general.connections)
        let has = options.has("protect_between")
        windows = has ? try DailyWindow.windows(options, "protect_between") : general.windows
        clock = general.clock
    }

    private static let idleTimes = Duration.seconds(1)...Quantity.longest
    private static let shares = 0.0001...64.0

    /// The first moment from `time` on that is outside the windows of `protect_between`, in which the app is protected.
    func unprotected(at time: Time, _ view: View) -> Time {
        if windows.isEmpty { return time }
        let moment = view.machine.microsecondsSince1970 &+ (time - view.now).microseconds
        return time + DailyWindow.timeLeft(in: windows, at: clock.microsecondsOfDay(at: moment))
    }
}
