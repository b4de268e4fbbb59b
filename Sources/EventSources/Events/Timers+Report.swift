// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import Lifecycle
import Linux
import Schedules
package import TorporAPI
import Varlink

/// The timers as `torpor timers` lists them.
extension Timers {
    /// The state of all timers of these apps, in the order in which the timers fire next.
    package func statuses(of apps: [AppRuntime]) -> [TimerStatus] {
        let now = host.clocks
        return apps.flatMap { app in
            (app.specification.timers.map(\.name) + [""]).compactMap { name in
                status(Key(app: app.id, name: name), app, now: now)
            }
        }.sorted { ($0.next ?? .max, $0.app, $0.name) < ($1.next ?? .max, $1.app, $1.name) }
    }

    private func status(_ key: Key, _ app: AppRuntime, now: ClockPair) -> TimerStatus? {
        guard let entry = table[key] else { return nil }
        var status = TimerStatus(app: app.name, name: key.isFetch ? "fetch" : key.name, kind: "timer")
        switch entry {
        case .timer(let state):
            status.when = specification(key)?.text ?? ""
            status.last = state.history.lastWall
            status.isPersistent = state.rule.isPersistent
            status.wake = specification(key)?.wake.rawValue
        case .fetch(let state):
            status.kind = "fetch"
            status.when = "every \(Quantity.text(.seconds(state.interval.components.seconds)))"
            status.last = state.lastWall
            status.wake = WakeManner.background.rawValue
        }
        if status.wake != WakeManner.none.rawValue {
            let machine = machine(app)
            status.blocked = (key.isFetch ? machine.blocksWaking : machine.blocksTimers)?.rawValue
        }
        if let due = table.due(key, now: now) { status.next = now.wall(atRunning: due) }
        return status
    }
}
