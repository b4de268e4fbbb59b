// SPDX-License-Identifier: Apache-2.0

import Foundation

/// How many apps fit into little memory, and how the apps in use fare: systemd, which runs all apps all the time, and
/// Torpor under the same load.
struct Density: Measurement {
    let name = "density"
    /// It takes away the machine's memory.
    let isOnlyAsked = true

    func conditions(_ bench: Bench) -> String {
        let plan = DensityPlan(bench)
        let sweep =
            plan.sweep > 0
            ? "looks through its data for what has expired every \(plan.sweep) s, a part each second"
            : "does nothing unasked"
        let swapFile =
            plan.swapFile > 0 ? " and, for what has no room there, a swap file of \(grouped(plan.swapFile)) MiB" : ""
        return
            "\(plan.apps) apps of three kinds (a Python HTTP server, a Node service, one in C), each with a data set in "
            + "memory, some 35 MiB in all; it answers with 40 records from anywhere in it, and \(sweep). "
            + "\(grouped(plan.memory)) MiB of the machine's memory are left by a balloon of locked memory on the machine "
            + "itself, beside \(grouped(plan.swap)) MiB of swap in zram (lzo-rle)\(swapFile). "
            + "\(plan.hot) hot apps are asked \(plan.rate) times a second each, each of the others every "
            + "\(plan.pause.lowerBound) to \(plan.pause.upperBound) s, for \(plan.seconds) s after \(plan.warming) s that do "
            + "not count; an answer may take \(plan.limit) s, and its time counts from when the request was due; a "
            + "connection wakes or launches a cold app of Torpor's, and that time counts. Calm: \(plan.calmApps) "
            + "apps. Held: no request of a hot app fails, and their 99th percentile is at most "
            + "\(Int(DensityPlan.slower)) × that when it is calm (the median of all peers)."
    }

    func figures(_ bench: Bench) -> [Figure] {
        let plan = DensityPlan(bench)
        let counts = plan.all
        func each(_ name: String, _ title: String, _ unit: String, _ apps: [Int], curve: String? = nil) -> [Figure] {
            apps.map { count in
                Figure(
                    name: "\(name)-\(count)",
                    title: "\(title), \(grouped(count)) apps",
                    unit: unit,
                    curve: curve.map { ($0, count) }
                )
            }
        }
        let main = [plan.apps]
        return [
            Figure(name: "held", title: "most apps that are held", unit: "apps", better: .higher),
            Figure(name: "held-gib", title: "apps for each GiB, as many as are held", unit: "1/GiB", better: .higher),
        ]
            + each("hot-failed", "requests of hot apps that failed", "%", counts)
            + each("hot-p50", "hot apps, median", "ms", [plan.calmApps] + main)
            + each("hot-p99", "hot apps, 99th percentile", "ms", counts, curve: "hot p99")
            + each("hot-p999", "hot apps, 99.9th percentile", "ms", [plan.calmApps] + main)
            + each("cold-failed", "requests of cold apps that failed", "%", counts)
            + each("cold-p50", "cold apps, median", "ms", counts)
            + each("cold-p99", "cold apps, 99th percentile", "ms", main)
            + each("cold-p999", "cold apps, 99.9th percentile", "ms", main)
            + each("killed-used", "ended while in use (hot, or answering)", "apps", counts)
            + each("killed", "ended in all", "apps", counts)
            + each("cpu", "processors in use", "", main)
            + each("used", "memory in use", "MiB", main)
            + each("swapped", "of it in swap, before compression", "MiB", main)
            + each("swap-rate", "to and from swap", "MiB/s", main)
    }

    func measure(_ run: Run) throws {
        let bench = run.bench
        let plan = DensityPlan(bench)
        let peers = DensityPeer.all(bench).filter { bench.chosen.isEmpty || bench.chosen.contains($0.name) }
        let left = peers.filter { $0.missing == nil }
        guard !left.isEmpty else { throw Trouble(peers.first?.missing ?? "there is no peer for it: see --help") }
        for peer in peers { if let missing = peer.missing { run.note(peer.name, "not measured: \(missing)") } }
        try prepare(bench)
        // The limit on how long a run may take the memory.
        let machine = try DensityMachine(bench, plan, seconds: bench.quick ? 600 : 3_600)
        defer { machine.end() }
        say("  \(plan.memory) MiB are left, \(machine.device) is the swap")
        let trial = DensityTrial(run, plan, machine)
        var calm: [Double] = []
        // Without pressure all peers behave alike: one of each kind is enough.
        let tellers = left.map(\.name).filter { ["torpor", "systemd"].contains($0) }
        let calmOnes = tellers.isEmpty ? [left[0].name] : tellers
        try run.interleave("calm", rounds: 1, also: left, only: { $0 is DensityPeer }) { peer in
            guard let peer = peer as? DensityPeer, calmOnes.contains(peer.name) else { return }
            calm.append(try trial.turn(peer, plan.calmApps).hot99)
        }
        guard let usual = Statistics(calm)?.median else { throw Trouble("nobody was calm") }
        try run.interleave("\(plan.apps) apps", rounds: 1, also: left, only: { $0 is DensityPeer }) { peer in
            guard let peer = peer as? DensityPeer else { return }
            try trial.search(peer, limit: usual * DensityPlan.slower)
        }
    }

    private func prepare(_ bench: Bench) throws {
        let folder = bench.root + "/Benchmarks/density/"
        for program in ["service", "load", "bound"] {
            _ = try Child.output(["cc", "-O2", "-o", bench.program(program), folder + program + ".c"])
        }
        for script in ["service.py", "service.js"] {
            try FileManager.default.copyItem(atPath: folder + script, toPath: bench.disk + "/" + script)
        }
        try DensityData.write(to: bench.disk + "/data.jsonl")
    }
}

