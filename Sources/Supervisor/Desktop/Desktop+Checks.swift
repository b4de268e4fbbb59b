// SPDX-License-Identifier: Apache-2.0

import Configuration
import DesktopProtocol
package import TorporAPI

/// Texts for users about torpor-desktop.
extension Desktop {
    /// Why users do not see the open alerts on the desktop, as a sentence. Nil if users see the alerts, if none is
    /// open, or if the configuration shows none on the desktop. If there is no session, also nil if configured commands
    /// show the alerts.
    package var alertProblem: String? {
        let rules = supervisor.configuration.supervisor.alerts
        guard rules.desktop != .none else { return nil }
        if let obstacle { return rules.commands.isEmpty ? obstacle : nil }
        return ledger.ids.isEmpty ? nil : trouble ?? unseen
    }

    /// Whether commands of the configuration bring alerts to users, with or without a desktop.
    var isShownByCommands: Bool { !supervisor.configuration.supervisor.alerts.commands.isEmpty }

    /// Why users would not see a permission question, as the end of a sentence; nil if they would see it, if only by
    /// the configured commands.
    var obstacleToQuestions: String? {
        let rules = supervisor.configuration.supervisor.alerts
        guard rules.commands.isEmpty else { return nil }
        return rules.desktop == .none
            ? "[supervisor.alerts] has desktop = \"none\" and no commands" : obstacle ?? trouble
    }

    /// The name of the session's user, for records of who answered an alert.
    var person: String {
        place.map { ($0.user == 0 ? "root" : "uid \($0.user)") + ", on the desktop" } ?? "the desktop"
    }

    /// The checks of `torpor doctor`: whether alerts and badges are on the desktop, and whether the focus is
    /// followed.
    package var checks: [DoctorCheck] {
        let program = helper?.pid.map { "torpor-desktop, process \($0)" } ?? "torpor-desktop, which does not run"
        let session = place.map { "the session of user \($0.user)" }
        var checks: [DoctorCheck] = []
        if !ledger.ids.isEmpty {
            let problem = isShownByCommands && obstacle != nil ? nil : obstacle ?? trouble ?? unseen
            let commands = obstacle.map { "by the configured commands alone: \($0)" }
            let value = commands ?? session.map { "in \($0), by \(program)" }
            checks.append(
                DoctorCheck(
                    name: "alerts on the desktop",
                    ok: problem == nil,
                    value: problem == nil ? value : session,
                    message: problem.map {
                        "\($0). Until then open alerts wait: ‘torpor alerts’ lists and answers them"
                    }
                )
            )
        }
        if let kind = focus.kind {
            let problem = obstacle ?? trouble ?? focus.problem
            let name = kind == .sway ? "Sway" : "i3"
            let value = session.map { problem == nil ? "that of \(name) in \($0), by \(program)" : "\(name) in \($0)" }
            checks.append(
                DoctorCheck(
                    name: "focus",
                    ok: problem == nil,
                    value: value ?? name,
                    message: problem.map { "the focus is not followed: \($0)" }
                )
            )
        }
        let words = "\(session ?? "the session"), by \(program)"
        if let check = sound.check(obstacle: obstacle, trouble: trouble, session: words) { checks.append(check) }
        return checks
    }
}
