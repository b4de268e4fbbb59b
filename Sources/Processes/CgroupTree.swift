// SPDX-License-Identifier: Apache-2.0

public import Linux

/// Why there are no cgroups for apps, in a sentence.
public struct CgroupsUnavailable: Error, Hashable, Sendable, CustomStringConvertible {
    /// The sentence.
    public let description: String
}

/// The cgroup below which every app gets one of its own.
public final class CgroupTree {
    /// The one that holds the apps' (and no process itself), an absolute path.
    public let base: String
    /// Where `base` is, an absolute path.
    public let place: String
    private let instance: String
    /// Controllers that the apps' cgroups have, such as `memory`.
    public private(set) var controllers: [String] = []

    /// Finds a place and tries it out: in the scope for apps where there is one, else below the cgroup of this process,
    /// else, for root, below the v2 mount. `instance` tells supervisors apart: the same after a restart, another for
    /// another.
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
                // Launching moves a process from here into an app's cgroup: this needs the right to write in both.
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

    /// The name, in place of the app's, of the cgroup beside it in which its transfers are made. No app is called that.
    public static func transfers(of app: String) -> String { app + ":transfers" }

    /// The path of an app's cgroup, there or not.
    public func path(of app: String) -> String { base + "/" + Self.fileName(app) }

    /// The path of an app's cgroup whose process an earlier supervisor launched, perhaps in another place.
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

    /// The cgroup in which that process makes an app's transfers; nil where it is in none of its own. An earlier supervisor may
    /// have had it in another place.
    public func transfers(of app: String, around pid: Int32) -> String? {
        guard let group = (try? ProcFS.cgroup(pid)).flatMap({ $0 }), let mount = Cgroup.mount,
            group.hasSuffix("/" + Self.fileName(Self.transfers(of: app)))
        else { return nil }
        return mount + group
    }

    /// Makes an app's cgroup, thawed; the descriptor of its directory is what a launch needs. `isFresh`: it is as the
    /// kernel makes them, nothing counted and nothing limited.
    public func create(_ app: String) throws(Errno) -> (path: String, directory: Descriptor, isFresh: Bool) {
        let path = path(of: app)
        var isFresh = try Cgroup.create(path)
        if !isFresh, (try? Cgroup.removeTree(path)) != nil { isFresh = try Cgroup.create(path) }
        // Never launch into a frozen cgroup: the child would not get as far as its exec.
        if !isFresh { try Cgroup.freeze(path, false) }
        return (path, try File.open(path, [.path, .directory]), isFresh)
    }

    /// Removes an app's cgroup and what it made below. EBUSY while there are processes.
    public func remove(_ path: String) throws(Errno) { try Cgroup.removeTree(path) }

    /// Removes what is empty, at the end. What still has processes stays.
    public func removeAll() {
        for child in Cgroup.children(base) { try? Cgroup.removeTree(child) }
        guard (try? Cgroup.remove(base)) != nil else { return }
        CgroupPlace(place, instance: instance).moveBack()
    }

    /// Cgroups of apps, by their paths, that have processes and are not among the `known` ones: what an earlier
    /// supervisor has left.
    public func populated(except known: Set<String>) -> [String] {
        Cgroup.children(base).filter { !known.contains($0) && ((try? Cgroup.events($0).populated) ?? false) }
    }

    /// The cgroup of a supervisor that has moved out of the way of its apps (``CgroupPlace``) is that above.
    private static func withoutOwnPart(_ path: String) -> String {
        guard let slash = path.lastIndex(of: "/"), path[slash...].hasPrefix("/" + CgroupPlace.ownPart) else {
            return path
        }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// A name that cannot be taken for a control file (those have a dot) or another directory.
    static func fileName(_ name: String) -> String {
        let slash = UInt8(ascii: "/")
        let safe = name.utf8.contains(slash) ? String(name.map { $0 == "/" ? "_" : $0 }) : name
        let isPlain = !safe.utf8.contains(UInt8(ascii: ".")) && safe.utf8.first.map { $0 != UInt8(ascii: "_") } ?? false
        return isPlain ? safe : "_" + safe
    }
}
