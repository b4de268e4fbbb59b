// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux

/// What the kernel says, whatever the daemon believes.
package enum Truth {
    /// The living processes that were started with `TPTEST=<folder>`.
    package static func processes(marked folder: String) -> [Int32] {
        let needle = "TPTEST=\(folder)"
        return ((try? ProcFS.allPids()) ?? []).filter { pid in
            guard let data = FileManager.default.contents(atPath: "/proc/\(pid)/environ"), !data.isEmpty else {
                return false
            }
            return data.split(separator: 0).contains { $0.elementsEqual(needle.utf8) }
        }
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
            guard let walk = FileManager.default.enumerator(atPath: base) else { continue }
            while let path = walk.nextObject() as? String {
                if walk.level > 3 { walk.skipDescendants() }
                if path.contains(name), FileManager.default.fileExists(atPath: base + "/" + path + "/cgroup.procs") {
                    found.append(base + "/" + path)
                }
            }
        }
        return found
    }
}
