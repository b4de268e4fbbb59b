// SPDX-License-Identifier: Apache-2.0

/// Decides what to do when memory is short: one step at a time, the gentlest first.
///
/// The ladder uses no clock and no I/O. From the reason why memory is needed and the list of apps, it computes the next
/// step. The caller carries out a step, waits until it has taken effect, reads memory again, and asks for the next
/// step. See docs/lifecycle.md, "Memory".
public struct MemoryLadder: Sendable {
    /// The kinds of steps, gentlest first.
    public enum Rung: String, Sendable, Hashable, CaseIterable {
        /// Send didReceiveMemoryWarning to apps.
        case tell
        /// Drop memory that an app declared purgeable.
        case purge
        /// Move the memory of a suspended app to swap.
        case pageOut = "page-out"
        /// Evict a suspended app.
        case evict
        /// Terminate an app in the background, with willTerminate and a short grace.
        case endBackground = "end-background"
        /// Terminate an inactive app, with willTerminate and a short grace.
        case endInactive = "end-inactive"
        /// Terminate an active app that has `last_resort`, with willTerminate and a short grace.
        case endActive = "end-active"

        /// Whether this kind of step terminates an app.
        public var endsApp: Bool {
            switch self {
            case .tell, .purge, .pageOut: false
            case .evict, .endBackground, .endInactive, .endActive: true
            }
        }
    }

    /// Why memory is needed.
    public enum Demand: Sendable, Hashable {
        /// The machine is short of memory. If `urgent`, the ladder skips steps that free only little memory.
        case pressure(MemoryLevel, urgent: Bool)
        /// An app of this priority waits for memory to be launched. `foreground`: whether it is launched into the
        /// foreground.
        case launch(foreground: Bool, priority: Int)
    }

    /// One step: what to do, and to which apps.
    public struct Step: Sendable, Hashable {
        /// The kind of the step.
        public var rung: Rung
        /// The apps to which the step applies: exactly one, except for `tell`.
        public var apps: [AppID]
        /// Apps that were skipped because they may not be terminated, although they come before the chosen app in the
        /// order of termination. Each has the reason.
        public var passedOver: [PassedOver] = []
    }

    /// An app that was skipped because it may not be terminated, although it comes before the chosen app in the order
    /// of termination.
    public struct PassedOver: Sendable, Hashable {
        /// The id of the skipped app.
        public var app: AppID
        /// Why the app may not be terminated.
        public var reason: Protection
    }

    /// Why an app may not be terminated.
    public enum Protection: Sendable, Hashable {
        /// The app has `evict = "never"`.
        case never
        /// Another running app requires this app.
        case required
        /// A debugger is attached.
        case traced
        /// The app is changing its state, or a stop or restart of it is pending.
        case busy
        /// Policies decide which apps may be terminated, and they did not name this app.
        case unnamed
        /// The app is active and has no `last_resort = true`.
        case active
        /// The app uses so little memory that terminating it would not help.
        case small
    }

    /// An app with processes, and its properties from which the ladder chooses the next step.
    public struct Candidate: Sendable, Hashable {
        /// The id of the app.
        public var app: AppID
        /// The state of the app.
        public var state: AppState
        /// Why the app may not be terminated; nil if it may.
        public var protection: Protection?
        /// Whether the app can receive a memory warning.
        public var hears = false
        /// Whether the app has declared purgeable memory that was not dropped yet.
        public var isPurgeable = false
        /// Whether the app's memory can be moved to swap and is not there yet.
        public var canPageOut = false
        /// How many bytes would be freed if the app were terminated; 0 if unknown.
        public var bytes: UInt64 = 0
        /// The app's priority: apps with a lower one are terminated first.
        public var priority = 0
        /// When the app was last in use; nil if never.
        public var lastUse: Duration?
        /// The app's place in the order that policies gave, lowest first; nil if policies do not name it.
        public var rank: Int?

        /// An app in this state, with defaults for all other properties.
        public init(app: AppID, state: AppState) {
            self.app = app
            self.state = state
        }
    }

