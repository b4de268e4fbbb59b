// SPDX-License-Identifier: Apache-2.0

/// The state of an app, as defined in docs/lifecycle.md.
public enum AppState: String, Sendable, Hashable, CaseIterable {
    /// The app has no process: it was never launched, exited, or was terminated.
    case notRunning = "not-running"
    /// In the foreground, but the app gets no user events.
    case inactive
    /// In the foreground and in use.
    case active
    /// The app's processes run, usually for a limited time, but no user uses the app.
    case background
    /// The app's processes are stopped and stay in memory.
    case suspended

    /// The order of the states, from the least to the most active. An app that requires another app needs that app in
    /// the state `background` or a more active one.
    var rank: Int {
        switch self {
        case .notRunning: 0
        case .suspended: 1
        case .background: 2
        case .inactive: 3
        case .active: 4
        }
    }
}

/// A transition (edge) of an app from one state to another.
public enum Transition: String, Sendable, Hashable, CaseIterable {
    case launching
    case activating
    case deactivating
    case enteringBackground = "entering-background"
    case enteringForeground = "entering-foreground"
    case suspending
    case resuming
    case terminating
}

/// A message to an app. The raw values are the names that configurations and apps use. `scripts/check-sources
/// promises` checks that torpord sends each message, and that the documentation and the client libraries contain it.
public enum Message: String, Sendable, Hashable, CaseIterable {
    case willFinishLaunching
    case restoreState
    case didFinishLaunching
    case openURL
    case didBecomeActive
    case willResignActive
    case didEnterBackground
    case willEnterForeground
    case resumed
    case willTerminate
    case didReceiveMemoryWarning
    case taskExpiring
    case settingsDidChange
    case identityDidChange
    case significantTimeChange
    case performFetch
    case didReceiveEvent
    case didReceiveNotification
    case didReceiveRemoteNotification
    case protectedDataWillBecomeUnavailable
    case protectedDataDidBecomeAvailable
    case handleEventsForBackgroundTransfer
    case transferDidFinish
    case transferNeedsLogin
    case didReceiveLocalNotification
    case sceneWillConnect
    case sceneDidBecomeActive
    case sceneWillResignActive
    case sceneDidEnterBackground
    case sceneWillEnterForeground
    case sceneDidDisconnect
    case didDiscardScenes
    case refresh
    case willContinueActivity
    case continueActivity
    case didFailToContinueActivity
    case activityWasContinued

    /// Whether the message is about scenes inside the app.
    public var isAboutScenes: Bool {
        switch self {
        case .sceneWillConnect, .sceneDidBecomeActive, .sceneWillResignActive, .sceneDidEnterBackground,
            .sceneWillEnterForeground, .sceneDidDisconnect, .didDiscardScenes:
            true
        default: false
        }
    }
}

/// Why an incarnation ended. The table at the end of docs/lifecycle.md lists codes and consequences.
/// `scripts/check-sources promises` checks that each reason is used.
public enum TerminationReason: String, Sendable, Hashable, CaseIterable {
    case exitSuccess = "exit-success"
    case exitFailure = "exit-failure"
    case signal
    case coreDump = "core-dump"
    case launchDeadline = "launch-deadline"
    case backgroundDeadline = "background-deadline"
    case watchdog
    case taskExpired = "task-expired"
    case lockWhileSuspending = "lock-while-suspending"
    case oomKill = "oom-kill"
    case unknown
    case dependencyFailed = "dependency-failed"
    case replaced
    case permissionChanged = "permission-changed"
    case protectedDataOpen = "protected-data-open"
    case memoryLimit = "memory-limit"
    case unresponsive
    case wakeStorm = "wake-storm"
    case evicted
    case stopped
    case exitsOnSuspend = "exits-on-suspend"
    case shutdown
    case forceQuit = "force-quit"
    case launchFailed = "launch-failed"
    case gpuInBackground = "gpu-in-background"
    case noPurposeString = "no-purpose-string"

