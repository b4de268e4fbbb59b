// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct Upgrade: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upgrade",
        abstract: "Replaces the running supervisor by the programs on disk.",
        discussion: "No app is touched. If the new program does not come up, the old one keeps running."
    )
    .examples(
        "torpor upgrade"
    )
    @Option(help: ArgumentHelp("The longest time to wait, such as 10s; 30s if none is named.", valueName: "duration"))
    var timeout: TimeLimit?
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let limit = Duration.milliseconds(min(timeout?.milliseconds ?? 30_000, 1 << 40))
        let deadline = Clock.monotonic() + limit
        let manager = try Manager(options)
        let before = try Self.describe(manager, deadline)
        let running = try Self.running(manager, deadline)
        if let reply = try manager.callOnce(.upgrade, deadline: deadline) {
            let answer = try Manager.read { () throws(FieldError) in try UpgradeReply(json: reply) }
            guard answer.ok else { throw Failure(status: .failed, message: answer.message) }
        }
        let began = Clock.monotonic()
        let waiting = Waiting(for: "waiting for the next torpord", isShown: !options.json)
        defer { waiting.end() }
        let after = try Self.next(manager, after: before, deadline, limit)
        let took = Clock.monotonic() - began
        waiting.end()
        let now = try Self.running(manager, Clock.monotonic() + Manager.patience)
        let changed = running.filter { now[$0.key] != $0.value }.keys.sorted()
        if let failure = after.upgradeFailure {
            throw Failure(status: .failed, message: "the old torpord keeps running: \(failure)")
        }
        show(before, after, took, untouched: running.count - changed.count, changed)
    }

    /// Waits until the next supervisor process answers.
    private static func next(
        _ manager: Manager,
        after before: SupervisorInfo,
        _ deadline: Duration,
        _ limit: Duration
    ) throws(Failure) -> SupervisorInfo {
        while true {
            let left = deadline - Clock.monotonic()
            guard left > .zero, manager.waitForEnd(timeout: left) else {
                throw Failure(
                    status: .failed,
                    message:
                        "torpord \(before.version) was not replaced within \(Times.duration(seconds: limit.inSeconds)) "
                        + "and keeps running: see what its log says"
                )
            }
            // The new connection may still reach the old supervisor process.
            let info = try describe(manager, deadline)
            if !info.isSameInstance(as: before) { return info }
        }
    }

    private static func describe(_ manager: Manager, _ deadline: Duration) throws(Failure) -> SupervisorInfo {
        let reply = try manager.call(.describe, deadline: deadline)
        return try Manager.read { () throws(FieldError) in try SupervisorInfo(json: reply) }
    }

    /// Numbers that identify the process of each running app, to find out later whether the app still has that process.
    private static func running(_ manager: Manager, _ deadline: Duration) throws(Failure) -> [String: [Int64]] {
        let reply = try manager.call(.list, deadline: deadline)
        let apps = try Manager.read { () throws(FieldError) in
            try Fields(reply).list("apps") { json throws(FieldError) in try AppSummary(json: json) }
        }
        var running: [String: [Int64]] = [:]
        for app in apps { if let pid = app.pid { running[app.name] = [Int64(pid), app.incarnation ?? 0] } }
        return running
    }

    private func show(
        _ before: SupervisorInfo,
        _ after: SupervisorInfo,
        _ took: Duration,
        untouched: Int,
        _ changed: [String]
    ) {
        let milliseconds = took.microseconds / 1000
        guard !options.json else {
            return Output.document([
                "from": before.json, "to": after.json, "took_ms": .int(milliseconds),
                "untouched": .int(Int64(untouched)),
                "changed": .strings(changed),
            ])
        }
        var text = "torpord \(before.version) → \(after.version) (instance \(before.instance) → \(after.instance)) "
        text += "in \(milliseconds) ms, \(untouched) app\(untouched == 1 ? "" : "s") untouched"
        if !changed.isEmpty { text += ", changed during the upgrade: \(changed.joined(separator: ", "))" }
        Output.page(text + "\n")
    }
}
