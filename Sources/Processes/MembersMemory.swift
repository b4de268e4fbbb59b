// SPDX-License-Identifier: Apache-2.0

import Linux

/// The memory of a fixed list of an app's processes: created on the event loop, used by threads that may block.
public final class MembersMemory: @unchecked Sendable {
    // MembersMemory is Sendable, because it owns its members' descriptors and closes them only in its deinit.

    struct Member {
        let pid: Int32
        let pidfd: Descriptor
    }

    let members: [Member]
    let cgroupPath: String?

    init(_ members: [Member], cgroupPath: String?) {
        self.members = members
        self.cgroupPath = cgroupPath
    }

    /// The number of processes in the list.
    public var count: Int { members.count }

    /// How much memory the processes use now (that of their whole cgroup, if it counts memory).
    public func footprint() -> Footprint {
        if let footprint = cgroupPath.flatMap({ Footprint(cgroup: $0) }) { return footprint }
        // Skip processes that have ended: once they are reaped, their pids may be reused.
        return Footprint(of: members.filter { !Pidfd.hasEnded($0.pidfd.raw) }.map(\.pid))
    }

    /// Frees the memory of those processes that were sent SIGKILL, without waiting for each to end
    /// (process_mrelease(2)). Living processes are not affected. Returns how many processes had memory to free.
    @discardableResult
    public func release() -> Int {
        var released = 0
        for member in members {
            for _ in 0..<3 {
                do throws(Errno) {
                    try Pidfd.releaseMemory(member.pidfd.raw)
                    released += 1
                } catch {
                    // The dying process is changing its mappings just now: retry.
                    if error == .resourceTemporarilyUnavailable { continue }
                }
                break
            }
        }
        return released
    }
}

extension ProcessTree {
    /// Whether ``pinned(in:)`` must read all of /proc. If the app has a cgroup, the cgroup lists its processes. If this
    /// torpord has suspended the app, it still has a list of the stopped processes.
    public var needsSnapshot: Bool { cgroupPath == nil && stopped.isEmpty }

    /// The app's current processes, each with a pidfd. If the app was stopped and has no cgroup, these are the
    /// processes that were stopped.
    ///
    /// - Parameter snapshot: the processes of the machine, used if ``needsSnapshot``; if it is nil, /proc is read.
    public func pinned(in snapshot: ProcessSnapshot? = nil) -> MembersMemory {
        let identities: [Identity]
        if cgroupPath == nil, !stopped.isEmpty {
            identities = stopped
        } else if let snapshot, cgroupPath == nil {
            identities = list(in: snapshot).map(Identity.init)
        } else {
            identities = list().map(Identity.init)
        }
        let members = identities.compactMap { identity -> MembersMemory.Member? in
            guard let pinned = try? pin(identity) else { return nil }
            // The tree owns the descriptor of the main process, so return a duplicate.
            guard let own = identity == main ? try? pinned.duplicate() : pinned else { return nil }
            return MembersMemory.Member(pid: identity.pid, pidfd: own)
        }
        return MembersMemory(members, cgroupPath: cgroupPath)
    }
}
