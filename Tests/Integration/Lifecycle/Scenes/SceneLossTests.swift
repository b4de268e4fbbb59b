// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// torpord, its keeper or both are killed while scenes are opened, make place, are disconnected and discarded: what was
/// acknowledged is so, and what was asked for can be asked for again.
@Suite("Scenes under kills") struct SceneLossTests {
    private static let names = (1...6).map { "s\($0)" }

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

    /// What is known of one.
    private enum Fate: Equatable {
        /// Opened, and answered so often at least.
        case there(answers: Int)
        case gone
        /// Something was asked for and not acknowledged.
        case unknown
    }

    @Test("Whenever the kill comes, nothing that was acknowledged is lost, and nothing discarded comes back")
    func kills() throws {
        let rounds = Int(Self.number("TORPOR_SCENE_ROUNDS") ?? 20)
        let seed = Self.number("TORPOR_SCENE_SEED") ?? UInt64.random(in: 1...999_999)
        print("scenes: TORPOR_SCENE_SEED=\(seed), \(rounds) rounds")
        var dice = Dice(state: seed)
        try SceneTests.with("{ max_live = 3 }") { daemon throws in
            var fates: [String: Fate] = [:]
            for name in Self.names { fates[name] = .gone }
            for round in 0..<rounds {
                let name = Self.names.randomElement(using: &dice) ?? "s1"
                let app = "code@" + name
                let loss = [Loss.killed, .keeper, .both].randomElement(using: &dice) ?? .killed
                let path = daemon.socket
                let what = Int.random(in: 0..<4, using: &dice)
                let delay = UInt32.random(in: 0...15_000, using: &dice)
                let known = fates[name] ?? .gone
                // It is under way when the kill comes, or done; which of both nobody knows.
                let request: ManagerRequest? =
                    switch what {
                    case 0, 1:
                        .openScene(Self.opening(name))
                    case 2 where known != .gone: .verb(VerbRequest(verb: .disconnect, apps: [app]))
                    case 3 where known != .gone: .verb(VerbRequest(verb: .discard, apps: [app]))
                    default: nil
                    }
                let worker = Thread { if let request { _ = try? VarlinkCaller.call(path, request) } }
                worker.start()
                usleep(delay)
                try daemon.lose(loss)
                switch what {
                case 0, 1: if known == .gone { fates[name] = .unknown }
                case 3: if known != .gone { fates[name] = .unknown }
                default: break
                }
                try check(daemon, &fates, "round \(round), \(loss) after \(delay) µs of \(what) \(name)")
                // The person asks again.
                if what < 2 || Bool.random(using: &dice) {
                    try daemon.openScene(name) { $0 = Self.opening(name) }
                    let answer = try daemon.answer(of: name).split(separator: " ")
                    let count = Int(answer.last ?? "") ?? 0
                    if case .there(let before) = fates[name] ?? .gone {
                        #expect(count > before, "round \(round): \(answer)")
                    }
                    fates[name] = .there(answers: count)
                } else if what == 3, try daemon.scenes().scenes.contains(where: { $0.name == name }) {
                    try daemon.done(.discard, app)
                    fates[name] = .gone
                    #expect(daemon.traces(of: app).isEmpty, "round \(round)")
                }
            }
        }
    }

    private static func opening(_ name: String) -> OpenSceneRequest {
        var request = OpenSceneRequest(template: "code", name: name)
        (request.session, request.background) = (["is": .string(name)], true)
        return request
    }

    private func check(_ daemon: Daemon, _ fates: inout [String: Fate], _ round: String) throws {
        try daemon.waitUntilItAnswers()
        let scenes = try daemon.scenes().scenes
        for (name, fate) in fates {
            let found = scenes.first { $0.name == name }
            switch fate {
            case .there: #expect(found?.session == ["is": .string(name)], "\(round): \(name) is \(found as Any)")
            case .gone: #expect(found == nil, "\(round): \(name) is there")
            case .unknown: fates[name] = found == nil ? .gone : .there(answers: 0)
            }
            if found == nil {
                try daemon.eventually("\(round): nothing is left of \(name)") {
                    daemon.traces(of: "code@" + name).isEmpty && daemon.processes(of: "code@" + name).isEmpty
                }
            }
        }
        try daemon.eventually("\(round): three run at most, each once") {
            let counts = Self.names.map { daemon.processes(of: "code@" + $0).count }
            return counts.allSatisfy { $0 <= 1 } && counts.reduce(0, +) <= 3
        }
    }
}

/// A call from another thread.
private enum VarlinkCaller {
    static func call(_ path: String, _ request: ManagerRequest) throws {
        _ = try VarlinkClient(path: path).call(request.call, timeoutMilliseconds: 20_000)
    }
}
