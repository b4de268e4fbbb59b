// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// torpord, its keeper, the app or all of them are killed while scenes inside an app come and go: what the app hears of each
/// scene is a walk of its lifecycle, in order and once, and torpord knows where it ended.
@Suite("Scenes inside an app under kills") struct InnerSceneLossTests {
    private static let names = (1...4).map { "s\($0)" }

    private struct Dice: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ (state >> 33)
        }
    }

    /// `TORPOR_SCENE_ROUNDS` says how many; `TORPOR_SCENE_SEED` repeats the choices of a run.
    private static func number(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
    }

    /// Where the app believes its scenes to be, by what it has heard in its last run.
    private static func walk(_ records: [String]) throws -> [String: String] {
        var places: [String: String] = [:]
        for (index, line) in records.enumerated() {
            let words = line.split(separator: " ").map(String.init)
            guard words.count > 1 else {
                if words == ["launch"] { places = [:] }
                continue
            }
            let before = places[words[1]] ?? SceneInfo.unattached
            switch (words[0], before) {
            case ("connect", SceneInfo.unattached): places[words[1]] = words[2] == "front" ? "inactive" : "background"
            case ("active", "inactive"): places[words[1]] = "active"
            case ("resign", "active"): places[words[1]] = "inactive"
            case ("background", "inactive"): places[words[1]] = "background"
            // A scene that has run in the background saves its state again before the app is suspended.
            case ("background", "background"): break
            case ("foreground", "background"): places[words[1]] = "inactive"
            case ("disconnect", "background"): places[words[1]] = nil
            case ("discard", _): break
            default:
                let recent = records[max(0, index - 12)...index].joined(separator: ", ")
                throw Trouble("\(line) of a scene that is \(before): \(recent)")
            }
        }
        return places
    }

    @Test("Whenever the kill comes, each scene hears a walk of its lifecycle, and is where torpord says")
    func kills() throws {
        let rounds = Int(Self.number("TORPOR_SCENE_ROUNDS") ?? 20)
        let seed = Self.number("TORPOR_SCENE_SEED") ?? UInt64.random(in: 1...999_999)
        print("scenes inside: TORPOR_SCENE_SEED=\(seed), \(rounds) rounds")
        var dice = Dice(state: seed)
        let keys = """
            restart_backoff = { initial = "1ms", cap = "1ms", limit = 1000 }
            transition_deadline = "60s"
            background_deadline = "60s"
            background_time = "10ms"
            """
        let toml = InnerSceneTests.toml("max_live = 3, cgroups = true", keys: keys)
        try withRecovery(toml, files: ["app.py": InnerSceneTests.program]) { daemon throws in
            for round in 0..<rounds {
                let what = Int.random(in: 0..<7, using: &dice)
                let request = Self.request(what, Self.names.randomElement(using: &dice) ?? "s1")
                let path = daemon.socket
                let delay = UInt32.random(in: 0...25_000, using: &dice)
                let victim = Int.random(in: 0..<4, using: &dice)
                // It is under way when the kill comes, or done; which of both nobody knows.
                let worker = Thread {
                    _ = try? VarlinkClient(path: path).call(request.call, timeoutMilliseconds: 20_000)
                }
                worker.start()
                usleep(delay)
                if victim == 3 {
                    if let pid = try daemon.summary("desk").pid { kill(pid, SIGKILL) }
                } else {
                    try daemon.lose([.killed, .keeper, .both][victim])
                }
                try check(daemon, "round \(round) of \(seed), \(victim) after \(delay) µs of \(what)")
            }
        }
    }

    private static func request(_ what: Int, _ name: String) -> ManagerRequest {
        var verb = VerbRequest(verb: .background, apps: ["desk@" + name])
        verb.token = RequestToken.random()
        switch what {
        case 0, 1, 2:
            var request = OpenSceneRequest(template: "desk", name: name)
            (request.background, request.token) = (what == 2, RequestToken.random())
            return .openScene(request)
        case 3: break
        case 4: verb.verb = .disconnect
        case 5: verb.verb = .discard
        default: (verb.verb, verb.apps) = (.suspend, ["desk"])
        }
        return .verb(verb)
    }

    /// Those of which the app knows; what sleeps is in the background.
    private func attached(_ states: [String: String]) -> [String: String] {
        states.filter { $0.value != SceneInfo.unattached }.mapValues { $0 == "suspended" ? "background" : $0 }
    }

    private func check(_ daemon: Daemon, _ round: String) throws {
        try daemon.waitUntilItAnswers()
        var heard: [String: String] = [:]
        var said: [String: String] = [:]
        var state = ""
        defer {
            if attached(said) != heard || state.isEmpty {
                print("\(round): \(state); heard \(heard), said \(said)\n\(daemon.log.suffix(6_000))")
            }
        }
        try daemon.eventually("\(round): torpord and the app agree") {
            let summary = try daemon.summary("desk")
            state =
                "\(summary.state) \(summary.transition ?? "-"), run \(summary.incarnation ?? 0), pid \(summary.pid ?? 0)"
            guard summary.transition == nil, summary.nextRestartMilliseconds == nil else { return false }
            let before = try InnerSceneTests.states(daemon)
            heard = try Self.walk(daemon.records("desk"))
            said = try InnerSceneTests.states(daemon)
            // One that does not run has none; what sleeps is in the background.
            if summary.pid == nil { heard = [:] }
            return before == said && attached(said) == heard
        }
        let live = said.values.count { $0 != SceneInfo.unattached }
        #expect(live <= 3, "\(round): \(said)")
        try daemon.eventually("\(round): the app follows its scenes") {
            let isInFront = try InnerSceneTests.states(daemon).values.contains { $0 == "active" }
            return try (daemon.summary("desk").state == "active") == isInFront
        }
        // What works for a scene is there while that is, and nowhere else.
        guard let cgroup = try daemon.status("desk").cgroup else { return }
        var workers: [String: Int] = [:]
        var isSo = false
        defer {
            if !isSo {
                let all = daemon.processes(of: "desk").map { "\($0) \((try? ProcFS.cgroup($0)) ?? nil ?? "-")" }
                print("\(round): workers \(workers), said \(said), processes \(all)")
            }
        }
        try daemon.eventually("\(round): each scene has its worker, and nobody else has") {
            let groups = Cgroup.children(cgroup).map { ($0, (try? Cgroup.procs($0).count) ?? 0) }
            workers = Dictionary(groups.map { (String($0.0.dropFirst(cgroup.count + 2)), $0.1) }) { $1 }
            let count = daemon.processes(of: "desk").count
            // The app may have been killed before torpord had heard of it.
            said = try InnerSceneTests.states(daemon)
            heard = attached(said)
            let mains = try daemon.summary("desk").pid == nil ? 0 : 1
            isSo = workers == heard.mapValues { _ in 1 } && count == workers.count + mains
            return isSo
        }
    }
}