    /// When each app was last warned during the current memory shortage.
    private var told: [AppID: Duration] = [:]
    private var purged: Set<AppID> = []
    /// The time at which memory became short; nil while it is not short.
    private var shortSince: Duration?

    /// How long memory must be short at the level `warning` before an app is terminated, so that no app is terminated
    /// because of a short peak.
    public var patience = MemoryLadder.shortPatience
    /// The `patience` if little or no swap is free: 1 s.
    public static let shortPatience = Duration.seconds(1)
    /// The `patience` if swap is free: 5 s, because tasks may wait only until pages are written to swap.
    public static let longPatience = Duration.seconds(5)
    /// If memory is still short this long after an app was warned, the app is warned again.
    public static let tellingInterval = Duration.seconds(30)

    /// Apps known to use fewer bytes than this are not terminated: that would free almost nothing, but interrupt users.
    public var worth: UInt64 = 0

    /// A ladder that has taken no step yet.
    public init() {}

    /// Forgets warnings and purges, because memory is no longer short.
    public mutating func reset() {
        told.removeAll(keepingCapacity: true)
        purged.removeAll(keepingCapacity: true)
        shortSince = nil
    }

    /// Forgets an app that is gone, because its id may be reused.
    public mutating func forget(_ app: AppID) {
        told[app] = nil
        purged.remove(app)
    }

    /// Restarts the wait of `patience`, because for a moment there was enough memory.
    public mutating func pause() { shortSince = nil }

    /// Allocates storage for this many apps now, so that the ladder allocates nothing while memory is short.
    public mutating func reserve(_ count: Int) {
        told.reserveCapacity(count)
        purged.reserveCapacity(count)
    }

    /// The next step, which the caller must carry out; nil if no step is left, or if it is too early for the next one.
    public mutating func next(_ demand: Demand, _ candidates: [Candidate], now: Duration) -> Step? {
        let since = shortSince ?? now
        if case .pressure = demand { shortSince = since }
        if let told = tell(demand, candidates, now: now) { return told }
        let isUrgent = demand.isUrgent
        let hasOrder = candidates.contains { $0.rank != nil }
        if !isUrgent {
            if let app = first(candidates.filter { $0.isPurgeable && !purged.contains($0.app) }, hasOrder) {
                purged.insert(app)
                return Step(rung: .purge, apps: [app])
            }
            if let app = first(candidates.filter { $0.canPageOut && $0.state == .suspended }, hasOrder) {
                return Step(rung: .pageOut, apps: [app])
            }
        }
        if case .pressure(.warning, _) = demand, now - since < patience { return nil }
        return end(demand, candidates, hasOrder: hasOrder)
    }

    /// All steps that the ladder would take, in order, if no step freed enough memory.
    public static func rehearse(_ demand: Demand, _ candidates: [Candidate], worth: UInt64 = 0) -> [Step] {
        var ladder = MemoryLadder()
        ladder.worth = worth
        ladder.shortSince = .zero - shortPatience
        var candidates = candidates
        var steps: [Step] = []
        while let step = ladder.next(demand, candidates, now: .zero) {
            steps.append(step)
            guard step.rung != .tell, let index = candidates.firstIndex(where: { $0.app == step.apps[0] }) else {
                continue
            }
            switch step.rung {
            case .tell, .purge: break
            case .pageOut: candidates[index].canPageOut = false
            case .evict, .endBackground, .endInactive, .endActive: candidates.remove(at: index)
            }
        }
        return steps
    }

    /// The most bytes that all steps together could free for this demand.
    public static func obtainable(_ demand: Demand, _ candidates: [Candidate]) -> UInt64 {
        candidates.reduce(0) { sum, candidate in
            let counts = (candidate.protection == nil && demand.reaches(candidate)) || candidate.canPageOut
            return counts ? sum &+ candidate.bytes : sum
        }
    }

    // MARK: Rungs

