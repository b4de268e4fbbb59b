// SPDX-License-Identifier: Apache-2.0

import Policies

/// Finds, for each decision of a simulation, the recorded decision that equals it.
///
/// Two decisions are equal if they have the same effect and are less than a second apart. Their times may differ
/// because a recording shows less exactly than a simulation when a policy was asked again.
package struct SimulationComparison {
    /// All decisions to show, in order.
    package private(set) var decisions: [SimulatedDecision]
    private var recorded: [RecordedDecision]
    /// For each change, the indices of the recorded decisions with that change, in order.
    private var byChange: [SimulatedChange: [Int]] = [:]

    private static let window: Int64 = 1_000_000

    package init(_ simulation: Simulation) {
        decisions = simulation.decisions
        recorded = simulation.recorded
        for (index, decision) in recorded.enumerated() { byChange[decision.change, default: []].append(index) }
        decisions = decisions.map { compared($0) }
        // The simulated policy may give advice a moment later than the recorded policy. Its advice then changes
        // nothing, because the recorded advice has already had the effect.
        for var decision in simulation.idle {
            guard let match = match(for: decision, onlyTaken: true) else { continue }
            recorded[match].isMatched = true
            decision.difference = .same
            decision.then = recorded[match].policy
            decisions.append(decision)
        }
        addMissing()
        sort()
    }

    private mutating func compared(_ decision: SimulatedDecision) -> SimulatedDecision {
        var decision = decision
        guard let match = match(for: decision) else {
            if decision.difference == .new { decision.note = other(than: decision) }
            return decision
        }
        recorded[match].isMatched = true
        let found = recorded[match]
        decision.then = found.policy
        switch found.outcome {
        case "taken":
            decision.difference = .same
            decision.note = nil
        case "idle":
            if decision.difference == .new { decision.note = "\(found.policy) advised it then without effect" }
        case "told":
            if decision.difference == .new { decision.note = "\(found.policy) only advised it then" }
        default:
            decision.difference = .refused
            let why =
                found.outcome == "damped" ? "it had reversed its advice too often" : found.why ?? "against the rules"
            decision.note = "\(found.policy) advised it then and was refused: \(why)"
        }
        return decision
    }

    /// The index of the recorded decision that equals `decision` and is near enough in time: one that was followed if
    /// possible, otherwise the nearest.
    private func match(for decision: SimulatedDecision, onlyTaken: Bool = false) -> Int? {
        var best: (index: Int, rank: (Int, Int64))?
        for index in byChange[decision.change] ?? [] {
            let candidate = recorded[index]
            let distance = abs(candidate.at - decision.at)
            guard !candidate.isMatched, distance <= Self.window, candidate.isTaken || !onlyTaken else { continue }
            let rank = (candidate.isTaken ? 0 : 1, distance)
            if best.map({ rank < $0.rank }) ?? true { best = (index, rank) }
        }
        return best?.index
    }

    /// A text about another recorded decision in the same matter at about the same time; nil if there is none.
    private func other(than decision: SimulatedDecision) -> String? {
        let found = recorded.first {
            $0.isTaken && abs($0.at - decision.at) <= Self.window && $0.change.matter == decision.change.matter
                && $0.change != decision.change
        }
        return found.map { "then \($0.policy) decided: \($0.change.text)" }
    }

    private mutating func addMissing() {
        for found in recorded where found.isTaken && !found.isMatched {
            decisions.append(
                SimulatedDecision(
                    at: found.at,
                    realtime: found.realtime,
                    line: found.line,
                    change: found.change,
                    reason: found.reason,
                    difference: .missing,
                    then: found.policy
                )
            )
        }
    }

    private mutating func sort() {
        let order = decisions.enumerated().sorted { one, other in
            (one.element.at, one.element.line, one.offset) < (other.element.at, other.element.line, other.offset)
        }
        decisions = order.map(\.element)
    }

    package func count(_ difference: SimulatedDecision.Difference) -> Int {
        decisions.count { $0.difference == difference }
    }
}
