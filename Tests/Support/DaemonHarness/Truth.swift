// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux

/// What the kernel says, whatever the daemon believes.
package enum Truth {
    /// The living processes that were started with `TPTEST=<folder>`.
    package static func processes(marked folder: String) -> [Int32] {
        let mark = "TPTEST=\(folder)"
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256 << 10) { buffer in
            ((try? ProcFS.allPids()) ?? []).filter { environment(of: $0, has: mark, buffer) }
        }
    }

    /// Whether the environment that a process was started with has this variable with this value. The C library
    /// compares: tests ask this thousands of times, of hundreds of processes, in a debug build.
    private static func environment(
        of pid: Int32,
        has mark: String,
        _ buffer: UnsafeMutableBufferPointer<CChar>
    ) -> Bool {
        let file = open("/proc/\(pid)/environ", O_RDONLY | O_CLOEXEC)
        guard file >= 0, let start = buffer.baseAddress else { return false }
        defer { close(file) }
        var count = 0
        while count < buffer.count - 1 {
            let size = read(file, start + count, buffer.count - 1 - count)
            guard size > 0 else { break }
            count += size
        }
        start[count] = 0
        var place = 0
        while place < count {
            if strcmp(start + place, mark) == 0 { return true }
            place += strlen(start + place) + 1
        }
        return false
    }

    /// The same processes, each after its parent: pids begin again at the low ones.
    static func parentsFirst(_ pids: [Int32]) -> [Int32] {
        guard pids.count > 1 else { return pids }
        let parents = Dictionary(pids.map { ($0, (try? ProcFS.stat($0))?.parent ?? 0) }) { first, _ in first }
        func depth(_ pid: Int32) -> Int {
            var (depth, current) = (0, pid)
            while let parent = parents[current], parents[parent] != nil, depth < pids.count {
                (depth, current) = (depth + 1, parent)
            }
            return depth
        }
        return pids.map { (depth($0), $0) }.sorted { $0 < $1 }.map(\.1)
    }

    /// The state letters of every thread of a process, in one string; empty when it is gone.
    package static func states(_ pid: Int32) -> String {
        let letters = ((try? ProcFS.tasks(pid)) ?? []).compactMap { try? ProcFS.taskState(pid, $0) }
        return String(letters)
    }

    /// Whether every thread is stopped.
    package static func isStopped(_ pid: Int32) -> Bool {
        let states = states(pid)
        return !states.isEmpty && states.allSatisfy { $0 == "T" || $0 == "t" }
    }

    /// Whether it lives and is not a zombie.
    package static func isAlive(_ pid: Int32) -> Bool {
        guard let stat = try? ProcFS.stat(pid) else { return false }
        return !stat.hasEnded
    }

    package static func voluntarySwitches(_ pid: Int32) -> Int64? {
        (try? ProcFS.statusField(pid, "voluntary_ctxt_switches")).flatMap { $0 }.flatMap { Int64($0) }
    }

    /// The same of all threads together; nil when the process is gone.
    package static func voluntarySwitchesOfThreads(_ pid: Int32) -> Int64? {
        guard let tasks = try? ProcFS.tasks(pid), !tasks.isEmpty else { return nil }
        var sum: Int64 = 0
        for task in tasks {
            guard let text = try? ProcFS.statusField(pid, "voluntary_ctxt_switches", task: task) else { continue }
            sum += Int64(text) ?? 0
        }
        return sum
    }

    /// cgroups whose path carries the name that torpord makes of its runtime directory.
    package static func cgroups(of runtime: String) -> [String] {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in runtime.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        let name = String(hash, radix: 36)
        guard let mount = Cgroup.mount, let own = try? ProcFS.cgroup(ThisProcess.pid) else { return [] }
        var found: [String] = []
        for base in Set([mount, mount + own]) {
            eachFolder(below: base, levels: 4) { if $0.dropFirst(base.count).contains(name) { found.append($0) } }
        }
        return found
    }

    /// The directory says which entries are folders: a cgroup has dozens of files, which need not be looked at.
    private static func eachFolder(below path: String, levels: Int, _ body: (String) -> Void) {
        guard levels > 0, let directory = opendir(path) else { return }
        defer { closedir(directory) }
        while let entry = readdir(directory) {
            guard entry.pointee.d_type == UInt8(DT_DIR) else { continue }
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard name != ".", name != ".." else { continue }
            body(path + "/" + name)
            eachFolder(below: path + "/" + name, levels: levels - 1, body)
        }
    }
}