/// Repeated turns of one peer with different numbers of apps.
final class DensityTrial {
    struct Outcome {
        let hotFailed: Int
        let hot99: Double

        func isHeld(_ limit: Double) -> Bool { hotFailed == 0 && hot99 <= limit }
    }

    private let run: Run
    private let plan: DensityPlan
    private let machine: DensityMachine
    private var seed = 0

    init(_ run: Run, _ plan: DensityPlan, _ machine: DensityMachine) {
        self.run = run
        self.plan = plan
        self.machine = machine
    }

    /// Starts with the usual number of apps, then tries more while they are held, or fewer until they are.
    func search(_ peer: DensityPeer, limit: Double) throws {
        var held: Int?
        func tried(_ apps: Int) throws -> Bool {
            do {
                let isHeld = try turn(peer, apps).isHeld(limit)
                if isHeld { held = max(held ?? 0, apps) }
                return isHeld
            } catch let error as Interrupted {
                throw error
            } catch {
                try machine.check()
                run.note(peer.name, "\(apps) apps: \(error)")
                return false
            }
        }
        if try tried(plan.apps) {
            for apps in plan.steps.sorted() where apps > plan.apps { if try !tried(apps) { break } }
        } else {
            for apps in plan.steps.sorted(by: >) where apps < plan.apps { if try tried(apps) { break } }
        }
        if let held {
            run.record("held", peer, Double(held))
            run.record("held-gib", peer, Double(held) / Double(plan.memory) * 1024)
        } else {
            run.note(peer.name, "none of these numbers of apps is held")
        }
    }

    /// Launches `apps` apps, sends requests to them and records the results.
    func turn(_ peer: DensityPeer, _ apps: Int) throws -> Outcome {
        try machine.check()
        try machine.waitUntilWhole()
        let empty = DensityMachine.look()
        let session = try peer.session(run.bench, apps)
        defer { session.end() }
        let began = now()
        try session.launchAll(seconds: 20) { try machine.checkStall() }
        let launched = now() - began
        seed += 1
        var looks: [DensityMachine.Look] = []
        let counted = now() + Double(plan.warming)
        let file = try session.ask(seconds: plan.warming + plan.seconds, seed: seed) {
            if now() >= counted { looks.append(DensityMachine.look()) }
            try machine.checkStall()
        }
        let requests = try DensityRequests(file: file, warming: plan.warming)
        let starts = session.starts()
        let alive = session.alive()
        func record(_ figure: String, _ value: Double?) {
            if let value { run.record("\(figure)-\(apps)", peer, value) }
        }
        func percent(_ part: DensityRequests.Part) -> Double? {
            part.count > 0 ? 100 * Double(part.failed) / Double(part.count) : nil
        }
        record("hot-failed", percent(requests.hot))
        record("hot-p50", requests.hot.percentile(0.5))
        record("hot-p99", requests.hot.percentile(0.99))
        record("hot-p999", requests.hot.percentile(0.999))
        record("cold-failed", percent(requests.cold))
        record("cold-p50", requests.cold.percentile(0.5))
        record("cold-p99", requests.cold.percentile(0.99))
        record("cold-p999", requests.cold.percentile(0.999))
        let hotEnded = (0..<plan.hot).reduce(0) { $0 + max(0, (starts.counts[$1] ?? 0) - 1) }
        let ended = starts.counts.values.reduce(0, +) - alive
        record("killed-used", Double(hotEnded + (requests.cold.failures["broken"] ?? 0)))
        record("killed", Double(ended))
        var work = ""
        if let first = looks.first, let last = looks.last, looks.count > 1 {
            let seconds = last.at - first.at
            let share = requests.cpu / Double(plan.warming + plan.seconds)
            let busy = (last.busy - first.busy) / seconds - share
            record("cpu", busy)
            record("used", Statistics(looks.map { empty.available - $0.available })?.median)
            record("swapped", Statistics(looks.map { $0.swapped - empty.swapped })?.median)
            let rate = (last.swappedIn + last.swappedOut - first.swappedIn - first.swappedOut) / 256 / seconds
            record("swap-rate", rate)
            work = "; \(Statistics.text(busy)) processors, \(Statistics.text(rate)) MiB/s to and from swap"
        }
        let given = machine.givenSince()
        if given >= 128 {
            run.note(
                peer.name,
                "\(apps) apps: other processes of the machine needed \(Int(given)) MiB meanwhile, for which the balloon shrank; "
                    + "it may have been too small for a while when they needed it no more"
            )
        }
        let failures = [requests.hot.failuresText, requests.cold.failuresText]
        let hot99 = requests.hot.percentile(0.99) ?? .infinity
        let kernel = DensityMachine.look().kernelKills - empty.kernelKills
        say(
            "    \(peer.name), \(apps) apps: up in \(Statistics.text(launched)) s; hot "
                + "\(requests.hot.count) (failed: \(failures[0].isEmpty ? "none" : failures[0])), p99 "
                + "\(Statistics.text(hot99)) ms, p99.9 \(Statistics.text(requests.hot.percentile(0.999) ?? 0)); cold "
                + "\(requests.cold.count) (failed: \(failures[1].isEmpty ? "none" : failures[1])), p50 "
                + "\(Statistics.text(requests.cold.percentile(0.5) ?? 0)), p99 "
                + "\(Statistics.text(requests.cold.percentile(0.99) ?? 0)) ms; \(ended) ended (\(hotEnded) hot, \(Int(kernel)) by "
                + "the kernel), \(alive) alive\(work)"
        )
        return Outcome(hotFailed: requests.hot.failed, hot99: hot99)
    }
}
