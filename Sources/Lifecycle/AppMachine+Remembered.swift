// SPDX-License-Identifier: Apache-2.0

/// What is known of an app from before this boot, or from a supervisor that ended in order: there is no process of it.
public struct RememberedApp: Sendable, Hashable {
    /// The number of its last incarnation.
    public var incarnation: UInt32 = 0
    /// Restarts by policy since the last reset.
    public var restarts = 0
    /// Consecutive restarts without a stable run in between.
    public var attempt = 0
    /// Whether the restart policy gave up.
    public var failed = false
    /// How the last incarnation ended, as far as that still says whether events launch it.
    public var lastEnding: TerminationReason?
    /// When its restarts were, on the clock that the machine is given; times before the boot are negative.
    public var ledger: [Duration] = []

    /// An app of which nothing is known.
    public init() {}
}

extension AppMachine {
    /// What is to be remembered of the app.
    public var remembered: RememberedApp {
        var app = RememberedApp()
        app.incarnation = incarnation
        app.restarts = restarts
        app.attempt = attempt
        app.failed = failed
        app.lastEnding = lastEnding
        app.ledger = ledger
        return app
    }

    /// Whether a person stopped it, itself or with what it requires: neither the supervisor's start nor an event
    /// launches it.
    public var isStopped: Bool { goal == .notRunning && endedOrEnds(for: .stopped) }

    /// Whether a person force-quit it.
    public var isForceQuit: Bool { goal == .notRunning && endedOrEnds(for: .forceQuit) }

    private func endedOrEnds(for reason: TerminationReason) -> Bool {
        switch phase {
        case .notRunning: lastEnding == reason
        case .terminating(let ending): ending.relaunch == nil && (ending.stoppedBy ?? ending.reason) == reason
        case .launching, .running: false
        }
    }

    /// Goes on from what is remembered. An app that was asked for something already only continues its numbers.
    mutating func remember(_ app: RememberedApp) {
        guard !isAlive else { return }
        incarnation = max(incarnation, app.incarnation)
        restarts += app.restarts
        ledger = app.ledger + ledger
        guard goalGeneration == 0, case .notRunning(.resting) = phase else { return }
        attempt = app.attempt
        failed = app.failed
        lastEnding = app.lastEnding
    }
}

extension Coordinator {
    /// Goes on from what is remembered of an app that has no process.
    public func remember(_ app: AppID, _ remembered: RememberedApp) {
        nodes[app].machine.remember(remembered)
        touch(app)
    }
}
