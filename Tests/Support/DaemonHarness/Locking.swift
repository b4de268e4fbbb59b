// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing
import TorporAPI

/// Programs that hold locks and wait for them, and what a test does with them.
package enum Locking {
    /// The ways to lock the file PATH, and to wait for that.
    package enum Sort: String, CaseIterable, CustomTestStringConvertible {
        case flock, posix, ofd, lease

        package var testDescription: String { rawValue }

        /// What an app does.
        package var take: String {
            switch self {
            case .flock: "f = open(path, 'r+'); fcntl.flock(f, fcntl.LOCK_EX)"
            case .posix: "f = open(path, 'r+'); fcntl.lockf(f, fcntl.LOCK_EX)"
            case .ofd: "f = open(path, 'r+'); fcntl.fcntl(f, 37, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))"
            case .lease: "f = open(path); fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_RDLCK)"
            }
        }

        /// What somebody else does.
        package var wait: String {
            switch self {
            case .flock, .posix: take
            case .ofd: "f = open(path, 'r+'); fcntl.fcntl(f, 38, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))"
            case .lease: "f = open(path, 'r+')"
            }
        }
    }

    private static let head = """
        import fcntl, os, signal, struct, sys
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        path = sys.argv[1]

        """

    /// An app that takes a lock, and lets it go when there is a file `release`.
    package static func app(_ take: String, release: String = "f.close()") -> String {
        """
        import tp
        \(head)
        \(take)
        tp.record("locked")
        tp.await_file("release")
        \(release)
        tp.record("released")
        tp.wait()
        """
    }

    package static func waiter(_ wait: String) -> String {
        head + wait + "\nprint('got it', flush=True)\nsignal.pause()\n"
    }

    /// A configuration with the app `keeper` of the lock.
    package static func toml(_ more: String = "", path: String = "@D/file") -> String {
        """
        [apps.holder]
        exec = ["/usr/bin/python3", "-S", "@D/holder.py", "\(path)"]
        restart = "never"
        \(more)
        """
    }
}

extension Daemon {
    /// Starts somebody outside the app who waits for the lock, and waits until that is so.
    package func startWaiter(_ statement: String, file: String = "file") throws -> Int32 {
        let program = directory + "/waiter.py"
        try Locking.waiter(statement).write(toFile: program, atomically: true, encoding: .utf8)
        let pid = try Spawn.start(
            ["/usr/bin/python3", "-S", program, directory + "/" + file],
            environment: ["TPTEST": directory],
            output: directory + "/waiter.out"
        )
        let channels = ["fcntl_setlk", "flock", "locks_lock_inode_wait", "__break_lease"]
        try eventually("\(pid) waits for the lock") {
            let channel = (try? File.readString("/proc/\(pid)/wchan")) ?? ""
            return channels.contains { channel.contains($0) }
        }
        return pid
    }

    package var waiterGotIt: Bool { (try? File.readString(directory + "/waiter.out"))?.contains("got it") ?? false }

    package func endWaiter(_ pid: Int32) {
        kill(pid, SIGKILL)
        waitpid(pid, nil, 0)
    }

    /// Wants the app suspended, and does not wait for it.
    package func wantSuspended(_ app: String = "holder") throws {
        try done(.suspend, app) { $0.wait = false }
    }

    package func release() throws { try File.write(directory + "/release", "") }

    /// Whether every process of the app stands still.
    package func isStopped(_ app: String) -> Bool {
        let pids = processes(of: app)
        return !pids.isEmpty && pids.allSatisfy { (try? ProcFS.stat($0).state) == "T" }
    }
}
