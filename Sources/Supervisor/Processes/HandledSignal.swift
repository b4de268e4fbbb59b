// SPDX-License-Identifier: Apache-2.0

import Engine
import Linux

/// Whether a process that sends no answers has handled a signal.
///
/// A handler often runs some time after the kernel has delivered the signal (in an interpreter, between two of its
/// own instructions), so a stop right after the signal would come too early. Two signs can be seen from outside: the
/// signal is no longer pending, and the main thread sleeps again. If the thread keeps running, it is enough that it
/// has used some processor time.
struct HandledSignal {
    /// How long after the signal the app is stopped in any case: a program that blocks the signal never handles it.
    private static let patience = Duration.seconds(1)
    /// Processor time in clock ticks. A process that has used this much since the signal counts as having handled it,
    /// though it never sleeps.
    private static let enough: UInt64 = 5

    private let end: Duration
    /// The process's processor time, in clock ticks, when the signal was first seen to be delivered; nil before that.
    private var ticks: UInt64?

    /// - Parameter deadline: the time available for the handler and the stop; nil for no limit.
    init(since now: Duration, before deadline: Duration?) {
        end = now + min(Self.patience, (deadline ?? Self.patience * 2) / 2)
    }

    mutating func isHandled(_ number: Int32, by pid: Int32, now: Duration) -> Bool {
        guard now < end, let pending = try? ProcFS.pendingSignals(pid) else { return true }
        guard pending >> UInt64(number - 1) & 1 == 0 else { return false }
        guard let stat = try? ProcFS.stat(pid), stat.state == "R" || stat.state == "D" else { return true }
        let used = stat.userTicks + stat.systemTicks
        let first = ticks ?? used
        ticks = first
        return used - first >= Self.enough
    }
}
