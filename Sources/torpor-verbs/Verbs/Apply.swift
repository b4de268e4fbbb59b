// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct Apply: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apply",
        abstract: "Reloads the configuration; touches only apps that changed.",
        discussion: """
            torpord launches new apps and terminates removed ones. Keys that cannot change while an app runs take \
            effect at its next launch, or now with --restart. An invalid configuration changes nothing. A SIGHUP to \
            torpord does the same without waiting.

            The configuration is applied as a whole: APP limits what --restart restarts, and what --diff shows.
            """
    )
    .examples(
        "torpor apply --diff",
        "torpor apply",
        "torpor apply --restart 'web@*'"
    )

    @Flag(help: "Only show what would happen, and why.") var diff = false
    @Flag(help: "Restart apps that run with old values, and launch changed ones that went down.") var restart = false
    @Flag(help: "Apply even a configuration without apps, which removes all apps.") var force = false
    @Argument(
        help: ArgumentHelp("Names, globs or tag:NAME, with --restart or --diff.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.appsAndTags(words) }
    )
    package var apps: [String] = []
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard apps.isEmpty || diff || restart else {
            throw ValidationError("the configuration is applied as a whole: name apps only with --restart or --diff")
        }
    }

    package func run() throws {
        var request = ApplyRequest()
        request.diff = diff
        request.restart = restart
        request.force = force
        request.apps = apps
        request.wait = !wait.noWait
        request.timeoutMilliseconds = wait.timeout?.milliseconds
        let manager = try Manager(options)
        let showsProgress = !options.json && ThisProcess.isTerminal(2)
        let waiting = Waiting(
            for: diff ? "comparing the configuration" : "applying the configuration",
            isShown: showsProgress
        )
        let late = VerbRunner.lateSteps(saysSteps: !options.json && !diff, showsProgress)
        defer {
            waiting.end()
            late?.end()
        }
        let limit = request.timeoutMilliseconds.map { Duration.milliseconds(min($0, 1 << 40)) + .seconds(5) }
        let reply = try manager.callOnce(
            .apply(request),
            deadline: limit.map { Clock.monotonic() + $0 },
            onError: invalid
        ) { progress in
            guard !options.json, let step = try? VerbProgress(json: progress), !step.text.isEmpty else { return }
            guard showsProgress || VerbRunner.isSaidAtOnce(step) else { return VerbRunner.note(step, in: late) }
            late?.note(step.app, nil)
            Complaint.say(VerbRunner.line(step), .remark)
        }
        waiting.end()
        late?.end()
        guard let reply else {
            throw Failure(
                status: .failed,
                message: "the supervisor was replaced during this: ‘torpor apply --diff’ shows whether anything is left"
            )
        }
        let applied = try Manager.read { () throws(FieldError) in try ApplyReply(json: reply) }
        for warning in applied.warnings { Complaint.say(Self.text(warning), .remark) }
        if options.json { Output.document(reply) } else { show(applied) }
        let asksOthers =
            !diff && applied.supervisor.contains { $0.key.hasPrefix("policies") || $0.key == "supervisor.policies" }
        let refused = asksOthers ? try Self.unusedPolicies(manager) : []
        for policy in refused {
            let reason = policy.lastFailure ?? "it could not be loaded"
            Complaint.say("the policy \(policy.name) is not used: \(Terminal.harmless(reason))")
        }
        guard applied.apps.allSatisfy(\.ok), refused.isEmpty else { throw Failure(status: .failed, message: nil) }
    }

    /// The policies that the supervisor does not use. Waits until all policies are loaded or refused, but at most 15 s,
    /// because torpord gives up after 10 s if a library hangs while it is loaded.
    private static func unusedPolicies(_ manager: Manager) throws -> [PolicyStatus] {
        let end = Clock.monotonic() + .seconds(15)
        while true {
            let policies = try manager.policies()
            guard policies.contains(where: { $0.state == "loading" }), Clock.monotonic() < end else {
                return policies.filter { $0.state != "ready" }
            }
            ThisProcess.sleep(.milliseconds(20))
        }
    }

    /// The failure for an invalid configuration: all its mistakes, in the format of `torpor check`; nil for other
    /// errors.
    private func invalid(_ error: String, _ parameters: JSON) -> Failure? {
        guard error == ManagerInterface.ErrorName.invalidConfiguration,
            let list = try? Fields(parameters).list(
                "diagnostics",
                { json throws(FieldError) in
                    try DiagnosticInfo(json: json)
                }
            )
        else { return nil }
        if options.json { Output.document(["ok": false, "diagnostics": .array(list.map(\.json))]) }
        for diagnostic in list { Complaint.say(Self.text(diagnostic), .remark) }
        let errors = list.count { $0.severity == "error" }
        return Failure(
            status: .usage,
            message: "the configuration has \(errors == 1 ? "an error" : "\(errors) errors"), nothing was changed"
        )
    }

    private func show(_ applied: ApplyReply) {
        var text = ""
        for change in applied.supervisor {
            text += "\(change.key) \(change.old ?? "none") → \(change.new ?? "none")"
            text += change.effect == "supervisor-start" ? ": when torpord is stopped and started again\n" : " (live)\n"
        }
        for app in applied.apps {
            if diff, app.kind == "changed" {
                text += "\(app.app): would be changed\n"
                for change in app.changes { text += "  " + detail(change, app) + "\n" }
            } else if app.ok {
                text += "\(app.app): \(app.message)\n"
            } else {
                Complaint.say("\(app.app): \(app.message)")
            }
        }
        if applied.supervisor.isEmpty, applied.apps.isEmpty {
            text = diff ? "nothing would change\n" : "nothing changed\n"
        }
        Output.page(text.split(separator: "\n").map { Terminal.harmless(String($0)) + "\n" }.joined())
    }

    private func detail(_ change: KeyChangeInfo, _ app: AppliedApp) -> String {
        let when =
            switch change.effect {
            case "live": "live"
            case "next-launch": "from the next launch on"
            default:
                [("would be restarted", "restarted"), ("would be launched", "launched")]
                    .first { app.message.hasSuffix($0.0) }?.1
                    ?? "at the next launch" + (app.message.hasSuffix("--restart") ? ", or now with --restart" : "")
            }
        let what =
            change.key == AppliedApp.unknownKey
            ? "something that was changed before torpord was replaced"
            : "\(change.key) \(change.old ?? "none") → \(change.new ?? "none")"
        return "\(what) (\(when))"
    }

    /// A mistake in the format of `torpor check`.
    package static func text(_ diagnostic: DiagnosticInfo) -> String {
        var text = diagnostic.file
        if diagnostic.line > 0 { text += ":\(diagnostic.line):\(diagnostic.column)" }
        text += ": "
        if diagnostic.severity == "warning" { text += "warning: " }
        if !diagnostic.path.isEmpty { text += diagnostic.path + ": " }
        return text + diagnostic.message
    }
}
