// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// Refers to processes by descriptors (pidfds). Unlike a pid, a pidfd never refers to a later process that gets the
/// same pid.
public enum Pidfd {
    /// Opens a descriptor for the process that has this pid now. It becomes readable once the process has ended.
    public static func open(_ pid: Int32) throws(Errno) -> Descriptor {
        Descriptor(owning: try call { tlx_pidfd_open(pid, 0) })
    }

    /// Sends a signal. Throws ESRCH once the process was reaped. Signal 0 only tests whether the process exists.
    public static func sendSignal(_ pidfd: Int32, _ number: Int32) throws(Errno) {
        try call { tlx_pidfd_send_signal(pidfd, number) }
    }

    /// Sends SIGKILL to the process group that the process leads. Before Linux 6.9, sends it only to the process.
    public static func killGroup(_ pidfd: Int32) {
        if tlx_pidfd_kill_group(pidfd) != 0 { try? sendSignal(pidfd, 9) }
    }

    /// Whether the process has ended, even if it was not reaped yet.
    public static func hasEnded(_ pidfd: Int32) -> Bool {
        (try? Descriptor.wait(pidfd, timeout: .zero)) ?? true
    }

    /// The pid of the process, read from `/proc/self/fdinfo`; nil once the process was reaped.
    public static func pid(of pidfd: Int32) -> Int32? {
        guard let text = try? File.readString("/proc/self/fdinfo/\(pidfd)") else { return nil }
        for line in text.split(separator: "\n") where line.hasPrefix("Pid:") {
            return line.split(whereSeparator: { $0 == "\t" || $0 == " " }).last.flatMap { Int32($0) }
                .flatMap { $0 > 0 ? $0 : nil }
        }
        return nil
    }
}
