// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
package import EventLoop
package import Lifecycle
import Linux
import Processes

/// Launches that wait until there is memory for them (`memory_needed`), and what was promised to those that began.
package struct MemoryAdmission {
    /// In the order in which they came.
    package var waiting: [AppID] = []
    /// Apps that were launched and may not have taken yet what they need.
    var promised: [AppID: (bytes: UInt64, until: Duration)] = [:]
    /// Looks again.
    package var timer: TimerSource?
    /// What an ending has brought is waited for.
    package var pause: TimerSource?
    /// The rungs that were climbed for a launch.
    var ladder = MemoryLadder()

    package var isEmpty: Bool { waiting.isEmpty }
}

extension MemoryWatch {
    /// Nobody looks any more: the launches of all that wait go on. What comes of that may ask who waits.
    func admitAll() {
        let waiting = admission.waiting
        admission.waiting = []
        admission.timer = nil
        for app in waiting {
            apps[app].heldBack = nil
            admit(app)
        }
    }

    /// There is memory for an app, or nobody looks: its launch goes on.
    package func admit(_ app: AppID) {
        uninterrupted { [self] in perform(coordinator.admitMemory(app, now: now)) }
    }

    /// How long what an app needs is kept for it after its launch.
    private static let promise = Duration.seconds(30)
    /// How soon it looks again where nothing tells it to.
    private static let lookAgain = Duration.milliseconds(500)

    /// The core asks whether an app may be launched that says how much it needs.
    package func launchNeedsMemory(_ app: AppRuntime) {
        guard !admission.waiting.contains(app.id) else { return }
        admission.waiting.append(app.id)
        // Not within the step of the core that asks.
        loop.later { [weak self] in self?.admitNext() }
    }

    /// Lets those launch for whom there is room, first come, first served; whoever a person wants in the foreground
    /// before others.
    func admitNext() {
        let hadWaiting = !admission.isEmpty
        admission.waiting.removeAll { !coordinator.waitsForMemory($0) }
        forgetPromises()
        while let app = nextToAdmit() {
            guard let decision = decide(app) else { return waitOn(app) }
            admission.waiting.removeAll { $0 == app.id }
            app.heldBack = nil
            switch decision {
            case .admit: admit(app.id)
            case .refuse(let why):
                app.run.refusal = "was not launched: \(why)"
                uninterrupted { [self] in
                    perform(coordinator.refuseMemory(app.id, now: now))
                }
            }
        }
        admission.timer = nil
        admission.ladder.reset()
        if hadWaiting, level == .none { host.memoryIsEnough() }
    }

    private enum Decision {
        case admit
        case refuse(String)
    }

    private func nextToAdmit() -> AppRuntime? {
        let coordinator = coordinator
        // Who does not wait is not to wait for others either.
        let first =
            admission.waiting.first { apps[$0].skipsAdmission == true }
            ?? admission.waiting.first { coordinator.launchesIntoForeground($0) } ?? admission.waiting.first
        return first.map { apps[$0] }
    }

    /// nil: it waits.
    private func decide(_ app: AppRuntime) -> Decision? {
        let isForced = app.skipsAdmission == true
        app.skipsAdmission = nil
        guard !isForced, isEnabled, let needed = app.specification.memoryNeeded, let memory = memory() else {
            return .admit
        }
        let size = MemoryReading.size(needed)
        if needed > memory.total || needed > memory.total - kept(of: memory) {
            return .refuse(
                "it needs \(size) (memory_needed), and the machine has \(MemoryReading.size(memory.total)), of which "
                    + "\(MemoryReading.size(kept(of: memory))) are kept free (critical_available)"
            )
        }
        guard needed <= free(memory) else { return nil }
        admission.promised[app.id] = (needed, now + Self.promise)
        return .admit
    }

    /// What nobody needs: of what is available, without what was promised and what keeps the machine from being short.
    private func free(_ memory: MachineMemory) -> UInt64 {
        let taken = taken(of: memory)
        return memory.available > taken ? memory.available - taken : 0
    }

