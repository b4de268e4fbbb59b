// SPDX-License-Identifier: Apache-2.0

/// The alerts of all apps, and when they are due. A value without I/O and clocks.
public struct AlertTable: Sendable {
    /// An alert whose time has come.
    public struct Arrival: Hashable, Sendable {
        /// The alert that has come, with its state in ``Alert/opening``.
        public var alert: Alert
        /// The repeated alert that led to this alert, with its new state; nil for other alerts.
        public var parent: Alert?
        /// Whether the alert came too late to be shown.
        public var isMissed: Bool
    }

    private var alerts: [Int64: Alert] = [:]
    private var numbers: [String: Set<Int64>] = [:]
    /// When the scheduled alerts are due, in microseconds since 1970. Alerts of the kind `after` are not included:
    /// they depend on another clock.
    private var dues: [Int64: Int64] = [:]

    /// An empty table.
    public init() {}

    /// Whether the table has no alerts.
    public var isEmpty: Bool { alerts.isEmpty }

    /// Whether any alert is scheduled.
    public var hasScheduled: Bool { alerts.values.contains { $0.opening == nil } }

    /// Whether any alert is open.
    public var hasOpen: Bool { alerts.values.contains { $0.opening != nil } }

    /// The alert with that number; nil if there is none.
    public subscript(number: Int64) -> Alert? { alerts[number] }

    /// Adds or replaces an alert, and computes when it is due.
    public mutating func set(_ alert: Alert, _ clock: AlertClock) {
        alerts[alert.number] = alert
        numbers[alert.app, default: []].insert(alert.number)
        dues[alert.number] = nil
        guard alert.opening == nil else { return }
        if case .after = alert.time { return }
        dues[alert.number] = clock.due(alert)
    }

    /// Changes the state of an open alert.
    public mutating func update(_ number: Int64, _ change: (inout Opening) -> Void) {
        guard var opening = alerts[number]?.opening else { return }
        change(&opening)
        alerts[number]?.opening = opening
    }

    /// Removes an alert.
    public mutating func remove(_ number: Int64) {
        guard let alert = alerts.removeValue(forKey: number) else { return }
        dues[number] = nil
        numbers[alert.app]?.remove(number)
        if numbers[alert.app]?.isEmpty ?? false { numbers[alert.app] = nil }
    }

    /// The alerts of an app by number, the oldest first.
    public func alerts(of app: String) -> [Alert] {
        (numbers[app] ?? []).sorted().compactMap { alerts[$0] }
    }

    /// The scheduled alerts of an app.
    public func scheduled(of app: String) -> [Alert] { alerts(of: app).filter { $0.opening == nil } }

    /// The open alerts of an app.
    public func open(of app: String) -> [Alert] { alerts(of: app).filter { $0.opening != nil } }

    /// The alerts of an app that quiet hours hold back.
    public func held(of app: String) -> [Alert] {
        numbers[app] == nil ? [] : scheduled(of: app).filter { $0.heldUntil != nil }
    }

    /// Ends the wait of an alert that quiet hours hold back, so that it comes at `moment`. Returns the alert; nil if it
    /// is not held back, or would come before `moment` anyway.
    ///
    /// - Parameter moment: when the alert comes, in microseconds since 1970; nil for at once.
    public mutating func release(_ number: Int64, at moment: Int64? = nil, _ clock: AlertClock) -> Alert? {
        // Without a moment, use the current time. The alert waited for this moment, so it does not count as missed.
        let moment = max(moment ?? clock.wall, clock.wall)
        guard var alert = alerts[number], alert.opening == nil, let end = alert.heldUntil, end > moment else {
            return nil
        }
        alert.heldUntil = moment
        set(alert, clock)
        return alert
    }

    /// All open alerts by number, the oldest first.
    public var allOpen: [Alert] { alerts.values.filter { $0.opening != nil }.sorted { $0.number < $1.number } }

    /// All alerts by number.
    public var all: [Alert] { alerts.values.sorted { $0.number < $1.number } }

    /// When a scheduled alert is due, in microseconds since 1970; nil for never.
    public func due(_ alert: Alert, _ clock: AlertClock) -> Int64? {
        guard alert.opening == nil else { return nil }
        if case .after = alert.time { return clock.due(alert) }
        return dues[alert.number]
    }

    /// When the next alert is due, in microseconds since 1970; nil for never.
    public func nextDue(_ clock: AlertClock) -> Int64? {
        alerts.values.lazy.compactMap { due($0, clock) }.min()
    }

