// SPDX-License-Identifier: Apache-2.0

import KeeperProtocol
public import Linux

/// All that the keeper needs to start a program. Descriptors are numbers in this process; they stay the caller's and
/// may be closed as soon as `Keeper.launch` has returned.
public struct LaunchPlan {
    /// The app, 1 to 63 bytes.
    public var app: String
    /// Which run of the app it will be; ``AppTag/companion`` for one that is none.
    public var incarnation: UInt32
    /// The program: found on PATH already, absolute.
    public var executable: String
    /// What it is called with, its name first.
    public var arguments: [String]
    /// `K=V`.
    public var environment: [String]
    /// Where it starts; nil: where the keeper is.
    public var directory: String?
    /// Whom it runs as; nil: the keeper's user.
    public var user: (uid: UInt32, gid: UInt32, groups: [UInt32])?
    /// Its file mode creation mask.
    public var umask: UInt32?
    /// Its nice value, −20 to 19.
    public var nice: Int32?
    /// Its oom_score_adj, −1000 to 1000.
    public var oomScoreAdjust: Int32?
    /// Its limits, by number of resource (getrlimit(2)).
    public var limits: [(resource: Int32, soft: UInt64, hard: UInt64)] = []
    /// Standard output; −1: /dev/null.
    public var standardOutput: Int32 = -1
    /// Standard error; −1: /dev/null.
    public var standardError: Int32 = -1
    /// The file that is standard input, else /dev/null: the child opens it, as ``LaunchRequest/inputFile`` says.
    public var inputFile: String?
    /// The file that standard error is added to instead, likewise.
    public var errorFile: String?
    /// Become 3, 4, … in the app.
    public var passed: [Int32] = []
    /// Whether the child writes LISTEN_PID into its environment.
    public var setListenPid = false
    /// Whether the child writes WATCHDOG_PID into its environment.
    public var setWatchdogPid = false
    /// The directory of the cgroup that it starts in.
    public var cgroup: Int32?
    /// Whether the keeper ends it when torpord dies.
    public var isHelper = false

    /// A plan for a program; everything else is set afterwards.
    public init(app: String, incarnation: UInt32, executable: String, arguments: [String], environment: [String] = []) {
        self.app = app
        self.incarnation = incarnation
        self.executable = executable
        self.arguments = arguments
        self.environment = environment
    }

    var request: LaunchRequest {
        var request = LaunchRequest()
        request.app = app
        request.incarnation = incarnation
        request.executable = executable
        request.arguments = arguments
        request.environment = environment
        request.directory = directory
        request.user = user
        request.umask = umask
        request.nice = nice
        request.oomScoreAdjust = oomScoreAdjust
        request.limits = limits
        request.standard = (-1, standardOutput, standardError)
        request.passed = passed
        request.inputFile = inputFile
        request.errorFile = errorFile
        request.cgroup = cgroup
        request.setListenPid = setListenPid
        request.setWatchdogPid = setWatchdogPid
        request.isHelper = isHelper
        return request
    }
}

/// Where a launch can fail, in the order in which it happens but for the files.
public enum LaunchStage: UInt32, Sendable, CustomStringConvertible {
    case plan = 1
    case slot, fork, session, signals, cgroup, descriptors, limits, priority, oomScore, groups, group, user, directory
    case exec
    /// The file that is standard input.
    case input
    /// The file that is standard error.
    case error
    /// The keeper is gone.
    case keeper = 100
    /// A stage of a newer keeper.
    case unknown = 101

    /// One word or two.
    public var description: String {
        switch self {
        case .plan: "plan"
        case .slot: "slot"
        case .fork: "fork"
        case .session: "session"
        case .signals: "signals"
        case .cgroup: "cgroup"
        case .descriptors: "descriptors"
        case .limits: "limits"
        case .priority: "nice"
        case .oomScore: "oom_score_adj"
        case .groups: "supplementary groups"
        case .group: "group"
        case .user: "user"
        case .directory: "directory"
        case .exec: "exec"
        case .input: "standard input"
        case .error: "standard error"
        case .keeper: "keeper"
        case .unknown: "unknown stage"
        }
    }
}

/// Why a program was not started.
public struct LaunchFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The step that failed.
    public let stage: LaunchStage
    /// What the kernel said to it.
    public let errno: Errno
    /// The program.
    public let executable: String
    /// More about it, empty if there is no more to say.
    public let detail: String

    /// A failure of `executable`.
    public init(stage: LaunchStage, errno: Errno, executable: String, detail: String = "") {
        self.stage = stage
        self.errno = errno
        self.executable = executable
        self.detail = detail
    }

    /// A sentence: `could not run /usr/bin/x (exec): No such file or directory`.
    public var description: String {
        let more = detail.isEmpty ? "" : " \(detail)"
        return "could not run \(executable) (\(stage)\(stage == .directory ? more : "")): "
            + (stage == .directory || detail.isEmpty ? errno.description : detail)
    }
}

/// A program that was started.
public struct Launched {
    /// Its number, good as long as `pidfd` says that it lives.
    public let pid: Int32
    /// Clock ticks after boot.
    public let startTime: UInt64
    /// Pins it.
    public let pidfd: Descriptor

    /// A process behind its pidfd.
    public init(pid: Int32, startTime: UInt64, pidfd: Descriptor) {
        self.pid = pid
        self.startTime = startTime
        self.pidfd = pidfd
    }
}
