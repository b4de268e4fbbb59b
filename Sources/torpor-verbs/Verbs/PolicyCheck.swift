// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import Policies
import PolicyTools
import Varlink

struct PolicyCheck: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Tests whether a policy is reliable.",
        discussion: """
            Runs the policy as torpord does, in processes of its own, and tests whether it gives the same answers to \
            the same questions, how long they take, whether its memory grows, whether it survives views that make no \
            sense, and whether its advice makes sense. What the policy writes to standard error is shown there, the \
            first 100 lines. No supervisor is needed.
            """
    )
    .examples(
        "torpor policy check ./libQuietNightsPolicy.so",
        "torpor policy check ./libQuietNightsPolicy.so --option keep=web"
    )

    @Argument(help: "The policy's library.", completion: .file(extensions: ["so"]))
    var library: String

    @Option(help: ArgumentHelp("The number of questions in the memory check.", valueName: "number"))
    package var questions = 1_000_000

    @Option(help: ArgumentHelp("The deadline for each answer.", valueName: "duration"))
    var deadline = TimeLimit(argument: "50ms")!
    @OptionGroup package var tool: PolicyToolOptions

    func validate() throws {
        guard (100...1_000_000_000).contains(questions) else {
            throw ValidationError("--questions wants a number from 100 to 1000000000")
        }
        guard deadline.milliseconds > 0 else { throw ValidationError("--deadline wants a duration such as 50ms") }
    }

    package func run() throws {
        let conformance = Conformance(
            try PolicyTool(library: library, tool),
            questions: questions,
            deadline: .milliseconds(deadline.milliseconds)
        )
        let progress = Progress(isShown: !tool.json)
        conformance.onProgress = { progress.show($0) }
        conformance.onResult = { result in
            progress.clear()
            if !tool.json { Output.page(Self.line(result)) }
        }
        var lines = 0
        conformance.onLine = { line in
            lines += 1
            guard lines <= Self.mostLines else { return }
            progress.clear()
            let text = lines < Self.mostLines ? Terminal.harmless(line) : "(it writes more, which is not shown)"
            try? ThisProcess.write("policy: \(text)\n", to: 2)
        }
        try conformance.run()
        progress.clear()
        if tool.json { Output.document(Self.json(conformance)) }
        let failed = conformance.results.filter { $0.outcome == .failed }
        guard failed.isEmpty else {
            let all = conformance.results.count
            throw Failure(
                status: .failed,
                message: "\(library): \(failed.count) of \(all) checks failed: "
                    + failed.map(\.name).joined(separator: ", ")
            )
        }
    }

    /// The maximum number of lines of the policy that are shown: it is asked a million questions.
    private static let mostLines = 100

    private static func line(_ result: ConformanceResult) -> String {
        let head =
            switch result.outcome {
            case .ok: Terminal.coloured("ok      ", .green)
            case .warning: Terminal.coloured("warning ", .yellow)
            case .failed: Terminal.coloured("FAILED  ", .red)
            }
        return "\(head)\(result.name): \(Terminal.harmless(result.message))\n"
    }

    private static func json(_ conformance: Conformance) -> JSON {
        let description = conformance.description
        return [
            "ok": .bool(conformance.isPassed), "library": .string(conformance.tool.path),
            "name": .optional(description?.name), "version": .optional(description?.version),
            "summary": .optional(description?.summary), "abi": .optional(description.map { Int64($0.abi) }),
            "options": .array(
                (description?.options ?? []).map {
                    [
                        "key": .string($0.key), "type": .string($0.type), "default": .string($0.defaultValue),
                        "meaning": .string($0.meaning),
                    ]
                }
            ),
            "checks": .array(
                conformance.results.map {
                    [
                        "name": .string($0.name), "result": .string($0.outcome.rawValue),
                        "message": .string($0.message),
                    ]
                }
            ),
            "measured": .object(
                JSONObject(
                    members: conformance.measured.map { JSONObject.Member(name: $0.name, value: .double($0.value)) }
                )
            ),
        ]
    }
}
