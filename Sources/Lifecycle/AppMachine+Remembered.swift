// SPDX-License-Identifier: Apache-2.0

/// The values that torpord stores for an app without a process. They survive a reboot and a normal shutdown of torpord.
public struct RememberedApp: Sendable, Hashable {
    /// The number of the app's last incarnation.
    public var incarnation: UInt32 = 0
    /// The number of restarts by the restart policy since this number was last reset.
    public var restarts = 0
    /// The number of consecutive restarts since the app last ran for as long as `stable_after`. It determines the next
    /// restart delay.
    public var attempt = 0
    /// Whether the restart policy gave up, because the app restarted too often.
    public var failed = false
    /// How the last incarnation ended, if that decides whether events may launch the app; otherwise nil.
    public var lastEnding: TerminationReason?
    /// When the app was restarted, on CLOCK_MONOTONIC of this boot; times before the boot are negative.
    public var ledger: [Duration] = []

    /// The values for an app about which torpord has stored nothing.
    public init() {}
}

extension AppMachine {
    /// The values of the app that torpord stores while the app has no process.
    public var remembered: RememberedApp {
        var app = RememberedApp()
        app.incarnation = incarnation
        app.restarts = restarts
        app.attempt = Int(unstable.attempt)
        app.failed = failed
        app.lastEnding = lastEnding
        app.ledger = ledger
        return app
    }

    /// Whether a user stopped the app, directly or by stopping one of its dependencies. A stopped app is launched
    /// neither by events nor at the start of the supervisor.
    public var isStopped: Bool { goal == .notRunning && endedOrEnds(for: .stopped) }

    /// Whether a user force-quit the app.
    public var isForceQuit: Bool { goal == .notRunning && endedOrEnds(for: .forceQuit) }

    /// Whether a user's reset has taken back that a user stopped or force-quit the app: events launch it again.
    public var isRearmed: Bool {
        if case .notRunning(.resting) = phase { return incarnation > 0 && lastEnding == nil }
        return false
    }

    /// Takes back that a user stopped or force-quit the app, if it has ended: a reset launches nothing, but lets events
    /// and the next start of the supervisor do so.
    mutating func forgetStop() {
        guard case .notRunning(.resting) = phase, isStopped || isForceQuit else { return }
        lastEnding = nil
    }

    private func endedOrEnds(for reason: TerminationReason) -> Bool {
        switch phase {
        case .notRunning: lastEnding == reason
        case .terminating(let ending): ending.relaunch == nil && (ending.stoppedBy ?? ending.reason) == reason
        case .launching, .running: false
        }
    }

    /// Restores the stored values of the app. If the app has received a request since torpord started, only its
    /// incarnation number and its restarts are restored.
    mutating func remember(_ app: RememberedApp) {
        guard !isAlive else { return }
        incarnation = max(incarnation, app.incarnation)
        restarts += app.restarts
        ledger = app.ledger + ledger
        guard goalGeneration == 0, case .notRunning(.resting) = phase else { return }
        unstable.attempt = UInt32(clamping: app.attempt)
        failed = app.failed
        lastEnding = app.lastEnding
    }
}

extension Coordinator {
    /// Restores the stored values of an app that has no process.
    public func remember(_ app: AppID, _ remembered: RememberedApp) {
        nodes[app].machine.remember(remembered)
        touch(app)
    }
}
