// SPDX-License-Identifier: Apache-2.0

/// The state of an app, as defined in docs/lifecycle.md.
public enum AppState: String, Sendable, Hashable, CaseIterable {
    /// It has no process: it was never launched, exited, or was terminated.
    case notRunning = "not-running"
    /// In the foreground, but user events are withheld.
    case inactive
    /// In the foreground and in use.
    case active
    /// Its processes run on granted time, but it is not in use.
    case background
    /// Its processes are stopped and stay in memory.
    case suspended

    /// The order from least to most running; a requirement is met by any state from `background` on.
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

/// The edge that an app is on.
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
/// promises` checks that each is sent, documented and in the libraries.
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

    /// Whether it is about scenes inside the app.
    public var isAboutScenes: Bool {
        switch self {
        case .sceneWillConnect, .sceneDidBecomeActive, .sceneWillResignActive, .sceneDidEnterBackground,
            .sceneWillEnterForeground, .sceneDidDisconnect, .didDiscardScenes:
            true
        default: false
        }
    }

    /// Names that configurations may contain but that nothing sends: `torpor check` warns of them.
    public static let unsentNames = ["refresh"]
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
    case memoryLimit = "memory-limit"
    case unresponsive
    case wakeStorm = "wake-storm"
    case evicted
    case stopped
    case exitsOnSuspend = "exits-on-suspend"
    case shutdown
    case forceQuit = "force-quit"
    case launchFailed = "launch-failed"

    /// The exception code of iOS for the same ending; nil if there is none.
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

    /// Whether the ending was asked for: then no restart policy, not even `always`, restarts the app.
    public var wasAskedFor: Bool {
        switch self {
        case .stopped, .forceQuit, .evicted, .exitsOnSuspend, .shutdown: true
        case .exitSuccess, .exitFailure, .signal, .coreDump, .launchDeadline, .backgroundDeadline, .watchdog,
            .taskExpired, .lockWhileSuspending, .oomKill, .unknown, .dependencyFailed, .replaced, .memoryLimit,
            .unresponsive, .wakeStorm, .launchFailed:
            false
        }
    }

    /// Whether a crash report is written: the ending was not asked for, and the app was not done.
    public var isReported: Bool { !wasAskedFor && self != .exitSuccess && self != .replaced }

    /// Whether the next launch gets the state that the app saved: not after a user stopped it, or after it exited
    /// successfully.
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
