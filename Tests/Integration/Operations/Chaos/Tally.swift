// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Linux
import TorporAPI

/// What a run did and found, in numbers.
struct Tally: CustomStringConvertible {
    var rounds = 0
    var asked = 0
    var skipped = 0
    var refused = 0
    /// Requests without an answer, by what became of them.
    var broken: [String: Int] = [:]
    var crashes = 0
    var misses = 0
    /// The keeper was killed right after torpord.
    var bothInTurn = 0
    var upgrades = 0
    var upgradesDone = 0
    var keeperUpgrades = 0
    var applies = 0
    var kills: [Plan.Victim: Int] = [:]
    /// How many requests were unanswered at the instant of a kill.
    var killsDuring: [Verb: Int] = [:]
    /// Answers that should not have come.
    var strange: [String] = []
    var lines = 0
    var incarnations = 0
    var lost: UInt64 = 0
    var losers = 0
    var storedBack: UInt64 = 0
    var reused = 0
    var refusedPids = 0
    private var phases: [String: Duration] = [:]
    private var phaseBegan = Clock.monotonic()

    /// What was done since the last phase ended was this.
    mutating func phase(_ name: String) {
        let now = Clock.monotonic()
        phases[name, default: .zero] += now - phaseBegan
        phaseBegan = now
    }

    mutating func take(_ logs: Logs, _ decoys: Decoys) {
        lines = logs.lines
        incarnations = logs.incarnations
        lost = logs.lost
        losers = logs.losers
        storedBack = logs.storedBack
        reused = decoys.reused
        refusedPids = decoys.refused
    }

    var description: String {
        let during = killsDuring.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key.rawValue) \($0.value)" }
        let times = phases.sorted { $0.key < $1.key }
            .map { "\($0.key) \($0.value.microseconds / 1_000 / Int64(max(1, rounds)))" }
        return """
            \(rounds) rounds: torpord killed \(kills[.torpord] ?? 0) times (\(misses) times nobody was there), the keeper \
            \(kills[.keeper] ?? 0), both \(kills[.both] ?? 0) and \(bothInTurn) in turn; \(upgrades) upgrades, \(upgradesDone) undisturbed, \(keeperUpgrades) of those of the keeper too, \(applies) times applied
            \(asked) requests, \(refused) refused, \(broken.values.reduce(0, +)) cut off \(broken), \(skipped) not made since one was open; \
            open at the instant of a kill: \(during.joined(separator: ", "))
            \(incarnations) incarnations, \(crashes) killed from outside, \(lines) lines; \
            \(lost) lines of \(losers) processes lost with keeper and torpord
            stored descriptors back \(storedBack) times; pids given to strangers \(reused) times \
            (\(refusedPids) times not to be had)
            milliseconds of a round: \(times.joined(separator: ", "))
            """
    }
}
