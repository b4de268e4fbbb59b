// SPDX-License-Identifier: Apache-2.0

import TorporPolicyKit

/// How an app was used in one of its runs.
struct Usage {
    /// The index of the app's rule; nil until the rule was looked up.
    var rule: Int?
    /// Whether the app's background time is used up and the app is still in the background.
    var isOverdue = false
    /// Whether this policy has sent the app to the background, and the app has not returned since.
    private(set) var isSent = false
    /// Whether the app came to the background because an event woke it.
    private(set) var isWoken = false
    /// How many times longer than ``Rule/idleAfter`` the app must seem unused until it counts as idle. More than 1 if
    /// clients used the app in a way that cannot be measured.
    private var patience = 1

    private let incarnation: UInt32
    private let launchedAt: Time?
    /// When the app was last used, or the policy last advised to send it to the background.
    private var used: Time
    /// A reading of the app's processor time. The app has used little processor time since this reading.
    private var sample: Sample
    /// Since when all checks have found the app's measurements too old; nil if the last check found them recent.
    private var outdatedSince: Time?

    private struct Sample {
        var at: Time
        var microseconds: UInt64

        /// Starts from the last measurement. If there is none yet, starts from the app's launch, with a processor time
        /// of 0.
        init(_ app: App, at now: Time) {
            if let measured = app.measuredAt {
                (at, microseconds) = (measured, app.processorMicroseconds)
            } else {
                (at, microseconds) = (app.launchedAt ?? now, 0)
            }
        }
    }

    init(_ app: App, at now: Time) {
        incarnation = app.incarnation
        launchedAt = app.launchedAt
        // It is unknown whether the app was used earlier, so count from now.
        used = now
        sample = Sample(app, at: now)
    }

    /// Whether this usage is that of the app's current run.
    func isOf(_ app: App) -> Bool { incarnation == app.incarnation && launchedAt == app.launchedAt }

    // MARK: What happens

    mutating func wasUsed(at now: Time) { used = max(used, now) }

    mutating func cameToFront(_ app: App, _ rule: Rule?, at now: Time) {
        if let rule, sleepBeforeUse(app, rule) != nil { patience = min(patience * Self.growth, Self.mostPatience) }
        isWoken = false
        isSent = false
        isOverdue = false
        used = max(used, now)
        sample = Sample(app, at: now)
    }

    mutating func wasSent(at now: Time) {
        isSent = true
        used = now
    }

    /// The factors of ``patience``: an app that is in use all the time in a way that cannot be measured is suspended
    /// after 10 min, 40 min, 160 min, and then every 11 hours.
    private static let growth = 4
    private static let mostPatience = 64

    mutating func cameToBackground(_ app: App, _ rule: Rule?, isWoken: Bool) {
        self.isWoken = isWoken
        if isWoken, let rule, let sleep = lastSleep(app), sleep.microseconds >= rule.idleTime { patience = 1 }
        isOverdue = false
        outdatedSince = nil
        sample = Sample(app, at: sample.at)
    }

    // MARK: What it is

    /// How long the app was suspended before it came to the background; nil if it was not.
    private func lastSleep(_ app: App) -> Duration? {
        guard let asleep = app.since(.suspended), let awake = app.since(.background), awake >= asleep else {
            return nil
        }
        return awake - asleep
    }

    /// How long the app was suspended before a client woke it over a socket whose traffic cannot be measured; nil if
    /// something else woke it, or if it was suspended for `idle_after` or longer. A short time shows that the app was
    /// probably in use before its suspension too.
    func sleepBeforeUse(_ app: App, _ rule: Rule) -> Duration? {
        guard rule.connections != .ignore, isWoken, app.isWokenUntraced, let sleep = lastSleep(app),
            sleep.microseconds < rule.idleTime, let asleep = app.since(.suspended), let use = app.lastUse, use >= asleep
        else { return nil }
        return sleep
    }

    /// How long the app must be unused to count as idle, in microseconds.
    private func idleTime(_ rule: Rule) -> Int64 { rule.idleTime * Int64(patience) }

    /// When the app will count as idle if it is not used from now on.
    mutating func idleAt(_ app: App, _ rule: Rule, _ now: Time) -> Time {
        // The view shows that the app has become active before the policy is told so, because torpord asks about one
        // event after the other, each time with the present view.
        var last = max(used, app.since(.active) ?? used)
        if rule.connections != .ignore, let traffic = app.lastTraffic { last = max(last, traffic) }
        // An app with a watchdog sends heartbeats whether it is used or not.
        if !app.isWatched, let heartbeat = app.lastHeartbeat { last = max(last, heartbeat) }
        let due = last.advanced(byMicroseconds: idleTime(rule))
        // Only an app that seems idle needs the other measurements.
        guard due <= now else { return due }
        if let again = waitForMeasurement(app, rule, now) { return again }
        // If a measurement is unknown, the app may be in use.
        guard app.isTraced || !isFresh(app, rule, now) || isConnected(app, rule) || isBusy(app, rule) else {
            return due
        }
        used = now
        return now.advanced(byMicroseconds: idleTime(rule))
    }

