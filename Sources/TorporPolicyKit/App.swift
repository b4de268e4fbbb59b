// SPDX-License-Identifier: Apache-2.0

/// An app as it is now: a view into the supervisor's memory, valid until the policy has answered the question. After
/// that, a policy may keep only the app's index, ``place``.
public struct App {
    @usableFromInline
    let raw: UnsafePointer<torpor_policy_app>
    @usableFromInline
    let view: UnsafePointer<torpor_policy_view>
    /// The app's index, which stays the same while the app is configured.
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

    /// The app's current state.
    @inlinable
    public var state: State { State(rawValue: field(\.state, else: 0)) ?? .notRunning }
    /// The app's transition in progress.
    @inlinable
    public var edge: Edge { Edge(rawValue: field(\.edge, else: 0)) ?? .none }
    /// The state that was last requested for the app.
    @inlinable
    public var goal: State { State(rawValue: field(\.goal, else: 0)) ?? .notRunning }
    /// The number of the app's current or last run, from 1; 0 before the first run.
    @inlinable
    public var incarnation: UInt32 { field(\.incarnation, else: 0) }
    /// How many processes the app has.
    @inlinable
    public var processes: Int { Int(field(\.processes, else: 0)) }

    /// When the app last entered `state`; nil if it never did.
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

    /// When the app was last in the foreground, or a connection woke it; the current time while it is in the
    /// foreground.
    @inlinable
    public var lastUse: Time? { Time(known: field(\.last_use, else: .min)) }
    /// When the app's current run began.
    @inlinable
    public var launchedAt: Time? { Time(known: field(\.launched_at, else: .min)) }
    /// When the app's background time ends or ended.
    @inlinable
    public var grantEnds: Time? { Time(known: field(\.grant_ends, else: .min)) }

    /// Whether the app is in the foreground and stays there, or is about to enter it.
    @inlinable
    public var isInFront: Bool {
        guard goal.isForeground, edge != .terminating else { return false }
        return state.isForeground || edge == .launching || edge == .enteringForeground
    }

    /// Whether the app is in the background and nothing prevents its suspension: no task, no hold, no app that
    /// requires it, no debugger. The app may still have background time left.
    @inlinable
    public var canBeSuspended: Bool {
        state == .background && edge == .none && !isHeld && !isRequired && !isTraced
    }

    // MARK: How it ended

    /// How the app's previous run ended.
    @inlinable
    public var lastReason: EndReason { EndReason(rawValue: field(\.last_reason, else: 0)) }
    /// When the app will be restarted; nil if it will not be.
    @inlinable
    public var nextRestart: Time? { Time(known: field(\.next_restart, else: .min)) }
    /// How many of the app's restarts count towards the limit.
    @inlinable
    public var restartsInWindow: Int { Int(field(\.restarts_in_window, else: 0)) }
    /// How many restarts are allowed: if the app needs one more, the supervisor gives up.
    @inlinable
    public var restartLimit: Int { Int(field(\.restart_limit, else: 0)) }

    // MARK: What it may and must

    /// The app's configured priority, 0 by default. Apps with higher priority are terminated later.
    @inlinable
    public var priority: Int { Int(field(\.priority, else: 0)) }
    /// How many background tasks the app has begun.
    @inlinable
    public var tasks: Int { Int(field(\.tasks, else: 0)) }
    /// How many holds, besides tasks, keep the app in the background.
    @inlinable
    public var holds: Int { Int(field(\.holds, else: 0)) }
    /// Whether a task or a hold keeps the app in the background.
    @inlinable
    public var isHeld: Bool { tasks > 0 || holds > 0 }
    /// Whether the app was restarted too often, so that the supervisor gave up until a user resets the app.
    @inlinable
    public var hasFailed: Bool { has(1) }
    /// Whether the app runs once and exits.
    @inlinable
    public var isOneshot: Bool { has(2) }
    /// Whether the app would exit instead of entering the background.
    @inlinable
    public var exitsOnSuspend: Bool { has(3) }
    /// Whether the app is never evicted.
    @inlinable
    public var isNeverEvicted: Bool { has(4) }
    /// Whether an eviction terminates the app without notice, because the app has saved its state or its
    /// configuration says so.
    @inlinable
    public var isEvictedAtOnce: Bool { has(5) }
    /// Whether a running app requires this app, so that it is neither suspended nor terminated.
    @inlinable
    public var isRequired: Bool { has(6) }
    /// Whether a user stopped the app, so that only a user can start it again.
    @inlinable
    public var isStartedByPersonOnly: Bool { has(7) }
    /// Whether the app must send heartbeats.
    @inlinable
    public var isWatched: Bool { has(8) }
    /// Whether a debugger is attached to the app.
    @inlinable
    public var isTraced: Bool { has(9) }
    /// Whether an interruption keeps the app inactive.
    @inlinable
    public var isInterrupted: Bool { has(10) }
    /// Whether no event wakes the app: once suspended, it stays suspended until a user or a policy resumes it.
    @inlinable
    public var isNeverWoken: Bool { has(11) }
    /// Whether a policy sent the app away from the foreground, the app has not returned, and no user has requested a
    /// state for it since.
    @inlinable
    public var isSentAway: Bool { has(12) }
    /// Whether the event that last woke the app came over a socket whose traffic cannot be measured: a Unix or vsock
    /// connection, a datagram, or a socket in another network namespace. ``lastUse`` says when a connection woke it.
    @inlinable
    public var isWokenUntraced: Bool { has(13) }

