// SPDX-License-Identifier: Apache-2.0

package import Lifecycle

/// A deadline that was missed.
package final class MissedDeadline {
    package let deadline: Deadline
    /// When the miss was detected.
    package let at: Duration
    /// The message that was not answered in time.
    package let message: Message?
    /// When the message was answered after all.
    package var answeredAt: Duration?

    package init(_ deadline: Deadline, at: Duration, message: Message?) {
        self.deadline = deadline
        self.at = at
        self.message = message
    }

    /// The time between start and deadline.
    package var granted: Duration { deadline.at - deadline.started }
}
