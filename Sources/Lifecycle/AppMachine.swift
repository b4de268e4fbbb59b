// SPDX-License-Identifier: Apache-2.0

/// The lifecycle of one app, as a value: an event and the time go in, actions come out.
///
/// The model: an app has a *goal*, the state that was last asked for. Each function first applies what happened
/// (which may end the edge in flight). If no edge is in flight then, it starts the next edge towards the goal. An
/// edge is a list of steps: send a message and wait for the answer, or enter a state. A newer goal waits for the edge
/// in flight. Terminating overrides every edge, and a force quit overrides terminating. Any other goal abandons
/// suspending, since the app was not told of it.
///
///     notRunning ──requestLaunch──▶ notRunning(waiting) ──permitLaunch──▶ launching ──ready──▶ running
///         ▲                                                                  │                    │ edges
///         └───────────────allGone────────────── terminating ◀───────────────┴────────────────────┘
///
/// At most one edge deadline is armed, and it belongs to the phase. The watchdog (running, not suspended) and the
/// grant of background time (background, not suspended) have their own. See docs/lifecycle.md.
public struct AppMachine: Sendable {
    /// What the configuration says.
    public var rules: AppRules
    /// The state that was last asked for.
    public internal(set) var goal: Goal = .notRunning
    /// Counts the requests that set the goal, so that a caller that waits for one can see that a newer one came.
    public internal(set) var goalGeneration = 0
    /// The number of the current or last incarnation; 0 before the first.
    public internal(set) var incarnation: UInt32 = 0
    /// Interruptions that have begun and not ended.
    public internal(set) var interruptions = 0
    /// Restarts by policy since the last reset.
    public internal(set) var restarts = 0
    /// Whether the restart policy gave up.
    public internal(set) var failed = false
    /// How the last incarnation ended.
    public internal(set) var lastEnding: TerminationReason?
    /// Whether a oneshot has done its work since it was last started.
    public internal(set) var isDone = false
    /// Whether a debugger is attached: deadlines are paused meanwhile.
    public var isTraced: Bool { tracedSince != nil }

    /// Whether a delegate is connected and answers messages.
    public internal(set) var hasDelegate = false
    /// Whether the session is locked or the machine is about to sleep, so that no user sees the app.
    public internal(set) var isCovered = false
    /// Whether a policy moved it out of the foreground while it was covered: it returns when it is uncovered.
    var comesBack = false
    /// Whether it has answered didEnterBackground since it was last in the foreground, so that it may be killed
    /// without notice.
    public internal(set) var isPrepared = false
    /// Its background time is over, but a task, hold or mode keeps it in the background.
    var grantIsOver = false
    /// Only an event woke it: it is suspended again when its time is over.
    public internal(set) var sleepsAgain = false
    /// It was launched to be suspended and may not have begun its work, or may still serve the probe's connection. So
    /// it gets its background time first.
    public internal(set) var settlesIn = false
    /// Background time after a launch for an event; nil means `event_time`.
    var wokenFor: Duration?
    /// It is suspended even if tasks, holds or modes keep it in the background.
    public internal(set) var isForced = false
    /// Whether it declined snapshots until it enters the background again.
    public internal(set) var declinesSnapshot = false

    var phase: Phase = .notRunning(.resting)
    var edgeDeadline: Deadline?
    var watchdogDeadline: Deadline?
    var grant: Deadline?
    /// Tasks, holds, modes and locks that keep it in the background; nil for none.
    var backgroundTime: Shared<BackgroundTime>?
    /// Its scenes that are connected or wanted; nil for none.
    var scenes: Shared<[SceneMachine]>?
    /// The interval in force; WATCHDOG_USEC can change it.
    @OptionallyPacked var watchdogInterval: Duration? = nil
    @OptionallyPacked var tracedSince: Duration? = nil
    var launchReason: LaunchReason = .user
    var launchInForeground = true
    /// When the app last began to run, for `stable_after`; nil while it is suspended or gone.
    @OptionallyPacked var runningSince: Duration? = nil
    @Packed var ranFor: Duration = .zero
    @OptionallyPacked var suspendedSince: Duration? = nil
    /// How long the last suspension was, for resumed(gap).
    public internal(set) var lastGap: Duration = .zero
    /// Consecutive restarts without a stable run in between.
    var attempt = 0
    /// Times of the restarts within the window.
    var ledger: [Duration] = []
    var jitter: JitterSource

