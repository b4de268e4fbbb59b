// SPDX-License-Identifier: Apache-2.0

package import CommandLinePages
import Linux
package import Policies
import TorporPolicyABI

/// The result of one check of a policy.
package struct ConformanceResult {
    package enum Outcome: String {
        case ok
        case warning
        case failed
    }

    package let name: String
    package let outcome: Outcome
    /// The result as a sentence.
    package let message: String
}

/// Checks what a policy must be able to do before a supervisor can rely on it, one check after the other, each in its
/// own process.
package final class Conformance {
    package let tool: PolicyTool
    /// How many questions the check of memory asks.
    package let questions: Int
    /// torpord's deadline for an answer.
    package let deadline: Duration
    package private(set) var results: [ConformanceResult] = []
    /// The policy's description of itself; nil if it cannot be started.
    package private(set) var description: PolicyDescription?
    /// Called with each result of the check.
    package var onResult: (ConformanceResult) -> Void = { _ in }
    /// Called with a text about the progress, for a line that the next text overwrites.
    package var onProgress: (String) -> Void = { _ in }

    /// Called with each line that the policy writes to standard error.
    package var onLine: (String) -> Void = { _ in }

    package var library: TrustedLibrary!
    var judge = AdviceJudge(wants: 0)
    /// The values that the checks have measured, such as the median time of an answer, for output that programs read.
    package var measured: [(name: String, value: Double)] = []

    /// How long to wait for an answer. This is longer than the deadline, to distinguish a late answer from a missing
    /// one. After the first missing answer, it is only as long as the deadline.
    var patience: Duration { isSilent ? deadline : max(deadline * 20, .seconds(2)) }
    private var isSilent = false

    package init(_ tool: PolicyTool, questions: Int, deadline: Duration) {
        self.tool = tool
        self.questions = questions
        self.deadline = deadline
    }

    /// Whether nothing failed.
    package var isPassed: Bool { !results.contains { $0.outcome == .failed } }

    package func run() throws(Failure) {
        guard openLibrary(), let description = load() else { return }
        self.description = description
        judge = AdviceJudge(wants: description.events)
        describe(description)
        refuseUnknownOptions(description)
        do throws(Errno) {
            // The two processes' answers are compared last: until then time passes, so that a policy that depends on
            // the clock gives different answers.
            let first = try answers(description)
            for absurd in AbsurdView.all { try show(absurd, description) }
            try time(description)
            try memory(description)
            try compare(first, description)
        } catch {
            throw Failure(status: .failed, message: "there is no memory for a view to show to the policy: \(error)")
        }
        reportAdvice()
    }

    func report(_ name: String, _ outcome: ConformanceResult.Outcome, _ message: String) {
        let result = ConformanceResult(name: name, outcome: outcome, message: message)
        results.append(result)
        onResult(result)
    }

    /// Starts the policy with this view.
    func start(_ view: PolicyView) throws(PolicyFailure) -> HostProcess {
        let host = try tool.start(library, view)
        host.onLine = onLine
        return host
    }

    /// Asks a question, and checks the advice.
    func ask(
        _ host: HostProcess,
        _ events: [torpor_policy_event],
        _ view: PolicyView
    ) throws(PolicyFailure) -> PolicyAnswer {
        let answer = try answer(host, events)
        judge.judge(answer, to: events, in: view)
        return answer
    }

    /// Asks a question.
    func answer(_ host: HostProcess, _ events: [torpor_policy_event]) throws(PolicyFailure) -> PolicyAnswer {
        do throws(PolicyFailure) {
            return try host.ask(events, deadline: patience)
        } catch {
            if case .late = error { isSilent = true }
            throw error
        }
    }

    // MARK: Before it is asked anything

    private func openLibrary() -> Bool {
        do throws(PolicyFailure) {
            library = try LibraryTrust.open(tool.path)
            report("trust", .ok, "\(library.path) can be changed only by root and you")
            return true
        } catch {
            let refusal = error
            do throws(PolicyFailure) {
                library = try LibraryTrust.openAnyway(tool.path)
                report("trust", .warning, "torpord would not load it from here: \(refusal)")
                return true
            } catch {
                report("loading", .failed, "\(error)")
                return false
            }
        }
    }

    private func load() -> PolicyDescription? {
        do throws(PolicyFailure) {
            guard let view = try? PolicyView() else { throw .refused("there is no memory for a view") }
            let host = try start(view)
            let description = host.description
            host.close()
            let failure = Self.failure(of: host)
            let names: [(PolicyConfinement, String)] = [
                (.files, "landlock"), (.systemCalls, "seccomp"), (.user, "another user"),
            ]
            let bounds = names.filter { description.confinement.contains($0.0) }.map(\.1)
            report(
                "loading",
                .ok,
                "\(description.name) \(description.version), ABI \(description.abi), confined by "
                    + (bounds.isEmpty ? "nothing: this machine cannot confine it" : bounds.joined(separator: ", "))
            )
            if case .ended(.exited(0), _) = failure {
                report("ending", .ok, "it is destroyed without an error")
            } else {
                report("ending", .failed, "when it is destroyed, \(failure)")
            }
            return description
        } catch {
            var message = "\(error)"
            // If the error does not name the library, the policy itself complains about its options: add how to set
            // them.
            if case .refused = error, !message.contains(library.path) { message += " (set its options with --option)" }
            report("loading", .failed, message + Self.remedy(message))
            return nil
        }
    }

    /// Advice for a library that cannot be loaded; empty if the error message says what to do. Only release builds of
    /// a package made by ‘torpor policy new’ contain Swift's own libraries.
    static func remedy(_ message: String) -> String {
        message.contains("libswift") && message.contains("cannot open shared object")
            ? "; a debug build needs Swift on this machine: build it with ‘swift build -c release’" : ""
    }

    private static func failure(of host: HostProcess) -> PolicyFailure {
        var event = torpor_policy_event()
        event.kind = TORPOR_EVENT_TIMER.rawValue
        do throws(PolicyFailure) {
            _ = try host.ask([event], deadline: .seconds(1))
            return .nonsense("an answer after its end")
        } catch {
            return error
        }
    }

    private func describe(_ description: PolicyDescription) {
        var faults: [String] = []
        var remarks: [String] = []
        let known = UInt64(1) << UInt64(PolicyWords.events.count) - 1
        if description.events & known == 0 {
            faults.append("it is asked about nothing: set TORPOR_EVENT_BIT in events")
        }
        let alien = description.events & ~known
        if alien != 0, description.abi <= TORPOR_POLICY_ABI {
            remarks.append("its events have unknown bits (0x\(String(alien, radix: 16)))")
        }
        // The bits of TORPOR_NEEDS_MEMORY, _CPU, _CONNECTIONS and _SYSTEM.
        let needs: UInt64 = 0b1111
        if description.needs & ~needs != 0, description.abi <= TORPOR_POLICY_ABI {
            remarks.append(
                "its needs have unknown bits (0x\(String(description.needs & ~needs, radix: 16)))"
            )
        }
        if description.abi > TORPOR_POLICY_ABI {
            remarks.append("it was compiled for ABI \(description.abi), and this Torpor has \(TORPOR_POLICY_ABI)")
        }
        if description.version.isEmpty { remarks.append("it has no version") }
        if description.summary.isEmpty { remarks.append("it has no summary: a sentence that says what it does") }
        var keys: Set<String> = []
        for option in description.options {
            if option.key.isEmpty || option.type.isEmpty || option.meaning.isEmpty {
                faults.append("the option “\(option.key)” is described without key, type or meaning")
            }
            if !keys.insert(option.key).inserted { faults.append("the option \(option.key) is described twice") }
        }
        let names = description.options.map(\.key)
        let events = PolicyWorld.kinds(of: description.events).map(PolicyWords.event).joined(separator: ", ")
        let text = names.isEmpty ? "no options" : "options \(names.joined(separator: ", "))"
        if !faults.isEmpty {
            report("description", .failed, faults.joined(separator: "; "))
        } else if !remarks.isEmpty {
            report("description", .warning, remarks.joined(separator: "; "))
        } else {
            report("description", .ok, "asked about \(events); \(text)")
        }
    }

    private func refuseUnknownOptions(_ description: PolicyDescription) {
        var other = tool.options
        other.append(PolicyOption(key: "torpor_check_unknown", value: .integer(1)))
        do throws(PolicyFailure) {
            guard let view = try? PolicyView() else { throw .refused("there is no memory for a view") }
            let host = try HostProcess(
                library: library,
                options: other,
                view: view.descriptor,
                viewSize: view.size,
                settings: tool.settings
            )
            host.close()
            report("options", .warning, "it accepts unknown options: a typo goes unnoticed")
        } catch {
            guard case .refused(let sentence) = error else {
                return report("options", .failed, "given an unknown option, \(error)")
            }
            guard sentence.contains("torpor_check_unknown") else {
                return report(
                    "options",
                    .warning,
                    "it refuses unknown options without naming them: \(sentence)"
                )
            }
            report("options", .ok, "unknown ones are refused by name")
        }
    }

    private func reportAdvice() {
        func text(_ list: [AdviceJudge.Finding]) -> String { list.map(\.text).joined(separator: "; ") }
        if !judge.faults.isEmpty {
            report("advice", .failed, "some of \(judge.pieces) pieces make no sense: \(text(judge.faults))")
        } else if !judge.remarks.isEmpty {
            report("advice", .warning, text(judge.remarks))
        } else if judge.pieces == 0 {
            report(
                "advice",
                .ok,
                "none was given: no question gave it a reason to (set options with --option, or try it with ‘torpor policy "
                    + "simulate’)"
            )
        } else {
            report("advice", .ok, "\(judge.pieces) pieces, and all of them make sense")
        }
    }
}
