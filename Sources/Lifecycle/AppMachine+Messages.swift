// SPDX-License-Identifier: Apache-2.0

/// The message that a delegate works on although no transition waits for it: mail, performFetch, a memory warning.
/// It has a deadline of its own, `message_deadline`, in the app's running time.
extension AppMachine {
    /// For how long the app has worked on its message, in running time; nil if it works on none.
    public func messageTime(now: Duration) -> Duration? {
        backgroundTime?.value.messageSince.map { max(.zero, (suspendedSince ?? now) - $0) }
    }

    /// How much running time the app gets for the answer to its message; nil without a limit, or if it is late already.
    public var messageDue: Duration? {
        guard let time = backgroundTime?.value, let since = time.messageSince else { return nil }
        return time.messageDue.map { $0 - since }
    }

    /// When the answer to the message that the app works on is late. Nil if it works on none, if there is no limit, if
    /// the answer is late already, or while the app is suspended, since the time stands still then.
    var messageDeadline: Deadline? {
        guard suspendedSince == nil, let time = backgroundTime?.value, let since = time.messageSince,
            let due = time.messageDue
        else { return nil }
        return Deadline(kind: .message, started: since, at: due)
    }

    /// Whether the app works on a message whose deadline is not over, so that it must not fall asleep by itself.
    /// A user may still suspend it.
    public var isBusyWithMessage: Bool { backgroundTime?.value.messageDue != nil }

    /// Called when a message was sent to the delegate that no transition waits for.
    mutating func messageSent(now: Duration) {
        guard case .running(let running) = phase, running.state != .suspended else { return }
        if running.state == .background, running.edge?.transition != .suspending { isUnsaved = true }
        let due = rules.messageDeadline.map { now + $0 }
        changeBackgroundTime { time in
            time.messageSince = now
            time.messageDue = due
        }
    }

    /// Extends the deadline of the message that the app works on: the app has answered `pending`.
    mutating func extendMessage(to time: Duration, now: Duration) {
        guard let account = backgroundTime?.value, let since = account.messageSince, let due = account.messageDue,
            let limit = rules.extensionLimit ?? rules.messageDeadline.map({ $0 * 10 })
        else { return }
        let extended = max(due, min(now + time, since + limit))
        changeBackgroundTime { $0.messageDue = extended }
    }

    /// Called when the app has answered, or has no delegate that could. If only the message kept the app awake, the app
    /// is suspended now.
    mutating func endMessage(into actions: inout [Action], now: Duration) {
        guard let time = backgroundTime?.value, time.messageSince != nil else { return }
        forgetMessage()
        if time.messageDue != nil { released(into: &actions, now: now) }
    }

    /// Records that the app works on no message.
    mutating func forgetMessage() {
        guard backgroundTime?.value.messageSince != nil else { return }
        changeBackgroundTime { time in
            time.messageSince = nil
            time.messageDue = nil
        }
    }

    /// Handles a message that the app has not answered in time. In the background the app is terminated, as on iOS: it
    /// hangs, and keeps every other message waiting. In the foreground the miss is reported.
    mutating func missMessage(into actions: inout [Action], now: Duration) {
        guard let due = backgroundTime?.value.messageDue, due <= now, suspendedSince == nil else { return }
        changeBackgroundTime { $0.messageDue = nil }
        guard case .running(let running) = phase else { return }
        actions.append(.report(.messageMissed))
        let isUnseen = running.state == .background && running.edge?.transition != .enteringForeground
        if isUnseen || rules.onMissedTransition == .end {
            terminate(.unresponsive, politely: false, into: &actions, now: now)
        } else {
            released(into: &actions, now: now)
        }
    }

    /// Leaves a time in which the app could not run out of the time to answer.
    mutating func pauseMessage(from: Duration, to: Duration) {
        guard let time = backgroundTime?.value, let since = time.messageSince else { return }
        let pause = max(.zero, to - max(from, since))
        changeBackgroundTime { time in
            time.messageSince = since + pause
            time.messageDue = time.messageDue.map { $0 + pause }
        }
    }
}
