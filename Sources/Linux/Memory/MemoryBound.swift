// SPDX-License-Identifier: Apache-2.0

/// A cgroup with a memory limit below the machine's memory: the cgroup of a container, slice or service.
public struct MemoryBound: Hashable, Sendable {
    /// The cgroup's directory.
    public let path: String
    /// The limit in bytes. At the limit, the kernel first reclaims memory and then kills processes.
    public let limit: UInt64
    private let isFirstVersion: Bool
    private let root: String

    /// The cgroup with the lowest memory limit around this process and its apps; nil if no limit is below the machine's
    /// memory.
    ///
    /// - Parameters:
    ///   - apps: the parent of the apps' cgroups (v2); nil if they are below this process's own cgroup.
    ///   - root: a prefix for paths below `/proc` and `/sys`; empty except in tests.
    public init?(around apps: String? = nil, root: String = "") {
        var found: (path: String, limit: UInt64, isFirst: Bool)?
        for line in ((try? File.readString(root + "/proc/self/cgroup")) ?? "").split(separator: "\n") {
            // A line such as 4:memory:/docker/… is about cgroup v1; one such as 0::/docker/… is about v2.
            let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else { continue }
            let isFirst = parts[1].split(separator: ",").contains("memory")
            guard isFirst || line.hasPrefix("0::") else { continue }
            let unified = (root.isEmpty ? Cgroup.mount : nil) ?? "/sys/fs/cgroup"
            let mount = root + (isFirst ? "/sys/fs/cgroup/memory" : unified)
            var path = parts[2] == "/" ? mount : mount + parts[2]
            if !isFirst, let apps, apps.hasPrefix(mount) { path = apps }
            while path.utf8.count >= mount.utf8.count {
                if let limit = Self.limit(path, isFirst), limit < found?.limit ?? .max {
                    found = (path, limit, isFirst)
                }
                path = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
            }
        }
        guard let found, let machine = MachineMemory(root: root), found.limit < machine.total else { return nil }
        (path, limit, isFirstVersion) = found
        self.root = root
    }

    private static func limit(_ path: String, _ isFirst: Bool) -> UInt64? {
        // Without a limit, the file contains `max` in v2, and a number beyond all memory in v1.
        Cgroup.number(path, isFirst ? "memory.limit_in_bytes" : "memory.max")
    }

    /// The path of the file that contains the limit.
    public var file: String {
        String((path + (isFirstVersion ? "/memory.limit_in_bytes" : "/memory.max")).dropFirst(root.utf8.count))
    }

    /// The memory within the cgroup's limit, in the form of a machine's memory. Page cache counts as available, except
    /// for half of its active part. Nil if the cgroup's files cannot be read.
    public func memory(of machine: MachineMemory) -> MachineMemory? {
        let names =
            isFirstVersion
            ? ("memory.usage_in_bytes", "total_inactive_file", "total_active_file")
            : ("memory.current", "inactive_file", "active_file")
        guard let used = Cgroup.number(path, names.0) else { return nil }
        let files =
            (Cgroup.value(path, "memory.stat", key: names.1) ?? 0)
            &+ (Cgroup.value(path, "memory.stat", key: names.2) ?? 0) / 2
        let taken = used > files ? used - files : 0
        var memory = machine
        memory.total = limit
        memory.available = min(machine.available, limit > taken ? limit - taken : 0)
        if let (total, free) = swap(used) {
            memory.swapTotal = min(machine.swapTotal, total)
            memory.swapFree = min(machine.swapFree, free)
        }
        return memory
    }

    private func swap(_ used: UInt64) -> (total: UInt64, free: UInt64)? {
        if isFirstVersion {
            guard let both = Cgroup.number(path, "memory.memsw.limit_in_bytes"),
                let usedBoth = Cgroup.number(path, "memory.memsw.usage_in_bytes")
            else { return nil }
            let swapped = usedBoth > used ? usedBoth - used : 0
            let total = both > limit ? both - limit : 0
            return (total, total > swapped ? total - swapped : 0)
        }
        guard let total = Cgroup.number(path, "memory.swap.max") else { return nil }
        let swapped = Cgroup.number(path, "memory.swap.current") ?? 0
        return (total, total > swapped ? total - swapped : 0)
    }

    /// The memory pressure in the cgroup; nil for cgroup v1, which does not track pressure.
    public var pressure: Pressure? { isFirstVersion ? nil : Pressure(of: path, on: .memory) }

    /// The reclaim counters of the cgroup; nil for cgroup v1, which lacks most of them.
    public var activity: MemoryActivity? {
        isFirstVersion ? nil : MemoryActivity(file: path + "/memory.stat")
    }

    /// A pressure trigger for the cgroup; nil for cgroup v1.
    public func trigger(
        _ share: PressureTrigger.Share,
        stall: Duration,
        window: Duration
    ) throws(Errno) -> PressureTrigger? {
        guard !isFirstVersion else { return nil }
        return try PressureTrigger(of: path, on: .memory, share, stall: stall, window: window)
    }
}
