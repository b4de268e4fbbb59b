// SPDX-License-Identifier: Apache-2.0

import KeeperProtocol
public import Linux

/// How a process ended.
public enum ExitStatus: Hashable, Sendable {
    /// The process exited with this status.
    case exited(Int32)
    /// A signal terminated the process.
    case signaled(Int32, coreDumped: Bool)
}

/// The exit of a process that the keeper launched or adopted.
public struct ExitRecord: Hashable, Sendable {
    /// The name of the app.
    public var app: String
    /// The number of the app's incarnation (its run), from 1.
    public var incarnation: UInt32
    /// The pid of the process.
    public var pid: Int32
    /// How the process ended; nil if unknown, which happens only for adopted processes.
    public var status: ExitStatus?
    /// User time. Zero for an adopted process, as are the system time and the peak memory.
    public var userTime: Duration
    /// System time.
    public var systemTime: Duration
    /// Peak resident memory in bytes.
    public var maxResidentBytes: UInt64
    /// The start time of the process, in clock ticks since boot.
    public var startTime: UInt64
    /// Whether the process was a helper (`LaunchPlan.isHelper`).
    public var isHelper: Bool
    /// Why the process never executed its program. Set only if no torpord was running when the keeper noticed the
    /// failure; otherwise nil.
    public var launchFailure: LaunchFailure?
    /// The keeper's slot that stores this record until `Keeper.forget` is called.
    var slot: UInt32
    var generation: UInt32
}

/// The exit of an orphan: a descendant of an app whose parent ended first, and that the keeper did not launch.
public struct OrphanRecord: Hashable, Sendable {
    /// The pid of the orphan.
    public var pid: Int32
    /// How the orphan ended.
    public var status: ExitStatus
    /// User time.
    public var userTime: Duration
    /// System time.
    public var systemTime: Duration
    /// Peak resident memory in bytes.
    public var maxResidentBytes: UInt64
    /// The app in whose session the orphan was. Nil if the orphan had created its own session; `cgroup` may then
    /// identify the app.
    public var app: String?
    /// The number of the incarnation of `app`.
    public var incarnation: UInt32
    /// The session that the orphan was in.
    public var session: Int32
    /// The start time of the orphan, in clock ticks since boot.
    public var startTime: UInt64
    /// The first 15 bytes of the orphan's program name.
    public var command: String
    /// The last 127 bytes of the orphan's cgroup v2 path; empty if it had none.
    public var cgroup: String
    var sequence: UInt64
}

/// A living process that an earlier torpord launched or adopted.
public struct OrphanedProcess {
    /// The name of the app.
    public let app: String
    /// The number of the app's incarnation (its run), from 1; ``AppTag/companion`` for a companion.
    public let incarnation: UInt32
    /// The pid of the process.
    public let pid: Int32
    /// The start time of the process, in clock ticks since boot.
    public let startTime: UInt64
    /// Whether the process may not have executed its program yet. Either `Keeper.onLaunched` will report that it has,
    /// or `Keeper.onExit` will report a `launchFailure`.
    public let isLaunching: Bool
    /// Whether the process was adopted, so that its parent is not the keeper.
    public let isAdopted: Bool
    /// A pidfd of the process, which refers to this process even if its pid is reused.
    public let pidfd: Descriptor
    /// The result that `Keeper.launch` would give for this process if this torpord had launched it.
    public var launched: Launched { Launched(pid: pid, startTime: startTime, pidfd: pidfd) }
}

extension OrphanedProcess {
    /// Returns nil for helpers, which the keeper kills, and for failed launches, whose exit is reported when they are
    /// reaped. Throws EMFILE if the pidfd is missing: without this error, torpord would ignore a living app and start
    /// it a second time.
    init?(_ record: KeeperMessage.ProcessRecord, _ pidfd: Descriptor?) throws(Errno) {
        if record.isHelper { return nil }
        guard let pidfd else {
            if record.isLaunching { return nil }
            throw .tooManyOpenFiles
        }
        self.init(
            app: record.app,
            incarnation: record.incarnation,
            pid: record.pid,
            startTime: record.startTime,
            isLaunching: record.isLaunching,
            isAdopted: record.isAdopted,
            pidfd: pidfd
        )
    }
}

extension ExitStatus {
    init(_ end: KeeperMessage.End) {
        // The codes are CLD_EXITED 1, CLD_KILLED 2 and CLD_DUMPED 3 (waitid(2)).
        self = end.code == 1 ? .exited(end.status) : .signaled(end.status, coreDumped: end.code == 3)
    }
}

extension ExitRecord {
    init(_ record: KeeperMessage.ProcessRecord) {
        self.init(
            app: record.app,
            incarnation: record.incarnation,
            pid: record.pid,
            status: record.end.code == 0 ? nil : ExitStatus(record.end),
            userTime: .microseconds(Int64(clamping: record.end.userMicroseconds)),
            systemTime: .microseconds(Int64(clamping: record.end.systemMicroseconds)),
            maxResidentBytes: record.end.maxResidentBytes,
            startTime: record.startTime,
            isHelper: record.isHelper,
            launchFailure: record.failedStage == 0
                ? nil
                : LaunchFailure(
                    stage: LaunchStage(rawValue: record.failedStage) ?? .unknown,
                    errno: Errno(rawValue: record.failedErrno),
                    executable: record.app
                ),
            slot: record.slot,
            generation: record.generation
        )
    }
}

extension OrphanRecord {
    init(_ orphan: KeeperMessage.OrphanWire) {
        self.init(
            pid: orphan.pid,
            status: ExitStatus(orphan.end),
            userTime: .microseconds(Int64(clamping: orphan.end.userMicroseconds)),
            systemTime: .microseconds(Int64(clamping: orphan.end.systemMicroseconds)),
            maxResidentBytes: orphan.end.maxResidentBytes,
            app: orphan.app,
            incarnation: orphan.incarnation,
            session: orphan.session,
            startTime: orphan.startTime,
            command: orphan.command,
            cgroup: orphan.cgroup,
            sequence: orphan.sequence
        )
    }
}
