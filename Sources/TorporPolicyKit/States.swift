// SPDX-License-Identifier: Apache-2.0

/// The states of an app (docs/lifecycle.md).
public enum State: UInt32, Sendable, Hashable, CaseIterable {
    /// It has no processes.
    case notRunning = 0
    /// It runs, but gets no user events: just launched, interrupted, or in a transition.
    case inactive = 1
    /// It runs and is in use.
    case active = 2
    /// It runs and is not in use.
    case background = 3
    /// It is suspended: stopped, but in memory.
    case suspended = 4

    /// The name in messages and configuration: `not-running`.
    public var name: String {
        switch self {
        case .notRunning: "not-running"
        case .inactive: "inactive"
        case .active: "active"
        case .background: "background"
        case .suspended: "suspended"
        }
    }

    /// Whether it is inactive or active.
    public var isForeground: Bool { self == .active || self == .inactive }
}

/// The transition that an app is in.
public enum Edge: UInt32, Sendable, Hashable, CaseIterable {
    /// None.
    case none = 0
    /// It is being launched.
    case launching = 1
    /// To active.
    case activating = 2
    /// From active to inactive.
    case deactivating = 3
    /// From inactive to the background.
    case enteringBackground = 4
    /// From the background to inactive.
    case enteringForeground = 5
    /// It is being suspended.
    case suspending = 6
    /// It is being resumed.
    case resuming = 7
    /// It is being terminated.
    case terminating = 8
}

/// Why an app ended, `TORPOR_REASON_…`.
public struct EndReason: RawRepresentable, Sendable, Hashable {
    /// `TORPOR_REASON_…`; later versions have more.
    public let rawValue: UInt32

    /// From `TORPOR_REASON_…`.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    private init(_ reason: torpor_policy_reason) { rawValue = reason.rawValue }

    /// It has not ended yet.
    public static let none = EndReason(TORPOR_REASON_NONE)
    /// It exited with 0.
    public static let exitSuccess = EndReason(TORPOR_REASON_EXIT_SUCCESS)
    /// It exited with another status.
    public static let exitFailure = EndReason(TORPOR_REASON_EXIT_FAILURE)
    /// A signal killed it.
    public static let signal = EndReason(TORPOR_REASON_SIGNAL)
    /// A signal killed it, and it left a core dump.
    public static let coreDump = EndReason(TORPOR_REASON_CORE_DUMP)
    /// It was not ready in time.
    public static let launchDeadline = EndReason(TORPOR_REASON_LAUNCH_DEADLINE)
    /// It did not enter the background in time.
    public static let backgroundDeadline = EndReason(TORPOR_REASON_BACKGROUND_DEADLINE)
    /// A heartbeat was missing.
    public static let watchdog = EndReason(TORPOR_REASON_WATCHDOG)
    /// A background task did not end in time.
    public static let taskExpired = EndReason(TORPOR_REASON_TASK_EXPIRED)
    /// It held a lock that another process waited for.
    public static let lockWhileSuspending = EndReason(TORPOR_REASON_LOCK_WHILE_SUSPENDING)
    /// The kernel's OOM killer killed it.
    public static let oomKill = EndReason(TORPOR_REASON_OOM_KILL)
    /// The reason is unknown.
    public static let unknown = EndReason(TORPOR_REASON_UNKNOWN)
    /// An app that it requires failed.
    public static let dependencyFailed = EndReason(TORPOR_REASON_DEPENDENCY_FAILED)
    /// A new configuration or a changed setting replaced it.
    public static let replaced = EndReason(TORPOR_REASON_REPLACED)
    /// It exceeded its memory limit.
    public static let memoryLimit = EndReason(TORPOR_REASON_MEMORY_LIMIT)
    /// It did not answer a message in time.
    public static let unresponsive = EndReason(TORPOR_REASON_UNRESPONSIVE)
    /// It was woken too often.
    public static let wakeStorm = EndReason(TORPOR_REASON_WAKE_STORM)
    /// Its memory was needed.
    public static let evicted = EndReason(TORPOR_REASON_EVICTED)
    /// A user stopped it.
    public static let stopped = EndReason(TORPOR_REASON_STOPPED)
    /// It exits instead of entering the background.
    public static let exitsOnSuspend = EndReason(TORPOR_REASON_EXITS_ON_SUSPEND)
    /// The supervisor was shut down.
    public static let shutdown = EndReason(TORPOR_REASON_SHUTDOWN)
    /// A user force-quit it.
    public static let forceQuit = EndReason(TORPOR_REASON_FORCE_QUIT)
    /// It could not be launched.
    public static let launchFailed = EndReason(TORPOR_REASON_LAUNCH_FAILED)
    /// What it may do in its sandbox changed.
    public static let permissionChanged = EndReason(TORPOR_REASON_PERMISSION_CHANGED)
}

/// Why an app is launched, `TORPOR_LAUNCH_…`.
public struct LaunchReason: RawRepresentable, Sendable, Hashable {
    /// `TORPOR_LAUNCH_…`; later versions have more.
    public let rawValue: UInt32

    /// From `TORPOR_LAUNCH_…`.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    private init(_ reason: torpor_policy_launch) { rawValue = reason.rawValue }

    /// A user requested it.
    public static let user = LaunchReason(TORPOR_LAUNCH_BY_USER)
    /// The supervisor starts.
    public static let boot = LaunchReason(TORPOR_LAUNCH_AT_BOOT)
    /// It is restarted after it ended.
    public static let restart = LaunchReason(TORPOR_LAUNCH_AS_RESTART)
    /// Another app requires it.
    public static let dependent = LaunchReason(TORPOR_LAUNCH_FOR_DEPENDENT)
    /// An event needs it.
    public static let event = LaunchReason(TORPOR_LAUNCH_FOR_EVENT)
    /// A policy asked for it.
    public static let policy = LaunchReason(TORPOR_LAUNCH_BY_POLICY)
}

/// How short memory is, in the supervisor's judgement.
public enum Pressure: UInt32, Sendable, Hashable, Comparable {
    /// Memory is not short.
    case none = 0
    /// Memory will soon be short.
    case warning = 1
    /// Memory is short.
    case critical = 2

    /// Whether the left pressure is lower.
    public static func < (left: Pressure, right: Pressure) -> Bool { left.rawValue < right.rawValue }
}

/// The source of the machine's power.
public enum Power: UInt32, Sendable, Hashable {
    /// The source is unknown.
    case unknown = 0
    /// The mains.
    case mains = 1
    /// A battery.
    case battery = 2
}
