// SPDX-License-Identifier: Apache-2.0

public import TorporAPI

/// What is measured of an app over time.
public struct Measurements: Hashable, Sendable {
    struct Sample: Hashable, Sendable {
        var at: Int64
        var processorPercent: Double?
        var memoryBytes: Int64?
    }

    /// Of the last minute, the newest last.
    private(set) var samples: [Sample] = []
    private var incarnation: Int64?
    private var processorSeconds: Double?
    private var measuredAt: Int64 = 0

    /// Percent of one processor between the last two readings; nil before there are two of one run.
    public var processorPercent: Double? { samples.last?.processorPercent }

    /// Adds a reading.
    mutating func add(_ app: AppSummary, at now: Int64) {
        var percent: Double?
        var isMeasured = true
        if let spent = app.cpuSeconds, let before = processorSeconds, app.incarnation == incarnation, now > measuredAt {
            let passed = now - measuredAt
            // The supervisor measures once a second, whoever asks: the same value again is the same measurement, unless
            // it stays.
            isMeasured = spent != before ? passed >= 200_000 : passed >= 2_500_000 || app.state == "suspended"
            percent = isMeasured ? max(0, (spent - before) / (Double(passed) / 1e6) * 100) : processorPercent
        }
        if isMeasured { (incarnation, processorSeconds, measuredAt) = (app.incarnation, app.cpuSeconds, now) }
        samples.append(Sample(at: now, processorPercent: percent, memoryBytes: app.memoryBytes))
        samples.removeAll { now - $0.at > 61_000_000 || $0.at > now }
    }

    /// The last minute in slots of that many seconds, the newest last.
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
    /// So many events are kept for the page of events, and changes of state of one app for the timeline.
    static let mostEvents = 4000

    /// So many lines of a log are kept.
    static let mostLines = 2000

    /// All apps, as the supervisor says.
    ///
    /// - Parameter asked: when it was asked, in microseconds since 1970.
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

    /// Which torpord answers. Says so when it is another one than before.
    public mutating func take(supervisor info: SupervisorInfo) {
        if let before = supervisor, !before.isSameInstance(as: info) {
            say("torpord \(info.version) has taken over as process \(info.pid): no app was touched")
        } else if case .lost = link {
            say("the supervisor answers again")
        }
        supervisor = info
        link = .up
    }

    /// The supervisor does not answer; why, in a sentence.
    public mutating func lose(_ problem: String) {
        if case .lost(_, let since) = link {
            link = .lost(problem, since: since)
        } else {
            link = .lost(problem, since: now)
        }
    }

    /// What happened since, in order. Changes of state that the list cannot know of yet show at once.
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
        // Whoever looks at older ones goes on looking at them.
        if mode == .events, scroll > 0 { scroll += onlySubject ? 0 : news.count }
        if isChanged || order == .lastEvent { arrange() } else { settle() }
    }

    private mutating func remember(_ event: EventRecord) {
        guard let name = event.app else { return }
        // What it was told and sent comes with what it is for.
        if !["message", "signal", "transition"].contains(event.kind) { lastEvents[name] = event }
        guard let change = StateChange(event) else { return }
        changes[name, default: []].append(change)
        if changes[name, default: []].count > Self.mostEvents { changes[name]?.removeFirst(Self.mostEvents / 4) }
    }

    /// Older events, for the timeline: all there are from a time on.
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

    /// From when on the first events were asked for.
    public mutating func know(since: Int64) { knownSince = min(knownSince, since) }

    /// Lines that an app wrote; `isFirst`: those before are of another app.
    public mutating func take(log lines: [LogLine], isFirst: Bool) {
        if isFirst { (logLines, scroll) = ([], 0) }
        logLines += lines
        if logLines.count > Self.mostLines { logLines.removeFirst(logLines.count - Self.mostLines) }
        if mode == .log, scroll > 0 { scroll += lines.count }
        settle()
    }
}
