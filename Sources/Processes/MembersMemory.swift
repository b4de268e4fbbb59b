// SPDX-License-Identifier: Apache-2.0

import Linux

/// The memory of a fixed list of an app's processes: created on the event loop, used by a thread that may block.
public final class MembersMemory: @unchecked Sendable {
    // Sendable, since it owns the descriptors and closes them only in its deinit.

    /// A process and its pidfd.
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

    /// The number of processes.
    public var count: Int { members.count }

    /// Their memory now.
    public func footprint() -> Footprint {
        if let footprint = cgroupPath.flatMap({ Footprint(cgroup: $0) }) { return footprint }
        // A pid cannot be reused before its process is reaped.
        return Footprint(of: members.filter { !Pidfd.hasEnded($0.pidfd.raw) }.map(\.pid))
    }

    /// Frees the memory of processes that were sent SIGKILL, without waiting for each to end (process_mrelease(2)).
    /// Returns how many had any. Living processes are not affected.
    @discardableResult
    public func release() -> Int {
        var released = 0
        for member in members {
            for _ in 0..<3 {
                do throws(Errno) {
                    try Pidfd.releaseMemory(member.pidfd.raw)
                    released += 1
                } catch {
                    // Its mappings are being changed, which is soon over as it is dying: retry.
                    if error == .resourceTemporarilyUnavailable { continue }
                }
                break
            }
        }
        return released
    }
}

extension ProcessTree {
    /// Whether ``pinned(in:)`` has to read all of /proc: for an app without a cgroup that this supervisor has not
    /// stopped.
    public var needsSnapshot: Bool { cgroupPath == nil && stopped.isEmpty }

    /// Its current processes, each with a pidfd. For an app that was stopped without a cgroup, those that were
    /// stopped.
    ///
    /// - Parameter snapshot: used if ``needsSnapshot``; without one, /proc is read.
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
            // The tree owns the main process's descriptor.
            guard let own = identity == main ? try? pinned.duplicate() : pinned else { return nil }
            return MembersMemory.Member(pid: identity.pid, pidfd: own)
        }
        return MembersMemory(members, cgroupPath: cgroupPath)
    }
}
