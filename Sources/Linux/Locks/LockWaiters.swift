// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Finds the processes that wait for OFD locks. The kernel does not name these processes, but each has a thread that is
/// blocked in fcntl(2) on a descriptor of the locked file.
extension LockTable {
    /// Finds as many processes that wait for OFD locks as possible. Reads all of /proc: do not call it on the event
    /// loop.
    mutating func findWaiters() {
        var missing: [FileLock.File: [Int]] = [:]
        for (index, waiter) in waiters.enumerated().reversed() where waiter.isUnknown {
            missing[waiter.file, default: []].append(index)
        }
        for pid in (try? ProcFS.allPids()) ?? [] {
            guard !missing.isEmpty else { return }
            for descriptor in Self.awaited(by: pid) {
                // fdinfo has no device number, so compare only the inode number. If several locked files have the same
                // inode number, the process is assigned to the first of them.
                guard let inode = Self.inode(pid, descriptor),
                    let file = missing.keys.first(where: { $0.inode == inode }), let index = missing[file]?.popLast()
                else { continue }
                waiters[index].request = waiters[index].request.by(pid)
                if missing[file]?.isEmpty ?? true { missing[file] = nil }
            }
        }
    }

    /// The descriptors for whose locks the threads of a process wait.
    private static func awaited(by pid: Int32) -> [Int32] {
        ((try? ProcFS.tasks(pid)) ?? []).compactMap { task in
            // Requests for POSIX locks also wait in fcntl_setlk (fcntl_setlk64 on 32-bit machines). The command
            // F_OFD_SETLKW (0x26) identifies requests for OFD locks.
            guard let place = try? File.readString("/proc/\(pid)/task/\(task)/wchan"), place.hasPrefix("fcntl_setlk"),
                let call = try? File.readString("/proc/\(pid)/task/\(task)/syscall")
            else { return nil }
            // The file contains the number of the system call and its arguments: 72 0x3 0x26 …
            let words = call.split(separator: " ")
            guard words.count > 2, words[2] == "0x26", words[1].hasPrefix("0x") else { return nil }
            return Int32(words[1].dropFirst(2), radix: 16)
        }
    }

    private static func inode(_ pid: Int32, _ descriptor: Int32) -> UInt64? {
        guard let text = try? File.readString("/proc/\(pid)/fdinfo/\(descriptor)") else { return nil }
        for line in text.split(separator: "\n") where line.hasPrefix("ino:") {
            return UInt64(line.dropFirst(4).drop { $0 == "\t" || $0 == " " })
        }
        return nil
    }
}
