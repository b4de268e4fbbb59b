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
/// Two kinds of messages are exceptions, since a user waits for them, so their time begins at once: the
/// didEnterBackground that comes again before a suspension, and messages of an app that comes to the foreground, unless
/// missing their deadline ends the app.
extension AppMachine {
    /// When the time of `message`, which is queued now, begins at the latest.
    func latestStart(of message: Message, now: Duration) -> Duration {
        isWaitedFor(message) || isSavingAgain ? now : backgroundTime?.value.messageDue ?? now
    }

    /// When the time of `message`, which is about a scene and queued now, begins at the latest. It may be queued behind
    /// a message for the app itself, such as `resumed`.
    func latestSceneStart(of message: Message, now: Duration) -> Duration {
        guard case .running(let running) = phase, let earlier = running.edge?.awaiting, !Self.isForScenes(earlier),
            let deadline = edgeDeadline
        else { return latestStart(of: message, now: now) }
        return deadline.at
    }

    /// Whether a user waits until the app has got `message`: it brings the app to the foreground, and the app gets
    /// there without an answer too.
    private func isWaitedFor(_ message: Message) -> Bool {
        switch message {
        case .resumed, .willEnterForeground, .didBecomeActive, .sceneWillEnterForeground, .sceneDidBecomeActive:
            rules.onMissedTransition != .end
        default: false
        }
    }

    /// Whether the app works on a message that no transition waits for, so that it cannot have got the message of its
    /// transition yet.
    var worksOnEarlierMessage: Bool { backgroundTime?.value.messageSince != nil }

    /// Moves the deadlines of queued messages: `start` is the time at which the next message is delivered at the
    /// latest. Call this when the app begins to work on another message, gets more time for it, or is done with it.
    mutating func deferQueued(to start: Duration) {
        guard case .running(let running) = phase else { return }
        if let message = running.edge?.awaiting, !isSavingAgain, !isWaitedFor(message) {
            edgeDeadline?.move(toStart: start)
        }
        guard scenes != nil else { return }
        for (index, scene) in sceneMachines.enumerated() where !scene.isSavingAgain {
            guard let message = scene.awaiting, !isWaitedFor(message), var deadline = scene.deadline else { continue }
            deadline.move(toStart: latestSceneStart(of: message, now: start))
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
