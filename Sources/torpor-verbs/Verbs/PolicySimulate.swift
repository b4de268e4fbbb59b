// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import Policies
import PolicyTools
import TorporAPI
import Varlink

struct PolicySimulate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate",
        abstract: "Shows what a policy would have decided in a recording.",
        discussion: """
            Replays a recording of ‘torpor events --record’ and compares what the policy decides with what was \
            decided then: the same, something new, or (missing) nothing where something was decided. Advice is not \
            carried out: apps do what they did. The same recording and policy give the same output each time.
            """
    )
    .examples(
        "torpor policy simulate --trace day.trace --policy ./libQuietNightsPolicy.so"
    )

    @Option(help: ArgumentHelp("The recording to replay.", valueName: "file"), completion: .file())
    var trace: String

    @Option(help: ArgumentHelp("The policy's library.", valueName: "lib"), completion: .file(extensions: ["so"]))
    var policy: String
    @OptionGroup var times: TimeOptions
    @OptionGroup package var tool: PolicyToolOptions

    package func run() throws {
        let reader = try TraceReader(path: trace)
        let simulation = try Simulation(try PolicyTool(library: policy, tool), reader)
        try simulation.run()
        let comparison = SimulationComparison(simulation)
        if !reader.unknownFields.isEmpty {
            let fields = reader.unknownFields.sorted().joined(separator: ", ")
            Complaint.say("\(trace) has fields that this version does not know: \(fields)", .warning)
        }
        if tool.json {
            Output.document(json(simulation, comparison))
        } else {
            Output.page(text(simulation, comparison))
        }
    }

    private func text(_ simulation: Simulation, _ comparison: SimulationComparison) -> String {
        let totals = simulation.totals
        let description = simulation.description
        let policies = totals.policies.map { $0.mode == "advise" ? "\($0.name) (advising)" : $0.name }
        let first = totals.firstTime ?? 0
        var text = "\(trace): \(Times.timestamp(first)), "
        text += "\(Times.duration(seconds: Double(totals.lastTime - first) / 1_000_000)), "
        text += "\(Self.count(totals.events, "event")), \(Self.count(totals.apps.count, "app")), "
        text += policies.isEmpty ? "without policies" : "with \(policies.joined(separator: ", "))"
        if totals.interruptions > 0 { text += ", interrupted \(Self.count(totals.interruptions, "time"))" }
        text += "\n\(description.name) \(description.version): \(description.summary)\n\n"
        for decision in comparison.decisions { text += Self.line(decision) }
        if !comparison.decisions.isEmpty { text += "\n" }
        text += "\(Self.count(totals.questions, "question")): \(comparison.count(.same)) the same, "
        text += "\(comparison.count(.new)) new, \(comparison.count(.missing)) missing"
        let refused = comparison.count(.refused)
        if refused > 0 { text += ", \(refused) that would be refused" }
        if totals.repeated > 0 { text += "; \(totals.repeated) repeated" }
        return text + "\n"
    }

    private static func line(_ decision: SimulatedDecision) -> String {
        let colour: Terminal.Colour? =
            switch decision.difference {
            case .same: .dim
            case .new: .green
            case .missing: .yellow
            case .refused: .red
            }
        let word = decision.difference.rawValue
        var text = Terminal.coloured(Times.timestamp(decision.realtime), .dim) + " "
        text += Terminal.coloured(word, colour) + String(repeating: " ", count: 8 - word.count)
        text += Terminal.harmless(decision.change.text)
        if decision.difference == .missing, let then = decision.then { text += " (\(Terminal.harmless(then)))" }
        if !decision.reason.isEmpty { text += ": \(Terminal.harmless(decision.reason))" }
        if let note = decision.note { text += " [\(Terminal.harmless(note))]" }
        return text + "\n"
    }

    private static func count(_ number: Int, _ word: String) -> String { "\(number) \(word)\(number == 1 ? "" : "s")" }

    private func json(_ simulation: Simulation, _ comparison: SimulationComparison) -> JSON {
        let totals = simulation.totals
        let description = simulation.description
        return [
            "trace": .string(trace), "library": .string(policy),
            "policy": ["name": .string(description.name), "version": .string(description.version)],
            "recorded": .array(totals.policies.map { ["name": .string($0.name), "mode": .string($0.mode)] }),
            "from": .optional(totals.firstTime), "to": .int(totals.lastTime),
            "decisions": .array(comparison.decisions.map(Self.json)),
            "summary": [
                "rounds": .int(Int64(totals.rounds)), "events": .int(Int64(totals.events)),
                "apps": .int(Int64(totals.apps.count)), "interruptions": .int(Int64(totals.interruptions)),
                "questions": .int(Int64(totals.questions)), "asks_again": .int(Int64(totals.asksAgain)),
                "repeated": .int(Int64(totals.repeated)), "same": .int(Int64(comparison.count(.same))),
                "new": .int(Int64(comparison.count(.new))), "missing": .int(Int64(comparison.count(.missing))),
                "refused": .int(Int64(comparison.count(.refused))),
            ],
        ]
    }

    private static func json(_ decision: SimulatedDecision) -> JSON {
        [
            "at": .int(decision.at), "realtime": .int(decision.realtime), "line": .int(Int64(decision.line)),
            "difference": .string(decision.difference.rawValue), "kind": .string(decision.change.kind),
            "apps": .strings(decision.change.apps), "text": .string(decision.change.text),
            "reason": .string(decision.reason), "then": .optional(decision.then), "note": .optional(decision.note),
        ]
    }
}
