// SPDX-License-Identifier: Apache-2.0

import Configuration
import DataProtection
import Engine
import EventLoop
import Lifecycle

/// Launches of apps with protected data: they wait for the unlock, and their folder is made ready before.
extension ProtectedData {
    /// Called when the core asks whether an app may be launched. `next` goes on with it, as soon as its data is
    /// readable.
    func launchNeedsData(_ app: AppRuntime) {
        guard app.specification.data.protection.kind != nil else { return supervisor.scenes.launchNeedsRoom(app) }
        guard !held.contains(app.id) else { return }
        held.append(app.id)
        // Deferred, because the core has not finished the step in which it asks.
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
        // A folder that cannot be protected never will be by an unlock: then the launch fails.
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

    /// An app's folder was opened for its launch, or not.
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

    /// Why a launch that is under way must not go on; nil if it may.
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
