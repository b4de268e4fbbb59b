// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel
import Linux
import Varlink

/// What happens while torpord waits.
extension Simulation {
    var livingProcesses: [ProcessModel] {
        processes.values.filter(\.isAlive).sorted { $0.pid < $1.pid }
    }

    /// One of the events that are possible now.
    func event() throws {
        let isIdle = sim_state().pointee.is_ready == 0
        if happens(behavior.kills, of: 1000), sim_state().pointee.is_calm == 0 {
            if happens(1, of: 3) {
                note("torpord is killed while it waits")
                return sim_kill_torpord()
            }
            behavior.kill(within: 400)
        }
        if sim_keeper_has_request() != 0, happens(2, of: 3) {
            _ = try keeperReads()
            return
        }
        if happens(behavior.calls, of: 100), !isSettling { return askAnything() }
        if happens(behavior.mail, of: 200), !isSettling { return postAnything() }
        if happens(behavior.applies, of: 1000), !isSettling { return try reconfigure() }
        if happens(1, of: 4), !clients.isEmpty { return try pollClients() }
        // Nothing in the world is so quick that no time could pass before it.
        if isIdle, happens(1, of: 8) { return passTime() }
        if try actInWorld() { return }
        if isIdle { passTime() }
    }

    func eventInWorld() throws {
        if !(try actInWorld()) { passTime() }
    }

    /// The next deadline comes, or less time passes than that.
    func passTime() {
        // The keeper is quick.
        if sim_keeper_has_request() != 0 {
            now += 1_000_000 * Int64(random(20))
            return
        }
        var deadline = sim_state().pointee.next_deadline
        // Each app has time for its heartbeat.
        if isSettling, livingProcesses.contains(where: { $0.hasWatchdog && !$0.isStopped }) {
            deadline = min(deadline, now + 4_000_000_000)
        }
        if deadline == .max || !isRunning {
            now += 1_000_000 * Int64(1 + random(50))
            return
        }
        // Apps and clients have time for what they do, however late torpord has something to do again.
        if !isSettling { deadline = min(deadline, now + 250_000_000 * Int64(1 + random(4))) }
        if deadline > now, happens(3, of: 4) {
            now = deadline
        } else {
            now += min(max(0, deadline - now), 1_000_000 * Int64(1 + random(200)))
        }
    }
}
