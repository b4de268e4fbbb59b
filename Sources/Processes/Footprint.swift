// SPDX-License-Identifier: Apache-2.0

import Linux

/// An app's memory in bytes: `memory.current` and `memory.swap.current` of its cgroup if it has the controller, else
/// the sum over its processes, with shared pages counted proportionally (PSS, SwapPss).
public struct Footprint: Hashable, Sendable {
    /// Resident memory.
    public var resident: UInt64
    /// Swapped-out memory.
    public var swapped: UInt64

    /// Creates one from its parts.
    public init(resident: UInt64 = 0, swapped: UInt64 = 0) {
        self.resident = resident
        self.swapped = swapped
    }

    /// The sum of both.
    public var total: UInt64 { resident &+ swapped }

    /// The cgroup's count; nil without the memory controller.
    init?(cgroup path: String) {
        guard let bytes = Cgroup.number(path, "memory.current") else { return nil }
        self.init(resident: bytes, swapped: Cgroup.number(path, "memory.swap.current") ?? 0)
    }

    /// The sum over these processes. For a process that this one may not inspect, shared pages count in full.
    init(of pids: [Int32]) {
        self.init()
        for pid in pids {
            guard let memory = (try? ProcFS.proportionalMemory(pid)) ?? (try? ProcFS.memory(pid)) else { continue }
            resident &+= memory.resident
            swapped &+= memory.swapped
        }
    }
}

extension ProcessTree {
    /// The app's memory now. Without the memory controller the kernel walks all of its pages: do not call it on the
    /// event loop (use ``MembersMemory/footprint()``).
    public func footprint() -> Footprint {
        cgroupPath.flatMap { Footprint(cgroup: $0) } ?? Footprint(of: members())
    }
}
