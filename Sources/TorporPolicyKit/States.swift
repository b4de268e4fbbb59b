// SPDX-License-Identifier: Apache-2.0

/// The states of an app (docs/lifecycle.md).
public enum State: UInt32, Sendable, Hashable, CaseIterable {
    /// The app has no processes.
    case notRunning = 0
    /// The app runs, but gets no user events: just launched, interrupted, or in a transition.
    case inactive = 1
    /// The app runs and is in use.
    case active = 2
    /// The app runs and is not in use.
    case background = 3
    /// The app is suspended: stopped, but in memory.
    case suspended = 4

    /// The state's name in messages and configuration, such as `not-running`.
    public var name: String {
        switch self {
        case .notRunning: "not-running"
        case .inactive: "inactive"
        case .active: "active"
        case .background: "background"
        case .suspended: "suspended"
        }
    }

    /// Whether the state is inactive or active.
    public var isForeground: Bool { self == .active || self == .inactive }
}

/// The transition that an app is in.
public enum Edge: UInt32, Sendable, Hashable, CaseIterable {
    /// The app is in no transition.
    case none = 0
    /// The app is being launched.
    case launching = 1
    /// The app goes from inactive to active.
    case activating = 2
    /// The app goes from active to inactive.
    case deactivating = 3
    /// The app goes from inactive to the background.
    case enteringBackground = 4
    /// The app goes from the background to inactive.
    case enteringForeground = 5
    /// The app is being suspended.
    case suspending = 6
    /// The app is being resumed.
    case resuming = 7
    /// The app is being terminated.
    case terminating = 8
}

/// Why an app ended, `TORPOR_REASON_…`.
public struct EndReason: RawRepresentable, Sendable, Hashable {
    /// The number `TORPOR_REASON_…`; later versions have more.
    public let rawValue: UInt32

    /// Creates a reason from a number `TORPOR_REASON_…`.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    private init(_ reason: torpor_policy_reason) { rawValue = reason.rawValue }

    /// The app has not ended yet.
    public static let none = EndReason(TORPOR_REASON_NONE)
    /// The app exited with status 0.
    public static let exitSuccess = EndReason(TORPOR_REASON_EXIT_SUCCESS)
    /// The app exited with another status than 0.
    public static let exitFailure = EndReason(TORPOR_REASON_EXIT_FAILURE)
    /// A signal killed the app.
    public static let signal = EndReason(TORPOR_REASON_SIGNAL)
    /// A signal killed the app, and it left a core dump.
    public static let coreDump = EndReason(TORPOR_REASON_CORE_DUMP)
    /// The app was not ready in time.
    public static let launchDeadline = EndReason(TORPOR_REASON_LAUNCH_DEADLINE)
    /// The app did not enter the background in time.
    public static let backgroundDeadline = EndReason(TORPOR_REASON_BACKGROUND_DEADLINE)
    /// The app missed a heartbeat.
    public static let watchdog = EndReason(TORPOR_REASON_WATCHDOG)
    /// A background task of the app did not end in time.
    public static let taskExpired = EndReason(TORPOR_REASON_TASK_EXPIRED)
    /// The app held a lock that another process waited for, while the app was being suspended.
    public static let lockWhileSuspending = EndReason(TORPOR_REASON_LOCK_WHILE_SUSPENDING)
    /// The kernel's OOM killer killed the app.
    public static let oomKill = EndReason(TORPOR_REASON_OOM_KILL)
    /// The reason is unknown.
    public static let unknown = EndReason(TORPOR_REASON_UNKNOWN)
    /// Another app that this app requires failed.
    public static let dependencyFailed = EndReason(TORPOR_REASON_DEPENDENCY_FAILED)
    /// The app was replaced, because of a new configuration or a changed setting.
    public static let replaced = EndReason(TORPOR_REASON_REPLACED)
    /// The app exceeded its memory limit.
    public static let memoryLimit = EndReason(TORPOR_REASON_MEMORY_LIMIT)
    /// The app did not answer a message in time.
    public static let unresponsive = EndReason(TORPOR_REASON_UNRESPONSIVE)
    /// The app was woken too often.
    public static let wakeStorm = EndReason(TORPOR_REASON_WAKE_STORM)
    /// The app was terminated because its memory was needed.
    public static let evicted = EndReason(TORPOR_REASON_EVICTED)
    /// A user stopped the app.
    public static let stopped = EndReason(TORPOR_REASON_STOPPED)
    /// The app exits instead of entering the background (`exits_on_suspend`).
    public static let exitsOnSuspend = EndReason(TORPOR_REASON_EXITS_ON_SUSPEND)
    /// The supervisor was shut down.
    public static let shutdown = EndReason(TORPOR_REASON_SHUTDOWN)
    /// A user force-quit the app.
    public static let forceQuit = EndReason(TORPOR_REASON_FORCE_QUIT)
    /// The app could not be launched.
    public static let launchFailed = EndReason(TORPOR_REASON_LAUNCH_FAILED)
    /// The permissions of the app's sandbox changed.
    public static let permissionChanged = EndReason(TORPOR_REASON_PERMISSION_CHANGED)
    /// The app used a graphics card in the background.
    public static let gpuInBackground = EndReason(TORPOR_REASON_GPU_IN_BACKGROUND)
    /// The app had files of its protected folder open when the folder was locked.
    public static let protectedDataOpen = EndReason(TORPOR_REASON_PROTECTED_DATA_OPEN)
    /// The app accessed something that it declares no permission for.
    public static let noPurposeString = EndReason(TORPOR_REASON_NO_PURPOSE_STRING)
}

/// Why an app is launched, `TORPOR_LAUNCH_…`.
public struct LaunchReason: RawRepresentable, Sendable, Hashable {
    /// The number `TORPOR_LAUNCH_…`; later versions have more.
    public let rawValue: UInt32

    /// Creates a reason from a number `TORPOR_LAUNCH_…`.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    private init(_ reason: torpor_policy_launch) { rawValue = reason.rawValue }

    /// A user requested the launch.
    public static let user = LaunchReason(TORPOR_LAUNCH_BY_USER)
    /// The supervisor has started, and launches its apps.
    public static let boot = LaunchReason(TORPOR_LAUNCH_AT_BOOT)
    /// The app is restarted after it ended.
    public static let restart = LaunchReason(TORPOR_LAUNCH_AS_RESTART)
    /// Another app requires this app.
    public static let dependent = LaunchReason(TORPOR_LAUNCH_FOR_DEPENDENT)
    /// An event needs the app.
    public static let event = LaunchReason(TORPOR_LAUNCH_FOR_EVENT)
    /// A policy advised the launch.
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
