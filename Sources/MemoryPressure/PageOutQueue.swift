// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Linux
import Processes

/// Suspended apps, each with the time when it will be paged out (`page_out_after`).
struct PageOutQueue {
    private(set) var due: [AppID: Duration] = [:]
    var timer: TimerSource?

    mutating func put(_ app: AppID, at time: Duration) { due[app] = time }
    mutating func forget(_ app: AppID) { due[app] = nil }

    /// Removes and returns the apps whose page-out is due.
    mutating func take(now: Duration) -> [AppID] {
        let ready = due.filter { $0.value <= now }.map(\.key).sorted()
        for app in ready { due[app] = nil }
        return ready
    }

    var next: Duration? { due.values.min() }
}

extension MemoryWatch {
    package func entered(_ app: AppRuntime, from: AppState, to: AppState) {
        switch to {
        case .suspended:
            guard let time = app.specification.pageOutAfter else { break }
            pageOuts.put(app.id, at: now + time)
            armPageOuts()
        case .background:
            pageOuts.forget(app.id)
            // An app in the background rarely uses its memory, so let the kernel reclaim that memory first.
            if isEnabled, let tree = app.run.tree { markColdLater(app, tree) }
        case .notRunning, .inactive, .active: pageOuts.forget(app.id)
        }
        if !admission.isEmpty { loop.later { [weak self] in self?.admitNext() } }
    }

    /// Marks the memory of an app in the background as unused, if there is swap. Later, since an app enters the
    /// background on its way to suspended, which should not wait until the kernel has counted the machine's memory.
    private func markColdLater(_ app: AppRuntime, _ tree: ProcessTree) {
        loop.later { [weak self, weak app] in
            guard let self, let app, app.run.tree === tree else { return }
            let state = self.machine(app).state
            if state == .background || state == .suspended, self.canSwap { self.worker.markCold(tree) }
        }
    }

    /// Stops paging out an app that is about to be resumed.
    package func continues(_ app: AppRuntime) {
        pageOuts.forget(app.id)
        guard let tree = app.run.tree else { return }
        worker.cancel(tree)
        app.run.isPagedOut = nil
    }

    private func armPageOuts() {
        guard let next = pageOuts.next else {
            pageOuts.timer = nil
            return
        }
        if pageOuts.timer == nil { pageOuts.timer = try? loop.timer { [weak self] in self?.pageOutDue() } }
        pageOuts.timer?.arm(after: max(.zero, next - now))
    }

    private func pageOutDue() {
        for id in pageOuts.take(now: now) {
            let app = apps[id]
            let machine = coordinator.machine(id)
            guard machine.state == .suspended, machine.transition == nil, let time = app.specification.pageOutAfter,
                canSwap
            else { continue }
            pageOut(app, "suspended for \(Quantity.text(time))") {}
        }
        armPageOuts()
    }

    /// Moves the memory of a suspended app to swap. `why` is the reason, as a text for the log.
    func pageOut(_ app: AppRuntime, _ why: String, _ completion: @escaping () -> Void) {
        guard let tree = app.run.tree, app.run.isPagedOut != true else { return completion() }
        app.run.isPagedOut = true
        let incarnation = machine(app).incarnation
        worker.pageOut(tree) { [weak self, weak app] result in
            guard let self, let app else { return completion() }
            if app.run.tree === tree {
                self.footprints[app.id] = KnownFootprint(
                    footprint: result.after,
                    incarnation: incarnation,
                    at: self.now
                )
                self.tell(result, app, why)
            }
            completion()
        }
    }

    private func tell(_ result: PageOutResult, _ app: AppRuntime, _ why: String) {
        if result.isCancelled { return }
        if let failure = result.failure, result.freed == 0 {
            return note(app, .pagedOut, text: "cannot be paged out (\(failure)): \(why)")
        }
        let text =
            "is paged out, \(MemoryReading.size(result.freed)) of \(MemoryReading.size(result.before.resident)): "
            + why
        note(app, .pagedOut, text: text, reason: "page-out")
    }
}

extension Incarnation {
    /// Whether the app's memory is in swap or being moved there; nil if the app was not paged out since it was last
    /// resumed.
    var isPagedOut: Bool? {
        get { slots[IsPagedOutSlot.self] }
        set { slots[IsPagedOutSlot.self] = newValue }
    }
}

private enum IsPagedOutSlot: Slot { typealias Value = Bool }
