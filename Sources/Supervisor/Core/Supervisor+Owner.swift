// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
package import Engine
import EventLoop
import EventSources
package import Lifecycle
import Linux
import Processes
import Recovery
import TorporAPI

/// Ownership of apps with `owner = "external"`: a user or a cluster engine tells torpord whether this machine owns such
/// an app and so may run it.
extension Supervisor {
    /// Records that this machine owns the app, for `time` or until ``disown(_:by:)``. If the app was not owned before,
    /// it goes to the state that a user last requested, or else to the state that its `launch` names. If `renews`, the
    /// request is refused unless the app is owned already.
    package func own(
        _ app: AppRuntime,
        for time: Duration?,
        renews: Bool,
        by whom: String
    ) throws(RequestError) {
        let before = coordinator.machine(app.id)
        let isRenewal = before.ownership == .owned && !before.isOwnershipOver(at: loop.now)
        try request(.own(until: time.map { loop.now + $0 }, renews: renews), of: app.id)
        ownershipClock.begin()
        guard !isRenewal else { return }
        let limit = time.map { " for \(Quantity.text($0)), unless that is renewed" } ?? ""
        note(app, .owned, text: "is owned by this machine\(limit) (\(whom))", reason: "owned")
        bringAsOwned(app)
        wakes.lookAgain()
    }

    /// Records that this machine does not own the app. If the app runs, it is suspended. If it is being launched, the
    /// launch is cancelled or ended.
    package func disown(_ app: AppRuntime, by whom: String) throws(RequestError) {
        let wasOwned = coordinator.machine(app.id).ownership != .none
        try request(.disown, of: app.id)
        guard wasOwned else { return }
        app.importedDigest = nil
        note(app, .disowned, text: "is not owned by this machine (\(whom))", reason: "disowned")
    }

    private func bringAsOwned(_ app: AppRuntime) {
        let machine = coordinator.machine(app.id)
        if let reason = staysDown(app, machine) {
            return note(app, .keptDown, text: "is not launched, although it is owned now: \(reason)")
        }
        let background: Request = machine.isAlive ? .background : .start(background: true)
        let wanted: Request?
        switch (app.kept.goalOfPerson, app.specification.launch) {
        case (.active, _), (.inactive, _), (nil, .foreground): wanted = .foreground
        case (.background, _), (nil, .background): wanted = background
        case (.suspended, _): wanted = machine.isAlive ? nil : .standby
        case (.notRunning, _), (nil, .onDemand): wanted = nil
        }
        do throws(RequestError) {
            if let wanted { try request(wanted, of: app.id) }
        } catch {
            note(app, .refused, text: "refused: \(error)")
        }
    }

    /// Ends the ownership of an app that an earlier supervisor owned and that no longer runs, if another machine may
    /// own the app by now. This is so if the ownership's time is over, or if the ownership has no time limit and no
    /// supervisor may have run for a while.
    ///
    /// - Parameter isGone: whether no process of the app was found.
    func endStaleOwnership(of app: AppRuntime, isGone: Bool) {
        // Leave the ownership of a running app alone. If the ownership's time is over, it ends in the first turn of the
        // event loop.
        guard isGone, coordinator[app.id].ownership != .none, coordinator[app.id].rules.owner == .external else {
            return
        }
        let machine = coordinator.machine(app.id)
        if machine.isOwnershipOver(at: loop.now) {
            coordinator.disownUnseen(app.id, now: loop.now)
            return note(
                app,
                .ownershipExpired,
                text: "is no longer owned: its time was over when this torpord started",
                reason: "ownership-expired"
            )
        }
        guard machine.ownedUntil == nil, mayHaveBeenAway else { return }
        coordinator.disownUnseen(app.id, now: loop.now)
        note(
            app,
            .disowned,
            text: "is no longer owned: it ended together with the last supervisor (‘torpor own’ owns it again)",
            reason: "disowned"
        )
    }

    /// Whether no supervisor may have run for a while: this torpord is the first of its torpor-keeper, and was not
    /// started by a restart of the service, which takes only a moment.
    private var mayHaveBeenAway: Bool {
        let isRestart = recovery.readsConfiguration && configuration.supervisor.onExit != .leave
        return keeper.instance == 1 && !isRestart
    }

    /// Suspends apps that an earlier supervisor has left running and that this machine does not own now.
    func suspendUnowned() {
        for app in apps where coordinator.machine(app.id).standsBy && coordinator.machine(app.id).goal != .suspended {
            try? request(.disown, of: app.id)
        }
    }
}
