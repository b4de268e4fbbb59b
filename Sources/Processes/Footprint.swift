// SPDX-License-Identifier: Apache-2.0

import Linux

/// What memory of the machine an app has, bytes: `memory.current` and `memory.swap.current` of its cgroup where the
/// controller is there, else of all its processes, what they share with others only for their part (PSS, SwapPss).
public struct Footprint: Hashable, Sendable {
    /// In memory.
    public var resident: UInt64
    /// In swap.
    public var swapped: UInt64

    /// That much.
    public init(resident: UInt64 = 0, swapped: UInt64 = 0) {
        self.resident = resident
        self.swapped = swapped
    }

    /// In memory and in swap.
    public var total: UInt64 { resident &+ swapped }

    /// As a cgroup counts it; nil without the memory controller.
    init?(cgroup path: String) {
        guard let bytes = Cgroup.number(path, "memory.current") else { return nil }
        self.init(resident: bytes, swapped: Cgroup.number(path, "memory.swap.current") ?? 0)
    }

    /// What these processes have. Of one whose memory this process may not look into, shared pages count whole.
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
    /// What the app has now. Waits for the kernel to walk through all of its memory where there is no memory controller:
    /// not for the loop (``MembersMemory/footprint()``).
    public func footprint() -> Footprint {
        cgroupPath.flatMap { Footprint(cgroup: $0) } ?? Footprint(of: members())
    }
}
