// SPDX-License-Identifier: Apache-2.0

/// Snapshots (images of what an app shows), taken when the app has answered didEnterBackground, and again when the
/// app reports new content. The app is not suspended before the snapshot is taken or its deadline has passed.
extension AppMachine {
    /// Whether a snapshot is being taken.
    public var awaitsSnapshot: Bool { backgroundTime?.value.snapshotDue != nil }

    /// Whether a snapshot taken now shows the app in the background: the app is in the background or is entering it.
    public var isShownInBackground: Bool {
        if awaitedMessage == .didEnterBackground { return true }
        return state == .background && transition != .enteringForeground && transition != .terminating
    }

    /// Requests a snapshot if the app is in the background, its configuration allows snapshots, and it has not declined
    /// this one. A snapshot in progress is taken again, with the same deadline.
    mutating func takeSnapshot(into actions: inout [Action], now: Duration) {
        guard let allowance = rules.snapshotDeadline, !declinesSnapshot, case .running(let running) = phase,
            running.state == .background, running.edge == nil || running.edge?.transition == .resuming
        else { return }
        if !awaitsSnapshot { changeBackgroundTime { $0.snapshotDue = now + allowance } }
        actions.append(.takeSnapshot)
    }

    /// Ends the wait for a snapshot, because the snapshot was taken, has failed or is no longer wanted.
    mutating func endSnapshot(into actions: inout [Action], now: Duration) {
        guard awaitsSnapshot else { return }
        changeBackgroundTime { $0.snapshotDue = nil }
        walk(into: &actions, now: now)
    }

    /// Called when the app declines snapshots because it shows something private. Ends the wait for a snapshot, and
    /// allows no other until the app enters the background again.
    mutating func declineSnapshot(into actions: inout [Action], now: Duration) {
        guard case .running = phase else { return }
        declinesSnapshot = true
        endSnapshot(into: &actions, now: now)
    }

    /// Ends the wait for a snapshot that missed its deadline.
    mutating func missSnapshot(into actions: inout [Action], now: Duration) {
        guard let due = backgroundTime?.value.snapshotDue, due <= now else { return }
        actions.append(.report(.snapshotMissed))
        endSnapshot(into: &actions, now: now)
    }

    /// Drops a snapshot in progress, because the app leaves the background or ends.
    mutating func dropSnapshot() {
        if awaitsSnapshot { changeBackgroundTime { $0.snapshotDue = nil } }
    }
}
