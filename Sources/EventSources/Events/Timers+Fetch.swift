// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import Lifecycle
import Linux
import Mailbox
package import Schedules
import Store
package import TorporAPI

/// The background mode `fetch`: apps check for new content from time to time. The interval adapts to the results of
/// the app's earlier fetches. A fetch waits while the machine is short of resources, and prefers times when the app is
/// awake.
extension Timers {
    /// The minimum interval between the app's fetches; nil if the app does not have the mode `fetch`.
    func fetchInterval(of app: AppRuntime) -> Duration? {
        app.specification.backgroundModes.contains(.fetch) ? app.specification.fetchInterval : nil
    }

    func takeFetch(_ interval: Duration, _ key: Key, of app: AppRuntime, now: ClockPair) {
        if case .fetch(let state) = table[key] {
            guard state.minimum != interval else { return }
            table.updateFetch(key) { $0.setMinimum(interval) }
        } else {
            let row = stored(key, of: app)
            let learned = row.flatMap { FetchMemory($0)?.learned }
            let last = row?.lastFired.map { max(0, $0) }
            table[key] = .fetch(FetchState(minimum: interval, learned, lastWall: last, now: now))
        }
        fetchers.insert(app.id)
    }

    /// Starts the app's fetch if the machine has resources to spare; otherwise postpones it. Called when a fetch is
    /// due, or nearly due while torpord is awake for another timer.
    package func fetch(_ app: AppRuntime, now: ClockPair, at: Duration) {
        let key = Key(app: app.id, name: "")
        if let weakness = weakness() {
            guard case .fetch(let before) = table[key] else { return }
            table.updateFetch(key) { $0.putOff(now: now) }
            if before.putOffSince == nil {
                note(app, .fetchPutOff, text: "looks for new content later: \(weakness)")
            }
            return
        }
        begin(key, app, now: now, at: at)
    }

    private func begin(_ key: Key, _ app: AppRuntime, now: ClockPair, at: Duration) {
        table.updateFetch(key) { $0.begin(now: now) }
        save(key, app)
        let mail = MailDraft(
            topic: "fetch",
            message: Message.performFetch.rawValue,
            coalescing: .latest,
            sender: "fetch"
        )
        let hears = hears(app, .performFetch)
        let event = WakeEvent(
            .fetch,
            "fetch",
            "its turn to look for new content",
            wake: Wake(),
            mail: hears ? mail : nil,
            at: at
        )
        // An app without a delegate cannot report the result of the fetch: the result counts as unknown.
        if !happened(event, app, key) || !mayHaveDelegate(app) {
            table.updateFetch(key) { $0.endUnknown() }
        }
    }

    /// Why fetches and other deferrable work should not start now; nil if the machine has resources to spare.
    package func weakness() -> MachineWeakness? {
        if host.isMemoryShort { return .memory }
        let root = wakes.kernelFiles
        let power = Power(root: root)
        if power.source == .battery, let percent = power.percent, percent < Self.lowBattery { return .battery(percent) }
        // The load average is in hundredths. The limit is two ready tasks per processor.
        if let load = LoadAverage(root: root), Int(load.minute) >= 200 * ThisProcess.processorCount {
            return .load(Double(load.minute) / 100)
        }
        return nil
    }

    /// A fetch waits while the battery's charge is below this, in percent.
    private static let lowBattery: UInt32 = 20

    /// Ends the app's fetch, since the app's delegate has answered performFetch. `result`: nil if the delegate gave
    /// no result.
    package func fetched(_ app: AppRuntime, _ result: FetchResult?) {
        let key = Key(app: app.id, name: "")
        guard case .fetch(let state) = table[key], state.isUnderWay else { return }
        table.updateFetch(key) { state in
            if let result { state.end(result) } else { state.endUnknown() }
        }
        save(key, app)
        if let result, case .fetch(let state) = table[key] {
            let next = Quantity.text(.seconds(max(0, (state.due - host.clocks.running).components.seconds)))
            note(app, .fetched, text: "looked for new content: \(result.rawValue); again in \(next)")
        }
        arm()
    }

    /// Called when the app's state may have changed. If the app ended or was suspended, ends its fetch as failed. If
    /// the app is awake and its next fetch is nearly due, starts the fetch.
    func fetchTouched(_ app: AppRuntime) {
        guard fetchers.contains(app.id), hasBegun, !isEnding else { return }
        let key = Key(app: app.id, name: "")
        guard case .fetch(let state) = table[key] else { return }
        let machine = machine(app)
        if state.isUnderWay {
            let isOver = !machine.isAlive && !machine.isWaitingToLaunch || machine.state == .suspended
            if isOver, app.pendingWake == nil { fetched(app, .failed) }
            return
        }
        guard machine.state == .background, machine.transition == nil, machine.hasDelegate else { return }
        let now = host.clocks
        guard state.opportunity <= now.running else { return }
        // Start the fetch later, so that messages that are being delivered to the app go first.
        loop.later { [weak self, weak app] in
            guard let self, let app, case .fetch(let state) = self.table[key], !state.isUnderWay,
                state.opportunity <= host.clocks.running
            else { return }
            self.fetch(app, now: self.host.clocks, at: self.now)
            self.arm()
        }
    }
}

extension FetchResult {
    /// The result that the app's answer contains.
    package init(_ result: AppAnswer.Fetched) {
        self =
            switch result {
            case .newData: .newData
            case .noData: .noData
            case .failed: .failed
            }
    }
}

/// Why the machine has no resources to spare.
package enum MachineWeakness: Hashable, CustomStringConvertible {
    case memory
    /// The battery's charge in percent, which is low.
    case battery(UInt32)
    /// The load average of the last minute, which is too high.
    case load(Double)

    package var description: String {
        switch self {
        case .memory: "memory is short"
        case .battery(let percent): "the battery has \(percent) % left"
        case .load(let load): "the machine is busy (load \(load))"
        }
    }
}
