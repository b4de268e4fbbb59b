// SPDX-License-Identifier: Apache-2.0

import Linux

/// Limits for an app as a whole, which its cgroup enforces.
public struct AppLimits: Hashable, Sendable {
    /// The most memory, in bytes (`memory.max`); nil for no limit.
    public var memory: UInt64?
    /// The most processes and threads (`pids.max`); nil for no limit.
    public var tasks: UInt64?
    /// Whether ``tasks`` is a default, which nothing asks for: it is no failure if the kernel cannot limit tasks.
    public var isDefaultOfTasks: Bool
    /// The most memory in swap, in bytes (`memory.swap.max`), which ``memory`` does not count; nil for no limit.
    public var swap: UInt64?

    /// Creates limits; the default is no limits.
    public init(
        memory: UInt64? = nil,
        tasks: UInt64? = nil,
        isDefaultOfTasks: Bool = false,
        swap: UInt64? = nil
    ) {
        self.memory = memory
        self.tasks = tasks
        self.isDefaultOfTasks = isDefaultOfTasks
        self.swap = swap
    }

    /// Writes the limits that have changed into the app's cgroup at `path`.
    ///
    /// Does not set `memory.high` below the limit: an app that cannot shrink, because there is no swap, would then be
    /// throttled by the kernel forever instead of being killed. Even without `memory.high`, the kernel reclaims page
    /// cache before it kills. `memory.oom.group` makes the kernel kill the whole app instead of one of its processes.
    ///
    /// - Parameters:
    ///   - before: the limits that were written last; nil if unknown.
    ///   - usage: the memory usage at the last step of lowering the limit; pass it again while the returned
    ///     `isUnfinished` is true.
    /// - Returns: what failed, and whether memory usage is still above the new limit. If it is, call this function
    ///   again soon.
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
                    // Ignore a failure: `memory.oom.group` exists only since Linux 4.19.
                    _ = try? File.writeControl(path + "/memory.oom.group", memory == nil ? "0\n" : "1\n")
                } catch {
                    failures.append(ProfileFailure(.memoryLimit, "\(file) (\(error))"))
                }
            }
        }
        // The file is missing without the memory controller, and in a kernel that does not account swap.
        let swapFile = path + "/memory.swap.max"
        if before == nil || before?.swap != swap, File.exists(swapFile) {
            do throws(Errno) {
                try File.writeControl(swapFile, (swap.map { "\($0)" } ?? "max") + "\n")
            } catch {
                failures.append(ProfileFailure(.memoryLimit, "memory.swap.max (\(error))"))
            }
        }
        if before == nil || before?.tasks != tasks {
            let file = "pids.max"
            let text = tasks.map { "\($0)" } ?? "max"
            do throws(Errno) {
                try File.writeControl(path + "/" + file, text + "\n")
            } catch {
                if error != .noSuchFileOrDirectory {
                    failures.append(ProfileFailure(.tasks, "\(file) \(text) (\(error))"))
                } else if tasks != nil, !isDefaultOfTasks {
                    failures.append(ProfileFailure(.tasks, "\(file) \(text) (no pids controller)"))
                }
            }
        }
        return (failures, isUnfinished)
    }
}

extension ProcessTree {
    /// Whether the app's cgroup has the memory controller, so that the kernel can limit the app's memory.
    public var hasMemoryController: Bool { cgroupPath.map { File.exists($0 + "/memory.max") } ?? false }

    /// Whether the app's cgroup has the pids controller, so that the kernel can count and limit the app's processes and
    /// threads.
    public var hasTaskController: Bool { cgroupPath.map { File.exists($0 + "/pids.max") } ?? false }

    /// Whether the app's processes together use more memory than `limit`. Also returns the memory that they use, in
    /// bytes. First compares `usage` (resident memory), which is cheap to read but counts a shared page once for each
    /// process. If `usage` exceeds the limit, this function reads the proportional share (PSS) of each process, if the
    /// kernel reports it. Neither number includes swap.
    public func exceeds(_ limit: UInt64, _ usage: Usage) -> (Bool, UInt64) {
        guard usage.memoryBytes > limit else { return (false, usage.memoryBytes) }
        let total = proportionalMemory()
        return (total > limit, total)
    }

    /// The resident memory of the app's processes in bytes, where a page that several processes share counts once
    /// (PSS). Counts all resident memory of a process whose share is unknown.
    public func proportionalMemory() -> UInt64 {
        list().reduce(0) { total, member in
            let resident = member.residentPages &* UInt64(Memory.pageSize)
            return total &+ ((try? ProcFS.proportionalMemory(member.pid).resident) ?? resident)
        }
    }
}