    /// An app that was never launched. The seed only decides jitter.
    public init(rules: AppRules, seed: UInt64 = 0) {
        self.rules = rules
        self.watchdogInterval = rules.watchdog
        self.jitter = JitterSource(seed: seed)
    }

    enum Phase: Sendable, Hashable {
        case notRunning(Rest)
        case launching(Launching)
        case running(Running)
        case terminating(Terminating)
    }

    enum Rest: Sendable, Hashable {
        /// Nothing is planned.
        case resting
        /// The restart deadline is armed.
        case delayed
        /// The coordinator has to permit the launch.
        case waiting
    }

    struct Launching: Sendable, Hashable {
        /// Whether the exec succeeded.
        var hasProcess = false
        /// READY=1 came before the exec was reported.
        var isReady = false
        /// The launch message whose answer a delegate owes.
        var awaiting: Message?
    }

    struct Running: Sendable, Hashable {
        var state: AppState
        var edge: Edge?
        /// How often it was stopped again after another process continued it.
        var stoppedAgain = 0
    }

    struct Edge: Sendable, Hashable {
        let transition: Transition
        let steps: [Step]
        var index = 0
        /// The message whose answer the edge waits for.
        var awaiting: Message?
    }

    enum Step: Sendable, Hashable {
        case tell(Message, DeadlineKind)
        case enter(AppState)
    }

    struct Terminating: Sendable, Hashable {
        /// nil if the app announced its end itself: then its exit status decides.
        var reason: TerminationReason?
        var state: AppState
        var interrupted: Transition?
        var cause: ExitCause?
        var stage: Stage
        /// False while a launch is in flight and may still bring a process.
        var hasProcess: Bool
        /// A launch that was requested while it was terminating.
        var relaunch: Relaunch?
        /// A stop that was requested while it was terminating: it decides whether events may launch the app
        /// afterwards.
        var stoppedBy: TerminationReason?
        /// Its memory is needed. Not recorded: after a takeover it gets the ordinary grace.
        var isHurried = false

        enum Stage: Sendable, Hashable { case asked, signaled, announced, killed, cleaning }
    }

    struct Relaunch: Sendable, Hashable {
        var foreground: Bool
        var reason: LaunchReason
    }

    // MARK: What can be read

    /// Where the app is.
    public var state: AppState {
        switch phase {
        case .notRunning: .notRunning
        case .launching(let launching):
            if !launching.hasProcess { .notRunning } else { launchInForeground ? .inactive : .background }
        case .running(let running): running.state
        case .terminating(let terminating): terminating.state
        }
    }

    /// The edge in flight.
    public var transition: Transition? {
        switch phase {
        case .notRunning: nil
        case .launching: .launching
        case .running(let running): running.edge?.transition
        case .terminating: .terminating
        }
    }

    /// Whether a process of the incarnation exists or is about to.
    public var isAlive: Bool {
        switch phase {
        case .notRunning: false
        case .launching, .running, .terminating: true
        }
    }

    /// The message whose answer the edge in flight waits for.
    public var awaitedMessage: Message? {
        switch phase {
        case .running(let running): running.edge?.awaiting
        case .terminating(let terminating): terminating.stage == .asked ? .willTerminate : nil
        case .launching(let launching): launching.awaiting
        case .notRunning: nil
        }
    }

    /// Why the incarnation is being terminated; nil while that is not known.
    public var endingReason: TerminationReason? {
        switch phase {
        case .terminating(let terminating): terminating.reason
        case .notRunning, .launching, .running: nil
        }
    }

