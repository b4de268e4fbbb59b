// SPDX-License-Identifier: Apache-2.0

import Linux

/// The memory of a fixed list of an app's processes. The list is created on the event loop. Then threads that may block
/// can read and free the memory.
public final class MembersMemory: @unchecked Sendable {
    // MembersMemory can be Sendable, because it owns its members' descriptors and closes them only in its deinit.

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

    /// How much memory the processes use now. If their cgroup counts memory, this is the memory of the whole cgroup.
    public func footprint() -> Footprint {
        if let footprint = cgroupPath.flatMap({ Footprint(cgroup: $0) }) { return footprint }
        // Skip processes that have ended: once they are reaped, their pids may be reused.
        return Footprint(of: members.filter { !Pidfd.hasEnded($0.pidfd.raw) }.map(\.pid))
    }

    /// Frees the memory of those processes that got SIGKILL, without waiting until each has ended
    /// (process_mrelease(2)). Other processes are not affected. Returns how many processes had memory to free.
    @discardableResult
    public func release() -> Int {
        var released = 0
        for member in members {
            for _ in 0..<3 {
                do throws(Errno) {
                    try Pidfd.releaseMemory(member.pidfd.raw)
                    released += 1
                } catch {
                    // The process is changing its mappings at this moment, so retry.
                    if error == .resourceTemporarilyUnavailable { continue }
                }
                break
            }
        }
        return released
    }
}

extension ProcessTree {
    /// Whether ``pinned(in:)`` must read all of /proc. This is not needed if the app has a cgroup, which lists its
    /// processes, or if this torpord has suspended the app and has the list of stopped processes.
    public var needsSnapshot: Bool { cgroupPath == nil && stopped.isEmpty }

    /// The app's current processes, at most ``mostAtOnce`` of an app with a cgroup, each with a pidfd. If the app was stopped and has no cgroup, these are the
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
            // Each pinned process takes a descriptor.
            identities = listing(atMost: mostAtOnce).members.map(Identity.init)
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