    @inlinable
    func has(_ bit: UInt32) -> Bool { raw.pointee.flags >> bit & 1 != 0 }

    // MARK: What was measured of it (``PolicyDescription/needs``)

    /// When the app was last measured; nil before the first measurement.
    @inlinable
    public var measuredAt: Time? { Time(known: field(\.measured_at, else: .min)) }
    /// The app's memory in bytes; 0 before the first measurement.
    @inlinable
    public var memory: UInt64 { field(\.memory, else: 0) }
    /// The processor time that the app's current run has used, in microseconds; 0 before the first measurement.
    @inlinable
    public var processorMicroseconds: UInt64 { field(\.cpu_time, else: 0) }
    /// The processor time that the app's current run has used.
    @inlinable
    public var processorTime: Duration { .microseconds(Int64(clamping: processorMicroseconds)) }
    /// Thousandths of one processor that the app used between the last two measurements; nil before the second.
    @inlinable
    public var processorPermille: Int? {
        let permille = field(\.cpu_permille, else: .max)
        return permille == .max ? nil : Int(permille)
    }
    /// How many TCP connections the app has, and how many connections clients have to its Unix sockets; nil if unknown.
    @inlinable
    public var connections: Int? {
        let count = field(\.connections, else: .max)
        return count == .max ? nil : Int(count)
    }
    /// When one of the app's connections last carried data, or a connection to one of its ports was closed; nil if
    /// unknown. Of Unix sockets only connections that were open when the app was measured are known.
    @inlinable
    public var lastTraffic: Time? { Time(known: field(\.last_traffic, else: .min)) }
    /// When the app last sent WATCHDOG=1.
    @inlinable
    public var lastHeartbeat: Time? { Time(known: field(\.last_heartbeat, else: .min)) }
    /// How many messages are queued for the app.
    @inlinable
    public var mailCount: Int { Int(field(\.mail, else: 0)) }
    /// How many messages to the app were handled by no app.
    @inlinable
    public var unhandledCount: Int { Int(field(\.unhandled, else: 0)) }

    // MARK: Its names

    /// The app's name. Allocates a string: to compare, use ``isNamed(_:)`` or ``matches(_:)-(Selector)``.
    public var name: String { String(decoding: nameBytes, as: UTF8.self) }

    /// Whether the app has this name. Allocates nothing.
    public func isNamed(_ name: String) -> Bool { nameBytes.elementsEqual(name.utf8) }

    /// The app's tags. Allocates strings: to check for a tag, use ``hasTag(_:)``.
    public var tags: [String] {
        var tags: [String] = []
        forEachTag { tag in
            tags.append(String(decoding: tag, as: UTF8.self))
            return true
        }
        return tags
    }

    /// Whether the app has the tag. Allocates nothing.
    public func hasTag(_ tag: String) -> Bool {
        var isFound = false
        forEachTag { bytes in
            isFound = bytes.elementsEqual(tag.utf8)
            return !isFound
        }
        return isFound
    }

    /// Whether the selector matches the app.
    public func matches(_ selector: Selector) -> Bool { selector.matches(self) }

    /// Whether one of the selectors matches the app.
    public func matches(_ selectors: [Selector]) -> Bool { selectors.contains { $0.matches(self) } }

    /// The bytes of the app's name without the NUL; empty if the view is damaged.
    var nameBytes: UnsafeRawBufferPointer {
        text(at: Int(field(\.name, else: .max))) ?? UnsafeRawBufferPointer(start: nil, count: 0)
    }

    /// Calls `body` with the bytes of each tag until `body` returns false.
    func forEachTag(_ body: (UnsafeRawBufferPointer) -> Bool) {
        var start = Int(field(\.tags, else: .max))
        for _ in 0..<field(\.tag_count, else: 0) {
            guard let tag = text(at: start), body(tag) else { return }
            start += tag.count + 1
        }
    }

    /// The text at an offset in the view's strings; nil if the offset is outside the strings.
    private func text(at start: Int) -> UnsafeRawBufferPointer? {
        let end = Int(view.pointee.string_size)
        guard start < end, let strings = UnsafeRawPointer(view.pointee.strings) else { return nil }
        let all = UnsafeRawBufferPointer(start: strings, count: end)
        var next = start
        while next < end, all[next] != 0 { next += 1 }
        return UnsafeRawBufferPointer(rebasing: all[start..<next])
    }
}
