// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
package import EventLoop
package import Lifecycle
import Linux
import Processes

/// Launches that wait for memory (`memory_needed`), and memory that is reserved for apps that were just launched.
package struct MemoryAdmission {
    /// The apps whose launches wait, in order of arrival.
    package var waiting: [AppID] = []
    /// For each app whose launch waits: how many bytes it needed when that was last reported.
    var reported: [AppID: UInt64] = [:]
    /// Memory reserved for apps that were just launched: how many bytes an app will need (`memory_needed`) but does
    /// not use yet, and when its reservation ends.
    var promised: [AppID: (bytes: UInt64, until: Duration)] = [:]
    /// Fires when it is time to check the waiting launches again.
    package var timer: TimerSource?
    /// Armed after an app has ended, until the kernel's statistics show the memory that it freed. Until then, no step
    /// begins for a waiting launch.
    package var pause: TimerSource?
    /// The steps (``MemoryLadder``) that free memory for waiting launches. Memory pressure has a separate ladder.
    var ladder = MemoryLadder()

    package var isEmpty: Bool { waiting.isEmpty }
}

extension MemoryWatch {
    /// Continues all waiting launches, because memory is no longer watched. `waiting` is emptied first, because
    /// callbacks may read it.
    func admitAll() {
        let waiting = admission.waiting
        admission.waiting = []
        admission.reported = [:]
        admission.timer = nil
        for app in waiting {
            apps[app].heldBack = nil
            admit(app)
        }
    }

    /// Continues an app's launch, because there is memory for it or memory is not watched.
    package func admit(_ app: AppID) {
        uninterrupted { [self] in perform(coordinator.admitMemory(app, now: now)) }
    }

    /// How long memory stays reserved for an app after its launch.
    private static let promise = Duration.seconds(30)
    /// How long to wait until launches are checked again, if nothing else causes a check.
    private static let lookAgain = Duration.milliseconds(500)

    /// Called when the lifecycle core asks whether an app with `memory_needed` may be launched.
    package func launchNeedsMemory(_ app: AppRuntime) {
        // A launch that waited before and was cancelled is another one, which is reported again.
        admission.reported[app.id] = nil
        guard !admission.waiting.contains(app.id) else { return }
        admission.waiting.append(app.id)
        // Decide later, because the lifecycle core has not finished the step in which it asked.
        loop.later { [weak self] in self?.admitNext() }
    }

    /// Launches the waiting apps until there is too little memory for the next one: that app and all later ones wait.
    /// Launches that a user forces go first, then launches into the foreground, then the others, each in the order of
    /// their requests. Refuses an app that needs more memory than the machine can ever give to apps.
    func admitNext() {
        let hadWaiting = !admission.isEmpty
        for id in admission.waiting where !coordinator.waitsForMemory(id) {
            if admission.reported.removeValue(forKey: id) != nil { apps[id].heldBack = nil }
        }
        admission.waiting.removeAll { !coordinator.waitsForMemory($0) }
        forgetPromises()
        while let app = nextToAdmit() {
            guard let decision = decide(app) else { return waitOn(app) }
            admission.waiting.removeAll { $0 == app.id }
            admission.reported[app.id] = nil
            app.heldBack = nil
            switch decision {
            case .admit: admit(app.id)
            case .refuse(let why):
                app.run.refusal = why
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
        // A launch that a user forces takes precedence over all other launches.
        let first =
            admission.waiting.first { apps[$0].skipsAdmission == true }
            ?? admission.waiting.first { coordinator.launchesIntoForeground($0) } ?? admission.waiting.first
        return first.map { apps[$0] }
    }

    /// Whether the app's launch is allowed or refused; nil if it has to wait.
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

    /// The available bytes, minus those reserved for launched apps, and minus those that must stay free.
    private func free(_ memory: MachineMemory) -> UInt64 {
        let taken = taken(of: memory)
        return memory.available > taken ? memory.available - taken : 0
    }

    /// The bytes reserved for launched apps, plus those that must stay free. The sum may exceed the available bytes.
    private func taken(of memory: MachineMemory) -> UInt64 {
        admission.promised.values.reduce(kept(of: memory)) { $0 &+ $1.bytes }
    }

    /// The free memory as text: `8414 MiB are free: of 21.0 GiB that are available 1204 MiB are kept free
    /// (critical_available) and 12.0 GiB were promised to other apps`.
    private func freeText(_ memory: MachineMemory) -> String {
        let promised = admission.promised.values.reduce(0) { $0 &+ $1.bytes }
        let others = promised == 0 ? "" : " and \(MemoryReading.size(promised)) were promised to other apps"
        return
            "\(MemoryReading.size(free(memory))) are free: of \(MemoryReading.size(memory.available)) that are available "
            + "\(MemoryReading.size(kept(of: memory))) are kept free (critical_available)\(others)"
    }

    /// Bytes that no launch may use (`critical_available`).
    private func kept(of memory: MachineMemory) -> UInt64 { UInt64(Double(memory.total) * rules.criticalAvailable) }

    /// Subtracts from each reservation what its app already uses, and removes expired reservations.
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
            // Since the app was suspended, it has got the memory that it needed, although a part may be in swap now. So
            // remove its reservation: the app needs no further memory until it is resumed.
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

    /// Makes an app's launch wait: reports the reason once for what the app needs, arranges the next check, and takes a step that frees memory if
    /// a step may begin now.
    private func waitOn(_ app: AppRuntime) {
        if admission.timer == nil { admission.timer = try? loop.timer { [weak self] in self?.admitNext() } }
        admission.timer?.arm(after: Self.lookAgain)
        guard let memory = memory(), let needed = app.specification.memoryNeeded else { return }
        let size = MemoryReading.size(needed)
        let why = "it needs \(size) (memory_needed), and \(freeText(memory))"
        app.heldBack = why
        // The free memory changes all the time, but what the app needs only by a new configuration.
        if admission.reported.updateValue(needed, forKey: app.id) != needed {
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
        // If even all steps together would free too little memory, do not terminate any app.
        guard memory.available &+ MemoryLadder.obtainable(demand, candidates) >= taken(of: memory) &+ needed,
            let step = admission.ladder.next(demand, candidates, now: now)
        else { return }
        carryOut(step, .launch(app.id), "\(app.name) waits to be launched and needs \(MemoryReading.size(needed))")
    }
}
