// SPDX-License-Identifier: Apache-2.0

package import Lifecycle

/// A deadline that was missed.
package final class MissedDeadline {
    package let deadline: Deadline
    /// When that was found.
    package let at: Duration
    /// What was to be answered by then.
    package let message: Message?
    /// When that was answered after all.
    package var answeredAt: Duration?

    package init(_ deadline: Deadline, at: Duration, message: Message?) {
        self.deadline = deadline
        self.at = at
        self.message = message
    }

    /// How long it was.
    package var granted: Duration { deadline.at - deadline.started }
}
