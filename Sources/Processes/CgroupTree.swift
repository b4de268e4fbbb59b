// SPDX-License-Identifier: Apache-2.0

public import Linux

/// Why torpord cannot create cgroups for apps.
public struct CgroupsUnavailable: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason as a sentence.
    public let description: String
}

/// The cgroup that contains the cgroups of all apps.
public final class CgroupTree {
    /// The absolute path of the cgroup that contains the apps' cgroups. This cgroup itself contains no process.
    public let base: String
    /// The absolute path of the parent cgroup.
    public let place: String
    private let instance: String
    /// The controllers that the apps' cgroups have, such as `memory`.
    public private(set) var controllers: [String] = []

    /// Finds a usable parent cgroup: `scope` (systemd's scope for the apps) if it is given, otherwise torpord's own
    /// cgroup, otherwise (for root) the mount point of cgroup v2. `instance` identifies this supervisor among those of
    /// the machine, and stays the same when torpord restarts.
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
                // A launch moves a process from the parent into an app's cgroup, which needs write permission in both.
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

    /// The name of the cgroup for the process that runs an app's transfers; it takes the place of the app's own name in
    /// the path. No app can have this name.
    public static func transfers(of app: String) -> String { app + ":transfers" }

    /// The name of the cgroup for one of an app's checks (`ready`, `health`); it takes the place of the app's own name
    /// in the path. No app can have this name. Each check has its own number, because a check may begin while processes
    /// of the previous check are still being killed.
    public static func check(_ number: UInt64, of app: String) -> String { "\(app):check-\(number)" }

    /// The path of an app's cgroup, whether or not it exists.
    public func path(of app: String) -> String { base + "/" + Self.fileName(app) }

    /// A digest of ``base``, never 0 (FNV-1a).
    public var digest: UInt64 {
        max(1, base.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 })
    }

    /// The names of the directories in ``base``, and of its control files.
    public func entries() -> Set<String> { Set((try? File.list(base)) ?? []) }

    /// The path of the cgroup that contains `pid`, a process of the app that an earlier torpord launched, perhaps below
    /// another parent cgroup. If the process is in no app's cgroup, returns the path that a launch would use now.
    ///
    /// - Parameter known: ``entries()``, if all apps' cgroups are known to be below ``base``. An app whose cgroup is
    ///   among them is not looked up in /proc, where reading a process's cgroup is slow.
    public func path(of app: String, around pid: Int32, known: Set<String> = []) -> String {
        let own = path(of: app)
        if !known.isEmpty, known.contains(Self.fileName(app)) { return own }
        guard let group = (try? ProcFS.cgroup(pid)).flatMap({ $0 }), let mount = Cgroup.mount else { return own }
        // Nearly always, and found without taking the path apart.
        if (mount + group + "/").utf8.starts(with: (own + "/").utf8) { return own }
        let parent = base.split(separator: "/").last ?? ""
        let name = Self.fileName(app)
        let parts = group.split(separator: "/")
        guard let place = parts.firstIndex(of: parent), place + 1 < parts.count, parts[place + 1] == name else {
            return own
        }
        return mount + "/" + parts[...(place + 1)].joined(separator: "/")
    }

    /// The path of the cgroup named `name` (such as ``transfers(of:)``) that contains the process `pid`; nil if that
    /// process is in no such cgroup. An earlier torpord may have created the cgroup below another parent.
    public func companion(_ name: String, around pid: Int32) -> String? {
        guard let group = (try? ProcFS.cgroup(pid)).flatMap({ $0 }), let mount = Cgroup.mount,
            group.hasSuffix("/" + Self.fileName(name))
        else { return nil }
        return mount + group
    }

    /// Creates an app's cgroup, or thaws an existing one that still contains processes. Opens the cgroup's directory,
    /// because a launch needs its descriptor. `isFresh` tells whether the cgroup is new, so that it has no limits and
    /// all its counters are zero.
    public func create(_ app: String) throws(Errno) -> (path: String, directory: Descriptor, isFresh: Bool) {
        let path = path(of: app)
        var isFresh = try Cgroup.create(path)
        if !isFresh, (try? Cgroup.removeTree(path)) != nil { isFresh = try Cgroup.create(path) }
        // Never launch into a frozen cgroup, because the child process would not reach its exec.
        if !isFresh { try Cgroup.freeze(path, false) }
        return (path, try File.open(path, [.path, .directory]), isFresh)
    }

    /// Removes an app's cgroup and the cgroups below it. Throws EBUSY if one contains processes.
    public func remove(_ path: String) throws(Errno) { try Cgroup.removeTree(path) }

    /// Removes all empty cgroups when torpord ends. Cgroups with processes stay.
    public func removeAll() {
        for child in Cgroup.children(base) { try? Cgroup.removeTree(child) }
        guard (try? Cgroup.remove(base)) != nil else { return }
        CgroupPlace(place, instance: instance).moveBack()
    }

    /// The paths of apps' cgroups that contain processes and are not in `known`. An earlier torpord left such cgroups
    /// behind.
    public func populated(except known: Set<String>) -> [String] {
        Cgroup.children(base, except: known).filter { (try? Cgroup.events($0).populated) ?? false }
    }

    /// The path without the last part that names the child cgroup into which a supervisor moves itself (see
    /// ``CgroupPlace``).
    private static func withoutOwnPart(_ path: String) -> String {
        guard let slash = path.lastIndex(of: "/"), path[slash...].hasPrefix("/" + CgroupPlace.ownPart) else {
            return path
        }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// The directory name of an app's cgroup. It cannot collide with control files, whose names contain a dot.
    static func fileName(_ name: String) -> String {
        let slash = UInt8(ascii: "/")
        let safe = name.utf8.contains(slash) ? String(name.map { $0 == "/" ? "_" : $0 }) : name
        let isPlain = !safe.utf8.contains(UInt8(ascii: ".")) && safe.utf8.first.map { $0 != UInt8(ascii: "_") } ?? false
        return isPlain ? safe : "_" + safe
    }
}
