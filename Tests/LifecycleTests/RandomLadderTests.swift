// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

@Suite("Random climbs of the memory ladder")
struct RandomLadderTests {
    @Test("whatever apps there are: nobody in use goes before others, nobody protected at all, and it comes to an end")
    func climbs() {
        for seed in 1...120 {
            var climb = Climb(seed: UInt64(seed))
            do {
                for _ in 0..<3 { try climb.run() }
            } catch {
                Issue.record("seed \(seed): \(error)\n\(climb.recent.joined(separator: "\n"))")
            }
        }
    }

    @Test("among apps that live and change: whoever the ladder chooses can be evicted at once", arguments: 1...8)
    func fleets(seed: Int) throws {
        var walk = try FleetWalk(seed: UInt64(seed) &+ 5000)
        var (evicted, steps) = (0, 0)
        do {
            for _ in 0..<6 {
                try walk.renew()
                for _ in 0..<300 {
                    try walk.step()
                    if walk.dice.chance(25) { evicted += try walk.climb() }
                }
                steps += walk.steps
                try walk.finish()
            }
        } catch {
            Issue.record("seed \(seed), step \(steps): \(error)\n\(walk.recent.suffix(25).joined(separator: "\n"))")
        }
        #expect(evicted > 8, "\(evicted): a walk in which hardly anybody is evicted shows nothing")
    }
}

/// What must be true of every step.
enum LadderLaw {
    static func check(
        _ step: MemoryLadder.Step,
        _ demand: MemoryLadder.Demand,
        _ candidates: [MemoryLadder.Candidate]
    ) throws(Violation) {
        let isOrdered = candidates.contains { $0.rank != nil }
        func mayGo(_ candidate: MemoryLadder.Candidate) -> Bool { candidate.protection == nil }
        guard !step.apps.isEmpty else { throw Violation("a step for nobody") }
        if step.rung == .tell {
            for app in candidates where step.apps.contains(app.app) {
                guard app.hears, app.state != .suspended else { throw Violation("\(app.app) cannot hear it") }
            }
            guard case .pressure = demand else { throw Violation("told for a launch") }
            return
        }
        guard step.apps.count == 1, let chosen = candidates.first(where: { $0.app == step.apps[0] }) else {
            throw Violation("\(step.apps) is not one app of these")
        }
        switch step.rung {
        case .tell: return
        case .purge: guard chosen.isPurgeable else { throw Violation("\(chosen.app) has nothing purgeable") }
        case .pageOut:
            guard chosen.canPageOut, chosen.state == .suspended else { throw Violation("\(chosen.app) is not to swap") }
        case .evict, .endBackground, .endInactive, .endActive:
            guard mayGo(chosen) else { throw Violation("\(chosen.app) is protected") }
            try reach(demand, chosen)
            let rungs: [AppState: MemoryLadder.Rung] = [
                .suspended: .evict, .background: .endBackground, .inactive: .endInactive, .active: .endActive,
            ]
            guard rungs[chosen.state] == step.rung else { throw Violation("\(step.rung) of one \(chosen.state)") }
            for other in candidates where other.app != chosen.app && mayGo(other) {
                if chosen.state == .active, other.state != .active {
                    throw Violation("\(chosen.app) is active, and \(other.app) is \(other.state) and may go")
                }
                let isCloser = order(other.state) < order(chosen.state)
                if !isOrdered, isCloser { throw Violation("\(other.app) is \(other.state) and comes first") }
            }
        }
        for passed in step.passedOver {
            guard let other = candidates.first(where: { $0.app == passed.app }), !mayGo(other) else {
                throw Violation("\(passed.app) was passed over for no reason")
            }
        }
    }

    private static func reach(
        _ demand: MemoryLadder.Demand,
        _ chosen: MemoryLadder.Candidate
    ) throws(Violation) {
        switch demand {
        case .pressure(.critical, _): break
        case .pressure: if chosen.state != .suspended { throw Violation("a warning ends one \(chosen.state)") }
        case .launch(let foreground, let priority):
            let mayBeAwake = foreground && chosen.state == .background && chosen.priority <= priority
            guard chosen.state == .suspended || mayBeAwake else { throw Violation("a launch ends \(chosen.state)") }
        }
    }

    private static func order(_ state: AppState) -> Int {
        switch state {
        case .suspended, .notRunning: 0
        case .background: 1
        case .inactive: 2
        case .active: 3
        }
    }
}

