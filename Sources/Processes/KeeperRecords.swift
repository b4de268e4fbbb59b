// SPDX-License-Identifier: Apache-2.0

import KeeperProtocol
public import Linux

/// How a process ended.
public enum ExitStatus: Hashable, Sendable {
    /// It exited with this status.
    case exited(Int32)
    /// A signal terminated it.
    case signaled(Int32, coreDumped: Bool)
}

/// The exit of a process that the keeper launched or adopted.
public struct ExitRecord: Hashable, Sendable {
    /// The name of the app.
    public var app: String
    /// The run of the app, counted from 1.
    public var incarnation: UInt32
    /// The pid.
    public var pid: Int32
    /// How it ended; nil if unknown, which happens only to adopted processes.
    public var status: ExitStatus?
    /// User time; zero for an adopted process, like the next two.
    public var userTime: Duration
    /// System time.
    public var systemTime: Duration
    /// Peak resident memory in bytes.
    public var maxResidentBytes: UInt64
    /// Start time in clock ticks since boot.
    public var startTime: UInt64
    /// Whether it was a helper (`LaunchPlan.isHelper`).
    public var isHelper: Bool
    /// Set if it never reached exec, and that was noticed while torpord was not running.
    public var launchFailure: LaunchFailure?
    /// The keeper's slot that stores this record until `Keeper.forget`.
    var slot: UInt32
    var generation: UInt32
}

/// The exit of a process that the keeper did not launch: a descendant of an app that had lost its parent.
public struct OrphanRecord: Hashable, Sendable {
    /// The pid.
    public var pid: Int32
    /// How it ended.
    public var status: ExitStatus
    /// User time.
    public var userTime: Duration
    /// System time.
    public var systemTime: Duration
    /// Peak resident memory in bytes.
    public var maxResidentBytes: UInt64
    /// The app whose session it was in; nil if it had created its own session: then its cgroup may help.
    public var app: String?
    /// The run of that app.
    public var incarnation: UInt32
    /// The session it was in.
    public var session: Int32
    /// Start time in clock ticks since boot.
    public var startTime: UInt64
    /// The first 15 bytes of its name.
    public var command: String
    /// The last 127 bytes of its cgroup v2 path; empty if it has none.
    public var cgroup: String
    var sequence: UInt64
}

/// A living process that an earlier torpord launched or adopted.
public struct OrphanedProcess {
    /// The name of the app.
    public let app: String
    /// The run of the app, counted from 1; ``AppTag/companion`` for a companion.
    public let incarnation: UInt32
    /// The pid.
    public let pid: Int32
    /// Start time in clock ticks since boot.
    public let startTime: UInt64
    /// Its exec is not reported yet: `Keeper.onLaunched` will report it, or `Keeper.onExit` with a `launchFailure`.
    public let isLaunching: Bool
    /// It was adopted: its parent is not the keeper.
    public let isAdopted: Bool
    /// Refers to it safely even if the pid is reused.
    public let pidfd: Descriptor
    /// The result that `launch` would have given.
    public var launched: Launched { Launched(pid: pid, startTime: startTime, pidfd: pidfd) }
}

extension OrphanedProcess {
    /// nil for helpers, which the keeper kills, and for failed launches, whose exit is reported when they are reaped.
    /// Throws EMFILE if the pidfd is missing: otherwise a living app would be forgotten and started a second time.
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
        // CLD_EXITED 1, CLD_KILLED 2, CLD_DUMPED 3 (waitid(2)).
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
