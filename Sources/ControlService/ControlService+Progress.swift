// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Lifecycle
import Supervisor
import TorporAPI
import VarlinkServer

/// Progress reports, which a client gets while its call waits for apps.
extension ControlService {
    func progress(_ waiter: PendingCall, _ index: Int, _ app: AppRuntime) {
        guard waiter.reply.more || waiter.endsForFailing, waiter.items[index].result == nil else { return }
        let machine = coordinator.machine(app.id)
        let blockers = coordinator.blockers(app.id)
        waiter.note(blockers.isEmpty ? [] : allBlockers(of: app.id), of: index)
        guard waiter.reply.more else { return }
        let text =
            if let reason = app.heldBack {
                "is held back: \(reason)"
            } else if machine.transition == .launching, let pull = supervisor.launcher.containers.pull(of: app) {
                "is launching: \(pull)"
            } else if machine.transition == .launching, let problem = app.run.probe?.longProblem {
                "is launching: it \(problem)"
            } else if machine.transition == .launching, app.specification.rules.isOneshot {
                "is launching: it is a oneshot app, which is ready once it has ended"
            } else if blockers.isEmpty, let orphans = orphans(before: app) {
                "waits: \(orphans)"
            } else if blockers.isEmpty {
                "is \(machine.transition?.rawValue ?? machine.state.rawValue)"
            } else {
                "waits for \(blockers.map(blocker).joined(separator: ", "))"
            }
        guard waiter.isNews(index, (machine.state, machine.transition, text)) else { return }
        let step = VerbProgress(
            app: app.name,
            state: machine.state.rawValue,
            transition: machine.transition?.rawValue,
            text: "\(app.name) \(text)"
        )
        waiter.reply.send(step.json, continues: true)
    }

    /// The apps that the app's launch waits for, and those that these wait for in turn.
    private func allBlockers(of app: AppID) -> [AppID] {
        var found: [AppID] = []
        var next = [app]
        while let id = next.popLast() {
            for other in coordinator.blockers(id).compactMap({ coordinator.id(of: $0) }) where !found.contains(other) {
                found.append(other)
                next.append(other)
            }
        }
        return found
    }

    /// How often an app may fail while another one waits for it, until a call that ends for that is answered.
    private static let mostFailures = 5

    /// The result for an app that waits for one which has failed again and again since the call came; nil otherwise. With
    /// a high `restart_backoff.limit`, such an app is not given up for hours.
    func waitsForFailing(_ waiter: PendingCall, _ index: Int, _ app: AppRuntime) -> VerbResult? {
        guard waiter.endsForFailing, waiter.items[index].result == nil else { return nil }
        for id in waiter.items[index].blockers {
            let (other, restarts) = (apps[id], coordinator.machine(id).restarts)
            guard waiter.restarts(of: id, now: restarts, for: index) >= Self.mostFailures else { continue }
            let how = other.lastExit.map { "ended (\($0.sentence)), restart \(restarts)" } ?? "fails again and again"
            return result(
                app,
                ok: false,
                "still waits for \(other.name), which \(how); torpord keeps trying: ‘torpor report \(other.name)’ says "
                    + "why it ends",
                "waits"
            )
        }
        return nil
    }

    /// A sentence about the apps that the app's launch waits for; nil if it waits for none.
    func blocked(_ app: AppRuntime) -> String? {
        let blockers = coordinator.blockers(app.id)
        guard !blockers.isEmpty else { return orphans(before: app) }
        if blockers.allSatisfy({ coordinator.id(of: $0).map(coordinator.isLeaving) ?? false }) {
            return stillEnding(blockers)
        }
        let why = blockers.map(reason)
        if why.allSatisfy({ $0 == nil }) {
            return "\(blockers.joined(separator: ", ")) \(blockers.count == 1 ? "is" : "are") not ready"
        }
        return zip(blockers, why).map { "\($0) is not ready" + ($1.map { ": it \($0)" } ?? "") }.joined(separator: "; ")
    }

    private func stillEnding(_ removed: [String]) -> String {
        "\(removed.joined(separator: ", ")) \(removed.count == 1 ? "is" : "are") removed, and still ending"
    }

    /// A sentence about the removed apps whose processes an earlier torpord has left, if the app's launch waits for
    /// their end; otherwise nil.
    private func orphans(before app: AppRuntime) -> String? {
        guard coordinator.awaitsOrphans(app.id) else { return nil }
        let names = supervisor.removedAppsEnding
        return names.isEmpty ? "an app that was removed is still ending" : stillEnding(names)
    }

    /// A text about an app that another app waits for: its name, and why it is not ready, if that is known.
    private func blocker(_ name: String) -> String { name + (reason(name).map { ", which \($0)" } ?? "") }

    /// Why an app that another app waits for is not ready: how far its image is pulled, or that it is removed or
    /// restarted. The rest of a sentence about the app; nil if the app is just being launched.
    private func reason(_ name: String) -> String? {
        guard let id = coordinator.id(of: name) else { return nil }
        if let pull = supervisor.launcher.containers.pull(of: apps[id]) { return "is \(pull)" }
        if coordinator.isLeaving(id) { return "is removed, and still ending" }
        guard let exit = apps[id].lastExit else { return nil }
        let machine = coordinator.machine(id)
        let isRestarting = machine.launchReason == .restart || machine.deadlines.contains { $0.kind == .restart }
        return isRestarting ? "ended (\(exit.sentence)), restart \(machine.restarts)" : nil
    }

    /// Reports again what an app waits for, after one of the apps for which it waits has changed.
    func progress(_ waiter: PendingCall, blockedBy apps: [AppRuntime]) {
        guard waiter.reply.more, !waiter.isDone else { return }
        for index in waiter.blocked(by: apps.map(\.id)) {
            progress(waiter, index, self.apps[waiter.items[index].app])
        }
    }

    /// What keeps the app in the background (tasks, modes, holds), as a text for the reply to a request about holds.
    func holding(_ app: AppRuntime) -> String {
        let machine = coordinator.machine(app.id)
        guard !machine.holders.isEmpty else { return "is held no longer" }
        let text = "is held by \(machine.holders.joined(separator: ", "))"
        return switch machine.state {
        case .active, .inactive: text + ": it stays where it is, and is not suspended once it is in the background"
        case .suspended: text + ": it stays suspended until it is resumed"
        case .background, .notRunning: text
        }
    }
}