    /// The exception code that iOS uses for the same ending; nil if there is none.
    public var code: UInt32? {
        switch self {
        case .launchDeadline, .backgroundDeadline, .watchdog, .taskExpired: 0x8bad_f00d
        case .lockWhileSuspending: 0xdead_10cc
        case .wakeStorm: 0xbad2_2222
        case .forceQuit: 0xdead_fa11
        case .exitSuccess, .exitFailure, .signal, .coreDump, .oomKill, .unknown, .dependencyFailed, .replaced,
            .permissionChanged, .protectedDataOpen,
            .memoryLimit, .unresponsive, .evicted, .stopped, .exitsOnSuspend, .shutdown, .launchFailed,
            .gpuInBackground, .noPurposeString:
            nil
        }
    }

    /// Whether an app with `restart = "on-failure"` is restarted after an ending with this reason.
    public var isFailure: Bool {
        switch self {
        case .exitFailure, .signal, .coreDump, .launchDeadline, .backgroundDeadline, .watchdog, .taskExpired,
            .lockWhileSuspending, .oomKill, .unknown, .memoryLimit, .unresponsive, .wakeStorm, .launchFailed,
            .gpuInBackground, .noPurposeString:
            true
        case .exitSuccess, .dependencyFailed, .replaced, .permissionChanged, .protectedDataOpen, .evicted, .stopped,
            .exitsOnSuspend,
            .shutdown, .forceQuit:
            false
        }
    }

    /// Whether a request or the configuration caused the ending. If so, even `restart = "always"` does not restart the
    /// app.
    public var wasAskedFor: Bool {
        switch self {
        case .stopped, .forceQuit, .evicted, .exitsOnSuspend, .shutdown: true
        case .exitSuccess, .exitFailure, .signal, .coreDump, .launchDeadline, .backgroundDeadline, .watchdog,
            .taskExpired, .lockWhileSuspending, .oomKill, .unknown, .dependencyFailed, .replaced, .permissionChanged,
            .protectedDataOpen,
            .memoryLimit,
            .unresponsive, .wakeStorm, .launchFailed, .gpuInBackground, .noPurposeString:
            false
        }
    }

    /// Whether torpord writes a crash report: the ending was not asked for, and the app did not exit successfully.
    public var isReported: Bool { !wasAskedFor && self != .exitSuccess && !isReplacement }

    /// Whether the app was terminated only to be launched again, with a new definition or other permissions.
    public var isReplacement: Bool { self == .replaced || self == .permissionChanged }

    /// Whether the app is launched again at once and moves to the same goal, whatever `restart` says. Such an ending
    /// does not count towards the limit of restarts.
    public var leadsToLaunch: Bool { isReplacement || self == .protectedDataOpen }

    /// Whether the next launch gets the state that the app has saved. False after a user stopped the app, and after the
    /// app exited successfully.
    public var keepsState: Bool {
        switch self {
        case .stopped, .forceQuit, .exitSuccess: false
        case .exitFailure, .signal, .coreDump, .launchDeadline, .backgroundDeadline, .watchdog, .taskExpired,
            .lockWhileSuspending, .oomKill, .unknown, .dependencyFailed, .replaced, .permissionChanged,
            .protectedDataOpen, .memoryLimit,
            .unresponsive,
            .wakeStorm, .evicted, .exitsOnSuspend, .shutdown, .launchFailed, .gpuInBackground, .noPurposeString:
            true
        }
    }

    /// Whether an event may launch the app after an ending with this reason.
    public var allowsLaunchByEvent: Bool {
        switch self {
        case .stopped, .forceQuit, .dependencyFailed: false
        case .exitSuccess, .exitFailure, .signal, .coreDump, .launchDeadline, .backgroundDeadline, .watchdog,
            .taskExpired, .lockWhileSuspending, .oomKill, .unknown, .replaced, .permissionChanged, .protectedDataOpen,
            .memoryLimit,
            .unresponsive,
            .wakeStorm, .evicted, .exitsOnSuspend, .shutdown, .launchFailed, .gpuInBackground, .noPurposeString:
            true
        }
    }
}
