// SPDX-License-Identifier: Apache-2.0

public import Linux

/// An app's resource usage.
public struct Usage: Hashable, Sendable {
    /// Memory in bytes: `memory.current` of the cgroup, if the cgroup has the memory controller. Otherwise the sum of
    /// the processes' resident memory, which counts a shared page once for each process.
    public var memoryBytes: UInt64
    /// Total processor time: that of the whole cgroup or, without a cgroup, that of the living processes and their
    /// reaped children.
    public var processorTime: Duration
    /// The number of processes.
    public var processes: Int

    /// No usage at all.
    public static let none = Usage(memoryBytes: 0, processorTime: .zero, processes: 0)

    init(memoryBytes: UInt64, processorTime: Duration, processes: Int) {
        self.memoryBytes = memoryBytes
        self.processorTime = processorTime
        self.processes = processes
    }

    init(summing members: [ProcessStat]) {
        var pages: UInt64 = 0
        var ticks: UInt64 = 0
        for member in members {
            pages &+= member.residentPages
            ticks &+= member.userTicks &+ member.systemTicks &+ member.childUserTicks &+ member.childSystemTicks
        }
        self.init(
            memoryBytes: pages &* UInt64(Memory.pageSize),
            processorTime: Clock.duration(ticks: ticks),
            processes: members.count
        )
    }
}

extension ProcessTree {
    /// The resources that the app uses now.
    public func usage() -> Usage { look().usage }

    /// The current usage of several apps, in the given order. /proc is read at most once.
    public static func usage(of trees: [ProcessTree]) -> [Usage] { samples(of: trees).map(\.usage) }

    /// The current usage of several apps, in the given order, and whether the main process of each is stopped, which is
    /// nil where it was not found out. /proc is read at most once.
    public static func samples(of trees: [ProcessTree]) -> [(usage: Usage, isStopped: Bool?)] {
        var snapshot: ProcessSnapshot?
        let first = trees.count < worthOpening ? nil : trees.lazy.compactMap(\.cgroupPath).first
        let folder = first.flatMap { CgroupFolder(above: $0) }
        return trees.map { tree in
            if tree.cgroupPath != nil {
                let (usage, members) = tree.sample(from: folder)
                return (usage, tree.isStopped(among: members))
            }
            let now = snapshot ?? tree.table.snapshot()
            snapshot = now
            let members = tree.list(in: now)
            return (tree.usage(of: members), tree.isStopped(among: members))
        }
    }

    /// How many apps are looked at in one go before the cgroup above theirs is opened for that.
    private static let worthOpening = 4

    /// Whether the main process is stopped, by what was read of the app's processes. Nil for a container, whose main
    /// process is not the one to which signals are sent, and for a main process that has ended.
    private func isStopped(among members: [ProcessStat]) -> Bool? {
        isContainer ? nil : members.first { $0.pid == main.pid }.map { $0.state == "T" }
    }

    /// The current usage, and the processes, parents first, at most ``mostAtOnce`` of an app with a cgroup. Pass `processorTime` if ``processorTime()`` was just
    /// called, so that the value is not read again.
    public func look(processorTime: Duration? = nil) -> (usage: Usage, members: [Identity]) {
        let (usage, members) = sample(processorTime)
        return (usage, members.map(Identity.init))
    }

    /// The usage and the processes, parents first, of an app that has no cgroup, computed from a snapshot.
    public func look(in snapshot: ProcessSnapshot) -> (usage: Usage, members: [Identity]) {
        let members = list(in: snapshot)
        return (usage(of: members), members.map(Identity.init))
    }

    private func sample(
        _ processorTime: Duration? = nil,
        from folder: CgroupFolder? = nil
    ) -> (usage: Usage, members: [ProcessStat]) {
        let listing = listing(atMost: mostAtOnce, from: folder)
        var usage = usage(of: listing.members, processorTime, from: folder)
        if listing.leftOut > 0 {
            // Too many to read them all: take the others to be like those that were read.
            usage.processes += listing.leftOut
            if cgroupPath.flatMap({ Cgroup.number($0, "memory.current") }) == nil {
                let read = UInt64(max(1, listing.members.count))
                usage.memoryBytes = usage.memoryBytes / read &* UInt64(usage.processes)
            }
        }
        return (usage, listing.members)
    }

    /// The app's total processor time, from one small file; nil without a cgroup.
    public func processorTime() -> Duration? { processorTime(from: nil) }

    private func processorTime(from folder: CgroupFolder?) -> Duration? {
        // cpu.stat exists even without the cpu controller, and includes processes that have ended.
        cgroupPath.flatMap { Cgroup.value($0, "cpu.stat", key: "usage_usec", from: folder) }
            .map { .microseconds(Int64(clamping: $0)) }
    }

    private func usage(
        of members: [ProcessStat],
        _ known: Duration? = nil,
        from folder: CgroupFolder? = nil
    ) -> Usage {
        var usage = Usage(summing: members)
        if let cgroupPath {
            if table.countsMemory, let bytes = Cgroup.number(cgroupPath, "memory.current", from: folder) {
                usage.memoryBytes = bytes
            }
            if let time = known ?? processorTime(from: folder) { usage.processorTime = time }
        }
        return usage
    }
}

extension ProcessTree {
    /// How much of the app's memory is in swap, in bytes. Reads one file for each process, or one for the whole cgroup if
    /// it has very many processes.
    ///
    /// - Parameter found: ``processes(atMost:)``.
    public func pagedOut(_ found: (stats: [ProcessStat], leftOut: Int)) -> UInt64 {
        if found.leftOut > 0, let cgroupPath, let bytes = Cgroup.number(cgroupPath, "memory.swap.current") {
            return bytes
        }
        return found.stats.reduce(0) { sum, process in
            let text = (try? ProcFS.statusField(process.pid, "VmSwap")).flatMap { $0 }
            return sum + (text?.split(separator: " ").first.flatMap { UInt64($0) } ?? 0) * 1024
        }
    }
}
