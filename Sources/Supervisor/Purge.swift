import Configuration
import EventLoop
import Linux
import Notify
import Processes

/// What apps declared purgeable: folders in memory (`purgeable`), and descriptors that they gave into keeping under a name
/// that begins with `purgeable`.
extension MemoryWatch {
    /// Drops it; how many bytes that was is known a little later.
    func purge(_ app: AppRuntime, _ completion: @escaping (UInt64) -> Void) {
        var bytes: UInt64 = 0
        for entry in app.store.removePurgeable() {
            bytes &+= (try? File.empty(entry.descriptor.raw)) ?? 0
            supervisor.letGo(of: entry, app)
        }
        let folders = app.specification.purgeable
        guard !folders.isEmpty, let user = app.tree.flatMap({ try? File.status("/proc/\($0.main.pid)").uid }) else {
            return supervisor.loop.later { completion(bytes) }
        }
        worker.purge(folders, ownedBy: user) { completion(bytes &+ $0) }
    }
}
