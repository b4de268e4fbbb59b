// SPDX-License-Identifier: Apache-2.0

import Engine
import Lifecycle
import Linux
import Processes

extension Keeper {
    /// Returns whether no app of an earlier torpord is running. If none is, kills all companions: helper processes that
    /// work for apps, for example by transferring files, and are useless without them.
    func endsWithoutApps() -> Bool {
        guard leftOver.allSatisfy({ $0.incarnation == AppTag.companion }) else { return false }
        for process in leftOver { try? Pidfd.sendSignal(process.pidfd.raw, Signal.kill) }
        return true
    }
}

extension Takeover {
    /// Passes each companion (a helper process of an app or a session) to the part of the supervisor by which the
    /// earlier torpord launched it. A companion whose app is no longer configured is ended together with the other
    /// orphans.
    func takeCompanions(_ left: inout [AppTag: OrphanedProcess]) {
        let companions = supervisor.keeper.leftOver.filter { $0.incarnation == AppTag.companion }
        for (name, processes) in Dictionary(grouping: companions, by: \.app) {
            if name == Desktop.name {
                left[AppTag(app: name, incarnation: AppTag.companion)] = nil
                supervisor.desktop.found(processes)
                continue
            }
            guard let id = coordinator.id(of: name) else { continue }
            left[AppTag(app: name, incarnation: AppTag.companion)] = nil
            supervisor.transfers.found(processes, of: apps[id])
        }
    }

    /// Whether the process is a companion (a helper process of an app or a session) that a part of the supervisor has
    /// taken over.
    func isCompanion(_ pid: Int32) -> Bool { supervisor.transfers.hasFound(pid) || supervisor.desktop.hasFound(pid) }
}
