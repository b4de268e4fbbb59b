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

/// The background mode `fetch`: apps check for new content from time to time. The interval adapts to what they found,
/// and a fetch happens when it costs least.
extension Timers {
    /// The least interval of the app's fetches; nil for an app without the mode `fetch`.
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

    /// Starts a fetch that is due, or that another timer's wake-up near its time brings forward.
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
        // Without a delegate, the app cannot report what it found.
        if !happened(event, app, key) || !mayHaveDelegate(app) {
            table.updateFetch(key) { $0.endUnknown() }
        }
    }

    /// Why work that can wait should not start now; nil if the machine has resources to spare.
    package func weakness() -> MachineWeakness? {
        if host.isMemoryShort { return .memory }
        let root = wakes.kernelFiles
        let power = Power(root: root)
        if power.source == .battery, let percent = power.percent, percent < Self.lowBattery { return .battery(percent) }
        // The load is in hundredths: at 200 per processor, twice as many tasks are ready as processors exist.
        if let load = LoadAverage(root: root), Int(load.minute) >= 200 * ThisProcess.processorCount {
            return .load(Double(load.minute) / 100)
        }
        return nil
    }

    /// Below this charge of the battery, in percent, fetches wait.
    private static let lowBattery: UInt32 = 20

    /// Ends a fetch, because the app's delegate has answered performFetch.
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

    /// Checks the fetch of an app whose state may have changed. If the app ended or was suspended, its fetch ends
    /// without a result. If the app is awake near the time of its next fetch, it may fetch now.
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
        // Messages that are being delivered to the app go first.
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
    /// The battery has only this charge left, in percent.
    case battery(UInt32)
    /// The load average of the last minute is too high.
    case load(Double)

    package var description: String {
        switch self {
        case .memory: "memory is short"
        case .battery(let percent): "the battery has \(percent) % left"
        case .load(let load): "the machine is busy (load \(load))"
        }
    }
}
