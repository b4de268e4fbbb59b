// SPDX-License-Identifier: Apache-2.0

/// A fact about an app that the shell observed. Facts are never refused: one that comes too late changes nothing.
public enum AppEvent: Sendable, Hashable {
    /// The exec of the incarnation succeeded.
    case launched
    /// The incarnation has no process: a stage of the launch failed.
    case launchFailed
    /// READY=1, a successful probe, or a successful exec, as the app's `ready` says.
    case ready
    /// The app answered a message.
    case answered(Message)
    /// The main process ended. Others of the incarnation may live on.
    case mainExited(ExitCause)
    /// No process of the incarnation is left.
    case allGone
    /// Every thread of every process was seen stopped.
    case stopConfirmed
    /// A suspended app was seen running: somebody else continued it.
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
    /// A debugger attached (`true`) or let go (`false`); deadlines rest while it is there.
    case traced(Bool)
    /// The time of `nextDeadline` has come.
    case deadline
    /// The requirement that the launch was waiting for cannot be had.
    case dependencyFailed
    /// A process of the app hears its messages from now on (`true`), or no more.
    case delegate(attached: Bool)
    /// The app answered didEnterBackground, and could not do what it should: it is not ended without notice.
    case failedToPrepare
    /// A message that had to wait for an earlier one's answer is told only now: its time begins.
    case delivered(Message)
    /// The app has a lock that others need, and is suspended or about to be.
    case lockHeld
    /// What the app did in the background changed what it shows.
    case showsNew
    /// The app wants no snapshot taken of what it shows.
    case declinedSnapshot
    /// The snapshot is taken, or will not be.
    case snapshotOver
    /// Something has become of a message to a scene inside the app.
    case scene(SceneID, SceneEvent)
    /// Its scenes are again as an earlier supervisor knew them.
    case scenesRestored
}

/// How a main process ended.
public enum ExitCause: Sendable, Hashable {
    case exited(code: Int32)
    case signaled(Int32, coreDumped: Bool)
    /// A SIGKILL that the kernel's out-of-memory killer sent.
    case outOfMemory
    /// A SIGKILL that the kernel sent because the app had reached its own limit of memory.
    case memoryLimit
    /// Nobody was there to see it.
    case unknown
}

/// What a person, a policy or an event asks of an app.
public enum Request: Sendable, Hashable {
    /// Launch into the foreground, or into the background.
    case start(background: Bool)
    /// Terminate with willTerminate and SIGTERM. A reason that nobody asked for (``TerminationReason/wasAskedFor``),
    /// such as `memory-limit` or `replaced`, leaves the goal, so that the app may be started again.
    case stop(TerminationReason)
    /// Terminate, then launch again, even when it was not running.
    case restart
    case foreground
    case background
    case suspend
    /// Suspend, whatever holds the app.
    case forceSuspend
    case resume
    /// Keep it in the background until then, or until it is released; the reason is the operator's.
    case hold(reason: String, until: Duration?)
    /// End all holds.
    case release
    /// The condition of a background mode is true, or is no more: while it is, it holds the app in the background.
    case mode(BackgroundMode, isTrue: Bool)
    /// Nobody sees it, since the session is locked or the machine is about to sleep (`true`), or somebody does again: a
    /// goal of active means the background meanwhile.
    case cover(begin: Bool)
    /// One more interruption, or one fewer.
    case interrupt(begin: Bool)
    /// SIGKILL, at once.
    case forceQuit
    /// End an app to make room: others wait for its memory.
    case evict
    /// Something happened that the app should be awake for.
    case wake(Wake)
    /// Forget restarts and the failed mark.
    case reset
    /// Connect, move or disconnect a scene inside the app, and take the app where that scene can be.
    case scene(SceneID, SceneGoal)
}

/// Why a request was refused; a sentence without the app's name in front.
public struct RequestError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The sentence, such as "is not running: start it first".
    public let description: String

    /// For what the core cannot know, too.
    public init(_ description: String) { self.description = description }
}