    private mutating func tell(_ demand: Demand, _ candidates: [Candidate], now: Duration) -> Step? {
        guard case .pressure(let level, _) = demand else { return nil }
        var apps: [AppID] = []
        for candidate in candidates where candidate.hears {
            switch candidate.state {
            case .background, .inactive: break
            case .active where level == .critical: break
            case .active, .suspended, .notRunning: continue
            }
            if let at = told[candidate.app], now - at < Self.tellingInterval { continue }
            told[candidate.app] = now
            apps.append(candidate.app)
        }
        return apps.isEmpty ? nil : Step(rung: .tell, apps: apps)
    }

    private func end(_ demand: Demand, _ candidates: [Candidate], hasOrder: Bool) -> Step? {
        let sorted = Self.sorted(candidates.filter { demand.reaches($0) }, hasOrder)
        var passedOver: [PassedOver] = []
        for candidate in sorted {
            let isSmall = candidate.bytes > 0 && candidate.bytes < worth
            guard let protection = candidate.protection ?? (isSmall ? .small : nil) else {
                return Step(rung: Self.rung(candidate.state), apps: [candidate.app], passedOver: passedOver)
            }
            passedOver.append(PassedOver(app: candidate.app, reason: protection))
        }
        return nil
    }

    private static func rung(_ state: AppState) -> Rung {
        switch state {
        case .suspended, .notRunning: .evict
        case .background: .endBackground
        case .inactive: .endInactive
        case .active: .endActive
        }
    }

    private func first(_ candidates: [Candidate], _ hasOrder: Bool) -> AppID? {
        guard var best = candidates.first else { return nil }
        for candidate in candidates.dropFirst() where Self.goesBefore(candidate, best, hasOrder) { best = candidate }
        return best.app
    }

    // MARK: Order

    /// The apps in the order in which they would be terminated.
    public static func sorted(_ candidates: [Candidate]) -> [Candidate] {
        sorted(candidates, candidates.contains { $0.rank != nil })
    }

    private static func sorted(_ candidates: [Candidate], _ hasOrder: Bool) -> [Candidate] {
        candidates.sorted { goesBefore($0, $1, hasOrder) }
    }

    /// Whether `left` is terminated before `right`. Active apps come last, even if a policy ranks them first. Without
    /// an order from a policy, apps are compared by state, then lower priority, then more memory, then longer time
    /// unused.
    private static func goesBefore(_ left: Candidate, _ right: Candidate, _ hasOrder: Bool) -> Bool {
        let isActive = left.state == .active
        if isActive != (right.state == .active) { return !isActive }
        if hasOrder, left.rank != right.rank { return left.rank ?? .max < right.rank ?? .max }
        let states = (place(left.state), place(right.state))
        if states.0 != states.1 { return states.0 < states.1 }
        if left.priority != right.priority { return left.priority < right.priority }
        if left.bytes != right.bytes { return left.bytes > right.bytes }
        let uses = (left.lastUse ?? .seconds(-1), right.lastUse ?? .seconds(-1))
        if uses.0 != uses.1 { return uses.0 < uses.1 }
        return left.app < right.app
    }

    private static func place(_ state: AppState) -> Int {
        switch state {
        case .notRunning, .suspended: 0
        case .background: 1
        case .inactive: 2
        case .active: 3
        }
    }
}

extension MemoryLadder.Demand {
    fileprivate var isUrgent: Bool {
        if case .pressure(_, let isUrgent) = self { return isUrgent }
        return false
    }

    /// Whether the memory demand justifies terminating an app in the candidate's state.
    fileprivate func reaches(_ candidate: MemoryLadder.Candidate) -> Bool {
        switch self {
        case .pressure(let level, _): candidate.state == .suspended || level == .critical
        case .launch(let foreground, let priority):
            switch candidate.state {
            case .suspended: true
            // Terminate a running app in the background only for an app that is launched into the foreground.
            case .background: foreground && candidate.priority <= priority
            case .inactive, .active, .notRunning: false
            }
        }
    }
}
