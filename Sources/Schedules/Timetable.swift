// SPDX-License-Identifier: Apache-2.0

/// All timers of all apps, and when the next of them come: those that may come together do. A value without I/O and
/// clocks.
public struct Timetable<Key: Hashable & Sendable>: Sendable {
    /// Something that comes again and again.
    public enum Entry: Sendable {
        case timer(TimerState)
        case fetch(FetchState)

        /// When it comes at the earliest and at the latest, since the boot.
        func window(now: ClockPair) -> (from: Duration, to: Duration)? {
            switch self {
            case .timer(let state): state.due(now: now).map { ($0, $0 + state.rule.accuracy) }
            case .fetch(let state): state.isUnderWay ? nil : (state.due, state.due + state.slack)
            }
        }
    }

    /// What comes now.
    public struct Arrival: Sendable, Hashable {
        /// Which.
        public let key: Key
        /// When it was due, since the boot.
        public let due: Duration
    }

    private var entries: [Key: Entry] = [:]

    /// An empty one.
    public init() {}

    /// Whether there is nothing in it.
    public var isEmpty: Bool { entries.isEmpty }

    /// Which there are, in no order.
    public var keys: some Collection<Key> { entries.keys }

    /// The one of that key.
    public subscript(key: Key) -> Entry? {
        get { entries[key] }
        set { entries[key] = newValue }
    }

    /// Changes the timer of that key.
    public mutating func updateTimer(_ key: Key, _ change: (inout TimerState) -> Void) {
        guard case .timer(var state) = entries[key] else { return }
        change(&state)
        entries[key] = .timer(state)
    }

    /// Changes the fetches of that key.
    public mutating func updateFetch(_ key: Key, _ change: (inout FetchState) -> Void) {
        guard case .fetch(var state) = entries[key] else { return }
        change(&state)
        entries[key] = .fetch(state)
    }

    /// When it comes by itself, since the boot; nil for never.
    public func due(_ key: Key, now: ClockPair) -> Duration? { entries[key]?.window(now: now)?.from }

    /// When to look again, since the boot; nil for never. All that is due before the first of them must come waits for
    /// the last of those, and no longer: as few looks as possible, each as early as possible.
    public func wakeTime(now: ClockPair) -> Duration? {
        var windows: [(from: Duration, to: Duration)] = []
        windows.reserveCapacity(entries.count)
        for entry in entries.values { if let window = entry.window(now: now) { windows.append(window) } }
        guard let limit = windows.lazy.map(\.to).min() else { return nil }
        return windows.lazy.map(\.from).filter { $0 <= limit }.max()
    }

    /// What is due now, what was due first before others: it has come then. Fetches whose time is near come along, since
    /// the machine is awake.
    public mutating func arrive(now: ClockPair) -> [Arrival] {
        var due: [Arrival] = []
        for (key, entry) in entries {
            guard let from = entry.window(now: now)?.from, from <= now.running else { continue }
            due.append(Arrival(key: key, due: from))
        }
        guard !due.isEmpty else { return [] }
        let found = Set(due.map(\.key))
        for (key, entry) in entries where !found.contains(key) {
            guard case .fetch(let state) = entry, !state.isUnderWay, state.opportunity <= now.running else { continue }
            due.append(Arrival(key: key, due: state.opportunity))
        }
        for arrival in due { updateTimer(arrival.key) { $0.fire(now: now) } }
        return due.sorted { $0.due < $1.due }
    }
}
