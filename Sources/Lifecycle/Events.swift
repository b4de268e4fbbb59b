// SPDX-License-Identifier: Apache-2.0

/// Something that happened to an app. Events are never refused: an event that comes too late changes nothing.
public enum AppEvent: Sendable, Hashable {
    /// The exec of the incarnation succeeded.
    case launched
    /// A step of the launch failed, so the incarnation has no process.
    case launchFailed
    /// The launch waits before its exec, for example while the app's bundle is verified. No launch deadline applies
    /// until ``AppEvent/launchContinues``.
    case launchHeld
    /// The wait that ``AppEvent/launchHeld`` reported is over, and the launch deadline starts.
    case launchContinues
    /// The launch was refused for a reason that a retry would not change, so there is no restart.
    case launchRefused
    /// The app has become ready, by READY=1, a successful probe or a successful exec, as its setting `ready` says.
    case ready
    /// The app answered a message.
    case answered(Message)
    /// The main process exited. Other processes of the incarnation may still be running.
    case mainExited(ExitCause)
    /// No process of the incarnation is left, but commands still run for its end, so that ``allGone`` comes later.
    /// Nothing is killed until then.
    case cleaningUp
    /// No process of the incarnation is left.
    case allGone
    /// Every thread of every process of the app is confirmed stopped.
    case stopConfirmed
    /// A suspended app was found running: another process continued it.
    case foundRunning
    /// EXTEND_TIMEOUT_USEC: the app asks that the transition in progress may last this long from now.
    case extendTimeout(Duration)
    /// The app sent WATCHDOG=1.
    case heartbeat
    /// The app sent WATCHDOG=trigger.
    case watchdogTriggered
    /// The app sent WATCHDOG_USEC: a new watchdog interval; `nil` for none.
    case watchdogInterval(Duration?)
    /// The app sent STOPPING=1: it exits on its own.
    case stopping
    /// A debugger attached (`true`) or detached (`false`); deadlines are paused while it is attached.
    case traced(Bool)
    /// The time of ``AppMachine/nextDeadline`` has come.
    case deadline
    /// The app's launch waits for an app that will not become available, so the launch is cancelled.
    case dependencyFailed
    /// A delegate of the app connected (`true`) or disconnected.
    case delegate(attached: Bool)
    /// The app failed to handle didEnterBackground, so it may have unsaved state and must not be killed without notice.
    case failedToPrepare
    /// A message that had to wait for the answer to an earlier message is sent only now, so its deadline begins now.
    case delivered(Message)
    /// The app holds a lock that another process waits for, and the app is suspended or about to be suspended.
    case lockHeld
    /// `true`: a health check of the app has begun or has failed, and torpord must not suspend the app by itself until
    /// a check succeeds. `false`: the last check succeeded.
    case awaitsVerdict(Bool)
    /// The delegate was sent a message that no transition waits for, such as mail.
    case messageSent
    /// The app answered the message of ``AppEvent/messageSent`` with `pending`: it needs this long from now.
    case messagePending(Duration)
    /// The delegate no longer works on the message of ``AppEvent/messageSent``: it has answered, or need no longer
    /// answer.
    case messageAnswered
    /// The app, which is in the background, changed what it shows, so its snapshot is outdated.
    case showsNew
    /// The app wants torpord to take no snapshot of it.
    case declinedSnapshot
    /// The snapshot was taken or has failed.
    case snapshotOver
    /// The app is about to be stopped, and has worked since it last got didEnterBackground: for a client, for example.
    case worked
    /// The app is about to be stopped, and is not ready for that yet: do not try again before this time has passed.
    case settles(Duration)
    /// An event for a message about a scene inside the app.
    case scene(SceneID, SceneEvent)
    /// The app's scenes were restored from the records of an earlier supervisor.
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
    /// The cause is unknown, because no parent process was running to collect the exit status.
    case unknown
}

