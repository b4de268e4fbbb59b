// SPDX-License-Identifier: Apache-2.0

import Linux

/// What an app as a whole may use at most, by its cgroup.
public struct AppLimits: Hashable, Sendable {
    /// Bytes of memory at which the kernel ends it; nil: none.
    public var memory: UInt64?
    /// Processes and threads; nil: any number.
    public var tasks: UInt64?

    /// Limits, by default none.
    public init(memory: UInt64? = nil, tasks: UInt64? = nil) {
        self.memory = memory
        self.tasks = tasks
    }

    /// Writes what is not so already into an app's cgroup.
    ///
    /// There is no `memory.high` below the limit: without swap it would slow an app down for ever that it cannot make
    /// smaller, in place of ending it; page cache is taken back before the limit ends anything. `memory.oom.group`
    /// makes the app end as a whole, not a worker of it.
    ///
    /// - Parameters:
    ///   - before: what was written there last; nil: nobody knows.
    ///   - usage: see `isUnfinished`.
    /// - Returns: what could not be had, and whether memory is on its way down to its limit: then call again soon.
    public func write(
        to path: String,
        replacing before: AppLimits?,
        usage: inout UInt64?
    ) -> (failures: [ProfileFailure], isUnfinished: Bool) {
        var failures: [ProfileFailure] = []
        var isUnfinished = false
        if before == nil || before?.memory != memory {
            let file = "memory.max"
            if !File.exists(path + "/" + file) {
                if memory != nil { failures.append(ProfileFailure(.memoryLimit, "\(file) (no memory controller)")) }
            } else {
                do throws(Errno) {
                    if let memory {
                        isUnfinished = try !Cgroup.lowerMemory(path, file, to: memory, usage: &usage)
                    } else {
                        try File.writeControl(path + "/" + file, "max\n")
                    }
                    // Linux 4.19.
                    _ = try? File.writeControl(path + "/memory.oom.group", memory == nil ? "0\n" : "1\n")
                } catch {
                    failures.append(ProfileFailure(.memoryLimit, "\(file) (\(error))"))
                }
            }
        }
        if before == nil || before?.tasks != tasks {
            let file = "pids.max"
            let text = tasks.map { "\($0)" } ?? "max"
            if !File.exists(path + "/" + file) {
                if tasks != nil { failures.append(ProfileFailure(.tasks, "\(file) \(text) (no pids controller)")) }
            } else {
                do throws(Errno) {
                    try File.writeControl(path + "/" + file, text + "\n")
                } catch {
                    failures.append(ProfileFailure(.tasks, "\(file) \(text) (\(error))"))
                }
            }
        }
        return (failures, isUnfinished)
    }
}

extension ProcessTree {
    /// Whether the kernel keeps the app to a limit of memory by itself.
    public var hasMemoryController: Bool { cgroupPath.map { File.exists($0 + "/memory.max") } ?? false }

    /// Whether the kernel counts its processes and threads.
    public var hasTaskController: Bool { cgroupPath.map { File.exists($0 + "/pids.max") } ?? false }

    /// Whether its processes have more memory than that. Resident pages, which are cheap to count, are counted for
    /// each process that shares them: only when they are more, the proportional share (PSS) decides, where the kernel
    /// shows it. What is swapped out counts in neither. The second is what was counted last, bytes.
    public func exceeds(_ limit: UInt64, _ usage: Usage) -> (Bool, UInt64) {
        guard usage.memoryBytes > limit else { return (false, usage.memoryBytes) }
        var total: UInt64 = 0
        for member in list() {
            let resident = member.residentPages &* UInt64(Memory.pageSize)
            total &+= (try? ProcFS.proportionalMemory(member.pid).resident) ?? resident
        }
        return (total > limit, total)
    }
}
