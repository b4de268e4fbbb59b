// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Lifecycle
import Linux
import Processes
import Store

/// Releases memory that only a start or a change of the configuration needs: texts, tables that have grown, and pages
/// of code that runs once. The memory is released once, right after the start or change, so that an idle torpord never
/// wakes up for this work. Afterwards, torpord locks its remaining memory if it is permitted to, because it must not
/// wait for swap while it frees memory for apps.
package final class MemoryTrim: ShellRoom {
    package unowned(unsafe) let supervisor: Supervisor
    /// Fires when the start, or a change of the configuration, may be over, so that its memory can be released.
    private var timer: TimerSource?
    private var tries = 0
    private var mark: UInt32?

    package init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    private static let settlingTime = Duration.milliseconds(250)
    private static let mostTries = 240

    /// Releases memory once the launches in progress are over and 250 ms pass without another launch. Gives up after a
    /// minute.
    package func soon() {
        if timer == nil { timer = try? loop.timer { [weak self] in self?.rest() } }
        tries = 0
        timer?.arm(after: Self.settlingTime)
    }

    private func rest() {
        let isQuiet = !supervisor.keeper.isBusy && supervisor.keeper.lastRequest == mark
        mark = supervisor.keeper.lastRequest
        tries += 1
        // Wait while any other thread of torpord is at work. If a disk hangs, the store's thread stays busy, and no
        // memory is released.
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
        // Unlock first: locked memory cannot be released.
        Memory.unlock()
        Memory.release()
        Memory.lock()
        loop.releasesCode = true
    }
}
