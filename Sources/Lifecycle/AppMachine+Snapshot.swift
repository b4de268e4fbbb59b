// SPDX-License-Identifier: Apache-2.0

/// The snapshot: taken once the app has answered didEnterBackground, and again when it says that it shows something new.
/// Until it is there, or its time is up, the app is not suspended.
extension AppMachine {
    /// Whether a snapshot is being taken.
    public var awaitsSnapshot: Bool { backgroundTime?.value.snapshotDue != nil }

    /// Whether a snapshot that the app gives now shows it in the background: it is there to stay, or on its way.
    public var isShownInBackground: Bool {
        if awaitedMessage == .didEnterBackground { return true }
        return state == .background && transition != .enteringForeground && transition != .terminating
    }

    /// Has one taken, unless the app declined. One that is under way begins anew, and has no more time for it.
    mutating func takeSnapshot(into actions: inout [Action], now: Duration) {
        guard let allowance = rules.snapshotDeadline, !declinesSnapshot, case .running(let running) = phase,
            running.state == .background, running.edge == nil || running.edge?.transition == .resuming
        else { return }
        if !awaitsSnapshot { changeBackgroundTime { $0.snapshotDue = now + allowance } }
        actions.append(.takeSnapshot)
    }

    /// It is there, or will not be.
    mutating func endSnapshot(into actions: inout [Action], now: Duration) {
        guard awaitsSnapshot else { return }
        changeBackgroundTime { $0.snapshotDue = nil }
        walk(into: &actions, now: now)
    }

    /// The app shows what nobody else is to see, until it has entered the background again.
    mutating func declineSnapshot(into actions: inout [Action], now: Duration) {
        guard case .running = phase else { return }
        declinesSnapshot = true
        endSnapshot(into: &actions, now: now)
    }

    /// Its time is up.
    mutating func missSnapshot(into actions: inout [Action], now: Duration) {
        guard let due = backgroundTime?.value.snapshotDue, due <= now else { return }
        actions.append(.report(.snapshotMissed))
        endSnapshot(into: &actions, now: now)
    }

    /// It leaves the background.
    mutating func dropSnapshot() {
        if awaitsSnapshot { changeBackgroundTime { $0.snapshotDue = nil } }
    }
}
