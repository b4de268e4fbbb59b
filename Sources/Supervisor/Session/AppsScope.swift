// SPDX-License-Identifier: Apache-2.0

import Engine
import Linux
import Processes
import ServiceManager

/// The scope in which apps live under systemd, so that the service can be restarted and upgraded under them: apps below the
/// service's own cgroup would keep it from starting (`219/CGROUP`).
///
/// A scope is there as long as it has processes. One that does nothing keeps it, in a cgroup of its own, since a cgroup
/// that hands controllers down may have no processes itself. It is a child of the torpord that made it, then of the keeper,
/// then of systemd; at the supervisor's end it goes, and the scope with it.
struct AppsScope {
    /// Its cgroup, an absolute path.
    let path: String
    private var placeholder: String { path + "/placeholder" }

    /// The scope of this service, made unless it is there.
    init(of service: ServiceManager) throws(ServiceManagerError) {
        if let path = try service.scope() {
            self.path = path
            guard !((try? Cgroup.events(path + "/placeholder").populated) ?? false) else { return }
            // Apps keep it for now.
            try settle(try Self.startPlaceholder(), of: service)
        } else {
            let process = try Self.startPlaceholder()
            path = try service.makeScope(around: process.pid)
            try settle(process, of: service)
        }
    }

    /// Gives the placeholder its cgroup.
    private func settle(_ process: ChildProcess, of service: ServiceManager) throws(ServiceManagerError) {
        do throws(Errno) {
            try Cgroup.create(placeholder)
            try Cgroup.add(placeholder, pid: process.pid)
        } catch {
            throw ServiceManagerError("\(placeholder) cannot be used: \(error)")
        }
        process.abandon()
    }

    /// Ends what keeps it, and so the scope as soon as no app is in it.
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
