// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Linux
import Notify
import Processes

/// Frees memory that apps declared purgeable: files in folders on tmpfs (`purgeable`), and stored descriptors whose
/// names begin with `purgeable`.
extension MemoryWatch {
    /// Frees the app's purgeable memory. Calls `completion` later with the number of bytes freed.
    func purge(_ app: AppRuntime, _ completion: @escaping (UInt64) -> Void) {
        let entries = app.store.removePurgeable()
        // Only files can be emptied. torpord closes everything else now, so that it is not the last to do so.
        let files = entries.map(\.descriptor).compactMap { descriptor -> Descriptor? in
            guard (try? File.status(descriptor: descriptor.raw))?.kind == .regular else { return nil }
            return try? descriptor.duplicate()
        }
        for entry in entries { host.letGo(of: entry, app) }
        let user = app.run.tree.flatMap { try? File.status("/proc/\($0.main.pid)").uid }
        worker.purge(files, app.specification.purgeable, ownedBy: user, completion)
    }
}
