// SPDX-License-Identifier: Apache-2.0

/// All timers and fetches of all apps. Computes when the next entries fire, several together where possible. This
/// value has no I/O and no clock.
public struct Timetable<Key: Hashable & Sendable>: Sendable {
    /// A timer of an app, or the fetches of an app.
    public enum Entry: Sendable {
        case timer(TimerState)
        case fetch(FetchState)

        /// The earliest and the latest time at which the entry may fire, as time since boot; nil if the entry never
        /// fires, or if its fetch is in progress.
        func window(now: ClockPair) -> (from: Duration, to: Duration)? {
            switch self {
            case .timer(let state): state.due(now: now).map { ($0, $0 + state.rule.accuracy) }
            case .fetch(let state): state.isUnderWay ? nil : (state.due, state.due + state.slack)
            }
        }
    }

    /// A timer or fetch that fires now.
    public struct Arrival: Sendable, Hashable {
        /// The entry's key in the timetable.
        public let key: Key
        /// When the entry was due, as time since boot.
        public let due: Duration
    }

    private var entries: [Key: Entry] = [:]

    /// An empty timetable.
    public init() {}

    /// Whether the timetable has no entries.
    public var isEmpty: Bool { entries.isEmpty }

    /// The keys of all entries, in no particular order.
    public var keys: some Collection<Key> { entries.keys }

    /// The entry with that key.
    public subscript(key: Key) -> Entry? {
        get { entries[key] }
        set { entries[key] = newValue }
    }

    /// Changes the timer with that key, if there is one.
    public mutating func updateTimer(_ key: Key, _ change: (inout TimerState) -> Void) {
        guard case .timer(var state) = entries[key] else { return }
        change(&state)
        entries[key] = .timer(state)
    }

    /// Changes the fetches with that key, if there are any.
    public mutating func updateFetch(_ key: Key, _ change: (inout FetchState) -> Void) {
        guard case .fetch(var state) = entries[key] else { return }
        change(&state)
        entries[key] = .fetch(state)
    }

    /// When the entry with that key is due, regardless of other entries, as time since boot; nil for never, or if there
    /// is no such entry.
    public func due(_ key: Key, now: ClockPair) -> Duration? { entries[key]?.window(now: now)?.from }

    /// When to wake next, as time since boot; nil for never. Each entry may fire between its due time and its latest
    /// time. The result is the last due time that is not after the earliest of all latest times: so one wake serves as
    /// many entries as possible, and none is late.
    public func wakeTime(now: ClockPair) -> Duration? {
        var windows: [(from: Duration, to: Duration)] = []
        windows.reserveCapacity(entries.count)
        for entry in entries.values { if let window = entry.window(now: now) { windows.append(window) } }
        guard let limit = windows.lazy.map(\.to).min() else { return nil }
        return windows.lazy.map(\.from).filter { $0 <= limit }.max()
    }

    /// Returns the entries that are due now, earliest first, and fires the timers among them. Fetches that are nearly
    /// due are included, since the machine is awake.
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
