// SPDX-License-Identifier: Apache-2.0

import Engine
import Linux

/// Whether a process that sends no answers has handled a signal.
///
/// A handler often runs only some time after the kernel has delivered the signal: an interpreter, for example, runs
/// handlers between two of its instructions. So a stop right after the signal would come too early. The signal counts
/// as handled when it is no longer pending and the main thread sleeps again. If the thread keeps running, it counts as
/// handled when the process has used some processor time.
struct HandledSignal {
    /// If the signal is not handled within this time, the app is stopped all the same, because a program that blocks
    /// the signal never handles it.
    private static let patience = Duration.seconds(1)
    /// A process that has used this much processor time since the signal, in clock ticks, counts as having handled it,
    /// even if its main thread never sleeps.
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
