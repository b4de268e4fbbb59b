// SPDX-License-Identifier: Apache-2.0

/// Where an app is. The states are those of docs/lifecycle.md.
public enum AppState: String, Sendable, Hashable, CaseIterable {
    /// It has no process: it was never launched, it exited, or it was ended.
    case notRunning = "not-running"
    /// In the foreground, but user events are withheld from it.
    case inactive
    /// In the foreground and in use.
    case active
    /// Its processes run, but it is not in use; its time is granted.
    case background
    /// Its processes are in memory and stopped.
    case suspended

    /// How far the state is from not running; a requirement is met by any state at or above `background`.
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

/// The edge that an app is walking, if any.
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

/// What an app can be told. The raw values are the names that configurations and apps use. Each is one that something
/// sends: `scripts/check-sources promises` compares them with the documents, the libraries and the senders.
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
    case sceneWillConnect
    case sceneDidBecomeActive
    case sceneWillResignActive
    case sceneDidEnterBackground
    case sceneWillEnterForeground
    case sceneDidDisconnect
    case didDiscardScenes

    /// Whether it is told of scenes inside the app.
    public var isAboutScenes: Bool {
        switch self {
        case .sceneWillConnect, .sceneDidBecomeActive, .sceneWillResignActive, .sceneDidEnterBackground,
            .sceneWillEnterForeground, .sceneDidDisconnect, .didDiscardScenes:
            true
        default: false
        }
    }

    /// Names that configurations may have and that nothing sends: `torpor check` warns of them.
    public static let unsentNames = ["refresh", "didReceiveLocalNotification"]
}

/// Why an incarnation ended. Codes, and what follows from each, are the table at the end of docs/lifecycle.md. Each is one
/// that something gives: `scripts/check-sources promises` looks for it.
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
    case memoryLimit = "memory-limit"
    case unresponsive
    case wakeStorm = "wake-storm"
    case evicted
    case stopped
    case exitsOnSuspend = "exits-on-suspend"
    case shutdown
    case forceQuit = "force-quit"
    case launchFailed = "launch-failed"

    /// The exception code that iOS gives the same ending, where it has one.
    public var code: UInt32? {
        switch self {
        case .launchDeadline, .backgroundDeadline, .watchdog, .taskExpired: 0x8bad_f00d
        case .lockWhileSuspending: 0xdead_10cc
        case .wakeStorm: 0xbad2_2222
        case .forceQuit: 0xdead_fa11
        case .exitSuccess, .exitFailure, .signal, .coreDump, .oomKill, .unknown, .dependencyFailed, .replaced,
            .memoryLimit, .unresponsive, .evicted, .stopped, .exitsOnSuspend, .shutdown, .launchFailed:
            nil
        }
    }

    /// Whether `restart = "on-failure"` starts the app again after it.
    public var isFailure: Bool {
        switch self {
        case .exitFailure, .signal, .coreDump, .launchDeadline, .backgroundDeadline, .watchdog, .taskExpired,
            .lockWhileSuspending, .oomKill, .unknown, .memoryLimit, .unresponsive, .wakeStorm, .launchFailed:
            true
        case .exitSuccess, .dependencyFailed, .replaced, .evicted, .stopped, .exitsOnSuspend, .shutdown, .forceQuit:
            false
        }
    }

    /// Whether somebody asked for the ending; no restart policy, not even `always`, answers it with a restart.
    public var wasAskedFor: Bool {
        switch self {
        case .stopped, .forceQuit, .evicted, .exitsOnSuspend, .shutdown: true
        case .exitSuccess, .exitFailure, .signal, .coreDump, .launchDeadline, .backgroundDeadline, .watchdog,
            .taskExpired, .lockWhileSuspending, .oomKill, .unknown, .dependencyFailed, .replaced, .memoryLimit,
            .unresponsive, .wakeStorm, .launchFailed:
            false
        }
    }

    /// Whether a report says why: nobody has asked for it, and the app was not done.
    public var isReported: Bool { !wasAskedFor && self != .exitSuccess && self != .replaced }

    /// Whether the next launch gets the state that the app saved: not when somebody wanted to be done with it, or the app
    /// was done itself.
    public var keepsState: Bool {
        switch self {
        case .stopped, .forceQuit, .exitSuccess: false
        case .exitFailure, .signal, .coreDump, .launchDeadline, .backgroundDeadline, .watchdog, .taskExpired,
            .lockWhileSuspending, .oomKill, .unknown, .dependencyFailed, .replaced, .memoryLimit, .unresponsive,
            .wakeStorm, .evicted, .exitsOnSuspend, .shutdown, .launchFailed:
            true
        }
    }

    /// Whether an event may launch the app after it.
    public var allowsLaunchByEvent: Bool {
        switch self {
        case .stopped, .forceQuit, .dependencyFailed: false
        case .exitSuccess, .exitFailure, .signal, .coreDump, .launchDeadline, .backgroundDeadline, .watchdog,
            .taskExpired, .lockWhileSuspending, .oomKill, .unknown, .replaced, .memoryLimit, .unresponsive,
            .wakeStorm, .evicted, .exitsOnSuspend, .shutdown, .launchFailed:
            true
        }
    }
}
