// SPDX-License-Identifier: Apache-2.0

import KeeperProtocol
public import Linux

/// Everything the keeper needs to start a program. Descriptors are numbers in this process; the caller keeps them,
/// and may close them as soon as `Keeper.launch` has returned.
public struct LaunchPlan {
    /// The app's name, 1 to 63 bytes.
    public var app: String
    /// The run of the app; ``AppTag/companion`` for a companion.
    public var incarnation: UInt32
    /// The program's absolute path.
    public var executable: String
    /// Its arguments, starting with its name.
    public var arguments: [String]
    /// Its environment as `K=V`.
    public var environment: [String]
    /// Its working directory; nil: the keeper's.
    public var directory: String?
    /// The user to run as; nil: the keeper's.
    public var user: (uid: UInt32, gid: UInt32, groups: [UInt32])?
    /// Its file mode creation mask.
    public var umask: UInt32?
    /// Its nice value, −20 to 19.
    public var nice: Int32?
    /// Its oom_score_adj, −1000 to 1000.
    public var oomScoreAdjust: Int32?
    /// Its limits by RLIMIT number (getrlimit(2)).
    public var limits: [(resource: Int32, soft: UInt64, hard: UInt64)] = []
    /// Standard output; −1: /dev/null.
    public var standardOutput: Int32 = -1
    /// Standard error; −1: /dev/null.
    public var standardError: Int32 = -1
    /// The path of standard input, else /dev/null: the child opens it, see ``LaunchRequest/inputFile``.
    public var inputFile: String?
    /// The path of a file that standard error is appended to instead; opened likewise.
    public var errorFile: String?
    /// Descriptors that become 3, 4, … in the app.
    public var passed: [Int32] = []
    /// Whether the child sets LISTEN_PID to its pid.
    public var setListenPid = false
    /// Whether the child sets WATCHDOG_PID to its pid.
    public var setWatchdogPid = false
    /// A descriptor of the cgroup directory to start it in.
    public var cgroup: Int32?
    /// Whether the keeper kills it when torpord dies.
    public var isHelper = false

    /// Creates a plan; the other properties are set afterwards.
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

/// The stages at which a launch can fail, in order, except for the files.
public enum LaunchStage: UInt32, Sendable, CustomStringConvertible {
    case plan = 1
    case slot, fork, session, signals, cgroup, descriptors, limits, priority, oomScore, groups, group, user, directory
    case exec
    /// Opening the file of standard input.
    case input
    /// Opening the file of standard error.
    case error
    /// The keeper is gone.
    case keeper = 100
    /// A stage that only a newer keeper knows.
    case unknown = 101

    /// The stage in one or two words.
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
    /// The stage that failed.
    public let stage: LaunchStage
    /// The kernel's error.
    public let errno: Errno
    /// The program.
    public let executable: String
    /// Details; empty if there are none.
    public let detail: String

    /// Creates one for `executable`.
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
    /// Its pid, valid while `pidfd` shows that it lives.
    public let pid: Int32
    /// Start time in clock ticks since boot.
    public let startTime: UInt64
    /// Refers to it safely even if the pid is reused.
    public let pidfd: Descriptor

    /// Creates one from its parts.
    public init(pid: Int32, startTime: UInt64, pidfd: Descriptor) {
        self.pid = pid
        self.startTime = startTime
        self.pidfd = pidfd
    }
}
