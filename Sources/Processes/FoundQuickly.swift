// SPDX-License-Identifier: Apache-2.0

import Linux

extension ProcessTree {
    /// The processes of the app that are found without reading all of /proc: those that were stopped while it is, else by
    /// its cgroup, else by descent from those that are known. Without a cgroup, one that has left its parents may be
    /// missing while the app runs.
    public func quickMembers() -> [Int32] {
        if !stopped.isEmpty {
            return stopped.filter { (try? ProcFS.stat($0.pid).startTime) == $0.startTime }.map(\.pid)
        }
        if let cgroupPath, let pids = try? Cgroup.procs(cgroupPath) {
            return pids.contains(main.pid) || mainHasEnded ? pids : pids + [main.pid]
        }
        guard ProcFS.listsChildren else { return members() }
        var found: [Int32] = []
        var seen: Set<Int32> = []
        var queue = known.filter { (try? ProcFS.stat($0.key).startTime) == $0.value }.map(\.key)
        while let pid = queue.popLast() {
            guard seen.insert(pid).inserted else { continue }
            found.append(pid)
            queue += (try? ProcFS.children(pid)) ?? []
        }
        return found
    }
}
