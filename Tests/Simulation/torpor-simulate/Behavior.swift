// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel

/// What a seed does often, rarely or never: so all of them together reach what none would that does everything alike.
struct Behavior {
    /// Of 1000 steps, how many kill torpord at one of its next calls.
    var kills = 0
    /// How often calls fail, of 65536, by the kind of fault.
    var rates: [UInt32] = []
    var calls = 10
    var mail = 0
    var hangUps = 0
    var applies = 0
    var upgrades = 0
    var appCalls = 0
    var crashes = 1
    var exits = 1
    var forks = 2
    var lines = 10
    var silence = 0
    var failsToExecute = 0
    var ignoresTerm = 0

    init() {}

    init(_ simulation: Simulation) {
        func some(_ most: Int) -> Int { simulation.happens(1, of: 2) ? 0 : simulation.random(most) }
        kills = some(40)
        for _ in 0..<Int(SIM_FAULTS.rawValue) {
            rates.append(simulation.happens(2, of: 3) ? 0 : UInt32(1 << simulation.random(11)))
        }
        calls = 2 + simulation.random(20)
        mail = some(20)
        hangUps = some(3)
        applies = some(6)
        upgrades = some(3)
        appCalls = some(12)
        crashes = some(4)
        exits = some(4)
        forks = some(6)
        lines = some(20)
        silence = some(3)
        failsToExecute = some(3)
        ignoresTerm = some(3)
    }

    /// The first torpord has settled: from now on calls fail.
    func begin() {
        sim_state().pointee.is_calm = 0
        withUnsafeMutableBytes(of: &sim_state().pointee.rate) { bytes in
            let all = bytes.bindMemory(to: UInt32.self)
            for (index, rate) in rates.enumerated() { all[index] = rate }
        }
    }

    /// torpord may be killed while it starts.
    func mayKill() {
        guard sim_state().pointee.is_calm == 0, kills > 0, sim_random(4) == 0 else { return }
        kill(within: 3000)
    }

    /// torpord is killed at one of its next calls, unless that is decided already.
    func kill(within calls: UInt64) {
        guard sim_state().pointee.kill_at == 0 else { return }
        sim_state().pointee.kill_at = sim_state().pointee.calls + 1 + sim_random(calls)
        sim_state().pointee.kill_after_change = UInt32(sim_random(2))
    }
}
