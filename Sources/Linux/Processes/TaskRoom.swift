// SPDX-License-Identifier: Apache-2.0

/// How many tasks (processes and threads) there may be on the machine.
public enum TaskRoom {
    /// The most tasks of an app whose configuration does not say how many: see ``share(of:)``. The kernel's limits are
    /// read once.
    public static let ofOneApp = share(
        of: [
            "/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max",
            // Exists only in a container, whose limit it is.
            (Cgroup.mount ?? "") + "/pids.max",
        ].map { try? File.readString($0) }
    )

    /// 15 % of the smallest of the kernel's limits on all tasks, as `DefaultTasksMax=` of systemd, but at least 512,
    /// which small machines and containers need as well. Nil if no limit is known.
    ///
    /// - Parameter texts: the contents of the files with the limits; nil for a file that cannot be read.
    package static func share(of texts: [String?]) -> UInt64? {
        let limits = texts.compactMap { text in
            text.flatMap { UInt64($0.prefix { $0 != "\n" }) }
        }
        return limits.min().map { max(512, $0 / 100 * 15 + $0 % 100 * 15 / 100) }
    }
}