    /// Whether what requires it may start: it runs and is not to be suspended, or it is a oneshot that is done.
    public var isUp: Bool {
        if rules.isOneshot { return isDone }
        switch phase {
        case .running(let running): return running.state != .suspended && goal != .suspended
        case .notRunning, .launching, .terminating: return false
        }
    }

    /// Whether a launch is planned or waits for permission.
    public var isWaitingToLaunch: Bool {
        switch phase {
        case .notRunning(.delayed), .notRunning(.waiting): true
        case .terminating(let terminating): terminating.relaunch != nil
        case .notRunning(.resting), .launching, .running: false
        }
    }

    /// Whether its process has exited and the rules decide what follows: a oneshot is done, or a restart follows
    /// after its delay. Launching it now would bypass the delay.
    public var isEndingByItself: Bool {
        guard case .terminating(let terminating) = phase, terminating.cause != nil, terminating.stoppedBy == nil,
            goal != .notRunning, let reason = terminating.reason, !reason.wasAskedFor
        else { return false }
        if rules.isOneshot, reason == .exitSuccess { return true }
        // It never came up. Launched at once for what requires it, it would be launched again and again.
        if terminating.interrupted == .launching { return true }
        switch rules.restart {
        case .never: return false
        case .onFailure: return reason.isFailure
        case .always: return true
        }
    }

    /// Whether it is being launched and its exec is not reported yet.
    var isComingToExec: Bool {
        guard case .launching(let launching) = phase else { return false }
        return !launching.hasProcess
    }

    /// Whether it asked to be launched and waits for ``permitLaunch(now:)``.
    public var isWaitingForPermission: Bool {
        if case .notRunning(.waiting) = phase { return true }
        return false
    }

    /// Whether an event may launch it.
    public var allowsLaunchByEvent: Bool {
        !failed && (lastEnding?.allowsLaunchByEvent ?? true)
    }

    /// Whether an eviction sends SIGKILL at once: the rules say so, or the app has prepared for it.
    public var isEvictedWithoutNotice: Bool {
        switch rules.eviction {
        case .kill: true
        case .automatic: isPrepared
        case .terminate, .never: false
        }
    }

    /// The armed deadlines of the edge, the watchdog, the background time and the tasks. Those of snapshots, holds,
    /// locks and scenes are missing; ``nextDeadline`` takes them into account.
    public var deadlines: [Deadline] {
        [edgeDeadline, watchdogDeadline, grant, taskDeadline].compactMap { $0 }
    }

    /// When ``AppEvent/deadline`` must be sent; `nil` for never. Deadlines of a traced app are paused.
    public var nextDeadline: Duration? {
        if tracedSince != nil, !isResting { return nil }
        var next = edgeDeadline?.at
        if let at = watchdogDeadline?.at { next = next.map { min($0, at) } ?? at }
        if let at = grant?.at { next = next.map { min($0, at) } ?? at }
        if backgroundTime != nil, let at = nextBackgroundDeadline { next = next.map { min($0, at) } ?? at }
        if scenes != nil, let at = nextSceneDeadline { next = next.map { min($0, at) } ?? at }
        return next
    }

    private var isResting: Bool {
        if case .notRunning = phase { return true }
        return false
    }

    /// The goal after interruptions and covering are applied.
    public var effectiveGoal: Goal {
        guard goal == .active else { return goal }
        // An app that exits on suspend is not terminated just because the session is locked.
        if isCovered { return rules.exitsOnSuspend ? .inactive : .background }
        return interruptions > 0 ? .inactive : goal
    }

    mutating func setGoal(_ new: Goal) {
        if new == .background || new == .suspended { parkScenes() }
        goal = new
        goalGeneration += 1
        isForced = false
        sleepsAgain = false
        settlesIn = false
        if new != .suspended { forgetLocks() }
    }
}
