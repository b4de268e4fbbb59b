// SPDX-License-Identifier: Apache-2.0

import Engine
import Linux

/// Whether a process that says nothing has got to what a signal told it.
///
/// A handler often runs a while after the kernel has delivered the signal (of an interpreter, between two instructions of
/// its own), so a stop right behind it would come first. What can be seen from outside: the signal is not pending any
/// more, and the main thread sleeps again; one that works on and on has had processor time enough.
struct HandledSignal {
    /// The longest wait; a program that blocks the signal never takes it.
    private static let patience = Duration.seconds(1)
    /// Processor time of a process that does not come to rest, clock ticks.
    private static let enough: UInt64 = 5

    private let end: Duration
    /// Its processor time when the signal was seen to be delivered.
    private var ticks: UInt64?

    /// - Parameter deadline: the time that there is for it and for the stop; nil: without end.
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
