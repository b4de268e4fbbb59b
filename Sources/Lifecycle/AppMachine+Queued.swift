// SPDX-License-Identifier: Apache-2.0

/// The deadlines of messages that wait in the delegate's queue.
///
/// A delegate gets one message at a time. So a message that a transition waits for stays in the queue while the app
/// works on an earlier one. This time must not count, because the app cannot know of the message yet: its deadline
/// begins when the message is delivered (``AppEvent/delivered(_:)``). Until then the deadline is armed as if the
/// message were delivered at the last moment, when the earlier message is overdue. So the wait is always bounded, and
/// every version of torpord understands a record of such a deadline.
///
/// If the earlier message has no deadline, or is overdue already, the time of the later one begins at once. Otherwise
/// an app that hangs would stay in its transition forever.
///
/// One message is an exception: the didEnterBackground that comes again before a suspension. A user who suspends an app
/// waits no longer than for its answer, so its time always begins at once.
extension AppMachine {
    /// When a message that is queued now is delivered at the latest.
    func latestDelivery(now: Duration) -> Duration { backgroundTime?.value.messageDue ?? now }

    /// When a message about a scene that is queued now is delivered at the latest. It may be queued behind a message
    /// for the app itself, such as `resumed`.
    func latestSceneDelivery(now: Duration) -> Duration {
        guard case .running(let running) = phase, let message = running.edge?.awaiting, !Self.isForScenes(message),
            let deadline = edgeDeadline
        else { return latestDelivery(now: now) }
        return deadline.at
    }

    /// Whether the app works on a message that no transition waits for, so that it cannot have got the message of its
    /// transition yet.
    var worksOnEarlierMessage: Bool { backgroundTime?.value.messageSince != nil }

    /// Moves the deadlines of queued messages: `start` is the time at which the next message is delivered at the
    /// latest. Call this when the app begins to work on another message, gets more time for it, or is done with it.
    mutating func deferQueued(to start: Duration) {
        guard case .running(let running) = phase else { return }
        if running.edge?.awaiting != nil, !isSavingAgain { edgeDeadline?.move(toStart: start) }
        guard scenes != nil else { return }
        for (index, scene) in sceneMachines.enumerated() where !scene.isSavingAgain {
            guard var deadline = scene.deadline else { continue }
            deadline.move(toStart: latestSceneDelivery(now: start))
            scenes?.value[index].deadline = deadline
        }
    }

    /// Whether the app is about to be suspended. It still gets the messages of this transition, but its mail only when
    /// it is resumed.
    public var isAboutToSuspend: Bool {
        guard case .running(let running) = phase, effectiveGoal == .suspended, !isKeptAwake else { return false }
        return running.edge?.transition == .enteringBackground || running.state == .background && hasBusyScenes
    }
}
