// SPDX-License-Identifier: Apache-2.0

import Linux

/// The memory of an app in bytes: `memory.current` and `memory.swap.current` of its cgroup, if the cgroup has the
/// memory controller. Otherwise the sum of PSS and SwapPss over the app's processes, which counts a page shared by n
/// processes as 1/n of its size for each.
public struct Footprint: Hashable, Sendable {
    /// Resident memory, in bytes.
    public var resident: UInt64
    /// Memory in swap, in bytes.
    public var swapped: UInt64

    /// Creates a footprint from its parts, in bytes.
    public init(resident: UInt64 = 0, swapped: UInt64 = 0) {
        self.resident = resident
        self.swapped = swapped
    }

    /// Resident memory plus memory in swap, in bytes.
    public var total: UInt64 { resident &+ swapped }

    /// The memory that the kernel counts for the cgroup; nil without the memory controller.
    init?(cgroup path: String) {
        guard let bytes = Cgroup.number(path, "memory.current") else { return nil }
        self.init(resident: bytes, swapped: Cgroup.number(path, "memory.swap.current") ?? 0)
    }

    /// Sums the memory of these processes. For a process that torpord may not inspect, shared pages count in full.
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
    /// The memory of the app now. Do not call this on the event loop (use ``MembersMemory/footprint()``): without the
    /// memory controller, the kernel walks all pages of the app.
    public func footprint() -> Footprint {
        cgroupPath.flatMap { Footprint(cgroup: $0) } ?? Footprint(of: members())
    }
}
