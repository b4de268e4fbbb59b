// SPDX-License-Identifier: Apache-2.0

import Foundation
import TorporAPI

/// Containers that sleep: the first answer, and what they cost while they do. Torpor stops their processes; podman alone
/// pauses them, or stops and starts the containers.
struct Containers: Measurement {
    let name = "containers"
    private let count = 20
    private let firstPort = 21_000

    /// How many answers are timed: of containers whose processes are there, and of those that are started.
    private func answers(_ bench: Bench) -> (sleeping: Int, started: Int) { bench.quick ? (40, 10) : (400, 100) }
    private func rest(_ bench: Bench) -> Double { bench.quick ? 5 : 60 }

    func conditions(_ bench: Bench) -> String {
        "\(count) containers of podman's with a small static program in C, in podman's usual network with a published port. First "
            + "answer: from before the connection to the first bytes, one at a time, each container in turn. Torpor sees the "
            + "connection and wakes the container. podman must be asked for it when a request has come, as a proxy would that "
            + "starts containers on demand: by a command, or by podman's API on a connection that is open already; the proxy's own "
            + "time does not count. Each answer is checked to be from the same process as before, which counts requests; except "
            + "after a stop, when it is from a new one. Memory: PSS; torpor-container is Torpor's own guard of a container beside "
            + "podman's conmon. Processor time of an hour: that of the same processes in \(Int(rest(bench))) s of sleep, times "
            + "\(Int(3_600 / rest(bench)))."
    }

    func figures(_ bench: Bench) -> [Figure] {
        [
            Figure(name: "container-awake", title: "answer of a container that runs", unit: "ms"),
            Figure(name: "container-awake-99", title: "the same, 99th percentile", unit: "ms"),
            Figure(name: "container-wake", title: "first answer of a container that sleeps", unit: "ms"),
            Figure(name: "container-wake-99", title: "the same, 99th percentile", unit: "ms"),
            Figure(name: "container-memory", title: "memory of \(count) sleeping containers", unit: "MiB"),
            Figure(name: "container-guards", title: "of it conmon and torpor-container", unit: "MiB"),
            Figure(name: "container-waker", title: "of it torpord and keeper, or podman's API service", unit: "MiB"),
            Figure(name: "container-cpu", title: "processor time of an hour of sleep", unit: "ms"),
        ]
    }

    func measure(_ run: Run) throws {
        if let missing = Podman.missing { return run.note("", "not measured: \(missing)") }
        let store = try PodmanStore(run.bench)
        defer { store.end() }
        try run.interleave("containers", rounds: 1, also: Podman.all, only: { $0.name == "torpor" || $0 is Podman }) {
            if let podman = $0 as? Podman { try measure(run, podman, store) } else { try torpor(run, $0, store) }
        }
    }

    // MARK: Torpor

    private func torpor(_ run: Run, _ peer: any Peer, _ store: PodmanStore) throws {
        let settings =
            "launch_deadline = \"2min\"\nwake_storm = { limit = 0 }\nevent_time = \"1h\"\nbackground_time = \"1h\"\n"
        var load = Workload(1, settings: ["torpor": settings])
        load.environment = store.environment
        load.tables = { _, _ in
            (0..<count).map { slot in
                """
                [apps.c\(slot)]
                exec = ["/contained", "80"]
                wake_on_connect = true
                [apps.c\(slot).container]
                image = "\(PodmanStore.image)"
                pull = "never"
                ports = ["127.0.0.1:\(firstPort + slot):80"]

                """
            }.joined()
        }
        try run.session(peer, load) { session in
            guard let session = session as? TorporSession else { return }
            try session.launch()
            try waitUntilTheyAnswer()
            let containers = try (0..<count).map { try store.processes("torpor-c\($0)") }
            let apps = try session.call(.list)["apps"]?.arrayValue ?? []
            let mains = try apps.map { try AppSummary(json: $0) }.filter { $0.name.hasPrefix("c") }.compactMap(\.pid)
            func suspend(_ names: [String]) throws {
                let reply = try session.call(.verb(VerbRequest(verb: .suspend, apps: names)))
                for result in reply["results"]?.arrayValue ?? [] {
                    guard try VerbResult(json: result).ok else { throw Trouble("suspend was refused: \(reply)") }
                }
            }
            try timeAwake(run, peer)
            try timeSleeping(run, peer, way: "", answers(run.bench).sleeping) { slot in
                try suspend(["c\(slot)"])
                pause(0.002)
                try Connecting.requireStopped(containers[slot].first)
            }
            try suspend(["c*"])
            // The app's main process is torpor-container or conmon itself.
            let guards = Set(mains).union(containers.map(\.conmon))
            try atRest(
                run,
                peer,
                programs: containers.map(\.first),
                guards: Array(guards),
                waker: session.ownProcesses()
            )
        }
    }

    // MARK: podman

