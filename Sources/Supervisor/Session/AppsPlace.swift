// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Lifecycle
import Linux
package import Processes
import Recovery
import ServiceManager

/// Chooses the cgroups for the apps. If torpord is a service of systemd, also finds out whether a stop of the service
/// ends the apps.
package final class AppsPlace: ShellRoom {
    package unowned(unsafe) let supervisor: Supervisor
    package private(set) var cgroups: CgroupTree?
    /// Why apps have no cgroups; nil if they have.
    package private(set) var trouble: String?
    /// systemd; nil if torpord is not one of its services.
    private(set) var manager: ServiceManager?
    /// The scope of the apps under systemd; nil if there is none.
    private(set) var scope: AppsScope?

    package init(_ supervisor: Supervisor) {
        self.supervisor = supervisor
        findCgroups()
    }

    /// Chooses the cgroups for the apps. Under systemd they are in a scope beside the service. If there is no scope,
    /// they are below the service's own cgroup, or wherever a cgroup can be made.
    private func findCgroups() {
        scope = nil
        if supervisor.keeper.isUnderManager {
            do throws(ServiceManagerError) {
                manager = try ServiceManager(main: supervisor.keeper.pid)
                scope = try manager.map { manager throws(ServiceManagerError) in try AppsScope(of: manager) }
            } catch {
                log.warning("systemd gives no scope for the apps (\(error)): a restart of the service ends them")
            }
        }
        do throws(CgroupsUnavailable) {
            let cgroups = try CgroupTree(instance: supervisor.runtime.instance, scope: scope?.path)
            self.cgroups = cgroups
            supervisor.processes.countsMemory = cgroups.controllers.contains("memory")
            // Apps that run may be in another place, which only the next takeover finds out.
            if supervisor.recovery.place != cgroups.digest { supervisor.recovery.place = 0 }
        } catch {
            trouble = error.description
        }
    }

    /// Whether the kernel may count the memory of the app's cgroup at `path`. It does not in the place that torpord has
    /// chosen, if this one has no memory controller: then the files that tell of memory are missing.
    func countsMemory(_ path: String) -> Bool {
        guard !supervisor.processes.countsMemory, let cgroups else { return true }
        return !path.hasPrefix(cgroups.base + "/")
    }

    /// Makes the systemd scope again after it was stopped. The stop has ended all apps in it.
    func repairScope() {
        guard let manager, let scope, !File.exists(scope.path) else { return }
        log.warning("\(manager.scopeName) is gone: making another one")
        findCgroups()
    }

    /// The reason for which apps keep running when the supervisor stops, in a few words; nil if they are ended.
    ///
    /// systemd sends the same SIGTERM for a stop and for a restart of the service, so torpord asks systemd which one it
    /// is.
    var reasonToLeaveApps: String? {
        // In a container, torpor-keeper is the first process: when it ends, the kernel ends all other processes too.
        if supervisor.keeper.pid == 1 { return nil }
        if supervisor.configuration.supervisor.onExit == .leave {
            // What systemd ends with the machine gets no message, and a frozen app not even its signal.
            if let manager, (try? manager.isEnding()) ?? false { return nil }
            return "on_exit = \"leave\""
        }
        guard let manager else { return nil }
        do throws(ServiceManagerError) {
            guard try manager.job() == "restart" else { return nil }
        } catch {
            log.warning("systemd does not say whether it stops or restarts the service (\(error)): taken for a stop")
            return nil
        }
        if scope == nil { log.warning("a restart ends the apps, since they live in the service's own cgroup") }
        return scope == nil ? nil : "the service is restarted"
    }
}
