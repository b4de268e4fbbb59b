// SPDX-License-Identifier: Apache-2.0

import Configuration
import DataProtection
import Engine
import EventLoop
import Lifecycle

/// Launches of apps with protected data. They wait until the data is unlocked, unless the app may be launched before;
/// then torpor-protect opens or closes the app's folder, and the launch continues.
extension ProtectedData {
    /// Called when the core asks whether an app may be launched. Passes the question on to
    /// ``Scenes/launchNeedsRoom(_:)`` as soon as the app's data allows the launch: at once for an app without
    /// protected data.
    func launchNeedsData(_ app: AppRuntime) {
        guard app.specification.data.protection.kind != nil else { return supervisor.scenes.launchNeedsRoom(app) }
        guard !held.contains(app.id) else { return }
        held.append(app.id)
        // Do this later: the core is still in the step in which it asks.
        loop.later { [weak self] in self?.lookForLaunches() }
    }

    func lookForLaunches() {
        held.removeAll { !coordinator.waitsForMemory($0) }
        for id in held where !opening.contains(id) {
            let app = apps[id]
            let protection = app.specification.data.protection
            let mayOpen =
                edge.isUnlocked || protection.kind == .firstUnlock && standings[app.name]?.state == .open
            guard mayOpen else {
                whileLocked(app)
                continue
            }
            opening.insert(id)
            runs.open(folders([app])) { [weak self, weak app] result in
                guard let self, let app else { return }
                opening.remove(id)
                _ = settle(result, [app], isOpening: true)
                opened(app)
            }
        }
    }

    private func whileLocked(_ app: AppRuntime) {
        let standing = standings[app.name]
        guard edge.isLocked else { return hold(app, lockedText) }
        // Try to close a folder whose state is unknown, or that could not be protected. If that is impossible, no
        // unlock would help: the launch continues, and fails (``refusal(of:)``).
        guard let standing, standing.state != .refused else {
            opening.insert(app.id)
            runs.close(folders([app])) { [weak self, weak app] result in
                guard let self, let app else { return }
                opening.remove(app.id)
                _ = settle(result, [app], isOpening: false)
                guard held.contains(app.id) else { return }
                guard edge.isLocked else { return lookForLaunches() }
                let isRefused = standings[app.name]?.state == .refused
                if isRefused || app.specification.data.protection.launchesWhenLocked { return letGo(app) }
                hold(app, lockedText)
            }
            return
        }
        if app.specification.data.protection.launchesWhenLocked { letGo(app) } else { hold(app, lockedText) }
    }

    private var lockedText: String {
        edge.isLocking ? "its data is being locked" : "its data is locked: unlock it with ‘torpor protect unlock’"
    }

    /// Called when torpor-protect has tried to open an app's folder for its launch. Lets the launch continue, except
    /// while the folder's key is missing and the app needs it.
    private func opened(_ app: AppRuntime) {
        guard held.contains(app.id) else { return }
        guard standings[app.name]?.state == .withoutKey else { return letGo(app) }
        if app.specification.data.protection.launchesWhenLocked { return letGo(app) }
        hold(app, "its data is locked: \(standings[app.name]?.problem ?? "")")
    }

    private func hold(_ app: AppRuntime, _ why: String) {
        guard coordinator.waitsForMemory(app.id), app.heldBack != why else { return }
        let isFirst = app.heldBack == nil
        app.heldBack = why
        if isFirst { note(app, .waitsForUnlock, text: "waits to be launched: \(why)") }
        engine.touch(app.id)
    }

    private func letGo(_ app: AppRuntime) {
        held.removeAll { $0 == app.id }
        app.heldBack = nil
        guard coordinator.waitsForMemory(app.id) else { return }
        supervisor.scenes.launchNeedsRoom(app)
    }

    /// Why a launch in progress must not continue; nil if it may. `isFinal`: whether a retry would fail for the same
    /// reason.
    func refusal(of app: AppRuntime) -> (sentence: String, isFinal: Bool)? {
        let protection = app.specification.data.protection
        guard protection.kind != nil else { return nil }
        let standing = standings[app.name]
        if standing?.state == .refused {
            return ("could not be launched (protected): \(standing?.problem ?? "")", true)
        }
        guard !isReadable(app), !protection.launchesWhenLocked else { return nil }
        return ("could not be launched (protected): its data was locked during its launch", false)
    }

    /// Whether the app's launch waits for an unlock.
    func holds(_ app: AppID) -> Bool { apps[app].heldBack != nil && held.contains(app) }
}
