// SPDX-License-Identifier: Apache-2.0

import Linux

/// Decides whether to wait longer for an answer that is overdue. The time during which the machine keeps a policy's
/// process from running does not count against the policy.
struct Patience {
    /// What is known about the process and the machine when the answer is overdue.
    struct Look {
        /// The state letter of /proc/PID/stat; nil if it cannot be read.
        var state: Character?
        /// How long the process ran and how long it waited for a processor; nil if it cannot be read.
        var scheduling: Scheduling?
        /// Whether tasks of the machine wait for memory, which may keep the process from running.
        var isMachineStalled: Bool
    }

    enum Verdict: Hashable {
        /// Wait for this time, then check again.
        case look(after: Duration)
        /// The policy took too long.
        case late
        /// The machine has stalled for too long: stop waiting.
        case stalled
    }

    /// The interval of checks after the deadline.
    static let interval = Duration.milliseconds(50)
    /// The minimum time to wait after the deadline. If the deadline itself is longer than this, the wait after it is as
    /// long as the deadline.
    static let shortest = Duration.milliseconds(1500)

    private var left: Duration
    /// The process's scheduling statistics when the wait began or, if these are unknown, at the first check after the
    /// deadline.
    private var first: Scheduling?

    /// - Parameters:
    ///   - deadline: the time that the answer may take.
    ///   - first: the process's scheduling when the wait for the answer began; nil if it was not read.
    init(deadline: Duration, first: Scheduling? = nil) {
        left = max(deadline, Self.shortest)
        self.first = first
    }

    /// Decides at the deadline, and again after each ``interval``, whether to wait longer.
    mutating func judge(_ look: Look) -> Verdict {
        // State D counts as stalled: a process that waits for a page from a disk or from swap is in this state.
        let isStalled = look.isMachineStalled || look.state == "D"
        guard isStalled || waitsForProcessor(look) else { return .late }
        guard left > .zero else { return isStalled ? .stalled : .late }
        left -= Self.interval
        return .look(after: Self.interval)
    }

    private mutating func waitsForProcessor(_ look: Look) -> Bool {
        guard look.state == "R", let now = look.scheduling else { return false }
        // One reading does not show whether the process computes or waits for a processor. So wait for a second
        // reading.
        guard let first else {
            self.first = now
            return true
        }
        return now.waited - first.waited >= now.ran - first.ran
    }
}
