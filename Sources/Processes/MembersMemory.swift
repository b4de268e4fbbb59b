// SPDX-License-Identifier: Apache-2.0

import Linux

/// The memory of an app's processes as they were listed: made on the loop, used by a thread that may wait.
public final class MembersMemory: @unchecked Sendable {
    // Sendable, since the descriptors are its own, and nobody closes them but its end.

    /// A process, pinned.
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

    /// How many processes they are.
    public var count: Int { members.count }

    /// What they have now.
    public func footprint() -> Footprint {
        if let footprint = cgroupPath.flatMap({ Footprint(cgroup: $0) }) { return footprint }
        // As long as one has not been reaped, its number is not another's.
        return Footprint(of: members.filter { !Pidfd.hasEnded($0.pidfd.raw) }.map(\.pid))
    }

    /// Takes the memory of those that were sent SIGKILL, without waiting for each of them to come to its end
    /// (process_mrelease(2)); how many had some. Those that live on are left alone.
    @discardableResult
    public func release() -> Int {
        var released = 0
        for member in members {
            for _ in 0..<3 {
                do throws(Errno) {
                    try Pidfd.releaseMemory(member.pidfd.raw)
                    released += 1
                } catch {
                    // Its mappings are being changed: that is over soon, since it is dying.
                    if error == .resourceTemporarilyUnavailable { continue }
                }
                break
            }
        }
        return released
    }
}

extension ProcessTree {
    /// Whether ``pinned(in:)`` needs a reading of all of /proc: an app without a cgroup that was not stopped by this
    /// supervisor.
    public var needsSnapshot: Bool { cgroupPath == nil && stopped.isEmpty }

    /// Its processes now, each pinned. Of an app that was stopped without a cgroup, those that were stopped.
    ///
    /// - Parameter snapshot: where ``needsSnapshot``; without one /proc is read.
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
            // The main process's descriptor is the tree's own.
            guard let own = identity == main ? try? pinned.duplicate() : pinned else { return nil }
            return MembersMemory.Member(pid: identity.pid, pidfd: own)
        }
        return MembersMemory(members, cgroupPath: cgroupPath)
    }
}
