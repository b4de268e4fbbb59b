// SPDX-License-Identifier: Apache-2.0

/// Something that happened to an app. Events are never refused: one that comes too late changes nothing.
public enum AppEvent: Sendable, Hashable {
    /// The exec of the incarnation succeeded.
    case launched
    /// A stage of the launch failed: the incarnation has no process.
    case launchFailed
    /// READY=1, a successful probe, or a successful exec, as the app's `ready` says.
    case ready
    /// The app answered a message.
    case answered(Message)
    /// The main process exited. Other processes of the incarnation may still run.
    case mainExited(ExitCause)
    /// No process of the incarnation is left.
    case allGone
    /// Every thread of every process was seen stopped.
    case stopConfirmed
    /// A suspended app was found running: another process continued it.
    case foundRunning
    /// EXTEND_TIMEOUT_USEC: the edge in flight may last this long from now.
    case extendTimeout(Duration)
    /// WATCHDOG=1.
    case heartbeat
    /// WATCHDOG=trigger.
    case watchdogTriggered
    /// WATCHDOG_USEC: a new interval, `nil` for none.
    case watchdogInterval(Duration?)
    /// STOPPING=1.
    case stopping
    /// A debugger attached (`true`) or detached (`false`); deadlines are paused while it is attached.
    case traced(Bool)
    /// The time of `nextDeadline` has come.
    case deadline
    /// A requirement of the waiting launch is not available.
    case dependencyFailed
    /// A delegate of the app connected (`true`) or disconnected.
    case delegate(attached: Bool)
    /// The app failed didEnterBackground: it must not be killed without notice.
    case failedToPrepare
    /// A message that waited for an earlier answer is sent only now: its deadline starts again.
    case delivered(Message)
    /// The app holds a lock that another process waits for, and is suspended or about to be.
    case lockHeld
    /// The app changed what it shows while in the background.
    case showsNew
    /// The app wants no snapshot of what it shows.
    case declinedSnapshot
    /// The snapshot is taken or has failed.
    case snapshotOver
    /// Something happened to a message to a scene inside the app.
    case scene(SceneID, SceneEvent)
    /// Its scenes were restored from an earlier supervisor.
    case scenesRestored
}

/// How a main process ended.
public enum ExitCause: Sendable, Hashable {
    case exited(code: Int32)
    case signaled(Int32, coreDumped: Bool)
    /// A SIGKILL that the kernel's out-of-memory killer sent.
    case outOfMemory
    /// A SIGKILL from the kernel because the app had reached its own memory limit.
    case memoryLimit
    /// No process was there to collect the exit status.
    case unknown
}

/// What a user, a policy or an event asks of an app.
public enum Request: Sendable, Hashable {
    /// Launch into the foreground, or into the background.
    case start(background: Bool)
    /// Terminate with willTerminate and SIGTERM. After a reason that was not asked for, such as `memory-limit` or
    /// `replaced` (``TerminationReason/wasAskedFor``), the goal stays, so that the app may be started again.
    case stop(TerminationReason)
    /// Terminate and launch again; launch if it was not running.
    case restart
    case foreground
    case background
    case suspend
    /// Suspend, even if tasks, holds, modes or locks keep the app awake.
    case forceSuspend
    case resume
    /// Keep the app in the background until then, or until it is released; the reason is the operator's.
    case hold(reason: String, until: Duration?)
    /// End all holds.
    case release
    /// The condition of a background mode became true or false: while true, it keeps the app in the background.
    case mode(BackgroundMode, isTrue: Bool)
    /// The app cannot be seen, since the session is locked or the machine about to sleep (`true`), or can be seen
    /// again. While it cannot be seen, the goal `active` means the background.
    case cover(begin: Bool)
    /// One more interruption, or one fewer.
    case interrupt(begin: Bool)
    /// SIGKILL, at once.
    case forceQuit
    /// Terminate the app because its memory is needed.
    case evict
    /// Wake the app for an event.
    case wake(Wake)
    /// Reset the counted restarts and the failed mark.
    case reset
    /// Connect, move or disconnect a scene inside the app, and move the app to a state that allows it.
    case scene(SceneID, SceneGoal)
}

/// Why a request was refused, as a sentence that starts after the app's name.
public struct RequestError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The sentence, such as "is not running: start it first".
    public let description: String

    /// Also for refusals outside the core.
    public init(_ description: String) { self.description = description }
}

