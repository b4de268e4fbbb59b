// SPDX-License-Identifier: Apache-2.0

/// What a list says of an app's lifecycle. To copy an ``AppMachine`` is to count the references of each thing that it
/// stores, but a list needs only a few plain values of each app.
public struct AppOutline: Sendable, Hashable {
    /// The state that the app is in.
    public let state: AppState
    /// The transition in progress; nil if there is none.
    public let transition: Transition?
    /// The state that was last requested for the app.
    public let goal: Goal
    /// The number of the current or last incarnation; 0 before the first.
    public let incarnation: UInt32
    /// The number of restarts by the restart policy since this number was last reset.
    public let restarts: Int
    /// Whether the app restarted too often, so that the restart policy gave up.
    public let failed: Bool
    /// Whether the app is a oneshot that has exited successfully since it was last started.
    public let isDone: Bool
    /// Whether the app is a oneshot that runs, or will without waiting for anything. All of its run is its launch.
    public let isWorking: Bool
    /// Whether tasks, modes or holds keep the app in the background.
    public let isHeld: Bool
    /// Whether the app's launch waits for ``AppMachine/permitLaunch(now:)``.
    public let isWaitingForPermission: Bool
    /// When the app is restarted, while its restart is delayed; otherwise nil.
    public let restartsAt: Duration?
    /// Whether this machine owns the app; nil for an app without `owner = "external"`, which needs no owner.
    public let ownership: Ownership?
    /// When the ownership ends; nil if it does not end by itself.
    public let ownedUntil: Duration?
    /// Whether torpord expects answers of the app, because a delegate makes it ready or its messages have a deadline.
    public let isExpectedToAnswer: Bool
    /// Whether the app is up and in no transition, but the delegate that made it ready is not connected.
    public let lacksDelegate: Bool
}

extension AppMachine {
    /// What a list says of the app's lifecycle.
    public var outline: AppOutline {
        let transition = transition
        let isOwned = rules.owner == .external
        let isReadyByDelegate = rules.readiness == .delegate
        return AppOutline(
            state: state,
            transition: transition,
            goal: goal,
            incarnation: incarnation,
            restarts: restarts,
            failed: failed,
            isDone: isDone,
            isWorking: rules.isOneshot && transition == .launching && !isWaitingForPermission,
            isHeld: isHeld,
            isWaitingForPermission: isWaitingForPermission,
            restartsAt: restartsAt,
            ownership: isOwned ? ownership : nil,
            ownedUntil: isOwned ? ownedUntil : nil,
            isExpectedToAnswer: isReadyByDelegate || rules.messageDeadline != nil,
            lacksDelegate: isReadyByDelegate && !hasDelegate && transition == nil && isAlive
        )
    }

    private var restartsAt: Duration? {
        guard let edgeDeadline, edgeDeadline.kind == .restart else { return nil }
        return edgeDeadline.at
    }
}