/// A request by a user, a policy or an event to change an app's state or rules.
public enum Request: Sendable, Hashable {
    /// Launch into the foreground, or into the background.
    case start(background: Bool)
    /// Terminate with willTerminate and SIGTERM. For a reason that no user or policy requested, such as `memory-limit`
    /// or `replaced` (see ``TerminationReason/wasAskedFor``), the goal stays, and the app may be launched again.
    case stop(TerminationReason)
    /// Terminate and launch again; launch if it was not running.
    case restart
    case foreground
    case background
    case suspend
    /// Suspend, even if tasks, holds, modes or locks keep the app awake.
    case forceSuspend
    case resume
    /// Keep the app in the background until this time, or until ``Request/release``; nil for no limit. An operator
    /// gives the reason.
    case hold(reason: String, until: Duration?)
    /// End all holds.
    case release
    /// The condition of a background mode became true or false: while true, it keeps the app in the background.
    case mode(BackgroundMode, isTrue: Bool)
    /// No user can see the app (`true`), because the session is locked or the machine is about to sleep, or users can
    /// see it again (`false`). While no user can see it, an app with the goal `active` stays in the background.
    case cover(begin: Bool)
    /// Begin one more interruption, or end one. During an interruption, an app with the goal `active` is inactive.
    case interrupt(begin: Bool)
    /// Send SIGKILL at once.
    case forceQuit
    /// Terminate the app to free its memory.
    case evict
    /// Wake the app for an event.
    case wake(Wake)
    /// Set the count of restarts to 0 and clear the failed mark.
    case reset
    /// This machine owns the app until this time (nil: until ``Request/disown``), and may launch and wake it. With
    /// `renews`, the request is refused unless this machine owns the app already.
    case own(until: Duration?, renews: Bool = false)
    /// Run an app that this machine does not own, because a user decided so (`--force`). This holds until the app has
    /// ended.
    case runUnowned
    /// This machine no longer owns the app: the app goes to the background and is suspended.
    case disown
    /// Launch the app only to be suspended, even if this machine does not own it.
    case standby
    /// Connect, move or disconnect a scene inside the app, and move the app to a state that allows it.
    case scene(SceneID, SceneGoal)
}

/// Why a request was refused, as the rest of a sentence that begins with the app's name.
public struct RequestError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The rest of the sentence, such as "is not running: start it first".
    public let description: String

    /// A refusal with this text, for refusals by this module and by other modules.
    public init(_ description: String) { self.description = description }
}

/// An action that the caller of ``AppMachine`` or ``Coordinator`` has to carry out. Actions must be carried out in the
/// given order.
public enum Action: Sendable, Hashable {
    /// Launch a new incarnation.
    case launch(LaunchOrder)
    /// Send the app a message. If the app has to answer it, ``AppMachine`` waits for ``AppEvent/answered(_:)``.
    case tell(Message)
    /// Send the app a message about one of its scenes, and wait for ``SceneEvent/answered(_:failed:)``.
    case tellScene(SceneID, Message)
    /// Warn the app that the time of the task with this token is nearly over.
    case warn(UInt32)
    /// Send `stop_signal` to the processes that `kill_mode` selects.
    case signalStop
    /// Send `watchdog_signal` to the main process.
    case signalWatchdog
    /// Start to stop every process (SIGSTOP or freezer), then report ``AppEvent/stopConfirmed``.
    case stopProcesses
    /// Continue every process.
    case continueProcesses
    /// Send SIGKILL to every process, again and again until none is left; then report ``AppEvent/allGone``.
    case killProcesses
    /// Send SIGTERM to the processes that the exited main process left behind. If there are none, report
    /// ``AppEvent/allGone``.
    case endRemains
    /// Record and report that the app has entered this state.
    case entered(AppState)
    /// Record and report that the incarnation is over.
    case ended(Ending)
    /// Report something that a user should know.
    case report(Notice)
    /// Ask the coordinator whether the app may be launched. The app waits for ``AppMachine/permitLaunch(now:)``.
    case requestLaunch
    /// Ask a policy whether the app may be launched; the launch waits for ``Advice/admit`` or ``Advice/refuse``.
    case askForAdmission(LaunchReason)
    /// Take a snapshot of the app and report ``AppEvent/snapshotOver``. If a snapshot is in progress, take it again
    /// from the beginning. Cancel the snapshot when ``AppMachine/awaitsSnapshot`` becomes false.
    case takeSnapshot
    /// Check whether there is enough memory for the app. The launch waits for ``Coordinator/admitMemory(_:now:)``.
    case askForMemory
}

