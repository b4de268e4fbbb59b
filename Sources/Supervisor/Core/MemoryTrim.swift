// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Lifecycle
import Linux
import Processes
import Store

/// A start, or an apply, takes memory that nothing needs once it is over: texts, tables that have grown, pages of the
/// program that run once. It is given back then, once, so that an idle torpord is small and never woken for it. What
/// is left stays in memory from then on, where that is allowed: who makes room for others must not wait for it.
package final class MemoryTrim: ShellRoom {
    package unowned(unsafe) let supervisor: Supervisor
    /// Runs until what was begun is over, and nothing of it needs to stay in memory.
    private var timer: TimerSource?
    private var tries = 0
    private var mark: UInt32?

    package init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    private static let settlingTime = Duration.milliseconds(250)
    private static let mostTries = 240

    /// Gives memory back as soon as the launches that were begun are over, and nothing follows for a moment.
    package func soon() {
        if timer == nil { timer = try? loop.timer { [weak self] in self?.rest() } }
        tries = 0
        timer?.arm(after: Self.settlingTime)
    }

    private func rest() {
        let isQuiet = !supervisor.keeper.isBusy && supervisor.keeper.lastRequest == mark
        mark = supervisor.keeper.lastRequest
        tries += 1
        // Whoever else is in the program may be writing, whichever room it belongs to. A disk that hangs keeps the store's
        // thread at it: then it stays as it is.
        let threads = (try? ProcFS.tasks(ThisProcess.pid).count) ?? .max
        guard isQuiet, threads <= 1 + supervisor.store.threadCount, supervisor.store.whileIdle({ release() })
        else {
            if tries < Self.mostTries {
                timer?.arm(after: Self.settlingTime)
            } else {
                timer = nil
                Memory.lock()
            }
            return
        }
        timer = nil
    }

    private func release() {
        supervisor.keeper.rest()
        coordinator.trim()
        // What is locked cannot be given back.
        Memory.unlock()
        Memory.release()
        Memory.lock()
    }
}
