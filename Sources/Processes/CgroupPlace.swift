// SPDX-License-Identifier: Apache-2.0

import Linux

/// A cgroup in which a supervisor may make others, and how controllers are handed down from there.
///
/// In steps: all that there are, some, none. What cannot be had is done without cgroups as far as that goes (`torpor
/// doctor` says what it costs). On hybrid machines v2 has no controllers at all; without delegation a place has none.
struct CgroupPlace {
    /// Absolute.
    let path: String
    let instance: String

    /// What the cgroup is called into which a supervisor moves.
    static let ownPart = "torpor-supervisor-"
    /// What profiles, limits and accounts need.
    static let wanted = ["memory", "pids", "cpu", "io"]

    init(_ path: String, instance: String) {
        self.path = path
        self.instance = instance
    }

    /// Hands down what can be had to the cgroups below `base`, which is below this one; returns that.
    func handDown(to base: String) -> [String] {
        let offered = words("cgroup.controllers", of: path)
        let given = words("cgroup.subtree_control", of: path)
        let missing = Self.wanted.filter { offered.contains($0) && !given.contains($0) }
        // A cgroup with processes of its own can hand nothing down. The kernel would let it do so with some controllers,
        // and let no process into the cgroups below then.
        if !missing.isEmpty, isFree || moveAside() {
            for name in missing { write("+\(name)", path) }
        }
        for name in Self.wanted where words("cgroup.controllers", of: base).contains(name) { write("+\(name)", base) }
        if !isDomain(base) {
            // Somebody has come in between.
            for name in missing { write("-\(name)", path) }
        }
        let had = words("cgroup.subtree_control", of: base)
        return Self.wanted.filter(had.contains)
    }

    /// Whether nothing is in its way: the root has processes and hands controllers down all the same.
    private var isFree: Bool { !File.exists(path + "/cgroup.type") || direct.isEmpty }

    /// The processes in it, not below.
    private var direct: [Int32] {
        ((try? File.readString(path + "/cgroup.procs", limit: 1 << 24)) ?? "").split(separator: "\n").compactMap {
            Int32($0)
        }
    }

    /// Moves the supervisor and its keeper into a cgroup of their own below, where that is theirs to do: nobody else
    /// is in the place, and it was delegated, or there is no systemd that keeps order.
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
            // The keeper first: what it starts meanwhile is born there.
            for pid in [keeper] + processes.filter({ $0 != keeper }) where processes.contains(pid) {
                try Cgroup.add(own, pid: pid)
            }
        } catch {
            return false
        }
        return direct.isEmpty
    }

    private var own: String { path + "/" + Self.ownPart + CgroupTree.fileName(instance) }

    /// At the end, when no app's cgroup is left: the supervisor is where it was, and nothing is left of it.
    func moveBack() {
        guard File.exists(own) else { return }
        // Who hands controllers down can have no processes.
        for name in words("cgroup.subtree_control", of: path) { write("-\(name)", path) }
        for pid in (try? Cgroup.procs(own)) ?? [] { try? Cgroup.add(path, pid: pid) }
        try? Cgroup.remove(own)
    }

    private var isDelegated: Bool {
        if !Users.isRoot { return File.isWritable(path + "/cgroup.subtree_control") }
        return !File.exists("/run/systemd/system") || Cgroup.isDelegated(path)
    }

    /// Whether processes can be in the cgroups below.
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
