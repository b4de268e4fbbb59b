// SPDX-License-Identifier: Apache-2.0

import Linux

/// Whether an answer that is due is still waited for: the time in which the machine keeps a policy's process from running
/// is not the policy's.
struct Patience {
    /// How the process and the machine are doing when the answer is due, or overdue.
    struct Look {
        /// The state of the process, as in /proc/PID/stat; nil when it cannot be read.
        var state: Character?
        /// The processor time of the process; nil when it cannot be read.
        var scheduling: Scheduling?
        /// Work waits for memory, so that whatever runs may be kept from it.
        var isMachineStalled: Bool
    }

    enum Verdict: Hashable {
        /// Wait, and look again after this.
        case look(after: Duration)
        /// The policy took too long.
        case late
        /// The machine stalls for so long that the answer is not waited for any more.
        case stalled
    }

    /// How often it is looked at once the deadline is over.
    static let interval = Duration.milliseconds(50)
    /// What a policy with a short deadline gets beyond it; one with a longer deadline gets as long again.
    static let shortest = Duration.milliseconds(1500)

    private var left: Duration
    /// An earlier reading, and where there is none yet, what there was when the process began.
    private var first: Scheduling?

    /// - Parameters:
    ///   - deadline: the time that the policy has.
    ///   - first: how its process stood when that began; nil when nobody looked.
    init(deadline: Duration, first: Scheduling? = nil) {
        left = max(deadline, Self.shortest)
        self.first = first
    }

    /// Judges at the deadline, and each ``interval`` after it.
    mutating func judge(_ look: Look) -> Verdict {
        // A page that comes from a disk or from swap is waited for in state D.
        let isStalled = look.isMachineStalled || look.state == "D"
        guard isStalled || waitsForProcessor(look) else { return .late }
        guard left > .zero else { return isStalled ? .stalled : .late }
        left -= Self.interval
        return .look(after: Self.interval)
    }

    private mutating func waitsForProcessor(_ look: Look) -> Bool {
        guard look.state == "R", let now = look.scheduling else { return false }
        // Whether it calculates or waits is known when there are two readings.
        guard let first else {
            self.first = now
            return true
        }
        return now.waited - first.waited >= now.ran - first.ran
    }
}
