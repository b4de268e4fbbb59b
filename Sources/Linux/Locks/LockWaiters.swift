// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Who waits for a lock of an open file: the kernel's table does not say, so they are looked for among all threads that
/// wait in fcntl(2) and have the file open.
extension LockTable {
    /// Finds those that can be found. It reads all of /proc: not for the loop's thread.
    mutating func findWaiters() {
        var missing: [FileLock.File: [Int]] = [:]
        for (index, waiter) in waiters.enumerated().reversed() where waiter.isUnknown {
            missing[waiter.file, default: []].append(index)
        }
        for pid in (try? ProcFS.allPids()) ?? [] {
            guard !missing.isEmpty else { return }
            for descriptor in Self.awaited(by: pid) {
                // The file by its inode alone, since fdinfo has no device: who waits is found for the first that fits.
                guard let inode = Self.inode(pid, descriptor),
                    let file = missing.keys.first(where: { $0.inode == inode }), let index = missing[file]?.popLast()
                else { continue }
                waiters[index].request = waiters[index].request.by(pid)
                if missing[file]?.isEmpty ?? true { missing[file] = nil }
            }
        }
    }

    /// The descriptors for whose locks a process's threads wait.
    private static func awaited(by pid: Int32) -> [Int32] {
        ((try? ProcFS.tasks(pid)) ?? []).compactMap { task in
            // fcntl_setlk, on 32-bit machines fcntl_setlk64: also those that wait for POSIX locks.
            guard let place = try? File.readString("/proc/\(pid)/task/\(task)/wchan"), place.hasPrefix("fcntl_setlk"),
                let call = try? File.readString("/proc/\(pid)/task/\(task)/syscall")
            else { return nil }
            // Number and arguments: 72 0x3 0x26 …
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
