// SPDX-License-Identifier: Apache-2.0

import TorporPolicyKit

/// What is known of how a run of an app is used.
struct Usage {
    /// Which of the rules goes for it; nil before it was looked for.
    var rule: Int?
    /// Its time in the background is used up, and it is still there.
    var isOverdue = false
    /// This policy has sent it to the background, and nobody has brought it back.
    private(set) var isSent = false

    private let incarnation: UInt32
    private let launchedAt: Time?
    /// When it was last known to be in use, or to have been told to go.
    private var used: Time
    /// A point of its processor time, since when it has not taken more than an idle app may.
    private var sample: Sample
    /// Since when each measurement that it was looked at with was too old.
    private var outdatedSince: Time?

    private struct Sample {
        var at: Time
        var microseconds: UInt64

        /// What was measured last; before that, the launch, when it had taken none.
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
        // How it was used before this policy was there is not known.
        used = now
        sample = Sample(app, at: now)
    }

    /// Whether it is about the run that the app is in.
    func isOf(_ app: App) -> Bool { incarnation == app.incarnation && launchedAt == app.launchedAt }

    // MARK: What happens

    mutating func wasUsed(at now: Time) { used = max(used, now) }

    mutating func cameToFront(_ app: App, at now: Time) {
        isSent = false
        isOverdue = false
        used = max(used, now)
        sample = Sample(app, at: now)
    }

    mutating func wasSent(at now: Time) {
        isSent = true
        used = now
    }

    mutating func cameToBackground(_ app: App) {
        isOverdue = false
        outdatedSince = nil
        sample = Sample(app, at: sample.at)
    }

    // MARK: What it is

    /// When it will have been idle for long enough, if it is not used from now on.
    mutating func idleAt(_ app: App, _ rule: Rule, _ now: Time) -> Time {
        var last = used
        if rule.connections != .ignore, let traffic = app.lastTraffic { last = max(last, traffic) }
        // An app that owes heartbeats sends them whether it is used or not.
        if !app.isWatched, let heartbeat = app.lastHeartbeat { last = max(last, heartbeat) }
        let due = last.advanced(byMicroseconds: rule.idleTime)
        // What else can be told of it matters only then.
        guard due <= now else { return due }
        if let again = waitForMeasurement(app, rule, now) { return again }
        // What nobody can tell may be use.
        guard app.isTraced || !isFresh(app, rule, now) || isConnected(app, rule) || isBusy(app, rule) else {
            return due
        }
        used = now
        return now.advanced(byMicroseconds: rule.idleTime)
    }

    /// When to look again if what was measured of the app is too old to go by. A question has it measured anew, but the
    /// supervisor measures once a second at most; what does not come within ``longestWait`` is not waited for.
    mutating func waitForMeasurement(_ app: App, _ rule: Rule, _ now: Time) -> Time? {
        let since = outdatedSince ?? now
        guard !isFresh(app, rule, now), (now - since).microseconds < Self.longestWait else {
            outdatedSince = nil
            return nil
        }
        outdatedSince = since
        return now.advanced(byMicroseconds: min(tolerance(rule) / 2, 1_000_000))
    }

    /// Microseconds: three rounds of measuring.
    private static let longestWait: Int64 = 3_000_000

    /// Whether what was measured of the app is new enough to go by.
    func isFresh(_ app: App, _ rule: Rule, _ now: Time) -> Bool {
        guard let measured = app.measuredAt, measured >= now.advanced(byMicroseconds: -tolerance(rule)) else {
            return false
        }
        // What was so before it came to the background says nothing of its use there.
        return app.state != .background || app.since(.background).map { measured >= $0 } ?? true
    }

    /// How old what was measured may be, in microseconds.
    private func tolerance(_ rule: Rule) -> Int64 { min(max(rule.idleTime / 10, 500_000), 30_000_000) }

    /// What shows that it is used in the background, in words; nil: nothing does. It was measured there.
    mutating func useInBackground(_ app: App, _ rule: Rule, _ now: Time) -> String? {
        // What came before was the use for which it was let be, or led to its being sent here.
        let since = max(app.since(.background) ?? now, now.advanced(byMicroseconds: -rule.idleTime))
        if isConnected(app, rule) {
            return app.connections.map { "\($0) TCP connections are open" } ?? "its TCP connections cannot be seen"
        }
        if rule.connections != .ignore, let traffic = app.lastTraffic, traffic > since {
            return "data came \((now - traffic).inWords) ago"
        }
        if !app.isWatched, let heartbeat = app.lastHeartbeat, heartbeat > since {
            return "it sent WATCHDOG=1 \((now - heartbeat).inWords) ago"
        }
        return isBusy(app, rule) ? "it takes processor time" : nil
    }

    private func isConnected(_ app: App, _ rule: Rule) -> Bool { rule.connections == .open && app.connections != 0 }

    /// Whether it has taken more processor time since the sample than an idle app may over ``Rule/idleAfter``.
    private mutating func isBusy(_ app: App, _ rule: Rule) -> Bool {
        guard let measured = app.measuredAt, measured > sample.at else { return false }
        let time = measured.microseconds.subtractingReportingOverflow(sample.at.microseconds).partialValue
        let isCalmForLong = time >= rule.idleTime
        let (taken, hasGoneBack) = app.processorMicroseconds.subtractingReportingOverflow(sample.microseconds)
        let isBusy = !hasGoneBack && Double(taken) > rule.idleShare * Double(max(rule.idleTime, time))
        if isBusy || hasGoneBack || isCalmForLong { sample = Sample(app, at: measured) }
        return isBusy
    }

    /// Why it counts as idle, in words.
    static func idleness(_ app: App, _ rule: Rule, _ now: Time) -> String {
        var parts: [String] = []
        if rule.connections != .ignore {
            if rule.connections == .open { parts.append("no TCP connection") }
            parts.append(app.lastTraffic.map { "last data \((now - $0).inWords) ago" } ?? "no data at all")
        }
        parts.append("hardly any processor time")
        return "not used for \(rule.idleAfter.inWords): " + parts.joined(separator: ", ")
    }
}
