// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel
import Linux

/// What the command line asks for.
struct Options {
    var first: UInt64 = 1
    var count: UInt64 = 100
    var steps = 1000
    var jobs = 2
    var checkRepeats = false
    var trace = false
}

/// Runs seeds, each in a process of its own.
struct Seeds {
    private let options: Options

    init(_ options: Options) { self.options = options }

    /// The exit status: 1 when a seed has violated an invariant.
    func run() -> Int32 {
        sim_move_code()
        sim_find_real_functions()
        Torpord.warmUp()
        let began = sim_real_nanoseconds()
        var running: [Int32: (seed: UInt64, place: Int)] = [:]
        var places = Array(0..<max(options.jobs, 1))
        var next = options.first
        let end = options.first + options.count
        var violated: [UInt64] = []
        while next < end || !running.isEmpty {
            if next < end, let place = places.popLast() {
                running[start(next, place)] = (next, place)
                next += 1
                continue
            }
            var status: Int32 = 0
            let pid = sim_wait_any(&status)
            guard let (seed, place) = running.removeValue(forKey: pid) else { continue }
            places.append(place)
            if status != 0 {
                violated.append(seed)
                if status & 0x7f != 0 {
                    print("FOUND: seed \(seed): the simulator was ended by signal \(status & 0x7f)")
                }
            }
        }
        let seconds = Double(sim_real_nanoseconds() - began) / 1e9
        print(
            "\(options.count) seeds of \(options.steps) steps in \(Int(seconds)) s, \(violated.count) violated an invariant"
        )
        if !violated.isEmpty { print("violated: \(violated.sorted().map(String.init).joined(separator: " "))") }
        return violated.isEmpty ? 0 : 1
    }

    private func start(_ seed: UInt64, _ place: Int) -> Int32 {
        let pid = sim_fork()
        if pid != 0 { return pid }
        sim_set_alarm(300)
        // The simulator and its torpord never run at the same time, and wake each other all the time.
        sim_pin(Int32(place))
        if options.checkRepeats { sim_exit(repeats(seed) ? 0 : 1) }
        sim_exit(once(seed) == nil ? 1 : 0)
    }

    /// Runs it twice, each time in a process of its own.
    private func repeats(_ seed: UInt64) -> Bool {
        var hashes: [String] = []
        let file = "/dev/shm/torpor-simulation-\(seed).hash"
        for _ in 0..<2 {
            if sim_fork() == 0 {
                let hash = once(seed)
                try? File.write(file, hash.map { "\($0)" } ?? "violated")
                sim_exit(0)
            }
            var status: Int32 = 0
            _ = sim_wait_any(&status)
            hashes.append((try? File.readString(file)) ?? "\(status)")
            try? File.remove(file)
        }
        if hashes[0] != hashes[1] { print("FOUND: seed \(seed) does not repeat") }
        return hashes[0] == hashes[1] && hashes[0] != "violated"
    }

    /// Returns a fingerprint of all that happened; nil when something was violated.
    private func once(_ seed: UInt64) -> UInt64? {
        // The same path each time: it is in what torpord writes and hashes.
        let root = "/dev/shm/torpor-simulation-\(seed)"
        sim_lock(seed)
        try? File.removeTree(root)
        do {
            try File.makeDirectory(root)
        } catch {
            print("cannot make \(root): \(error)")
            return nil
        }
        let simulation = Simulation(seed: seed, steps: options.steps, root: root)
        let hash = simulation.run()
        if options.trace { print(simulation.trace(.max)) }
        if hash != nil || !options.trace { try? File.removeTree(root) }
        return hash
    }
}
