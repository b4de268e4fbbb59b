// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Supervisor
import TorporAPI

/// Texts about what an apply does to an app. Each is the rest of a sentence that begins with the app's name.
extension Apply.Entry {
    /// The app's part of the reply.
    func applied(message: String) -> AppliedApp {
        AppliedApp(
            app: name,
            kind: change?.kind.rawValue ?? "restarted",
            changes: (change?.changes ?? []).map(KeyChangeInfo.init),
            message: message
        )
    }

    /// What the apply has done to the app. If `isWaiting` is false, the text says what the apply is doing, because the
    /// caller does not wait for the end. The text has no values of environment variables, which may be secret: the text
    /// is written to logs, such as those of torpord and of a CI job that calls ‘torpor apply’.
    func text(isWaiting: Bool) -> String {
        guard let change else {
            return (isWaiting ? "restarted" : "is being restarted")
                + (cause.map { ", because it requires \($0)" } ?? "")
        }
        switch change.kind {
        case .removed where scene != nil:
            let text = scene == .movesInside ? Self.movesInside : Self.losesTemplate
            return isAlive ? text + (isWaiting ? "; terminated" : "; is being terminated") : text
        case .added where scene == .movesOut: return Self.movesOut
        case .added where scene != nil: return "has its template again"
        case .removed:
            guard isAlive else { return "removed" + lost }
            return "removed" + lost + (isWaiting ? ", terminated" : ", is being terminated")
        case .added:
            if launch == .onDemand { return "added, not launched (launch = \"on-demand\")" }
            if let leftAlone { return "added, not launched: \(leftAlone)" }
            return isWaiting ? "added, launched" : "added, is being launched"
        case .changed: return changed(isPublic: true, restart: restartText(isWaiting: isWaiting))
        }
    }

    /// What a removed app has lost beside itself, as the end of a sentence.
    private var lost: String { belongings.map { ", with its \($0)" } ?? "" }

    private static let losesTemplate = "no longer has a template: its session is kept for 30 days"
    private static let movesInside = "is a scene inside its app from now on, and keeps its session"
    private static let movesOut = "is a scene with processes of its own from now on, and keeps its session"

    /// What the apply would do to the app, for `torpor apply --diff`.
    var preview: String {
        guard let change else { return "would be restarted" }
        switch change.kind {
        case .removed where scene != nil:
            let text = scene == .movesInside ? Self.movesInside : Self.losesTemplate
            return isAlive ? text + "; would be terminated" : text
        case .added where scene == .movesOut: return Self.movesOut
        case .added where scene != nil: return "would have its template again"
        case .removed:
            return (isAlive ? "would be removed and terminated" : "would be removed") + lost
        case .added:
            switch launch {
            case .foreground: return "would be added and launched"
            case .background: return "would be added and launched into the background"
            case .onDemand: return "would be added, and not launched (launch = \"on-demand\")"
            }
        case .changed:
            let restart =
                isReplaced
                ? isAlive ? "would be restarted" : "would be launched"
                : mayBeReplaced ? "at the next launch, or now with --restart" : "at the next launch"
            return changed(isPublic: false, restart: restart)
        }
    }

    private func restartText(isWaiting: Bool) -> String {
        if let obstacle { return "not restarted, it runs on as before, since a launch would fail: \(obstacle)" }
        if isReplaced {
            let verb = isAlive ? "restarted" : "launched"
            return isWaiting ? verb : "is being \(verb)"
        }
        if mayBeReplaced { return "takes effect at the next launch, or now with --restart" }
        return "takes effect at the next launch" + (isDown ? ": ‘torpor start \(name)’" : "")
    }

    private func changed(isPublic: Bool, restart: String) -> String {
        var parts: [String] = []
        func list(_ effect: KeyEffect, isPending: Bool? = nil) -> String? {
            let changes = (change?.changes ?? []).filter {
                $0.effect == effect && isPending ?? pending.contains($0.key) == pending.contains($0.key)
            }
            guard !changes.isEmpty else { return nil }
            return changes.map { Apply.text($0, isPublic: isPublic) }.joined(separator: ", ")
        }
        // If a change is too long to show, its text ends with the word "changed" already: do not say it twice.
        if let live = list(.live) { parts.append((live.hasSuffix(" changed") ? live : "changed " + live) + " (live)") }
        if let launch = list(.launch, isPending: false) {
            parts.append((launch.hasPrefix("changed ") ? launch : "changed " + launch) + " (from the next launch on)")
        }
        if let waiting = list(.launch, isPending: true) { parts.append("the next launch brings \(waiting)") }
        if let others = list(.restart) { parts.append("\(others): \(restart)") }
        return parts.joined(separator: "; ")
    }
}

extension Apply {
    /// The maximum number of characters of a value in a one-line text. `torpor apply --diff` shows longer values in
    /// full.
    private static let longest = 60

    /// Writes a change as `key old → new`, or as `key changed` if the values are long or secret.
    ///
    /// - Parameter isPublic: whether other users than the caller may read the text. If so, it contains no values of
    ///   environment variables.
    static func text(_ change: KeyChange, isPublic: Bool) -> String {
        if change.key == unknownKey { return "changed before torpord was replaced" }
        let values = "\(change.old ?? "none") → \(change.new ?? "none")"
        let isSecret = isPublic && change.key.hasPrefix("environment")
        if change.key == "exec" || isSecret || values.count > longest { return "\(change.key) changed" }
        let text = "\(change.key) \(values)"
        return change.effect == .supervisor ? text + ": takes effect when torpord is stopped and started again" : text
    }
}
