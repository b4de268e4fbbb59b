// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux

/// A mount namespace of a thread, so that nothing mounted in it is left when the test ends. What the thread starts is in it.
enum PrivateMounts {
    /// Runs `body` on a thread that may mount; a line says so where this user may not.
    static func run(_ body: @escaping @Sendable () throws -> Void) throws {
        guard Users.isRoot else {
            print("skipped: only root may mount a small disk")
            return
        }
        let result = Monitor<Result<Void, any Error>?>(nil)
        try WorkerThread.start(named: "mounts") {
            let outcome = Result {
                // unshare(2) needs _GNU_SOURCE; CLONE_NEWNS.
                typealias Unshare = @convention(c) (Int32) -> Int32
                let unshare = unsafeBitCast(dlsym(nil, "unshare"), to: Unshare.self)
                guard unshare(0x0002_0000) == 0, mount("none", "/", nil, 1 << 18 | 1 << 14, nil) == 0 else {
                    throw Errno(rawValue: errno)
                }
                try body()
            }
            result.withLock { $0 = outcome }
            result.wake()
        }
        try result.wait { (result, _) in result }!.get()
    }

    /// Mounts an empty tmpfs of so many KiB.
    static func mountSmallDisk(_ path: String, kibibytes: Int) throws {
        try File.makeDirectories(path)
        guard mount("tmpfs", path, "tmpfs", 0, "size=\(kibibytes)k") == 0 else { throw Errno(rawValue: errno) }
    }
}
