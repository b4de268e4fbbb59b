// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux
import TorporAPI
import Varlink
import WireText

/// The verb `health` without the argument parser (see ``PlainArguments``).
package struct PlainHealth {
    package var apps: [String]
    package var options: PlainOptions
    package var state: String?
    private var timeout = Duration.seconds(5)

    package init(apps: [String], options: PlainOptions) {
        self.apps = apps
        self.options = options
    }

    init?(_ words: ArraySlice<String>) {
        var milliseconds: Int64?
        let read = PlainWords(words) { option, words in
            option == "--timeout" && words.set(&milliseconds, Quantity.milliseconds)
        }
        guard let line = read else { return nil }
        self.init(apps: line.operands, options: line.options)
        set(timeout: milliseconds)
    }

    /// Sets the longest time to wait for an answer, in milliseconds, unless it is nil.
    package mutating func set(timeout: Int64?) {
        if let timeout { self.timeout = .milliseconds(min(timeout, 1 << 40)) }
    }

    /// A problem of an app or, without an app, of the supervisor.
    private struct Problem {
        var app: String?
        var sentence: String

        var json: JSON { ["app": .optional(app), "message": .string(sentence)] }
    }

    package func run() throws {
        let deadline = Clock.monotonic() + timeout
        let manager = try Manager(options, patience: timeout)
        let description = try manager.call(.describe, deadline: deadline)
        let supervisor = try Manager.read { () throws(FieldError) in try SupervisorInfo(json: description) }
        let reply = try manager.call(.list(of: apps), deadline: deadline)
        let summaries = try Manager.read { () throws(FieldError) in
            try Fields(reply).list("apps") { json throws(FieldError) in try AppSummary(json: json) }
        }
        var problems = problem(supervisor).map { [$0] } ?? []
        if apps.isEmpty, let failure = supervisor.configurationFailure {
            problems.append(Problem(sentence: "\(failure): ‘torpor check’ says what is wrong with it"))
        }
        if apps.isEmpty { problems += supervisor.troubles.map { Problem(sentence: $0) } }
        for app in summaries {
            // Skip scenes without a process, unless they are named exactly: for a scene, it is normal to have none.
            if state == nil, app.isUnattached, !apps.contains(app.name) { continue }
            if let sentence = apps.isEmpty ? Self.problemOfAny(app) : Self.problem(app, state) {
                problems.append(Problem(app: app.name, sentence: sentence))
            }
        }
        if apps.isEmpty { problems += try policies(manager, deadline) }
        show(supervisor, summaries, problems)
        if !problems.isEmpty { throw Failure(status: .failed, message: nil) }
    }

    private func show(_ supervisor: SupervisorInfo, _ summaries: [AppSummary], _ problems: [Problem]) {
        guard !options.json else {
            return Output.document([
                "healthy": .bool(problems.isEmpty), "phase": .optional(supervisor.phase),
                "version": .string(supervisor.version), "pid": .int(Int64(supervisor.pid)),
                "apps": .int(Int64(summaries.count)), "problems": .array(problems.map(\.json)),
            ])
        }
        for problem in problems { Complaint.say(problem.sentence) }
        guard problems.isEmpty else { return }
        let up = summaries.count { Self.isUp($0) }
        // There are no problems, so every app that is not up is down on purpose.
        let stopped = summaries.count { !Self.isUp($0) && Self.isStopped($0) }
        let working = summaries.count { $0.working }
        let waiting = summaries.count - up - stopped - working
        let others = [
            working > 0 ? "\(working) at work" : nil,
            stopped > 0 ? "\(stopped) stopped by a user" : nil,
            waiting > 0 ? "\(waiting) done or on demand" : nil,
        ].compactMap { $0 }
        Output.page(
            "all is well: \(up) of \(summaries.count) app\(summaries.count == 1 ? " is" : "s are") up"
                + (others.isEmpty ? "" : " (\(others.joined(separator: ", ")))") + "\n"
        )
    }

    private func problem(_ supervisor: SupervisorInfo) -> Problem? {
        switch supervisor.phase {
        // If the command line names apps, it does not matter that torpord is still starting other apps.
        case "starting" where apps.isEmpty: Problem(sentence: "torpord is still starting")
        case "ending": Problem(sentence: "torpord is ending its apps")
        default: nil
        }
    }

    /// Policies that torpord does not consult, so that they cannot manage the apps as intended.
    private func policies(_ manager: Manager, _ deadline: Duration) throws -> [Problem] {
        try manager.policies(deadline: deadline).filter { ["waiting", "refused", "quarantined"].contains($0.state) }.map
        { policy in
            let again = policy.retryMilliseconds.map { "it is loaded again in \(Times.duration(milliseconds: $0))" }
            let reason = policy.lastFailure ?? "it failed"
            let rest = again ?? "‘torpor policy reload \(policy.name)’ loads it again"
            return Problem(
                sentence: "the policy \(policy.name) is \(policy.state) and is not asked: \(reason); \(rest)"
            )
        }
    }

    // MARK: Apps

    private static func isUp(_ app: AppSummary) -> Bool {
        app.state != "not-running" && app.transition != "launching" && app.transition != "terminating"
    }

    /// Whether a user stopped the app, so that it does not run.
    private static func isStopped(_ app: AppSummary) -> Bool {
        app.goal == "not-running" && ["stopped", "force-quit"].contains(app.lastExit?.reason)
    }

    /// The problem of an app that is not named on the command line; nil for an app that is down on purpose.
    private static func problemOfAny(_ app: AppSummary) -> String? {
        if app.failed { return failure(app) }
        if app.stranded { return stranding(app) }
        // A job that runs for hours is as it should be: if it runs longer than its launch_deadline, it fails.
        if app.working { return nil }
        if app.goal == "not-running" || isUp(app) {
            return hasFailed(app) ? failure(app) : (app.unhealthy ?? app.socketTrouble).map { "\(app.name) \($0)" }
        }
        return absence(app)
    }

    private static func problem(_ app: AppSummary, _ state: String?) -> String? {
        if app.failed { return failure(app) }
        if app.done || app.working, state == nil { return nil }
        guard isUp(app) else { return absence(app) }
        if let problem = app.unhealthy { return "\(app.name) \(problem)" }
        guard let state, app.state != state else { return nil }
        return "\(app.name) is \(app.state), and not \(state)"
    }

    /// Whether the app ended although no user asked for that, and no restart follows (`restart = "never"`).
    private static func hasFailed(_ app: AppSummary) -> Bool {
        guard app.state == "not-running", app.transition == nil, app.nextRestartMilliseconds == nil,
            let reason = app.lastExit?.reason
        else { return false }
        return !wasMeant.contains(reason)
    }

    private static let wasMeant: Set = [
        "exit-success", "stopped", "exits-on-suspend", "shutdown", "force-quit", "evicted", "replaced",
        "permission-changed", "protected-data-open",
    ]

    private static func failure(_ app: AppSummary) -> String {
        let exit = app.exitSentence.map { " (\($0))" } ?? ""
        return "\(app.name) has failed\(exit), and is no longer restarted: ‘torpor report \(app.name)’ says why"
    }

    private static func stranding(_ app: AppSummary) -> String {
        "\(app.name) was evicted, and nothing launches it again: start it, or have something wake it"
    }

    private static func absence(_ app: AppSummary) -> String {
        let exit = app.exitSentence.map { " (\($0))" } ?? ""
        if let transition = app.transition {
            let time = app.uptime.map { " since \(Times.duration(seconds: $0))" } ?? ""
            return "\(app.name) is \(transition)" + (transition == "launching" ? time : "")
        }
        if let left = app.nextRestartMilliseconds {
            return "\(app.name) ended\(exit), and is restarted in \(Times.duration(milliseconds: left))"
        }
        if app.goal == "not-running" { return "\(app.name) is not running\(exit)" }
        return "\(app.name) waits to be launched: ‘torpor status \(app.name)’ says what it requires"
    }
}
