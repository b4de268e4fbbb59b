// SPDX-License-Identifier: Apache-2.0

public import Linux

/// Why apps cannot have cgroups, in a sentence.
public struct CgroupsUnavailable: Error, Hashable, Sendable, CustomStringConvertible {
    /// The sentence.
    public let description: String
}

/// The cgroup below which every app gets its own.
public final class CgroupTree {
    /// The absolute path of the cgroup that contains the apps' cgroups (and no process itself).
    public let base: String
    /// The absolute path of the cgroup that contains `base`.
    public let place: String
    private let instance: String
    /// The controllers of the apps' cgroups, such as `memory`.
    public private(set) var controllers: [String] = []

    /// Finds a place and tests it: the apps' scope if there is one, else this process's cgroup, else, for root, the
    /// v2 mount. `instance` distinguishes supervisors; it stays the same over a restart.
    public init(
        instance: String,
        scope: String? = nil,
        mount: String? = Cgroup.mount
    ) throws(CgroupsUnavailable) {
        guard let mount else {
            throw CgroupsUnavailable(
                description: "cgroup v2 is not mounted: apps are followed by session and descent instead"
            )
        }
        let own = Self.withoutOwnPart((try? ProcFS.cgroup(ThisProcess.pid)).flatMap { $0 } ?? "/")
        var places = [own == "/" ? mount : mount + own]
        if let scope { places.insert(scope, at: 0) }
        if Users.isRoot, !places.contains(mount) { places.append(mount) }
        var reason = ""
        for place in places {
            let path = place + "/torpor-apps-" + Self.fileName(instance)
            do throws(Errno) {
                // A launch moves a process from here into an app's cgroup, which needs write permission in both.
                guard File.isWritable(place + "/cgroup.procs") else { throw .permissionDenied }
                try Cgroup.create(path)
                try Cgroup.freeze(path, false)
                base = path
                self.place = place
                self.instance = instance
                controllers = CgroupPlace(place, instance: instance).handDown(to: path)
                return
            } catch {
                reason = "\(place) cannot be used (\(error))"
            }
        }
        throw CgroupsUnavailable(
            description: "no cgroup for apps: \(reason); run as root, in a unit with Delegate=yes, or by systemd-run "
                + "--user --scope -p Delegate=yes"
        )
    }

    /// The name used instead of the app's for the cgroup of its transfers. No app can have this name.
    public static func transfers(of app: String) -> String { app + ":transfers" }

    /// The name used instead of the app's for the cgroup of its checks (`ready`, `health`). No app can have this name.
    public static func checks(of app: String) -> String { app + ":checks" }

    /// The path of an app's cgroup, whether or not it exists.
    public func path(of app: String) -> String { base + "/" + Self.fileName(app) }

    /// The path of the cgroup in which an earlier supervisor launched an app, perhaps in a different place; found from
    /// `pid`, a process of the app. If the process is in no such cgroup, the path for a launch now.
    public func path(of app: String, around pid: Int32) -> String {
        let parent = base.split(separator: "/").last ?? ""
        let name = Self.fileName(app)
        guard let group = (try? ProcFS.cgroup(pid)).flatMap({ $0 }), let mount = Cgroup.mount else {
            return path(of: app)
        }
        let parts = group.split(separator: "/")
        guard let place = parts.firstIndex(of: parent), place + 1 < parts.count, parts[place + 1] == name else {
            return path(of: app)
        }
        return mount + "/" + parts[...(place + 1)].joined(separator: "/")
    }

    /// The cgroup of that name (``transfers(of:)``) that this process is in; nil if it has none of its own. An earlier
    /// supervisor may have created it in a different place.
    public func companion(_ name: String, around pid: Int32) -> String? {
        guard let group = (try? ProcFS.cgroup(pid)).flatMap({ $0 }), let mount = Cgroup.mount,
            group.hasSuffix("/" + Self.fileName(name))
        else { return nil }
        return mount + group
    }

    /// Creates an app's cgroup, thawed. A launch needs the descriptor of its directory. `isFresh`: newly created, so
    /// without limits and with all counters at zero.
    public func create(_ app: String) throws(Errno) -> (path: String, directory: Descriptor, isFresh: Bool) {
        let path = path(of: app)
        var isFresh = try Cgroup.create(path)
        if !isFresh, (try? Cgroup.removeTree(path)) != nil { isFresh = try Cgroup.create(path) }
        // Never launch into a frozen cgroup: the child would not reach its exec.
        if !isFresh { try Cgroup.freeze(path, false) }
        return (path, try File.open(path, [.path, .directory]), isFresh)
    }

    /// Removes an app's cgroup and those below. Throws EBUSY if there are processes.
    public func remove(_ path: String) throws(Errno) { try Cgroup.removeTree(path) }

    /// Removes all empty cgroups at the end. Those with processes stay.
    public func removeAll() {
        for child in Cgroup.children(base) { try? Cgroup.removeTree(child) }
        guard (try? Cgroup.remove(base)) != nil else { return }
        CgroupPlace(place, instance: instance).moveBack()
    }

    /// Paths of apps' cgroups that have processes and are not `known`: an earlier supervisor left them.
    public func populated(except known: Set<String>) -> [String] {
        Cgroup.children(base).filter { !known.contains($0) && ((try? Cgroup.events($0).populated) ?? false) }
    }

    /// A supervisor that has moved out of its apps' way (``CgroupPlace``) is in a child of the cgroup meant here.
    private static func withoutOwnPart(_ path: String) -> String {
        guard let slash = path.lastIndex(of: "/"), path[slash...].hasPrefix("/" + CgroupPlace.ownPart) else {
            return path
        }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// A file name that cannot collide with a control file (those contain a dot) or another directory.
    static func fileName(_ name: String) -> String {
        let slash = UInt8(ascii: "/")
        let safe = name.utf8.contains(slash) ? String(name.map { $0 == "/" ? "_" : $0 }) : name
        let isPlain = !safe.utf8.contains(UInt8(ascii: ".")) && safe.utf8.first.map { $0 != UInt8(ascii: "_") } ?? false
        return isPlain ? safe : "_" + safe
    }
}
