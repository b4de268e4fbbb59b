// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// Torpord, the keeper or both are taken away at random instants, again and again, while fifty apps live, crash, write
/// and are told to change state. Then each app is where it was asked to be, exactly once, every line that it wrote
/// stands in its log exactly once, and nobody else has felt a signal. What counts is /proc and what the apps
/// themselves wrote down.
///
/// `TORPOR_CHAOS_SEED` repeats the choices of a run, `TORPOR_CHAOS_FIRST` begins with a later round of it,
/// `TORPOR_CHAOS_ROUNDS` says how many (`make chaos ROUNDS=300`).
@Suite("Chaos", .serialized) struct ChaosTests {
    private static func number(_ name: String) -> UInt64? {
        ThisProcess.environment(name).flatMap { UInt64($0) }
    }

    private func run(
        _ what: String,
        rounds: Int,
        _ weather: Plan.Weather,
        environment: [String: String] = [:]
    ) throws {
        let seed = Self.number("TORPOR_CHAOS_SEED") ?? UInt64.random(in: 1...999_999)
        let first = Int(Self.number("TORPOR_CHAOS_FIRST") ?? 0)
        print("chaos, \(what): TORPOR_CHAOS_SEED=\(seed), \(rounds) rounds from \(first) on")
        let began = Clock.monotonic()
        let storm = try Storm(seed: seed, environment: environment)
        var round = first
        do {
            try storm.begin()
            while round < first + rounds {
                try storm.play(round, weather)
                round += 1
            }
            try storm.finish()
        } catch {
            let apps = storm.fleet.apps.map(\.name).filter { "\(error)".contains($0) }
            let events = apps.flatMap { (try? storm.daemon.events($0).suffix(30)) ?? [] }
                .map { "  \($0.at % 1_000_000_000) \($0.app ?? "") \($0.incarnation ?? 0) \($0.kind) \($0.text)" }
            let others = storm.fleet.apps.map(\.name).filter { !apps.contains($0) }.map { "torpord: \($0)" }
            let log = storm.daemon.log.split(separator: "\n").filter { line in
                !others.contains { line.hasPrefix($0 + " ") || line.hasPrefix($0 + ":") }
            }
            // The folder is gone with the test.
            let kept = "/tmp/torpor-chaos-\(seed).log"
            try? File.write(kept, storm.daemon.log)
            Issue.record(
                """
                \(what), round \(round) of TORPOR_CHAOS_SEED=\(seed): \(error)
                what was done to them in the rounds before:
                \(storm.past.filter { line in apps.contains { line.contains($0) } }.suffix(40).joined(separator: "\n"))
                what was done in this round:
                \(storm.history.joined(separator: "\n"))
                events:
                \(events.joined(separator: "\n"))
                log of torpord, in full in \(kept):
                \(log.suffix(40).joined(separator: "\n"))
                """
            )
        }
        print("\(storm.tally)\nin \(Clock.monotonic() - began)")
    }

    private func kills() -> Plan.Weather {
        var weather = Plan.Weather()
        let weights = [(Plan.Victim.torpord, weight: 76), (.keeper, weight: 12), (.both, weight: 12)]
        let chosen = ThisProcess.environment("TORPOR_CHAOS_VICTIMS").flatMap { $0.isEmpty ? nil : $0 }
        weather.kills = weights.filter { chosen?.contains($0.0.rawValue) ?? true }
        weather.applies = true
        return weather
    }

    @Test("Killed at random instants, torpord, its keeper or both: nothing is lost and nothing doubled")
    func killed() throws {
        try run("kills", rounds: Int(Self.number("TORPOR_CHAOS_ROUNDS") ?? 12), kills())
    }

    @Test("The same without cgroups, where apps are followed by session, descent and environment")
    func killedWithoutCgroups() throws {
        // An ordinary user has none anyway; root hides them.
        let rounds = Int(Self.number("TORPOR_CHAOS_ROUNDS") ?? 10)
        try run("kills without cgroups", rounds: rounds, kills(), environment: ["TPNOCGROUPS": "1"])
    }

    @Test("Replaced in place, again and again: nothing is lost and nothing doubled")
    func upgraded() throws {
        var weather = Plan.Weather()
        weather.upgrades = true
        try run("upgrades", rounds: min(50, Int(Self.number("TORPOR_CHAOS_ROUNDS") ?? 8)), weather)
    }
}
