// SPDX-License-Identifier: Apache-2.0

import Linux

/// A cgroup below which torpord creates the apps' cgroups, and enables controllers for them.
///
/// Any controller may be missing: cgroup v2 has no controllers on machines that also mount cgroup v1 (hybrid), and none
/// in a cgroup that is not delegated. Features whose controller is missing use other means, with drawbacks that `torpor
/// doctor` lists.
struct CgroupPlace {
    /// The absolute path of the cgroup.
    let path: String
    let instance: String

    /// The prefix of the name of the child cgroup into which torpord moves itself.
    static let ownPart = "torpor-supervisor-"
    /// The controllers that profiles, limits and accounting need.
    static let wanted = ["memory", "pids", "cpu", "io"]

    init(_ path: String, instance: String) {
        self.path = path
        self.instance = instance
    }

    /// Enables the available controllers for the cgroups below `base`, which is a child of this cgroup. Returns the
    /// controllers that are enabled.
    func handDown(to base: String) -> [String] {
        let offered = words("cgroup.controllers", of: path)
        let given = words("cgroup.subtree_control", of: path)
        let missing = Self.wanted.filter { offered.contains($0) && !given.contains($0) }
        // A cgroup that contains processes cannot enable controllers for its children. The kernel would allow
        // threaded controllers (cpu, pids), but then refuse processes in the children.
        if !missing.isEmpty, isFree || moveAside() {
            for name in missing { write("+\(name)", path) }
        }
        for name in Self.wanted where words("cgroup.controllers", of: base).contains(name) { write("+\(name)", base) }
        if !isDomain(base) {
            // Another process has moved into this cgroup after it was found to be free of processes. Disable the
            // controllers again.
            for name in missing { write("-\(name)", path) }
        }
        let had = words("cgroup.subtree_control", of: base)
        return Self.wanted.filter(had.contains)
    }

    /// Whether controllers can be enabled for children: this cgroup has no processes, or is the root.
    private var isFree: Bool { !File.exists(path + "/cgroup.type") || direct.isEmpty }

    /// The processes in this cgroup itself, without those in its children.
    private var direct: [Int32] {
        ((try? File.readString(path + "/cgroup.procs", limit: 1 << 24)) ?? "").split(separator: "\n").compactMap {
            Int32($0)
        }
    }

    /// Moves torpord and torpor-keeper into a child cgroup, so that this cgroup has no processes and can enable
    /// controllers. Does so only if this cgroup contains no other process, and systemd either delegated it or does not
    /// manage it. Returns whether this cgroup is now free of processes.
    private func moveAside() -> Bool {
        guard isDelegated else { return false }
        let keeper = ThisProcess.parent
        let processes = direct
        let isOurs = processes.allSatisfy { pid in
            pid == ThisProcess.pid || pid == keeper || (try? ProcFS.stat(pid).parent) == keeper
        }
        guard isOurs, !processes.isEmpty else { return false }
        do throws(Errno) {
            try Cgroup.create(own)
            // Move the keeper first, because processes that it starts from then on are created in the child cgroup.
            for pid in [keeper] + processes.filter({ $0 != keeper }) where processes.contains(pid) {
                try Cgroup.add(own, pid: pid)
            }
        } catch {
            return false
        }
        return direct.isEmpty
    }

    private var own: String { path + "/" + Self.ownPart + CgroupTree.fileName(instance) }

    /// Moves torpord and torpor-keeper back from the child cgroup. Called when torpord ends and no app's cgroup is
    /// left.
    func moveBack() {
        guard File.exists(own) else { return }
        // First disable the controllers: a cgroup that enables controllers for its children cannot contain processes.
        for name in words("cgroup.subtree_control", of: path) { write("-\(name)", path) }
        for pid in (try? Cgroup.procs(own)) ?? [] { try? Cgroup.add(path, pid: pid) }
        try? Cgroup.remove(own)
    }

    private var isDelegated: Bool {
        if !Users.isRoot { return File.isWritable(path + "/cgroup.subtree_control") }
        return !File.exists("/run/systemd/system") || Cgroup.isDelegated(path)
    }

    /// Whether cgroups below `base` can contain processes: only if the type of `base` is `domain`, not `domain
    /// invalid`.
    private func isDomain(_ base: String) -> Bool {
        guard let type = try? File.readString(base + "/cgroup.type") else { return true }
        return type == "domain\n"
    }

    private func words(_ file: String, of path: String) -> Set<String> {
        let text = (try? File.readString(path + "/" + file)) ?? ""
        return Set(text.split { $0 == " " || $0 == "\n" }.map(String.init))
    }

    private func write(_ text: String, _ path: String) {
        _ = try? File.writeControl(path + "/cgroup.subtree_control", text + "\n")
    }
}
