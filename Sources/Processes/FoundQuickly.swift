// SPDX-License-Identifier: Apache-2.0

import Linux

extension ProcessTree {
    /// The app's processes that can be found without reading all of /proc. If the app is stopped, these are the
    /// processes that were stopped. Otherwise they are the processes in its cgroup or, without a cgroup, the known
    /// processes and their descendants. A process whose parent has ended may be missing.
    public func quickMembers() -> [Int32] { quickListing().members }

    /// ``quickMembers()`` and, if they were read from the app's cgroup, what that contained (``pidsOfCgroup()``): a stop
    /// that follows at once need not read it again.
    public func quickListing() -> (members: [Int32], ofCgroup: [Int32]?) {
        if !stopped.isEmpty {
            return (stopped.filter { (try? ProcFS.stat($0.pid).startTime) == $0.startTime }.map(\.pid), nil)
        }
        if let pids = pidsOfCgroup() {
            return (pids.contains(main.pid) || mainHasEnded ? pids : pids + [main.pid], pids)
        }
        guard ProcFS.listsChildren else { return (members(), nil) }
        var found: [Int32] = []
        var seen: Set<Int32> = []
        var queue = known.filter { (try? ProcFS.stat($0.key).startTime) == $0.value }.map(\.key)
        while let pid = queue.popLast() {
            guard seen.insert(pid).inserted else { continue }
            found.append(pid)
            queue += (try? ProcFS.children(pid)) ?? []
        }
        return (found, nil)
    }
}
