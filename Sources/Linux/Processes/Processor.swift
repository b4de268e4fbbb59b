// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// On which processor a process runs, sched(7).
public enum Processor {
    /// Where this thread runs right now.
    public static var current: Int32 { tlx_processor() }

    /// Lets a process run on that one only, sched_setaffinity(2). EPERM: not without CAP_SYS_NICE for other users'; EINVAL:
    /// the process may not use it (cpuset(7)).
    public static func bind(_ pid: Int32, to processor: Int32) throws(Errno) { try call { tlx_bind(pid, processor) } }
}
