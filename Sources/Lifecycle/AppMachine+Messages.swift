// SPDX-License-Identifier: Apache-2.0

/// Handles messages to a delegate that no transition waits for: mail, performFetch, a memory warning. The answer to
/// such a message has a deadline of its own, `message_deadline`, which counts only time in which the app runs.
extension AppMachine {
    /// How long the app has been working on a message that no transition waits for, not counting time in which the app
    /// could not run. Nil if the app works on no such message.
    public func messageTime(now: Duration) -> Duration? {
        backgroundTime?.value.messageSince.map { max(.zero, (suspendedSince ?? now) - $0) }
    }

    /// How much time the app gets in total to answer the message that it works on, not counting time in which the app
    /// cannot run. Nil if the app works on no such message, or if its time is unlimited or over.
    public var messageDue: Duration? {
        guard let time = backgroundTime?.value, let since = time.messageSince else { return nil }
        return time.messageDue.map { $0 - since }
    }

    /// When the app must have answered the message that it works on. Nil if it works on no message, if the time is
    /// unlimited or over, or while the app is suspended, because the time in suspension does not count.
    var messageDeadline: Deadline? {
        guard suspendedSince == nil, let time = backgroundTime?.value, let since = time.messageSince,
            let due = time.messageDue
        else { return nil }
        return Deadline(kind: .message, started: since, at: due)
    }

    /// Whether the app works on a message whose deadline is not over. If so, torpord does not suspend the app by
    /// itself, but a user may still suspend it.
    public var isBusyWithMessage: Bool { backgroundTime?.value.messageDue != nil }

    /// Called when the delegate was sent a message that no transition waits for.
    mutating func messageSent(now: Duration) {
        guard case .running(let running) = phase, running.state != .suspended else { return }
        if running.state == .background, running.edge?.transition != .suspending { isUnsaved = true }
        let due = rules.messageDeadline.map { now + $0 }
        changeBackgroundTime { time in
            time.messageSince = now
            time.messageDue = due
        }
        if let due { deferQueued(to: due) }
    }

    /// Extends the deadline of the message that the app works on, because the app has answered `pending`.
    mutating func extendMessage(to time: Duration, now: Duration) {
        guard let account = backgroundTime?.value, let since = account.messageSince, let due = account.messageDue,
            let limit = rules.extensionLimit ?? rules.messageDeadline.map({ $0 * 10 })
        else { return }
        let extended = max(due, min(now + time, since + limit))
        changeBackgroundTime { $0.messageDue = extended }
        deferQueued(to: extended)
    }

    /// Called when the app has answered the message that it works on, or when no delegate is connected that could
    /// answer. If only the message kept the app awake, the app is suspended now.
    mutating func endMessage(into actions: inout [Action], now: Duration) {
        guard let time = backgroundTime?.value, time.messageSince != nil else { return }
        forgetMessage()
        guard time.messageDue != nil else { return }
        deferQueued(to: now)
        released(into: &actions, now: now)
    }

    /// Records that the app works on no message.
    mutating func forgetMessage() {
        guard backgroundTime?.value.messageSince != nil else { return }
        changeBackgroundTime { time in
            time.messageSince = nil
            time.messageDue = nil
        }
    }

    /// Handles a message that the app has not answered in time. In the background, torpord terminates the app, as iOS
    /// does: the app hangs, so every other message for the app would wait. In the foreground, torpord only reports the
    /// missed deadline.
    mutating func missMessage(into actions: inout [Action], now: Duration) {
        guard let due = backgroundTime?.value.messageDue, due <= now, suspendedSince == nil else { return }
        changeBackgroundTime { $0.messageDue = nil }
        deferQueued(to: now)
        guard case .running(let running) = phase else { return }
        actions.append(.report(.messageMissed))
        let isUnseen = running.state == .background && running.edge?.transition != .enteringForeground
        if isUnseen || rules.onMissedTransition == .end {
            terminate(.unresponsive, politely: false, into: &actions, now: now)
        } else {
            released(into: &actions, now: now)
        }
    }

    /// Moves the deadline of the message later by the time in which the app could not run.
    mutating func pauseMessage(from: Duration, to: Duration) {
        guard let time = backgroundTime?.value, let since = time.messageSince else { return }
        let pause = max(.zero, to - max(from, since))
        changeBackgroundTime { time in
            time.messageSince = since + pause
            time.messageDue = time.messageDue.map { $0 + pause }
        }
        if let due = backgroundTime?.value.messageDue { deferQueued(to: due) }
    }
}
