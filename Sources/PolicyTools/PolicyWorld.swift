// SPDX-License-Identifier: Apache-2.0

import Linux
import Policies
import TorporPolicyABI

/// Pseudo-random numbers, the same for the same seed (SplitMix64 of Steele, Lea and Flood, 2014).
struct SeededNumbers: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    mutating func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &self) }
    mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
}

/// A simulation of apps and a clock that produces plausible views and events, the same for the same seed.
struct PolicyWorld {
    let view: PolicyView
    private var random: SeededNumbers
    private let kinds: [UInt32]
    /// The kinds of events, among `kinds`, that occur rarely.
    private let rareKinds: [UInt32]

    private static let never = Int64.min

    /// - Parameters:
    ///   - apps: the number of apps.
    ///   - wants: `torpor_policy.events`: the only kinds of event that happen.
    init(apps: Int, seed: UInt64, wants: UInt64) throws(Errno) {
        view = try PolicyView()
        random = SeededNumbers(seed: seed)
        // The event STARTED occurs only once. Apps are added and removed rarely.
        let rare = [TORPOR_EVENT_APPS, TORPOR_EVENT_PRESSURE, TORPOR_EVENT_TIMER].map(\.rawValue)
        let all = Self.kinds(of: wants).filter { $0 != TORPOR_EVENT_STARTED.rawValue }
        kinds = all.filter { !rare.contains($0) }
        rareKinds = all.filter { rare.contains($0) }
        var system = view.system
        system.processors = 4
        system.now = 3_600_000_000
        system.realtime = 1_750_000_000_000_000
        system.started = 1_000_000
        system.memory_total = 8 << 30
        system.memory_available = 5 << 30
        system.memory_some = 0
        system.memory_full = 0
        system.cpu_some = 120
        system.io_some = 30
        system.io_full = 10
        system.load_1 = 80
        system.power = TORPOR_POWER_MAINS
        view.system = system
        for place in 0..<apps { add(place) }
    }

    /// The kinds of event that this version knows and the policy is asked about.
    static func kinds(of wants: UInt64) -> [UInt32] {
        (0..<UInt32(PolicyWords.events.count)).filter { wants >> UInt64($0) & 1 != 0 }
    }

    private mutating func add(_ place: Int) {
        let tags = ["demo", "web", "batch"].filter { _ in random.chance(30) }
        view.put(place, name: "app-\(place)", tags: tags)
        view[place].restart_limit = 10
        view[place].priority = random.chance(20) ? Int32(random.below(21) - 10) : 0
        if random.chance(5) { view[place].flags |= TORPOR_APP_EVICT_NEVER }
        if random.chance(10) { view[place].flags |= TORPOR_APP_REQUIRED }
        let states: [torpor_policy_state] = [
            TORPOR_STATE_NOT_RUNNING, TORPOR_STATE_ACTIVE, TORPOR_STATE_BACKGROUND, TORPOR_STATE_SUSPENDED,
        ]
        move(place, to: states[random.below(states.count)].rawValue)
    }

    /// Simulates at most `count` events, and returns a question about them. As in a supervisor, few events concern all
    /// apps.
    mutating func question(events count: Int) -> [torpor_policy_event] {
        var events: [torpor_policy_event] = []
        var aboutAll = 0
        while events.count < count, aboutAll < Self.mostAboutAll {
            let event = next()
            if event.app == UInt32.max { aboutAll += 1 }
            events.append(event)
        }
        return events
    }

    private static let mostAboutAll = 4

    /// Advances the time, and simulates a random event.
    mutating func next() -> torpor_policy_event {
        let pause = Int64(random.chance(80) ? random.below(1_000_000) : random.below(60_000_000))
        view.system.now += pause
        view.system.realtime += pause
        let some = !rareKinds.isEmpty && (kinds.isEmpty || random.chance(3)) ? rareKinds : kinds
        return some.isEmpty ? event(TORPOR_EVENT_STARTED.rawValue) : happen(some[random.below(some.count)])
    }

