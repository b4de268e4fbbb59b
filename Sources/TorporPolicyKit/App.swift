// SPDX-License-Identifier: Apache-2.0

/// An app as it is now: a view into the supervisor's memory, valid until the question is answered. Only its ``place``
/// can be kept.
public struct App {
    @usableFromInline
    let raw: UnsafePointer<torpor_policy_app>
    @usableFromInline
    let view: UnsafePointer<torpor_policy_view>
    /// Its index, the same as long as it is configured.
    public let place: UInt32

    @inlinable
    init(raw: UnsafePointer<torpor_policy_app>, view: UnsafePointer<torpor_policy_view>, place: UInt32) {
        self.raw = raw
        self.view = view
        self.place = place
    }

    /// A field, or the fallback if the supervisor's version does not have the field.
    @inlinable
    @inline(__always)
    func field<Value>(_ path: KeyPath<torpor_policy_app, Value>, else fallback: Value) -> Value {
        guard let offset = MemoryLayout<torpor_policy_app>.offset(of: path),
            Int(raw.pointee.size) >= offset + MemoryLayout<Value>.size
        else { return fallback }
        return raw.pointee[keyPath: path]
    }

    // MARK: What it does

    /// Its current state.
    @inlinable
    public var state: State { State(rawValue: field(\.state, else: 0)) ?? .notRunning }
    /// The transition in progress.
    @inlinable
    public var edge: Edge { Edge(rawValue: field(\.edge, else: 0)) ?? .none }
    /// The state that was last requested.
    @inlinable
    public var goal: State { State(rawValue: field(\.goal, else: 0)) ?? .notRunning }
    /// The number of its current or last run, from 1; 0 before the first.
    @inlinable
    public var incarnation: UInt32 { field(\.incarnation, else: 0) }
    /// How many processes it has.
    @inlinable
    public var processes: Int { Int(field(\.processes, else: 0)) }

    /// When it last entered that state; nil if it never did.
    @inlinable
    public func since(_ state: State) -> Time? {
        let times = field(\.state_since, else: (.min, .min, .min, .min, .min))
        switch state {
        case .notRunning: return Time(known: times.0)
        case .inactive: return Time(known: times.1)
        case .active: return Time(known: times.2)
        case .background: return Time(known: times.3)
        case .suspended: return Time(known: times.4)
        }
    }

    /// When it was last in the foreground; now while it is; nil if it never was.
    @inlinable
    public var lastUse: Time? { Time(known: field(\.last_use, else: .min)) }
    /// When this run began.
    @inlinable
    public var launchedAt: Time? { Time(known: field(\.launched_at, else: .min)) }
    /// When its time in the background ends or ended.
    @inlinable
    public var grantEnds: Time? { Time(known: field(\.grant_ends, else: .min)) }

    /// Whether it is in the foreground and stays there, or is on its way there.
    @inlinable
    public var isInFront: Bool {
        guard goal.isForeground, edge != .terminating else { return false }
        return state.isForeground || edge == .launching || edge == .enteringForeground
    }

    /// Whether it is in the background and nothing prevents a suspension: no task, no hold, no app that requires it,
    /// no debugger. It may still have background time left.
    @inlinable
    public var canBeSuspended: Bool {
        state == .background && edge == .none && !isHeld && !isRequired && !isTraced
    }

    // MARK: How it ended

    /// How the previous run ended.
    @inlinable
    public var lastReason: EndReason { EndReason(rawValue: field(\.last_reason, else: 0)) }
    /// When it will be restarted; nil if it will not be.
    @inlinable
    public var nextRestart: Time? { Time(known: field(\.next_restart, else: .min)) }
    /// Restarts that count towards the limit.
    @inlinable
    public var restartsInWindow: Int { Int(field(\.restarts_in_window, else: 0)) }
    /// The limit of these restarts; one more, and the supervisor gives up.
    @inlinable
    public var restartLimit: Int { Int(field(\.restart_limit, else: 0)) }

    // MARK: What it may and must

    /// As configured, 0 by default; apps with higher priority are terminated later.
    @inlinable
    public var priority: Int { Int(field(\.priority, else: 0)) }
    /// How many background tasks it has begun.
    @inlinable
    public var tasks: Int { Int(field(\.tasks, else: 0)) }
    /// How many other holds keep it in the background.
    @inlinable
    public var holds: Int { Int(field(\.holds, else: 0)) }
    /// Whether a task or a hold keeps it in the background.
    @inlinable
    public var isHeld: Bool { tasks > 0 || holds > 0 }
    /// It was restarted too often; the supervisor gave up until a user resets it.
    @inlinable
    public var hasFailed: Bool { has(1) }
    /// It runs once and exits.
    @inlinable
    public var isOneshot: Bool { has(2) }
    /// It would exit instead of entering the background.
    @inlinable
    public var exitsOnSuspend: Bool { has(3) }
    /// It is never evicted.
    @inlinable
    public var isNeverEvicted: Bool { has(4) }
    /// An eviction terminates it without notice: it could prepare, or is configured so.
    @inlinable
    public var isEvictedAtOnce: Bool { has(5) }
    /// A running app requires it: it is neither suspended nor terminated.
    @inlinable
    public var isRequired: Bool { has(6) }
    /// A user stopped it: only a user starts it again.
    @inlinable
    public var isStartedByPersonOnly: Bool { has(7) }
    /// It must send heartbeats.
    @inlinable
    public var isWatched: Bool { has(8) }
    /// A debugger is attached.
    @inlinable
    public var isTraced: Bool { has(9) }
    /// An interruption keeps it inactive.
    @inlinable
    public var isInterrupted: Bool { has(10) }

