// SPDX-License-Identifier: Apache-2.0

public import TorporAPI

/// An app's CPU use and memory over time.
public struct Measurements: Hashable, Sendable {
    struct Sample: Hashable, Sendable {
        var at: Int64
        var processorPercent: Double?
        var memoryBytes: Int64?
    }

    /// Samples of the last minute, newest last.
    private(set) var samples: [Sample] = []
    private var incarnation: Int64?
    private var processorSeconds: Double?
    private var measuredAt: Int64 = 0

    /// Percent of one processor between the last two readings; nil before the current run has two readings.
    public var processorPercent: Double? { samples.last?.processorPercent }

    /// Adds a reading.
    mutating func add(_ app: AppSummary, at now: Int64) {
        var percent: Double?
        var isMeasured = true
        if let spent = app.cpuSeconds, let before = processorSeconds, app.incarnation == incarnation, now > measuredAt {
            let passed = now - measuredAt
            // The supervisor measures at most once a second: an unchanged value is the same measurement, unless it
            // stays unchanged for 2.5 seconds.
            isMeasured = spent != before ? passed >= 200_000 : passed >= 2_500_000 || app.state == "suspended"
            percent = isMeasured ? max(0, (spent - before) / (Double(passed) / 1e6) * 100) : processorPercent
        }
        if isMeasured { (incarnation, processorSeconds, measuredAt) = (app.incarnation, app.cpuSeconds, now) }
        samples.append(Sample(at: now, processorPercent: percent, memoryBytes: app.memoryBytes))
        samples.removeAll { now - $0.at > 61_000_000 || $0.at > now }
    }

    /// The last minute in slots of `seconds` seconds, newest last.
    func values(_ now: Int64, slot seconds: Double, _ value: (Sample) -> Double?) -> [Double?] {
        let length = Int64(max(1, min(60, seconds)) * 1_000_000)
        var values = [Double?](repeating: nil, count: max(1, Int(60_000_000 / length)))
        for sample in samples {
            let slot = values.count - 1 - Int(max(0, now - sample.at) / length)
            guard slot >= 0, let one = value(sample) else { continue }
            values[slot] = max(values[slot] ?? one, one)
        }
        return values
    }
}

extension TopModel {
    /// The most events kept for the page of events, and the most changes of state kept per app for the timeline.
    static let mostEvents = 4000

    /// The most lines kept of a log.
    static let mostLines = 2000

    /// Replaces the list of apps.
    ///
    /// - Parameter asked: when the list was requested, in microseconds since 1970.
    public mutating func take(list: [AppSummary], asked: Int64) {
        apps = list.sorted { $0.name < $1.name }
        listedAt = asked
        let names = Set(apps.map(\.name))
        marked.formIntersection(names)
        if measurements.count > names.count { measurements = measurements.filter { names.contains($0.key) } }
        if changes.count > names.count { changes = changes.filter { names.contains($0.key) } }
        for app in apps { measurements[app.name, default: Measurements()].add(app, at: now) }
        arrange()
    }

    /// Sets the supervisor, and reports it if a new one has taken over.
    public mutating func take(supervisor info: SupervisorInfo) {
        if let before = supervisor, !before.isSameInstance(as: info) {
            say("torpord \(info.version) has taken over as process \(info.pid): no app was touched")
        } else if case .lost = link {
            say("the supervisor answers again")
        }
        supervisor = info
        link = .up
    }

    /// Marks the supervisor as lost, for the reason in `problem`.
    public mutating func lose(_ problem: String) {
        if case .lost(_, let since) = link {
            link = .lost(problem, since: since)
        } else {
            link = .lost(problem, since: now)
        }
    }

    /// Adds new events, in order. Changes of state that are newer than the list show at once.
    public mutating func take(events news: [EventRecord]) {
        var isChanged = false
        for event in news where event.sequence > sequence || event.sequence == 0 {
            sequence = max(sequence, event.sequence)
            events.append(event)
            remember(event)
            guard let name = event.app, event.at >= listedAt, let index = apps.firstIndex(where: { $0.name == name })
            else { continue }
            isChanged = true
            switch event.kind {
            case "state":
                guard let state = event.to else { continue }
                forgetMessage(of: name, at: event.at)
                apps[index].state = state
                apps[index].transition = nil
                if state == "not-running" {
                    (apps[index].pid, apps[index].uptime) = (nil, nil)
                } else {
                    apps[index].failed = false
                }
            case "transition": apps[index].transition = event.to
            default: break
            }
        }
        if events.count > Self.mostEvents { events.removeFirst(events.count - Self.mostEvents) }
        // If the user has scrolled to older events, keep those on the screen.
        if mode == .events, scroll > 0 { scroll += onlySubject ? 0 : news.count }
        if isChanged || order == .lastEvent { arrange() } else { settle() }
    }

    private mutating func remember(_ event: EventRecord) {
        guard let name = event.app else { return }
        // Messages and signals are left out: the event that they belong to says more.
        if !["message", "signal", "transition"].contains(event.kind) { lastEvents[name] = event }
        guard let change = StateChange(event) else { return }
        changes[name, default: []].append(change)
        if changes[name, default: []].count > Self.mostEvents { changes[name]?.removeFirst(Self.mostEvents / 4) }
    }

    /// Adds older events for the timeline: all events from `since` on.
    public mutating func take(history: [EventRecord], since: Int64) {
        var byApp: [String: [StateChange]] = [:]
        for event in history {
            guard let name = event.app, let change = StateChange(event) else { continue }
            byApp[name, default: []].append(change)
            if lastEvents[name] == nil { lastEvents[name] = event }
        }
        for (name, older) in byApp {
            let known = changes[name] ?? []
            let numbers = Set(known.map(\.sequence))
            let all = older.filter { !numbers.contains($0.sequence) } + known
            changes[name] = all.sorted { $0.sequence < $1.sequence }
        }
        knownSince = min(knownSince, since)
    }

    /// Records that all events since this time are known, in microseconds since 1970.
    public mutating func know(since: Int64) { knownSince = min(knownSince, since) }

    /// Adds lines of an app's log. If `isFirst`, these lines replace all earlier ones.
    public mutating func take(log lines: [LogLine], isFirst: Bool) {
        if isFirst { (logLines, scroll) = ([], 0) }
        logLines += lines
        if logLines.count > Self.mostLines { logLines.removeFirst(logLines.count - Self.mostLines) }
        if mode == .log, scroll > 0 { scroll += lines.count }
        settle()
    }
}
