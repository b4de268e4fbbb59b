// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// The processor on which a thread or process runs (sched(7)).
public enum Processor {
    /// The number of the processor on which this thread is running now.
    public static var current: Int32 { tlx_processor() }

    /// Pins a process to one processor (sched_setaffinity(2)). Throws EPERM for other users' processes without
    /// CAP_SYS_NICE, EINVAL if the process may not use that processor (cpuset(7)).
    public static func bind(_ pid: Int32, to processor: Int32) throws(Errno) { try call { tlx_bind(pid, processor) } }
}
