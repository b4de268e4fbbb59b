// SPDX-License-Identifier: Apache-2.0

import Linux

/// Limits for an app as a whole, enforced through its cgroup.
public struct AppLimits: Hashable, Sendable {
    /// Maximum memory in bytes (`memory.max`); nil: unlimited.
    public var memory: UInt64?
    /// Maximum number of processes and threads; nil: unlimited.
    public var tasks: UInt64?

    /// Creates limits; unlimited by default.
    public init(memory: UInt64? = nil, tasks: UInt64? = nil) {
        self.memory = memory
        self.tasks = tasks
    }

    /// Writes the limits that have changed into an app's cgroup.
    ///
    /// It sets no `memory.high` below the limit: without swap, an app that cannot shrink would be throttled forever
    /// instead of killed, and page cache is reclaimed before the limit kills anyway. `memory.oom.group` makes the
    /// kernel kill the whole app instead of one of its processes.
    ///
    /// - Parameters:
    ///   - before: the limits written last; nil: unknown.
    ///   - usage: state of the lowering, kept by the caller between calls while `isUnfinished`.
    /// - Returns: what failed, and whether memory is still being lowered to its limit: then call it again soon.
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
                    // Needs Linux 4.19.
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
    /// Whether the kernel can limit the app's memory.
    public var hasMemoryController: Bool { cgroupPath.map { File.exists($0 + "/memory.max") } ?? false }

    /// Whether the kernel can count and limit its processes and threads.
    public var hasTaskController: Bool { cgroupPath.map { File.exists($0 + "/pids.max") } ?? false }

    /// Whether its processes use more memory than `limit`. It first adds up resident pages, which is cheap but counts
    /// shared pages for each process. Only if that exceeds the limit it uses the proportional share (PSS), where the
    /// kernel reports it. Neither includes swap. The second value is the last sum in bytes.
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
