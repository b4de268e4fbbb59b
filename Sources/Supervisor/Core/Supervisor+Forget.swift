// SPDX-License-Identifier: Apache-2.0

package import Engine
import EventLoop
import Lifecycle
import Linux
import Notify
import Output
import Processes
import Recovery
import Store
import VarlinkServer

/// Removes what was created for apps that have left the configuration and have ended, except their logs and state
/// directories. State archives and snapshots are removed too, because no other app could use them.
extension Supervisor {
    /// Removes directories of apps that are no longer configured, in case an earlier torpord ended before it could
    /// remove them.
    func forgetDirectories() {
        let known = Set(apps.map(\.name))
        for name in (try? File.list(runtime.apps)) ?? [] where !known.contains(name) {
            _ = try? runtime.removed.take(runtime.apps + "/" + name)
        }
        if runtime.removed.isThere { runtimeRepair.clearRemoved() }
    }

    package func forget(_ app: AppRuntime) {
        let isDiscarded = scenes.session(of: app)?.isDiscarded ?? false
        note(app, .removed, text: isDiscarded ? "was discarded" : "was removed from the configuration, and is gone")
        apps.remove(app)
        if let capture = app.capture {
            keeper.release(DescriptorName.output(app.name))
            capture.close(remove: true)
            app.capture = nil
        }
        if let socket = app.notifySocket {
            app.notifySource?.cancel()
            app.notifySource = nil
            socket.close()
            app.notifySocket = nil
            // Afterwards: torpor-keeper has sockets closed last, since that may block.
            keeper.release(DescriptorName.notify(app.name))
        }
        for entry in app.store.entries { notifySockets.letGo(of: entry, app) }
        app.store = FDStore()
        // Free the slot in the recovery file last: if torpord dies before, the next torpord repeats the removal.
        if let slot = app.slot { recovery.remove(slot) }
        app.slot = nil
        do throws(Errno) {
            if try runtime.removed.take(runtime.directory(of: app)) { runtimeRepair.clearRemoved() }
        } catch {
            log.warning("cannot remove \(runtime.directory(of: app)): \(error)")
        }
    }
}
