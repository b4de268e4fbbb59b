// SPDX-License-Identifier: Apache-2.0

public import KeeperProtocol
public import Linux

/// Everything that the keeper needs to start a program. Descriptors are numbers in this process. The caller owns
/// them, and may close them as soon as `Keeper.launch` has returned.
public struct LaunchPlan {
    /// The name of the app, 1 to 63 bytes.
    public var app: String
    /// The number of the app's incarnation (its run); ``AppTag/companion`` for a companion.
    public var incarnation: UInt32
    /// The absolute path of the program.
    public var executable: String
    /// The arguments of the program, starting with its name.
    public var arguments: [String]
    /// The environment of the program, as `K=V`.
    public var environment: [String]
    /// The working directory of the program; nil for the keeper's.
    public var directory: String?
    /// The user and groups to run as; nil for the keeper's.
    public var user: (uid: UInt32, gid: UInt32, groups: [UInt32])?
    /// The file mode creation mask; nil for the keeper's.
    public var umask: UInt32?
    /// The nice value, −20 to 19; nil for the keeper's.
    public var nice: Int32?
    /// The `oom_score_adj`, −1000 to 1000; nil for the keeper's.
    public var oomScoreAdjust: Int32?
    /// Resource limits, by RLIMIT number (getrlimit(2)).
    public var limits: [(resource: Int32, soft: UInt64, hard: UInt64)] = []
    /// The descriptor for standard output; −1 for /dev/null.
    public var standardOutput: Int32 = -1
    /// The descriptor for standard error; −1 for /dev/null.
    public var standardError: Int32 = -1
    /// The file for standard input; nil for /dev/null. The child process opens it, see ``LaunchRequest/inputFile``.
    public var inputFile: String?
    /// The path of a file to which standard error is appended, instead of `standardError`. The child process opens
    /// the file.
    public var errorFile: String?
    /// Descriptors that become 3, 4, … in the app.
    public var passed: [Int32] = []
    /// Whether the child sets LISTEN_PID to its pid.
    public var setListenPid = false
    /// Whether the child sets WATCHDOG_PID to its pid.
    public var setWatchdogPid = false
    /// A descriptor of the cgroup directory in which the program starts; nil for the keeper's cgroup.
    public var cgroup: Int32?
    /// The sandbox that restricts the program for as long as it runs; nil for no sandbox.
    public var sandbox: LaunchRequest.Sandbox?
    /// Whether the keeper kills the program when torpord dies.
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
        request.sandbox = sandbox
        request.setListenPid = setListenPid
        request.setWatchdogPid = setWatchdogPid
        request.isHelper = isHelper
        return request
    }
}

/// The stages at which a launch can fail. Up to `exec`, their order is the order of execution. The stages after `exec`
/// were added later.
public enum LaunchStage: UInt32, Sendable, CustomStringConvertible {
    case plan = 1
    case slot, fork, session, signals, cgroup, descriptors, limits, priority, oomScore, groups, group, user, directory
    case exec
    /// The file for standard input could not be opened.
    case input
    /// The file for standard error could not be opened.
    case error
    /// The sandbox could not be applied to the app.
    case sandbox
    /// The keeper is lost.
    case keeper = 100
    /// A stage that this torpord does not know, because the keeper is newer.
    case unknown = 101

    /// The name of the stage, in one to three words.
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
        case .sandbox: "sandbox"
        case .keeper: "keeper"
        case .unknown: "unknown stage"
        }
    }
}

/// Why a program was not started.
public struct LaunchFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The stage of the launch that failed.
    public let stage: LaunchStage
    /// The error that the kernel reported.
    public let errno: Errno
    /// The path of the program.
    public let executable: String
    /// Details about the failure; empty if there are none.
    public let detail: String

    /// Creates a failure to start `executable`.
    public init(stage: LaunchStage, errno: Errno, executable: String, detail: String = "") {
        self.stage = stage
        self.errno = errno
        self.executable = executable
        self.detail = detail
    }

    /// The failure as a sentence, such as `could not run /usr/bin/x (exec): No such file or directory`.
    public var description: String {
        let more = detail.isEmpty ? "" : " \(detail)"
        return "could not run \(executable) (\(stage)\(stage == .directory ? more : "")): "
            + (stage == .directory || detail.isEmpty ? errno.description : detail)
    }
}

/// A program that was started.
public struct Launched {
    /// The pid of the process, valid while `pidfd` shows that the process lives.
    public let pid: Int32
    /// The start time of the process, in clock ticks since boot.
    public let startTime: UInt64
    /// A pidfd of the process, which refers to this process even if its pid is reused.
    public let pidfd: Descriptor

    /// Creates a description of a started program.
    public init(pid: Int32, startTime: UInt64, pidfd: Descriptor) {
        self.pid = pid
        self.startTime = startTime
        self.pidfd = pidfd
    }
}
