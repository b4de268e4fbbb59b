// SPDX-License-Identifier: Apache-2.0

import Engine
import Lifecycle
import Linux
import Processes

extension Keeper {
    /// Returns whether no app of an earlier torpord runs. If so, ends companion processes, such as those that
    /// transfer
    /// files for apps: they are useless without their apps.
    func endsWithoutApps() -> Bool {
        guard leftOver.allSatisfy({ $0.incarnation == AppTag.companion }) else { return false }
        for process in leftOver { try? Pidfd.sendSignal(process.pidfd.raw, Signal.kill) }
        return true
    }
}

extension Takeover {
    /// A companion process works for an app, or for a session, but is no run of an app: the room that launched it takes
    /// it over. If the configuration no longer has its app, it is ended with the other orphans.
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

    /// Whether a room has taken the process over.
    func isCompanion(_ pid: Int32) -> Bool { supervisor.transfers.hasFound(pid) || supervisor.desktop.hasFound(pid) }
}