/// What the shell has to do, in order.
public enum Action: Sendable, Hashable {
    /// Launch this incarnation.
    case launch(LaunchOrder)
    /// Tell the app; when its answer counts, the machine waits for ``AppEvent/answered(_:)``.
    case tell(Message)
    /// Tell the app something about one of its scenes, and wait for ``SceneEvent/answered(_:failed:)``.
    case tellScene(SceneID, Message)
    /// Tell the app that the time of this task is nearly up.
    case warn(UInt32)
    /// Send `stop_signal` as `kill_mode` says.
    case signalStop
    /// Send `watchdog_signal` to the main process.
    case signalWatchdog
    /// Begin to stop every process and report ``AppEvent/stopConfirmed``.
    case stopProcesses
    /// Continue every process.
    case continueProcesses
    /// SIGKILL to every process, until ``AppEvent/allGone`` can be reported.
    case killProcesses
    /// The main process is gone: end what it left with SIGTERM, or report ``AppEvent/allGone`` if nothing is left.
    case endRemains
    /// The app is in this state now.
    case entered(AppState)
    /// The incarnation is over.
    case ended(Ending)
    /// Something that a person should know.
    case report(Notice)
    /// For the coordinator: the machine wants to launch and waits for ``AppMachine/permitLaunch(now:)``.
    case requestLaunch
    /// Ask whether the app may be launched now; the launch waits for ``Advice/admit`` or ``Advice/refuse``.
    case askForAdmission(LaunchReason)
    /// Take a snapshot of the app and report ``AppEvent/snapshotOver``. One that is under way begins anew, and one for which
    /// the machine waits no more (``AppMachine/awaitsSnapshot``) is given up.
    case takeSnapshot
    /// Ask whether there is memory for the app; the launch waits for ``Coordinator/admitMemory(_:now:)``.
    case askForMemory
}

/// What the launch of an incarnation should be like.
public struct LaunchOrder: Sendable, Hashable {
    /// Numbered from 1.
    public let incarnation: UInt32
    /// Whether it is launched into the foreground.
    public let foreground: Bool
    /// Why.
    public let reason: LaunchReason
    /// How the incarnation before it ended.
    public let previousEnding: TerminationReason?
}

/// `TORPOR_LAUNCH_REASON`.
public enum LaunchReason: String, Sendable, Hashable, CaseIterable {
    /// Somebody asked for it.
    case user
    /// The supervisor started.
    case boot
    /// The restart policy.
    case restart
    /// Another app requires it.
    case dependency
    /// An event came for it.
    case event
    /// A policy advised it.
    case policy
}

/// How an incarnation ended, and what follows.
public struct Ending: Sendable, Hashable {
    /// Which one ended.
    public let incarnation: UInt32
    /// Why.
    public let reason: TerminationReason
    /// How its main process ended, `nil` when it never had one.
    public let cause: ExitCause?
    /// The state that it was in.
    public let state: AppState
    /// The edge that was in flight.
    public let transition: Transition?
    /// The names of the background tasks that it had when it began to end.
    public var tasks: [String] = []
    /// What comes next.
    public let next: Next

    /// What follows an ending.
    public enum Next: Sendable, Hashable {
        /// Nothing, until somebody asks.
        case rest
        /// The app starts again after this delay.
        case restart(after: Duration)
        /// It is launched at once: that was asked for while it was ending.
        case relaunch
        /// It was restarted too often and is marked failed.
        case gaveUp
    }
}

/// What is reported beside states and endings.
public enum Notice: Sendable, Hashable {
    /// A deadline was missed and the edge went on.
    case missed(DeadlineKind, Transition?)
    /// Not every process could be stopped in time; the app was continued.
    case suspendFailed
    /// The app was found running while suspended and was stopped again, for the given time.
    case stoppedAgain(Int)
    /// It was found running too often and is left running.
    case keepsRunning
    /// The time of an operator's hold is over.
    case holdEnded
    /// The condition of a background mode is true: it holds the app.
    case modeBegan(BackgroundMode)
    /// It is true no more.
    case modeEnded(BackgroundMode)
    /// Background time is used up: a policy may suspend the app.
    case backgroundTimeUsed
    /// The time for the event that woke it is over: it is suspended again.
    case sleepsAgain
    /// The grace is over and SIGKILL was sent.
    case killed
    /// No snapshot was there in time: the app goes on without.
    case snapshotMissed
    /// The app has not answered in time what a scene was told, and the scene went on.
    case sceneMissed(SceneID, Message)
    /// A scene is not connected: the app refuses it, or did not say in time that it is there.
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
    /// SIGKILL was sent; it is sent again until all is gone.
    case kill
    case restart
    case watchdog
    case backgroundTime = "background-time"
    /// The time that background tasks share.
    case task
}
