// SPDX-License-Identifier: Apache-2.0

import Linux
package import Processes
package import TorporAPI

/// The state of an app just before it is terminated, when its processes still exist. Reading it takes at most a
/// millisecond and waits for nothing that the app could block.
package final class CrashSnapshot {
    /// The memory of all processes of the app, in bytes.
    package let memoryBytes: Int64
    /// The stacks of the app's threads, those of the main process first.
    package private(set) var threads: [ThreadStack] = []

    /// Limits on the processes and threads that are read, so that reading takes at most a millisecond.
    private static let mostProcesses = 16
    private static let mostThreads = 32

    package init(of tree: ProcessTree) {
        let processes = Self.processes(of: tree)
        let pages = processes.reduce(UInt64(0)) { $0 + ((try? ProcFS.stat($1))?.residentPages ?? 0) }
        let resident = pages * UInt64(Memory.pageSize)
        memoryBytes = Int64(clamping: tree.cgroupPath.flatMap { Cgroup.number($0, "memory.current") } ?? resident)
        for pid in processes where threads.count < Self.mostThreads {
            for task in ((try? ProcFS.tasks(pid)) ?? []).prefix(Self.mostThreads - threads.count) {
                if let thread = Self.thread(pid, task) { threads.append(thread) }
            }
        }
    }

    /// Adds user-space stacks that an external tool found, by thread id.
    package func take(_ stacks: [Int32: [String]]) {
        for index in threads.indices {
            if let stack = stacks[threads[index].tid] { threads[index].userStack = stack }
        }
    }

    /// The main process and other processes of the app, without reading all of /proc.
    private static func processes(of tree: ProcessTree) -> [Int32] {
        let main = tree.main.pid
        if tree.cgroupPath != nil {
            return [main] + tree.members(atMost: mostProcesses).pids.filter { $0 != main }.prefix(mostProcesses - 1)
        }
        var found = [main]
        guard ProcFS.listsChildren else { return found }
        var index = 0
        while index < found.count, found.count < mostProcesses {
            let children = (try? ProcFS.children(found[index])) ?? []
            found += children.prefix(mostProcesses - found.count)
            index += 1
        }
        return found
    }

    /// The stack of a thread. Only root can read its kernel stack; the app's user can read only its wait channel.
    private static func thread(_ pid: Int32, _ task: Int32) -> ThreadStack? {
        guard let stat = try? ProcFS.taskStat(pid, task) else { return nil }
        let folder = "/proc/\(pid)/task/\(task)/"
        let text = (try? File.readString(folder + "stack")) ?? ""
        let frames = text.split(separator: "\n").map { line in
            line.split(separator: " ").last.map(String.init) ?? String(line)
        }
        var thread = ThreadStack(pid: pid, tid: task, name: stat.comm, state: String(stat.state), stack: frames)
        if let channel = try? File.readString(folder + "wchan"), !channel.isEmpty, channel != "0" {
            thread.waitChannel = channel
        }
        thread.cpuSeconds = Clock.duration(ticks: stat.userTicks + stat.systemTicks).inSeconds
        return thread
    }
}
