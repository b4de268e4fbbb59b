// SPDX-License-Identifier: Apache-2.0

import Linux

/// What an app uses.
public struct Usage: Hashable, Sendable {
    /// Bytes in memory: `memory.current` where the controller is there, else the resident memory of its processes,
    /// pages that they share counted for each.
    public var memoryBytes: UInt64
    /// Processor time so far, of processes that live and of children that they waited for.
    public var processorTime: Duration
    /// How many processes.
    public var processes: Int

    /// Nothing.
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
    /// What the app uses now.
    public func usage() -> Usage { look().usage }

    /// What many apps use now, in their order: /proc is read at most once for all of them.
    public static func usage(of trees: [ProcessTree]) -> [Usage] {
        var snapshot: ProcessSnapshot?
        return trees.map { tree in
            if tree.cgroupPath != nil { return tree.usage() }
            let now = snapshot ?? tree.table.snapshot()
            snapshot = now
            return tree.look(in: now).usage
        }
    }

    /// What the app uses now, and its processes, parents first. `processorTime`: what ``processorTime()`` has just said.
    public func look(processorTime: Duration? = nil) -> (usage: Usage, members: [Identity]) {
        look(at: list(), processorTime)
    }

    /// The same of an app without a cgroup, as a snapshot shows it.
    public func look(in snapshot: ProcessSnapshot) -> (usage: Usage, members: [Identity]) {
        look(at: list(in: snapshot))
    }

    /// Processor time of the app so far, to the microsecond, by one small file; nil without a cgroup.
    public func processorTime() -> Duration? {
        // cpu.stat is there without the controller, and counts also those that are gone.
        cgroupPath.flatMap { Cgroup.value($0, "cpu.stat", key: "usage_usec") }
            .map { .microseconds(Int64(clamping: $0)) }
    }

    private func look(at members: [ProcessStat], _ known: Duration? = nil) -> (usage: Usage, members: [Identity]) {
        var usage = Usage(summing: members)
        if let cgroupPath {
            if let bytes = Cgroup.number(cgroupPath, "memory.current") { usage.memoryBytes = bytes }
            if let time = known ?? processorTime() { usage.processorTime = time }
        }
        return (usage, members.map(Identity.init))
    }
}