/// What the shell around the core has to do, in order.
public enum Action: Sendable, Hashable {
    /// Launch this incarnation.
    case launch(LaunchOrder)
    /// Send the app a message; if its answer counts, the machine waits for ``AppEvent/answered(_:)``.
    case tell(Message)
    /// Send the app a message about one of its scenes, and wait for ``SceneEvent/answered(_:failed:)``.
    case tellScene(SceneID, Message)
    /// Warn the app that the time of this task is nearly over.
    case warn(UInt32)
    /// Send `stop_signal` as `kill_mode` says.
    case signalStop
    /// Send `watchdog_signal` to the main process.
    case signalWatchdog
    /// Begin to stop every process and report ``AppEvent/stopConfirmed``.
    case stopProcesses
    /// Continue every process.
    case continueProcesses
    /// Send SIGKILL to every process, until ``AppEvent/allGone`` can be reported.
    case killProcesses
    /// The main process has exited: send SIGTERM to the others, or report ``AppEvent/allGone`` if there are none.
    case endRemains
    /// The app is in this state now.
    case entered(AppState)
    /// The incarnation is over.
    case ended(Ending)
    /// Report something that a user should know.
    case report(Notice)
    /// For the coordinator: the machine wants to launch and waits for ``AppMachine/permitLaunch(now:)``.
    case requestLaunch
    /// Ask a policy whether the app may be launched; the launch waits for ``Advice/admit`` or ``Advice/refuse``.
    case askForAdmission(LaunchReason)
    /// Take a snapshot of the app and report ``AppEvent/snapshotOver``. If one is under way, start over. If the
    /// machine stops waiting (``AppMachine/awaitsSnapshot``), give it up.
    case takeSnapshot
    /// Check whether there is memory for the app; the launch waits for ``Coordinator/admitMemory(_:now:)``.
    case askForMemory
}

/// How to launch an incarnation.
public struct LaunchOrder: Sendable, Hashable {
    /// The number of the incarnation, from 1.
    public let incarnation: UInt32
    /// Whether it is launched into the foreground.
    public let foreground: Bool
    /// Why it is launched.
    public let reason: LaunchReason
    /// How the previous incarnation ended.
    public let previousEnding: TerminationReason?
}

/// Why an app is launched. The app gets it in the environment variable `TORPOR_LAUNCH_REASON`.
public enum LaunchReason: String, Sendable, Hashable, CaseIterable {
    /// A user asked for it.
    case user
    /// The supervisor started.
    case boot
    /// The restart policy asked for it.
    case restart
    /// Another app requires it.
    case dependency
    /// An event woke it.
    case event
    /// A policy advised it.
    case policy
}

/// How an incarnation ended, and what follows.
public struct Ending: Sendable, Hashable {
    /// The number of the incarnation that ended.
    public let incarnation: UInt32
    /// Why it ended.
    public let reason: TerminationReason
    /// How its main process ended; `nil` if it never had one.
    public let cause: ExitCause?
    /// The state that it was in.
    public let state: AppState
    /// The edge that was in flight.
    public let transition: Transition?
    /// The names of the background tasks that were running when it started to end.
    public var tasks: [String] = []
    /// What comes next.
    public let next: Next

    /// What follows an ending.
    public enum Next: Sendable, Hashable {
        /// Nothing, until the app is started.
        case rest
        /// The app restarts after this delay.
        case restart(after: Duration)
        /// The app is launched at once: a launch was requested while it was terminating.
        case relaunch
        /// The app was restarted too often and is marked failed.
        case gaveUp
    }
}

/// Reports other than states and endings.
public enum Notice: Sendable, Hashable {
    /// A deadline was missed, and the edge continued.
    case missed(DeadlineKind, Transition?)
    /// Not every process stopped in time, so the app was continued.
    case suspendFailed
    /// The app was found running while suspended and was stopped again; this is how often so far.
    case stoppedAgain(Int)
    /// The app was found running too often and is left running.
    case keepsRunning
    /// An operator's hold has expired.
    case holdEnded
    /// The condition of a background mode is true: it keeps the app in the background.
    case modeBegan(BackgroundMode)
    /// The condition of a background mode is no longer true.
    case modeEnded(BackgroundMode)
    /// The background time is used up: a policy may suspend the app.
    case backgroundTimeUsed
    /// The time for the event that woke the app is over: it is suspended again.
    case sleepsAgain
    /// The grace is over, and SIGKILL was sent.
    case killed
    /// The snapshot missed its deadline: the app continues without it.
    case snapshotMissed
    /// The app did not answer a scene's message in time, and the scene continued.
    case sceneMissed(SceneID, Message)
    /// A scene was not connected: the app refused it, or did not answer in time (`missed`).
    case sceneRefused(SceneID, missed: Bool)
}

/// The deadlines that an app can be under.
public enum DeadlineKind: String, Sendable, Hashable, CaseIterable {
    case launch
    case transition
    case background
    case suspend
    case willTerminate = "will-terminate"
    case grace
    /// SIGKILL was sent; it is sent again until no process is left.
    case kill
    case restart
    case watchdog
    case backgroundTime = "background-time"
    /// The time that background tasks share.
    case task
}