/// Random apps, and memory that never suffices until somebody is left alone.
private struct Climb {
    var dice: Dice
    var recent: [String] = []
    var candidates: [MemoryLadder.Candidate] = []

    init(seed: UInt64) { dice = Dice(seed: seed) }

    private mutating func candidate(_ id: AppID, ordered: Bool) -> MemoryLadder.Candidate {
        let state = [AppState.suspended, .background, .inactive, .active][dice.below(4)]
        var candidate = MemoryLadder.Candidate(app: id, state: state)
        if dice.chance(25) { candidate.protection = [.never, .required, .traced, .busy][dice.below(4)] }
        if state == .active, candidate.protection == nil, dice.chance(60) { candidate.protection = .active }
        candidate.hears = dice.chance(50)
        candidate.isPurgeable = dice.chance(20)
        candidate.canPageOut = state == .suspended && dice.chance(50)
        candidate.bytes = dice.next() % 1000
        candidate.priority = dice.below(7) - 3
        candidate.lastUse = dice.chance(70) ? dice.milliseconds(0...100_000) : nil
        candidate.rank = ordered && dice.chance(70) ? dice.below(30) : nil
        if ordered, candidate.protection == nil, candidate.rank == nil { candidate.protection = .unnamed }
        return candidate
    }

    mutating func run() throws(Violation) {
        let (count, ordered) = (dice.below(12), dice.chance(40))
        candidates = (0..<count).map { candidate($0, ordered: ordered) }
        recent = candidates.map { "\($0)" }
        var ladder = MemoryLadder()
        var (now, steps, alive) = (Duration.seconds(100), 0, count)
        let level = dice.chance(60) ? MemoryLevel.critical : .warning
        while now < .seconds(200) {
            let demand: MemoryLadder.Demand =
                dice.chance(15)
                ? .launch(foreground: dice.chance(50), priority: dice.below(5))
                : .pressure(dice.chance(80) ? level : .warning, urgent: dice.chance(20))
            now += dice.milliseconds(1...400)
            guard let step = ladder.next(demand, candidates, now: now) else { continue }
            steps += 1
            recent.append("\(now) \(demand) → \(step)")
            try LadderLaw.check(step, demand, candidates)
            guard step.rung != .tell, let index = candidates.firstIndex(where: { $0.app == step.apps[0] }) else {
                continue
            }
            switch step.rung {
            case .tell, .purge: break
            case .pageOut: candidates[index].canPageOut = false
            case .evict, .endBackground, .endInactive, .endActive:
                candidates.remove(at: index)
                alive -= 1
            }
        }
        // Each is told at most every 30 s, and emptied, paged out and ended once.
        guard steps <= count * 7 else { throw Violation("\(steps) steps for \(count) apps") }
        let free = candidates.filter { $0.protection == nil }
        let left = ladder.next(.pressure(.critical, urgent: false), free, now: now)
        let mayGo = candidates.contains { $0.protection == nil }
        if mayGo, left == nil { throw Violation("somebody may go, and nobody is chosen") }
    }
}

extension FleetWalk {
    /// Climbs one step among the apps that live; the number of apps that it ends.
    mutating func climb() throws(Violation) -> Int {
        var candidates: [MemoryLadder.Candidate] = []
        var resort: Set<AppID> = []
        for app in apps.indices where coordinator.exists(app) && apps[app].tree != .none {
            if dice.chance(20) { resort.insert(app) }
            let machine = coordinator.machine(app)
            var candidate = MemoryLadder.Candidate(app: app, state: machine.state)
            candidate.protection = coordinator.memoryProtection(app, lastResort: resort.contains(app))
            candidate.bytes = dice.next() % 10
            candidates.append(candidate)
        }
        let demand = MemoryLadder.Demand.pressure(dice.chance(70) ? .critical : .warning, urgent: true)
        guard let step = MemoryLadder.rehearse(demand, candidates).first else { return 0 }
        try LadderLaw.check(step, demand, candidates)
        let app = step.apps[0]
        let machine = coordinator.machine(app)
        if machine.state == .active, !resort.contains(app) { throw Violation("\(app) is active") }
        for other in requires.indices where requires[other].contains(app) && apps[other].tree == .alive {
            let state = coordinator.machine(other).state
            if state != .suspended, state != .notRunning { throw Violation("\(other) runs and requires \(app)") }
        }
        try evict(app)
        guard coordinator.machine(app).transition == .terminating else { throw Violation("\(app) is not being ended") }
        return 1
    }
}