/// How to launch an incarnation.
public struct LaunchOrder: Sendable, Hashable {
    /// The number of the incarnation, from 1.
    public let incarnation: UInt32
    /// Whether the app is launched into the foreground.
    public let foreground: Bool
    /// Why the app is launched.
    public let reason: LaunchReason
    /// How the previous incarnation ended.
    public let previousEnding: TerminationReason?
}

/// Why an app is launched. The app gets it in the environment variable `TORPOR_LAUNCH_REASON`.
public enum LaunchReason: String, Sendable, Hashable, CaseIterable {
    /// A user requested the launch.
    case user
    /// The supervisor started.
    case boot
    /// The app restarts, as its restart policy says.
    case restart
    /// Another app requires the app.
    case dependency
    /// An event woke the app.
    case event
    /// A policy advised the launch.
    case policy
}

/// How an incarnation ended, and what happens to the app next.
public struct Ending: Sendable, Hashable {
    /// The number of the incarnation that ended.
    public let incarnation: UInt32
    /// Why the incarnation ended.
    public let reason: TerminationReason
    /// How the app's main process ended; `nil` if there never was one.
    public let cause: ExitCause?
    /// The state that the app was in when it started to end.
    public let state: AppState
    /// The transition that was in progress when the app started to end.
    public let transition: Transition?
    /// The names of the background tasks that were running when the app started to end.
    public var tasks: [String] = []
    /// Whether a restart ended the app before it was ready, so often in a row that its next launch is delayed.
    public var isCutOff = false
    /// What follows the ending.
    public let next: Next

    /// What happens to the app after an ending.
    public enum Next: Sendable, Hashable {
        /// The app stays ended until it is started.
        case rest
        /// The app restarts after this delay.
        case restart(after: Duration)
        /// The app is launched at once: a launch was requested while it was terminating.
        case relaunch
        /// The app was restarted too often and is marked failed.
        case gaveUp
    }
}

/// A report to users about an event other than a new state or an ending.
public enum Notice: Sendable, Hashable {
    /// A transition deadline was missed. The transition continues without the answer, or the app is terminated, as
    /// `on_missed_transition` says.
    case missed(DeadlineKind, Transition?)
    /// Not every process stopped in time, so the app is continued, or terminated if another machine may own it.
    case suspendFailed
    /// A suspended app was found running, because another process had continued it, and was stopped again. The number
    /// counts how often this has happened.
    case stoppedAgain(Int)
    /// Another process has continued the suspended app too often, so torpord leaves the app running.
    case keepsRunning
    /// An operator's hold has expired.
    case holdEnded
    /// The app did not answer in time a message that no transition waits for. If the app is in the background, it is
    /// terminated.
    case messageMissed
    /// The condition of a background mode is true: it keeps the app in the background.
    case modeBegan(BackgroundMode)
    /// The condition of a background mode is no longer true.
    case modeEnded(BackgroundMode)
    /// The background time is used up: a policy may suspend the app.
    case backgroundTimeUsed
    /// The time for the event that woke the app is over, so the app is suspended again.
    case sleepsAgain
    /// The grace is over, and SIGKILL was sent.
    case killed
    /// The time for which this machine owned the app is over.
    case ownershipExpired
    /// The snapshot missed its deadline: the app continues without it.
    case snapshotMissed
    /// The app did not answer a message to a scene in time. The scene's transition continues without the answer, or
    /// the app is terminated, as `on_missed_transition` says.
    case sceneMissed(SceneID, Message)
    /// A scene was not connected: the app refused it, or did not answer in time (`missed`).
    case sceneRefused(SceneID, missed: Bool)
}

/// What a deadline of an app is for.
public enum DeadlineKind: String, Sendable, Hashable, CaseIterable {
    case launch
    case transition
    case background
    case suspend
    case willTerminate = "will-terminate"
    case grace
    /// SIGKILL was sent. It is sent again whenever this deadline is missed, until no process is left.
    case kill
    case restart
    case watchdog
    case backgroundTime = "background-time"
    /// The end of the time that the app's background tasks share.
    case task
    /// The answer to a message that no transition waits for, such as mail.
    case message
}
