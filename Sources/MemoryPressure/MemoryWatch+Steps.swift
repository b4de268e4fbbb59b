// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Linux
import Processes

/// A step of the ladder (``MemoryLadder``) that is in progress.
package struct MemoryWork {
    package let number: Int
    /// Why the step is taken: the machine is short of memory, or a launch waits.
    let cause: Cause
    package let step: MemoryLadder.Step
    /// When the step began.
    package let since: Duration
    /// Available bytes before the step began.
    package let before: UInt64

    enum Cause: Equatable {
        case pressure
        case launch(AppID)
    }
}

/// Takes steps of the ladder (``MemoryLadder``), each of which frees memory.
extension MemoryWatch {
    /// If memory is critical, the next step begins this long after the last one began, even if the app that the last
    /// step terminates has not ended yet. Below the critical level, the next step begins after `patience`.
    private static let criticalPatience = Duration.milliseconds(500)
    private static let patience = AppMachine.shortGrace + .milliseconds(500)

    /// Takes the next step, if the last step is done or has taken too long, and the memory that was freed has had time
    /// to appear in the kernel's statistics.
    func act(_ level: MemoryLevel, _ reading: MemoryReading) {
        let now = now
        if let work = underWay {
            let patience = level == .critical ? Self.criticalPatience : Self.patience
            guard now - work.since > patience else { return }
            underWay = nil
            if work.step.rung.endsApp, let app = work.step.apps.first { outlasted[app] = work }
        }
        guard now >= notBefore else { return }
        let isUrgent = rules.isUrgent(reading)
        keepOrder(isUrgent)
        let choose = { [weak self] in
            guard let self, self.underWay == nil else { return }
            self.climb(level, reading, isUrgent: isUrgent)
        }
        // If memory is urgently short, do not measure again: choose by the last measurements.
        if isUrgent, !footprints.isEmpty { return choose() }
        guard isUrgent || !waitsForPolicies, afterMeasuring.isEmpty else { return }
        measure(choose)
    }

    private func climb(_ level: MemoryLevel, _ reading: MemoryReading, isUrgent: Bool) {
        let now = now
        guard now >= notBefore else { return }
        ladder.patience = rules.patience(reading)
        ladder.worth = rules.worth(reading)
        let candidates = candidates()
        if let step = ladder.next(.pressure(level, urgent: isUrgent), candidates, now: now) {
            isAtAnEnd = false
            return carryOut(step, .pressure, "memory is short (\(level.rawValue))")
        }
        guard level == .critical, !isAtAnEnd, !mayBeNamed else { return }
        isAtAnEnd = true
        note(
            .memoryShort,
            text: "memory is short and no app may be evicted: \(reading.text); "
                + "‘torpor memory’ shows which apps use it" + passedOver(candidates),
            reason: level.rawValue
        )
    }

    /// Carries out a step. `why` is a text for the log that says why memory is needed.
    func carryOut(_ step: MemoryLadder.Step, _ cause: MemoryWork.Cause, _ why: String) {
        let now = now
        switch step.rung {
        case .tell: return tell(step.apps, why)
        case .purge, .pageOut, .evict, .endBackground, .endInactive, .endActive: break
        }
        let app = apps[step.apps[0]]
        let before = memory()?.available ?? 0
        workNumber += 1
        let number = workNumber
        underWay = MemoryWork(number: number, cause: cause, step: step, since: now, before: before)
        switch step.rung {
        case .tell: break
        case .purge:
            purge(app) { [weak self] bytes in
                guard let self else { return }
                let what =
                    bytes == 0
                    ? "had nothing left to purge"
                    : "drops \(MemoryReading.size(bytes)) of purgeable memory"
                self.note(app, .madeRoom, text: "\(what): \(why)", reason: "purge")
                self.done(number, settling: bytes > 0)
            }
        case .pageOut:
            pageOut(app, why) { [weak self] in self?.done(number, settling: false) }
        case .evict, .endBackground, .endInactive, .endActive:
            // A debugger may have been attached since the last check. If so, this call also reports that to the
            // lifecycle core.
            if host.restsForTracer(app) { return done(number, settling: false) }
            let text = "\(step.rung == .evict ? "is evicted" : "is ended"): \(why); \(account(of: app, step))"
            note(app, .madeRoom, text: text, reason: step.rung.rawValue)
            let id = app.id
            uninterrupted { [weak self] in
                guard let self else { return }
                do throws(RequestError) {
                    try self.request(.evict, of: id)
                } catch {
                    self.log.debug("\(app.name) \(error): it is not ended for its memory")
                    self.refused[id] = now
                    self.done(number, settling: false)
                }
            }
        }
    }