    /// Simulates something that causes an event of that kind.
    mutating func happen(_ kind: UInt32) -> torpor_policy_event {
        guard view.count > 0 else { return event(kind) }
        let place = random.below(view.count)
        if kind == TORPOR_EVENT_APPS.rawValue {
            if view.isPresent(place), random.chance(30) { view.remove(place) } else { add(place) }
            return event(kind)
        }
        // An event concerns an app, so add one if the place is empty.
        if !view.isPresent(place) { add(place) }
        measure(place)
        let state = view[place].state
        switch kind {
        case TORPOR_EVENT_STATE.rawValue:
            let to = random.below(Int(TORPOR_STATE_COUNT))
            move(place, to: UInt32(to))
            return event(kind, place, from: state, to: UInt32(to))
        case TORPOR_EVENT_GOAL.rawValue:
            let goals: [UInt32] = [0, 2, 3, 4]
            let goal = view[place].goal
            view[place].goal = goals[random.below(goals.count)]
            return event(kind, place, from: goal, to: view[place].goal)
        case TORPOR_EVENT_TIME_USED.rawValue:
            move(place, to: TORPOR_STATE_BACKGROUND.rawValue)
            view[place].grant_ends = view.system.now
            return event(kind, place)
        case TORPOR_EVENT_LAUNCH.rawValue:
            move(place, to: TORPOR_STATE_NOT_RUNNING.rawValue)
            view[place].goal = TORPOR_STATE_ACTIVE.rawValue
            return event(kind, place, reason: UInt32(1 + random.below(PolicyWords.launches.count)))
        case TORPOR_EVENT_ENDED.rawValue:
            move(place, to: TORPOR_STATE_NOT_RUNNING.rawValue)
            let reason = UInt32(1 + random.below(PolicyWords.reasons.count - 1))
            view[place].last_reason = reason
            let delay = random.chance(50) ? Int64(random.below(60_000_000)) : Self.never
            view[place].next_restart = delay == Self.never ? delay : view.system.now + delay
            view[place].restarts_in_window = UInt32(random.below(11))
            return event(kind, place, reason: reason, delay: delay)
        case TORPOR_EVENT_PRESSURE.rawValue:
            let from = view.system.pressure
            view.system.pressure = UInt32(random.below(PolicyWords.pressures.count))
            return event(kind, from: from, to: view.system.pressure)
        default:
            return event(kind)
        }
    }

    private mutating func move(_ place: Int, to state: UInt32) {
        let now = view.system.now
        let wasRunning = view[place].state != TORPOR_STATE_NOT_RUNNING.rawValue
        let isRunning = state != TORPOR_STATE_NOT_RUNNING.rawValue
        if isRunning, !wasRunning {
            view[place].incarnation += 1
            view[place].launched_at = now
            view[place].cpu_time = 0
            view[place].processes = UInt32(1 + random.below(4))
            view[place].next_restart = Self.never
        }
        if !isRunning {
            view[place].processes = 0
            view[place].memory = 0
            view[place].launched_at = Self.never
        }
        view[place].state = state
        view[place].goal = state == TORPOR_STATE_INACTIVE.rawValue ? TORPOR_STATE_ACTIVE.rawValue : state
        switch state {
        case 0: view[place].state_since.0 = now
        case 1: view[place].state_since.1 = now
        case 2: view[place].state_since.2 = now
        case 3: view[place].state_since.3 = now
        default: view[place].state_since.4 = now
        }
        if state == TORPOR_STATE_ACTIVE.rawValue || state == TORPOR_STATE_INACTIVE.rawValue {
            view[place].last_use = now
        }
        let isBackground = state == TORPOR_STATE_BACKGROUND.rawValue
        view[place].grant_ends = isBackground ? now + 5_000_000 : Self.never
    }

    private mutating func measure(_ place: Int) {
        guard view.isPresent(place) else { return }
        let now = view.system.now
        let isRunning = view[place].processes > 0
        view.system.measured_at = now
        view.system.memory_available = UInt64(random.below(8 << 30))
        view.system.load_1 = UInt32(random.below(400))
        view[place].measured_at = now
        view[place].memory = isRunning ? UInt64(random.below(512 << 20)) : 0
        view[place].cpu_permille = isRunning ? UInt32(random.chance(50) ? 0 : random.below(1000)) : UInt32.max
        view[place].cpu_time += isRunning ? UInt64(random.below(1_000_000)) : 0
        view[place].connections = isRunning ? UInt32(random.below(3)) : UInt32.max
        if random.chance(20) { view[place].last_traffic = now }
        if random.chance(20) { view[place].last_heartbeat = now }
    }

    /// An event at the current time.
    func event(
        _ kind: UInt32,
        _ place: Int? = nil,
        from: UInt32 = 0,
        to: UInt32 = 0,
        reason: UInt32 = 0,
        delay: Int64 = Int64.min
    ) -> torpor_policy_event {
        torpor_policy_event(
            size: UInt32(MemoryLayout<torpor_policy_event>.size),
            kind: kind,
            app: place.map { UInt32($0) } ?? UInt32.max,
            from: from,
            to: to,
            reason: reason,
            at: view.system.now,
            delay: delay
        )
    }
}
