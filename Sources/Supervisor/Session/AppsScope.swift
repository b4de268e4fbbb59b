// SPDX-License-Identifier: Apache-2.0

import Engine
import Linux
import Processes
import ServiceManager

/// The systemd scope that the apps run in. The scope makes it possible to restart and upgrade the service while apps
/// run: apps below the service's own cgroup would make the start of the service fail (`219/CGROUP`).
///
/// A scope ends with its last process, so a placeholder process that does nothing keeps the scope alive. The
/// placeholder has a cgroup of its own, because a cgroup with controllers for its children must not contain processes
/// itself. The parent of the placeholder is the torpord that started it; when that has ended, torpor-keeper, and then
/// systemd. When the supervisor ends, it kills the placeholder, so that the scope ends too.
struct AppsScope {
    /// The scope's cgroup, as an absolute path.
    let path: String
    private var placeholder: String { path + "/placeholder" }

    /// Finds the scope of this service. If there is none, creates it.
    init(of service: ServiceManager) throws(ServiceManagerError) {
        if let path = try service.scope() {
            self.path = path
            guard !((try? Cgroup.events(path + "/placeholder").populated) ?? false) else { return }
            // The placeholder has ended, so the scope would end with its last app: start another placeholder.
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
