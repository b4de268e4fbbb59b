// SPDX-License-Identifier: Apache-2.0

import Engine
import Linux
import Processes
import ServiceManager

/// The systemd scope that the apps run in. Because of it, the service can be restarted and upgraded while the apps
/// run: apps below the service's own cgroup would keep the service from starting (`219/CGROUP`).
///
/// A scope ends with its last process, so a placeholder process that does nothing keeps the scope alive. The
/// placeholder has a cgroup of its own, since a cgroup that delegates controllers may not contain processes itself.
/// Its parent is the torpord that started it, later torpor-keeper, then systemd. The supervisor kills the placeholder
/// when it ends, and thereby ends the scope.
struct AppsScope {
    /// The scope's cgroup, as an absolute path.
    let path: String
    private var placeholder: String { path + "/placeholder" }

    /// Finds the scope of this service, or makes it.
    init(of service: ServiceManager) throws(ServiceManagerError) {
        if let path = try service.scope() {
            self.path = path
            guard !((try? Cgroup.events(path + "/placeholder").populated) ?? false) else { return }
            // The placeholder is gone, so the scope would end with its last app: start another placeholder.
            try settle(try Self.startPlaceholder(), of: service)
        } else {
            let process = try Self.startPlaceholder()
            path = try service.makeScope(around: process.pid)
            try settle(process, of: service)
        }
    }

    /// Moves the placeholder process into a cgroup of its own.
    private func settle(_ process: ChildProcess, of service: ServiceManager) throws(ServiceManagerError) {
        do throws(Errno) {
            try Cgroup.create(placeholder)
            try Cgroup.add(placeholder, pid: process.pid)
        } catch {
            throw ServiceManagerError("\(placeholder) cannot be used: \(error)")
        }
        process.abandon()
    }

    /// Kills the placeholder, so that the scope ends as soon as no app is in it.
    func release() {
        if (try? Cgroup.kill(placeholder)) != nil { return }
        for pid in (try? Cgroup.procs(placeholder)) ?? [] {
            if let pidfd = try? Pidfd.open(pid) { try? Pidfd.sendSignal(pidfd.raw, Signal.kill) }
        }
    }

    private static func startPlaceholder() throws(ServiceManagerError) -> ChildProcess {
        guard let keeper = Keeper.findProgram() else { throw ServiceManagerError("torpor-keeper is not found") }
        do throws(Errno) {
            return try ChildProcess(
                keeper,
                arguments: [keeper, "--placeholder"],
                environment: [],
                descriptors: []
            )
        } catch {
            throw ServiceManagerError("\(keeper) cannot be run: \(error)")
        }
    }
}
