// SPDX-License-Identifier: Apache-2.0

import Configuration
import DataProtection
package import Engine
import EventLoop
import Lifecycle

/// Launches of apps with protected data. A launch waits until the data is unlocked, unless `launch_when_locked` is set.
/// Before the launch continues, torpor-protect opens the app's folder; if data is locked, it closes the folder.
extension ProtectedData {
    /// Called when the core asks whether an app may be launched. Passes the question to ``Scenes/launchNeedsRoom(_:)``
    /// as soon as the app's protected data permits the launch; if the app has none, at once.
    func launchNeedsData(_ app: AppRuntime) {
        guard app.specification.data.protection.kind != nil else { return supervisor.scenes.launchNeedsRoom(app) }
        guard !held.contains(app.id) else { return }
        held.append(app.id)
        // Check in a later turn of the event loop, because the core has not finished the event in which it asks.
        loop.later { [weak self] in self?.lookForLaunches() }
    }

    func lookForLaunches() {
        lookForStopped()
        held.removeAll { !coordinator.waitsForMemory($0) }
        for id in held where !opening.contains(id) {
            let app = apps[id]
            if mayOpen(app) { openFolder(of: app) } else { whileLocked(app) }
        }
        // Open the folders of paused launches one by one: the unlock may have opened only the folders of other apps.
        guard edge.isUnlocked else { return }
        for launch in stopped where !opening.contains(launch.app.id) { openFolder(of: launch.app) }
    }

    private func mayOpen(_ app: AppRuntime) -> Bool {
        if edge.isUnlocked { return true }
        // A folder of `first-unlock` that is still open may be used while data is locked, but only after the first
        // unlock of this boot. Before that, `open` only means that the folder could not be closed.
        return app.specification.data.protection.kind == .firstUnlock && standings[app.name]?.state == .open
            && supervisor.recovery.isFirstUnlockOver
    }

    private func openFolder(of app: AppRuntime) {
        opening.insert(app.id)
        runs.open(folders([app])) { [weak self, weak app] outcome in
            guard let self, let app else { return }
            opening.remove(app.id)
            settle(outcome, [app], isOpening: true)
            // If the folder's key is missing, the launch waits for an unlock. Any other problem may be gone at the next
            // try.
            if outcome.problem != nil || standings[app.name]?.state == .closed { retryLaunches() }
            // If data was locked while torpor-protect was running, this call makes the launch wait again, and the
            // folder is closed.
            opened(app)
        }
    }

    /// Checks again the folders of apps that are not running. Called at a user's request, because ‘torpor protect
    /// move’, or a change of the filesystem, may have changed whether these folders are encrypted.
    package func lookAgain() {
        let chosen = protected.filter { !machine($0).isAlive && !opening.contains($0.id) }
        guard edge.isUnlocked, !chosen.isEmpty else { return }
        opening.formUnion(chosen.map(\.id))
        runs.open(folders(chosen)) { [weak self] outcome in
            guard let self else { return }
            opening.subtract(chosen.map(\.id))
            settle(outcome, chosen, isOpening: true)
            if outcome.problem != nil || chosen.contains(where: { standings[$0.name]?.state == .closed }) {
                retryLaunches()
            }
            // Launches of the chosen apps may have begun to wait while torpor-protect was running: continue them.
            for app in chosen { opened(app) }
        }
    }

    private func whileLocked(_ app: AppRuntime) {
        let standing = standings[app.name]
        guard edge.isLocked else { return hold(app, lockedText) }
        // Close a folder that is open, or whose state is not known, before the launch continues or waits. Also try a
        // folder that cannot be protected (`refused`) once more: if it is refused again, the launch fails instead of
        // waiting, because no unlock would help.
        guard let standing, standing.state != .refused, standing.state != .open else {
            opening.insert(app.id)
            runs.close(folders([app])) { [weak self, weak app] outcome in
                guard let self, let app else { return }
                opening.remove(app.id)
                let isClosed = settle(outcome, [app], isOpening: false) != .failed
                if outcome.problem != nil || !isClosed { retryLaunches() }
                guard edge.isLocked else { return lookForLaunches() }
                guard held.contains(app.id) else { return }
                // If an app is launched although data is locked, its folder must be closed.
                guard isClosed else { return hold(app, standings[app.name]?.problem ?? lockedText) }
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

    /// Called when torpor-protect has tried to open an app's folder for its launch. Continues the launch, unless the
    /// folder's key is missing and the app needs its data.
    private func opened(_ app: AppRuntime) {
        lookForStopped()
        let why = "its data is locked: \(standings[app.name]?.problem ?? "")"
        if isStopped(app), edge.isUnlocked, app.heldBack != why {
            app.heldBack = why
            engine.touch(app.id)
        }
        guard held.contains(app.id) else { return }
        let state = standings[app.name]?.state
        guard state == .withoutKey || state == .closed else { return letGo(app) }
        if app.specification.data.protection.launchesWhenLocked { return letGo(app) }
        hold(app, why)
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

    /// Why the launch must fail, as a sentence; nil if it need not. It must fail if the app's folder cannot be
    /// protected.
    func refusal(of app: AppRuntime) -> String? {
        let standing = standings[app.name]
        guard app.specification.data.protection.kind != nil, standing?.state == .refused else { return nil }
        return "could not be launched (protected): \(standing?.problem ?? "")"
    }

    /// Pauses a launch in progress if data was locked after the launch began, which is not the app's fault. `next` is
    /// called when the app's data is readable again or never will be, or when the launch is over. Returns whether the
    /// launch is paused.
    func stops(_ app: AppRuntime, _ order: LaunchOrder, _ next: @escaping () -> Void) -> Bool {
        guard isOutOfReach(app) else { return false }
        stopped.append(StoppedLaunch(app: app, order: order, next: next))
        app.heldBack = lockedText
        note(app, .waitsForUnlock, text: "waits to be launched: \(lockedText)")
        engine.touch(app.id)
        // If data was unlocked after it was locked during this launch, the app's folder was not opened: try again.
        if edge.isUnlocked { loop.later { [weak self] in self?.lookForLaunches() } }
        return true
    }

    /// Whether a launch in progress must wait until the app's data is readable.
    private func isOutOfReach(_ app: AppRuntime) -> Bool {
        let protection = app.specification.data.protection
        return protection.kind != nil && !protection.launchesWhenLocked && !isReadable(app) && refusal(of: app) == nil
    }

    /// Whether the app's launch is paused because data was locked after the launch began.
    package func isStopped(_ app: AppRuntime) -> Bool { stopped.contains { $0.app === app } }

    func lookForStopped() {
        let launcher = supervisor.launcher
        let over = stopped.filter { !isOutOfReach($0.app) || !launcher.isLaunching($0.app, $0.order) }
        guard !over.isEmpty else { return }
        stopped.removeAll { !isOutOfReach($0.app) || !launcher.isLaunching($0.app, $0.order) }
        for launch in over {
            launch.app.heldBack = nil
            loop.later(launch.next)
        }
    }

    /// Whether the app's launch waits for an unlock.
    func holds(_ app: AppID) -> Bool { apps[app].heldBack != nil && held.contains(app) }
}

/// A launch that is paused because data was locked after the launch began.
struct StoppedLaunch {
    let app: AppRuntime
    let order: LaunchOrder
    let next: () -> Void
}
