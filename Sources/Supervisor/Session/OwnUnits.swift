// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import Linux
package import Processes
package import TorporAPI

/// The service manager's units to which the processes of this supervisor and its apps belong.
struct OwnUnits {
    /// The names of the units; the units of the apps come first. Empty if the processes belong to no unit.
    let names: [String]
    /// The user whose service manager runs the units; nil if it is the system's service manager.
    let user: UInt32?

    /// - Parameter paths: cgroups relative to the mount point of the hierarchy, such as
    ///   `/system.slice/torpord.service`.
    init(paths: [String]) {
        var names: [String] = []
        var user: UInt32?
        for path in paths {
            guard let unit = Self.unit(of: path), !names.contains(unit.name) else { continue }
            names.append(unit.name)
            user = unit.user
        }
        self.names = names
        self.user = user
    }

    /// The units of this process and of the cgroups for apps.
    init(apps cgroups: CgroupTree?) {
        let mount = Cgroup.mount ?? ""
        let own = (try? ProcFS.cgroup(ThisProcess.pid)).flatMap { $0 }
        self.init(paths: [cgroups.map { String($0.base.dropFirst(mount.count)) }, own].compactMap { $0 })
    }

    /// The systemd unit that a cgroup belongs to, found in the same way as in journald: the first part of the path that
    /// is not a slice; nil if there is none. If `user@UID.service` is in the path, the unit belongs to that user's
    /// service manager.
    private static func unit(of path: String) -> (name: String, user: UInt32?)? {
        var parts = path.split(separator: "/")[...]
        var user: UInt32?
        if let manager = parts.firstIndex(where: { $0.hasPrefix("user@") && $0.hasSuffix(".service") }),
            let number = UInt32(parts[manager].dropFirst(5).dropLast(8))
        {
            user = number
            parts = parts[(manager + 1)...]
        }
        guard let first = parts.first(where: { !$0.hasSuffix(".slice") }),
            first.hasSuffix(".service") || first.hasSuffix(".scope")
        else { return nil }
        return (String(first), user)
    }
}

extension JournalPlace {
    /// Where to find the output of an app in the journal.
    package init(of app: AppRuntime, _ cgroups: CgroupTree?) {
        let units = OwnUnits(apps: cgroups)
        self.init(identifier: app.name, units: units.names, user: units.user)
        guard app.specification.container == nil else { return }
        supervisor = Users.effectiveUID
        account = app.specification.user
        cgroup = cgroups.map { $0.path(of: app.name).split(separator: "/").suffix(2).joined(separator: "/") }
    }
}