    /// Opens the alerts that are due, and returns them, the earliest first.
    ///
    /// - Parameters: - missedAfter: how late an alert may be, in microseconds, before it counts as missed. - number:
    ///   returns an unused number, for the new alert that is made when a repeated alert is due.
    public mutating func arrive(_ clock: AlertClock, missedAfter: Int64, number: () -> Int64) -> [Arrival] {
        var dueNow: [(alert: Alert, at: Int64)] = []
        for alert in alerts.values {
            if let at = due(alert, clock), at <= clock.wall { dueNow.append((alert, at)) }
        }
        dueNow.sort { ($0.at, $0.alert.number) < ($1.at, $1.alert.number) }
        return dueNow.map { alert, at in
            // Of the times that a repeated alert missed, only the last counts.
            let scheduled = max(clock.latest(alert) ?? at, alert.base)
            let isMissed = clock.wall - max(scheduled, alert.heldUntil ?? scheduled) > missedAfter
            var came = alert
            came.heldUntil = nil
            guard alert.calendar != nil else {
                came.opening = Opening(scheduledAt: self.scheduled(alert, clock) ?? at, openedAt: clock.wall)
                set(came, clock)
                return Arrival(alert: came, parent: nil, isMissed: isMissed)
            }
            var parent = came
            parent.base = clock.wall
            set(parent, clock)
            came.number = number()
            came.token = 0
            came.opening = Opening(scheduledAt: scheduled, openedAt: clock.wall, parent: alert.number)
            set(came, clock)
            return Arrival(alert: came, parent: parent, isMissed: isMissed)
        }
    }

    /// The time for which an alert was scheduled, even if quiet hours hold the alert back.
    private func scheduled(_ alert: Alert, _ clock: AlertClock) -> Int64? {
        var plain = alert
        plain.heldUntil = nil
        return clock.due(plain)
    }

    /// Closes an alert that came in quiet hours, and schedules it for their end. Returns the alert.
    ///
    /// An alert that a repeated alert made is scheduled as an alert of its own, so that it is not lost.
    public mutating func hold(_ number: Int64, until moment: Int64, _ clock: AlertClock) -> Alert? {
        guard var alert = alerts[number], let opening = alert.opening else { return nil }
        alert.opening = nil
        alert.time = .at(opening.scheduledAt)
        alert.heldUntil = moment
        set(alert, clock)
        return alert
    }

    /// Recomputes the alerts after the wall clock was set or, if `isElsewhere`, the time zone has changed. Returns the
    /// alerts that changed.
    ///
    /// As with timers, calendar times repeat if the clock was set back, and count from now if the zone has changed.
    public mutating func clockChanged(_ clock: AlertClock, isElsewhere: Bool) -> [Alert] {
        var changed: [Alert] = []
        for var alert in all where alert.opening == nil {
            let before = alert
            if alert.calendar != nil { alert.base = isElsewhere ? clock.wall : min(alert.base, clock.wall) }
            // When the alert is due, quiet hours are checked again.
            alert.heldUntil = nil
            set(alert, clock)
            if alert != before { changed.append(alert) }
        }
        return changed
    }
}

/// Combines the alerts of an app into one notification if more than five come within ten seconds.
public struct AlertBundles: Sendable {
    /// How many alerts of an app may come within ``window`` and still be shown as notifications of their own.
    static let most = 5
    /// The period in which the alerts of an app are counted. Further alerts in it are combined into one notification.
    static let window = Duration.seconds(10)

    /// Several alerts of an app that are shown as one.
    public struct Bundle: Hashable, Sendable {
        /// The number under which the bundle is shown: that of its first alert.
        public var number: Int64
        /// How many alerts are in the bundle.
        public var count: Int
        /// When the bundle is complete: later alerts do not join it.
        public var until: Duration
    }

    private var recent: [String: [Duration]] = [:]
    private var bundles: [String: Bundle] = [:]

    /// Creates an empty state, as if no app had shown an alert.
    public init() {}

    /// Records that an alert of the app is shown now. Returns the bundle that the alert joins; nil if it is shown
    /// alone.
    public mutating func show(_ number: Int64, of app: String, now: Duration) -> Bundle? {
        if var bundle = bundles[app], now < bundle.until {
            bundle.count += 1
            bundles[app] = bundle
            return bundle
        }
        bundles[app] = nil
        let times = (recent[app] ?? []).filter { now - $0 < Self.window }
        guard times.count >= Self.most else {
            recent[app] = times + [now]
            return nil
        }
        recent[app] = times
        let bundle = Bundle(number: number, count: 1, until: now + Self.window)
        bundles[app] = bundle
        return bundle
    }

    /// When the bundle of an app is complete; zero if it has none.
    public func end(of app: String) -> Duration { bundles[app]?.until ?? .zero }

    /// Forgets an app that was removed.
    public mutating func forget(_ app: String) { (recent[app], bundles[app]) = (nil, nil) }
}