    /// Why this app was chosen and other apps were passed over, as text.
    package func account(of app: AppRuntime, _ step: MemoryLadder.Step) -> String {
        let machine = machine(app)
        var parts = ["it is \(machine.state.rawValue)", "has \(text(footprints[app.id]?.footprint))"]
        if app.specification.priority != 0 { parts.append("priority \(app.specification.priority)") }
        if let place = order.places[app.id], let policy = order.policy {
            parts.append("\(policy): \(place.reason)")
        } else if !app.times.isInUse, app.times.lastUse != StateTimes.never {
            let time = now - .microseconds(app.times.lastUse)
            parts.append("was last used \(Self.age(time)) ago")
        }
        var text = parts.joined(separator: ", ")
        let passed = step.passedOver.prefix(3).map { "\(apps[$0.app].name) (\(explain($0.reason, $0.app)))" }
        if !passed.isEmpty {
            let more = step.passedOver.count - passed.count
            text += "; passed over: " + passed.joined(separator: ", ") + (more > 0 ? " and \(more) more" : "")
        }
        return text
    }

    /// The largest apps that may not be terminated, as text; empty if there are none.
    private func passedOver(_ candidates: [MemoryLadder.Candidate]) -> String {
        let largest = candidates.filter { $0.protection != nil }.sorted { $0.bytes > $1.bytes }.prefix(3)
        guard !largest.isEmpty else { return "" }
        let names = largest.map { candidate in
            let why = candidate.protection.map { explain($0, candidate.app) } ?? ""
            return "\(apps[candidate.app].name), \(MemoryReading.size(candidate.bytes)) (\(why))"
        }
        return "; left alone: " + names.joined(separator: ", ")
    }

    /// Why an app may not be terminated, as text.
    func explain(_ protection: MemoryLadder.Protection, _ app: AppID) -> String {
        switch protection {
        case .never: "evict = \"never\""
        case .required: "a running app requires it"
        case .traced: "it is being debugged"
        case .busy: "it is on its way to another state"
        case .unnamed: "the policies do not name it"
        case .active: "it is in use"
        case .small: "it has too little memory for its end to help"
        }
    }

    package static func age(_ time: Duration) -> String {
        let seconds = max(0, time.components.seconds)
        if seconds < 120 { return "\(seconds) s" }
        return seconds < 7200 ? "\(seconds / 60) min" : "\(seconds / 3600) h"
    }

    private func tell(_ apps: [AppID], _ why: String) {
        notBefore = now + rules.settling
        let level = self.level
        for id in apps {
            let app = engine.apps[id]
            app.memoryWarning = level.rawValue
            uninterrupted { [self] in
                perform(coordinator.warnOfMemory(id, now: now))
            }
        }
        let names = apps.prefix(5).map { engine.apps[$0].name }.joined(separator: ", ")
        let more = apps.count > 5 ? " and \(apps.count - 5) more" : ""
        note(.madeRoom, text: "tells \(names)\(more) that \(why)", reason: "tell")
    }

    // MARK: Done

    /// Whether the app is being terminated to free its memory.
    package func isEnding(_ app: AppRuntime) -> Bool {
        underWay?.step.apps.first == app.id && underWay?.step.rung.endsApp == true || outlasted[app.id] != nil
    }

    package func forget(_ app: AppRuntime) {
        footprints[app.id] = nil
        refused[app.id] = nil
        admission.reported[app.id] = nil
        order.places[app.id] = nil
        ladder.forget(app.id)
    }

    package func ended(_ app: AppRuntime, _ ending: Ending) {
        footprints[app.id] = nil
        // A reservation ends together with the run of the app for which it was made.
        admission.promised[app.id] = nil
        pageOuts.forget(app.id)
        if let tree = app.run.tree { worker.cancel(tree) }
        let late = outlasted.removeValue(forKey: app.id)
        if underWay?.step.apps.first == app.id, let work = underWay {
            underWay = nil
            settle(work, app.name)
        } else if let late {
            settle(late, app.name)
        }
        if !admission.isEmpty { loop.later { [weak self] in self?.admitNext() } }
    }

    /// Reports how much memory an app's end has freed, as soon as the kernel's statistics show it.
    private func settle(_ work: MemoryWork, _ name: String) {
        notBefore = now + rules.settling
        let isShort = isShort
        // Only one ended app is remembered: if another app ended a moment ago, report its freed memory now.
        tellFreed()
        freed = (work.before, name)
        admission.pause = try? loop.timer { [weak self] in
            guard let self else { return }
            self.admission.pause = nil
            self.tellFreed()
            if isShort { self.askPolicies() }
            self.admitNext()
        }
        admission.pause?.arm(after: rules.settling)
    }

    private func tellFreed() {
        guard let (before, name) = freed, let memory = memory() else { return }
        freed = nil
        let more = memory.available > before ? memory.available - before : 0
        let text =
            "\(MemoryReading.size(more)) more are available without \(name): "
            + "\(MemoryReading.size(memory.available)) of \(MemoryReading.size(memory.total))"
        note(.madeRoom, text: text, reason: "freed")
    }

    /// Completes the step with this number, unless another step has replaced it.
    private func done(_ number: Int, settling: Bool) {
        guard let work = underWay, work.number == number else { return }
        underWay = nil
        if settling { notBefore = now + rules.settling }
        if case .launch = work.cause { admitNext() }
    }
}