    private func measure(_ run: Run, _ peer: Podman, _ store: PodmanStore) throws {
        defer { store.removeContainers() }
        for slot in 0..<count {
            // Privileged: crun loads no filter of devices, which some machines refuse, and a start takes a little less.
            let own = ["--detach", "--privileged", "--log-driver=none", "--name=c\(slot)"]
            let port = ["--publish=127.0.0.1:\(firstPort + slot):80"]
            let command = [PodmanStore.image, "/contained", "80"]
            _ = try Child.output(store.command(["run"] + own + port + PodmanStore.limits + command))
        }
        try waitUntilTheyAnswer()
        try timeAwake(run, peer)
        let isStopped = peer.putsToSleep == "stop"
        let times = isStopped ? answers(run.bench).started : answers(run.bench).sleeping
        let ways: [(String, (String) throws -> Void)] = [
            ("command", { _ = try Child.time(store.command([peer.wakes, $0])) }),
            ("API", { try store.ask(peer.wakes, $0) }),
        ]
        for (way, wake) in ways {
            try timeSleeping(
                run,
                peer,
                way: way,
                times,
                keeps: !isStopped,
                wake: { try wake("c\($0)") },
                sleep: { slot in
                    let pid = try store.processes("c\(slot)").first
                    try store.ask(peer.putsToSleep, "c\(slot)")
                    pause(0.002)
                    guard try waitUntil(10, { isStopped ? !Processes.isAlive(pid) : isFrozen(pid) }) else {
                        throw Trouble("c\(slot) does not sleep")
                    }
                }
            )
        }
        let containers = try (0..<count).map { try store.processes("c\($0)") }
        for slot in 0..<count { try store.ask(peer.putsToSleep, "c\(slot)") }
        let programs = isStopped ? [] : containers.map(\.first)
        let guards = isStopped ? [] : containers.map(\.conmon)
        try atRest(run, peer, programs: programs, guards: guards, waker: [store.service.pid])
    }

    private func isFrozen(_ pid: pid_t) -> Bool {
        let lines = (Processes.read("/proc/\(pid)/cgroup") ?? "").split(separator: "\n")
        guard let place = lines.first(where: { $0.hasPrefix("0::") })?.dropFirst(3) else { return false }
        return (Processes.read("/sys/fs/cgroup\(place)/cgroup.events") ?? "").contains("frozen 1")
    }

    // MARK: Both

    private func port(_ slot: Int) -> UInt16 { UInt16(firstPort + slot) }

    private func waitUntilTheyAnswer() throws {
        for slot in 0..<count {
            guard try waitUntil(60, step: 0.01, { (try? Connecting.get(port(slot))) != nil }) else {
                throw Trouble("the container at port \(port(slot)) does not answer")
            }
        }
    }

    private func timeAwake(_ run: Run, _ peer: any Peer) throws {
        let seconds = try (0..<answers(run.bench).sleeping).map { round in
            pause(0.002)
            return try Connecting.get(port(round % count)).seconds
        }
        record(run, "container-awake", peer, way: "", seconds)
    }

    /// `sleep` puts a container to sleep and checks it; `keeps`: it answers as the process that it was.
    private func timeSleeping(
        _ run: Run,
        _ peer: any Peer,
        way: String,
        _ times: Int,
        keeps: Bool = true,
        wake: (Int) throws -> Void = { _ in },
        sleep: (Int) throws -> Void
    ) throws {
        var requests = try (0..<count).map { try Connecting.get(port($0)).requests }
        // A request that has just been answered may count as unanswered, and wakes its container again.
        pause(1)
        let seconds = try (0..<times).map { round in
            let slot = round % count
            try sleep(slot)
            let began = now()
            // The request comes first where somebody listens, so that it is answered as soon as the container is awake.
            var answer: (seconds: Double, requests: Int)
            if keeps {
                answer = try Connecting.get(port(slot)) { try wake(slot) }
            } else {
                try wake(slot)
                while true {
                    do {
                        answer = try Connecting.get(port(slot))
                        break
                    } catch {
                        guard now() - began < 20 else { throw error }
                        pause(0.000_1)
                    }
                }
            }
            let took = now() - began
            requests[slot] = keeps ? requests[slot] + 1 : 1
            guard answer.requests == requests[slot] else {
                throw Trouble("the container at port \(port(slot)) counts \(answer.requests), not \(requests[slot])")
            }
            return took
        }
        record(run, "container-wake", peer, way: way, seconds)
    }

    private func record(_ run: Run, _ figure: String, _ peer: any Peer, way: String, _ seconds: [Double]) {
        let values = seconds.map { $0 * 1_000 }
        run.record(figure, peer, way: way, values: values)
        if let high = Statistics(values)?.percentile99 { run.record(figure + "-99", peer, way: way, high) }
    }

    private func atRest(_ run: Run, _ peer: any Peer, programs: [pid_t], guards: [pid_t], waker: [pid_t]) throws {
        // torpord checks suspended apps once more after a second.
        pause(run.bench.quick ? 2 : 12)
        let all = programs + guards + waker
        run.record("container-memory", peer, try Processes.memory(all))
        run.record("container-guards", peer, try Processes.memory(guards))
        run.record("container-waker", peer, try Processes.memory(waker))
        let before = Processes.exactCPU(all)
        pause(rest(run.bench))
        run.record("container-cpu", peer, (Processes.exactCPU(all) - before) * 3_600 / rest(run.bench) * 1_000)
    }
}
