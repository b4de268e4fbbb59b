// SPDX-License-Identifier: Apache-2.0

import Lifecycle
package import Processes

/// How a main process ended, whether the keeper launched it or only adopted it (MAINPID).
package struct MainExit {
    package let pid: Int32
    /// The exit status; nil if it is not known.
    package let status: ExitStatus?
    package let processorTime: Duration
    package let maxResidentBytes: UInt64

    package init(pid: Int32, status: ExitStatus?) {
        self.pid = pid
        self.status = status
        processorTime = .zero
        maxResidentBytes = 0
    }

    package init(_ record: ExitRecord) {
        pid = record.pid
        status = record.status
        processorTime = record.userTime + record.systemTime
        maxResidentBytes = record.maxResidentBytes
    }

    package init(_ record: OrphanRecord) {
        pid = record.pid
        status = record.status
        processorTime = record.userTime + record.systemTime
        maxResidentBytes = record.maxResidentBytes
    }
}
