// SPDX-License-Identifier: Apache-2.0

import KeeperProtocol
public import Linux

/// How a process ended.
public enum ExitStatus: Hashable, Sendable {
    /// By itself, with this status.
    case exited(Int32)
    /// By a signal.
    case signaled(Int32, coreDumped: Bool)
}

/// The end of a process that the keeper launched or adopted.
public struct ExitRecord: Hashable, Sendable {
    /// The name of the app.
    public var app: String
    /// Which run of the app, counted from 1.
    public var incarnation: UInt32
    /// The number of the process.
    public var pid: Int32
    /// How it ended; nil when nobody can tell, which happens only to adopted ones.
    public var status: ExitStatus?
    /// Processor time in its own code; zero for an adopted one, as the next two.
    public var userTime: Duration
    /// Processor time in the kernel.
    public var systemTime: Duration
    /// The most memory it had at a time, in bytes.
    public var maxResidentBytes: UInt64
    /// Clock ticks after boot.
    public var startTime: UInt64
    /// Whether it was a helper (`LaunchPlan.isHelper`).
    public var isHelper: Bool
    /// Set when it never came to exec, and torpord was away when that showed.
    public var launchFailure: LaunchFailure?
    /// The slot that keeps this record in the keeper until `Keeper.forget`.
    var slot: UInt32
    var generation: UInt32
}

/// The end of a process that nobody launched here: a descendant of an app that lost its parent.
public struct OrphanRecord: Hashable, Sendable {
    /// The number of the process.
    public var pid: Int32
    /// How it ended.
    public var status: ExitStatus
    /// Processor time in its own code.
    public var userTime: Duration
    /// Processor time in the kernel.
    public var systemTime: Duration
    /// The most memory it had at a time, in bytes.
    public var maxResidentBytes: UInt64
    /// The app whose session it was in; nil when it made a session of its own: then its cgroup may say more.
    public var app: String?
    /// Of that app.
    public var incarnation: UInt32
    /// The session it was in.
    public var session: Int32
    /// Clock ticks after boot.
    public var startTime: UInt64
    /// The first 15 bytes of its name.
    public var command: String
    /// The last 127 bytes of its cgroup v2 path, empty without one.
    public var cgroup: String
    var sequence: UInt64
}

/// A process that an earlier torpord had launched or adopted and that lives.
public struct OrphanedProcess {
    /// The name of the app.
    public let app: String
    /// Which run of the app, counted from 1; ``AppTag/companion`` for a process that is none.
    public let incarnation: UInt32
    /// The number of the process.
    public let pid: Int32
    /// Clock ticks after boot.
    public let startTime: UInt64
    /// Its exec has not been heard of: then `Keeper.onLaunched` tells of it, or `Keeper.onExit` with a `launchFailure`.
    public let isLaunching: Bool
    /// It was adopted: its parent is not the keeper.
    public let isAdopted: Bool
    /// Pins it.
    public let pidfd: Descriptor
    /// What `launch` would have answered.
    public var launched: Launched { Launched(pid: pid, startTime: startTime, pidfd: pidfd) }
}

extension OrphanedProcess {
    /// nil for what needs nobody: helpers, which the keeper ends, and a launch that has failed already, whose end is
    /// told when it is reaped. Without its pidfd a living app would be forgotten and started a second time: EMFILE.
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
        // CLD_EXITED 1, CLD_KILLED 2, CLD_DUMPED 3 of waitid(2).
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