    /// What was promised and what keeps the machine from being short; it may be more than there is.
    private func taken(of memory: MachineMemory) -> UInt64 {
        admission.promised.values.reduce(kept(of: memory)) { $0 &+ $1.bytes }
    }

    /// `8414 MiB are free: of 21.0 GiB that are available 1204 MiB are kept free (critical_available) and 12.0 GiB were
    /// promised to other apps`.
    private func freeText(_ memory: MachineMemory) -> String {
        let promised = admission.promised.values.reduce(0) { $0 &+ $1.bytes }
        let others = promised == 0 ? "" : " and \(MemoryReading.size(promised)) were promised to other apps"
        return
            "\(MemoryReading.size(free(memory))) are free: of \(MemoryReading.size(memory.available)) that are available "
            + "\(MemoryReading.size(kept(of: memory))) are kept free (critical_available)\(others)"
    }

    /// What is left to the machine whatever is launched.
    private func kept(of memory: MachineMemory) -> UInt64 { UInt64(Double(memory.total) * rules.criticalAvailable) }

    /// Who has been launched has taken some of it by now.
    private func forgetPromises() {
        let now = now
        var running: [AppRuntime] = []
        for (id, promise) in admission.promised {
            let app = apps[id]
            let machine = coordinator.machine(id)
            guard promise.until > now, machine.isAlive || machine.isWaitingToLaunch else {
                admission.promised[id] = nil
                continue
            }
            // What a suspended app has not taken by now it takes when it runs again, and what went to swap since has
            // been taken.
            if machine.state == .suspended {
                admission.promised[id] = nil
                continue
            }
            if app.run.tree != nil { running.append(app) }
        }
        let usages = ProcessTree.usage(of: running.compactMap(\.run.tree))
        for (app, usage) in zip(running, usages) {
            guard let needed = app.specification.memoryNeeded, let promise = admission.promised[app.id] else {
                continue
            }
            let has = usage.memoryBytes
            admission.promised[app.id]?.bytes = min(promise.bytes, needed > has ? needed - has : 0)
        }
    }

    /// Makes room for it, step by step; where there is none to be made it waits.
    private func waitOn(_ app: AppRuntime) {
        if admission.timer == nil { admission.timer = try? loop.timer { [weak self] in self?.admitNext() } }
        admission.timer?.arm(after: Self.lookAgain)
        guard let memory = memory(), let needed = app.specification.memoryNeeded else { return }
        let size = MemoryReading.size(needed)
        if app.heldBack == nil {
            let why = "it needs \(size) (memory_needed), and \(freeText(memory))"
            app.heldBack = why
            note(app, .waitsForMemory, text: "waits to be launched: \(why)")
            engine.touch(app.id)
        }
        guard underWay == nil, admission.pause == nil, now >= notBefore else { return }
        askPolicies { [weak self] in self?.measure { self?.makeRoom(for: app, needed) } }
    }

    private func makeRoom(for app: AppRuntime, _ needed: UInt64) {
        guard underWay == nil, coordinator.waitsForMemory(app.id) else { return }
        guard let memory = memory() else { return }
        if needed <= free(memory) { return admitNext() }
        let foreground = coordinator.launchesIntoForeground(app.id)
        let demand = MemoryLadder.Demand.launch(foreground: foreground, priority: app.specification.priority)
        let candidates = candidates()
        admission.ladder.worth = MemoryRules.worth(missing: needed)
        // Where it would not be enough anyway, nobody goes for it.
        guard memory.available &+ MemoryLadder.obtainable(demand, candidates) >= taken(of: memory) &+ needed,
            let step = admission.ladder.next(demand, candidates, now: now)
        else { return }
        carryOut(step, .launch(app.id), "\(app.name) waits to be launched and needs \(MemoryReading.size(needed))")
    }
}
