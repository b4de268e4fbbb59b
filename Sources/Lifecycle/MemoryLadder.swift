// SPDX-License-Identifier: Apache-2.0

/// What is done when memory is short: one step at a time, the gentlest first.
///
/// A value without clock or I/O: readings and apps go in, the next step comes out. Whoever carries a step out waits until
/// it is done and has settled, looks again, and asks for the next one. See docs/lifecycle.md, "Memory".
public struct MemoryLadder: Sendable {
    /// What a step does, gentlest first.
    public enum Rung: String, Sendable, Hashable, CaseIterable {
        /// Apps are told didReceiveMemoryWarning.
        case tell
        /// What an app declared purgeable is dropped.
        case purge
        /// The memory of a suspended app goes to swap.
        case pageOut = "page-out"
        /// A suspended app is evicted.
        case evict
        /// An app in the background is ended, with willTerminate and a short grace.
        case endBackground = "end-background"
        /// The same of an inactive one.
        case endInactive = "end-inactive"
        /// The same of an active one, where `last_resort` allows it.
        case endActive = "end-active"

        /// Whether it ends an app.
        public var endsApp: Bool {
            switch self {
            case .tell, .purge, .pageOut: false
            case .evict, .endBackground, .endInactive, .endActive: true
            }
        }
    }

    /// What room is made for.
    public enum Demand: Sendable, Hashable {
        /// The machine is short of memory; `urgent`: there is no time for what only helps a little.
        case pressure(MemoryLevel, urgent: Bool)
        /// An app of this priority is to be launched, into the foreground or not.
        case launch(foreground: Bool, priority: Int)
    }

    /// One step.
    public struct Step: Sendable, Hashable {
        /// What is done.
        public var rung: Rung
        /// To whom: one app, but for `tell`.
        public var apps: [AppID]
        /// Who would have come before, and why they were passed over.
        public var passedOver: [PassedOver] = []
    }

    /// Who was passed over.
    public struct PassedOver: Sendable, Hashable {
        /// Who.
        public var app: AppID
        /// Why.
        public var reason: Protection
    }

    /// Why an app is left alone.
    public enum Protection: Sendable, Hashable {
        /// `evict = "never"`.
        case never
        /// An app that runs requires it.
        case required
        /// A debugger is attached.
        case traced
        /// It is on its way to another state.
        case busy
        /// The policies, which name who may be ended, do not name it.
        case unnamed
        /// It is active, and has not `last_resort = true`.
        case active
        /// It has so little that its end would help nobody.
        case small
    }

    /// An app that has processes, as far as the ladder needs to know it.
    public struct Candidate: Sendable, Hashable {
        /// Which.
        public var app: AppID
        /// Where it is.
        public var state: AppState
        /// Why it may not be ended; nil: it may.
        public var protection: Protection?
        /// Whether it hears of short memory.
        public var hears = false
        /// Whether it has declared something purgeable that is there.
        public var isPurgeable = false
        /// Whether its memory can go to swap and has not gone yet.
        public var canPageOut = false
        /// Bytes that would be free without it.
        public var bytes: UInt64 = 0
        /// The lower one goes first.
        public var priority = 0
        /// When it was last in use; nil: never.
        public var lastUse: Duration?
        /// Its place in the order of policies, the lowest first; nil: they do not name it.
        public var rank: Int?

        /// An app of which no more is known.
        public init(app: AppID, state: AppState) {
            self.app = app
            self.state = state
        }
    }

    /// Who was told of short memory since it became so, and when.
    private var told: [AppID: Duration] = [:]
    private var purged: Set<AppID> = []
    /// Since when memory has been short without a break.
    private var shortSince: Duration?

    /// At `warning`, nobody is ended before it has lasted so long: what comes and goes costs nobody anything.
    public var patience = MemoryLadder.shortPatience
    /// Where there is no swap left: 1 s.
    public static let shortPatience = Duration.seconds(1)
    /// Where there is, so that work may only wait for what is on its way: 5 s.
    public static let longPatience = Duration.seconds(5)
    /// Apps are told again when memory is still short so long after.
    public static let tellingInterval = Duration.seconds(30)

    /// What is known to have fewer bytes is not ended: it would cost its users something and bring next to nothing.
    public var worth: UInt64 = 0

    /// A ladder on which nobody stands.
    public init() {}

    /// Memory is not short any more.
    public mutating func reset() {
        told.removeAll(keepingCapacity: true)
        purged.removeAll(keepingCapacity: true)
        shortSince = nil
    }

    /// The app is gone: its number can be another's.
    public mutating func forget(_ app: AppID) {
        told[app] = nil
        purged.remove(app)
    }

    /// Memory has not been short for a moment: what must last begins anew.
    public mutating func pause() { shortSince = nil }

    /// Takes room for so many apps, so that nothing need be allocated later.
    public mutating func reserve(_ count: Int) {
        told.reserveCapacity(count)
        purged.reserveCapacity(count)
    }

    /// The next step; nil: there is none, or not yet. It counts as done.
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

    /// All steps that there would be, one after the other, if none of them helped.
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

    /// How many bytes would be free in the end, at most.
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

    /// Who would be ended first, first.
    public static func sorted(_ candidates: [Candidate]) -> [Candidate] {
        sorted(candidates, candidates.contains { $0.rank != nil })
    }

    private static func sorted(_ candidates: [Candidate], _ hasOrder: Bool) -> [Candidate] {
        candidates.sorted { goesBefore($0, $1, hasOrder) }
    }

    /// Active apps are behind all others whatever a policy says. Without one: by state, then a lower priority, the larger
    /// one, the one that was in use longer ago.
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

    /// Whether an app in that state may have to go for it.
    fileprivate func reaches(_ candidate: MemoryLadder.Candidate) -> Bool {
        switch self {
        case .pressure(let level, _): candidate.state == .suspended || level == .critical
        case .launch(let foreground, let priority):
            switch candidate.state {
            case .suspended: true
            // Who is awake for something gives way only to what a person wants to see.
            case .background: foreground && candidate.priority <= priority
            case .inactive, .active, .notRunning: false
            }
        }
    }
}