    @inlinable
    func has(_ bit: UInt32) -> Bool { raw.pointee.flags >> bit & 1 != 0 }

    // MARK: What was measured of it (``PolicyDescription/needs``)

    /// When it was last measured; nil before.
    @inlinable
    public var measuredAt: Time? { Time(known: field(\.measured_at, else: .min)) }
    /// Bytes in memory, 0 before it was measured.
    @inlinable
    public var memory: UInt64 { field(\.memory, else: 0) }
    /// The processor time of this run in microseconds, 0 before it was measured.
    @inlinable
    public var processorMicroseconds: UInt64 { field(\.cpu_time, else: 0) }
    /// The processor time of this run.
    @inlinable
    public var processorTime: Duration { .microseconds(Int64(clamping: processorMicroseconds)) }
    /// Thousandths of one processor between the last two measurements; nil before there are two.
    @inlinable
    public var processorPermille: Int? {
        let permille = field(\.cpu_permille, else: .max)
        return permille == .max ? nil : Int(permille)
    }
    /// How many TCP connections are open; nil if unknown.
    @inlinable
    public var connections: Int? {
        let count = field(\.connections, else: .max)
        return count == .max ? nil : Int(count)
    }
    /// When data last went over one of its connections, or one to its ports was closed.
    @inlinable
    public var lastTraffic: Time? { Time(known: field(\.last_traffic, else: .min)) }
    /// When it last sent WATCHDOG=1.
    @inlinable
    public var lastHeartbeat: Time? { Time(known: field(\.last_heartbeat, else: .min)) }
    /// How many messages are queued for it.
    @inlinable
    public var mailCount: Int { Int(field(\.mail, else: 0)) }
    /// How many messages to it no app handled.
    @inlinable
    public var unhandledCount: Int { Int(field(\.unhandled, else: 0)) }

    // MARK: Its names

    /// Its name. Allocates a string: to compare, use ``isNamed(_:)`` or ``matches(_:)-(Selector)``.
    public var name: String { String(decoding: nameBytes, as: UTF8.self) }

    /// Whether this is its name.
    public func isNamed(_ name: String) -> Bool { nameBytes.elementsEqual(name.utf8) }

    /// Its tags. Allocates strings: to check one, use ``hasTag(_:)``.
    public var tags: [String] {
        var tags: [String] = []
        forEachTag { tag in
            tags.append(String(decoding: tag, as: UTF8.self))
            return true
        }
        return tags
    }

    /// Whether it has the tag.
    public func hasTag(_ tag: String) -> Bool {
        var isFound = false
        forEachTag { bytes in
            isFound = bytes.elementsEqual(tag.utf8)
            return !isFound
        }
        return isFound
    }

    /// Whether the selector matches it.
    public func matches(_ selector: Selector) -> Bool { selector.matches(self) }

    /// Whether one of the selectors matches it.
    public func matches(_ selectors: [Selector]) -> Bool { selectors.contains { $0.matches(self) } }

    /// Its name's bytes without the NUL; empty if the view is damaged.
    var nameBytes: UnsafeRawBufferPointer {
        text(at: Int(field(\.name, else: .max))) ?? UnsafeRawBufferPointer(start: nil, count: 0)
    }

    /// Calls `body` with each tag's bytes until that returns false.
    func forEachTag(_ body: (UnsafeRawBufferPointer) -> Bool) {
        var start = Int(field(\.tags, else: .max))
        for _ in 0..<field(\.tag_count, else: 0) {
            guard let tag = text(at: start), body(tag) else { return }
            start += tag.count + 1
        }
    }

    /// The text at that offset; nil if it is not within the view's strings.
    private func text(at start: Int) -> UnsafeRawBufferPointer? {
        let end = Int(view.pointee.string_size)
        guard start < end, let strings = UnsafeRawPointer(view.pointee.strings) else { return nil }
        let all = UnsafeRawBufferPointer(start: strings, count: end)
        var next = start
        while next < end, all[next] != 0 { next += 1 }
        return UnsafeRawBufferPointer(rebasing: all[start..<next])
    }
}
