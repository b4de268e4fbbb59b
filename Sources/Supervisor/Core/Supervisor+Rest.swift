// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Lifecycle
import Linux
import Processes
import Store

/// A start, or an apply, takes memory that nothing needs once it is over: texts, tables that have grown, pages of the
/// program that run once. It is given back then, once, so that an idle torpord is small and never woken for it. What
/// is left stays in memory from then on, where that is allowed: who makes room for others must not wait for it.
extension Supervisor {
    private static let settlingTime = Duration.milliseconds(250)
    private static let mostTries = 240

    /// Gives memory back as soon as the launches that were begun are over, and nothing follows for a moment.
    func restSoon() {
        if restTimer == nil { restTimer = try? loop.timer { [weak self] in self?.rest() } }
        restTries = 0
        restTimer?.arm(after: Self.settlingTime)
    }

    private func rest() {
        let isQuiet = !keeper.isBusy && keeper.lastRequest == restMark
        restMark = keeper.lastRequest
        restTries += 1
        // Whoever else is in the program may be writing, whichever room it belongs to. A disk that hangs keeps the store's
        // thread at it: then it stays as it is.
        let threads = (try? ProcFS.tasks(ThisProcess.pid).count) ?? .max
        guard isQuiet, threads <= 1 + store.threadCount, store.whileIdle({ release() })
        else {
            if restTries < Self.mostTries {
                restTimer?.arm(after: Self.settlingTime)
            } else {
                restTimer = nil
                Memory.lock()
            }
            return
        }
        restTimer = nil
    }

    private func release() {
        keeper.rest()
        coordinator.trim()
        // What is locked cannot be given back.
        Memory.unlock()
        Memory.release()
        Memory.lock()
    }
}