    /// When to check again if the app's measurements are too old; nil if they are recent. Each time that torpord asks
    /// the policy, torpord measures again, but at most once a second. After ``longestWait`` the policy stops waiting
    /// for measurements.
    mutating func waitForMeasurement(_ app: App, _ rule: Rule, _ now: Time) -> Time? {
        let since = outdatedSince ?? now
        guard !isFresh(app, rule, now), (now - since).microseconds < Self.longestWait else {
            outdatedSince = nil
            return nil
        }
        outdatedSince = since
        return now.advanced(byMicroseconds: min(tolerance(rule) / 2, 1_000_000))
    }

    /// How long to wait for recent measurements, in microseconds: three rounds of measuring.
    private static let longestWait: Int64 = 3_000_000

    /// Whether the app's measurements are recent enough.
    func isFresh(_ app: App, _ rule: Rule, _ now: Time) -> Bool {
        guard let measured = app.measuredAt, measured >= now.advanced(byMicroseconds: -tolerance(rule)) else {
            return false
        }
        // Measurements from before the app entered the background do not show whether it was used there.
        return app.state != .background || app.since(.background).map { measured >= $0 } ?? true
    }

    /// How old measurements may be, in microseconds.
    private func tolerance(_ rule: Rule) -> Int64 { min(max(rule.idleTime / 10, 500_000), 30_000_000) }

    /// Why the app counts as used in the background, in words; nil if it does not. The app must have been measured in
    /// the background.
    mutating func useInBackground(_ app: App, _ rule: Rule, _ now: Time) -> String? {
        // Only use after `since` counts. The policy counted earlier use when it sent the app to the background, or the
        // use was longer ago than `idle_after`.
        let since = max(app.since(.background) ?? now, now.advanced(byMicroseconds: -rule.idleTime))
        if isConnected(app, rule) {
            return app.connections.map { "\($0) connections are open" } ?? "its connections cannot be seen"
        }
        if rule.connections != .ignore, let traffic = app.lastTraffic, traffic > since {
            return "data came \((now - traffic).inWords) ago"
        }
        if !app.isWatched, let heartbeat = app.lastHeartbeat, heartbeat > since {
            return "it sent WATCHDOG=1 \((now - heartbeat).inWords) ago"
        }
        return isBusy(app, rule) ? "it takes processor time" : nil
    }

    /// How the app was used within this many microseconds, in words; nil if it was not.
    func lastUse(_ app: App, _ rule: Rule, _ now: Time, within time: Int64) -> String? {
        if isConnected(app, rule) { return app.connections.map { "\($0) connections are open" } }
        guard rule.connections != .ignore, let traffic = app.lastTraffic, (now - traffic).microseconds <= time else {
            return nil
        }
        return "data came \((now - traffic).inWords) ago"
    }

    private func isConnected(_ app: App, _ rule: Rule) -> Bool { rule.connections == .open && app.connections != 0 }

    /// Whether the app has used more processor time since the last reading than an idle app may use within
    /// ``Rule/idleAfter``.
    private mutating func isBusy(_ app: App, _ rule: Rule) -> Bool {
        guard let measured = app.measuredAt, measured > sample.at else { return false }
        let time = measured.microseconds.subtractingReportingOverflow(sample.at.microseconds).partialValue
        let isCalmForLong = time >= rule.idleTime
        let (taken, hasGoneBack) = app.processorMicroseconds.subtractingReportingOverflow(sample.microseconds)
        let isBusy = !hasGoneBack && Double(taken) > rule.idleShare * Double(max(rule.idleTime, time))
        if isBusy || hasGoneBack || isCalmForLong { sample = Sample(app, at: measured) }
        return isBusy
    }

    /// Why the app counts as idle, in words.
    func idleness(_ app: App, _ rule: Rule, _ now: Time) -> String {
        var parts: [String] = []
        if rule.connections != .ignore {
            if rule.connections == .open { parts.append("no connection") }
            parts.append(app.lastTraffic.map { "last data \((now - $0).inWords) ago" } ?? "no data at all")
        }
        parts.append("hardly any processor time")
        return "not used for \((rule.idleAfter * patience).inWords): " + parts.joined(separator: ", ")
    }
}
