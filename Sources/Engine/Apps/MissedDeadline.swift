// SPDX-License-Identifier: Apache-2.0

package import Lifecycle

package final class MissedDeadline {
    package let deadline: Deadline
    /// When the miss was detected.
    package let at: Duration
    /// The message that was not answered in time.
    package let message: Message?
    /// When the app answered `message`, which was too late; nil if it has not answered.
    package var answeredAt: Duration?

    package init(_ deadline: Deadline, at: Duration, message: Message?) {
        self.deadline = deadline
        self.at = at
        self.message = message
    }

    /// The time that the app had: from the start to the deadline.
    package var granted: Duration { deadline.at - deadline.started }
}
