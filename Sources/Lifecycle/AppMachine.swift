// SPDX-License-Identifier: Apache-2.0

/// The lifecycle of one app, as a value: an event and the time go in, actions come out.
///
/// The model: an app has a *goal*, the state that was last asked for. Each function first takes in what happened
/// (which may end the edge in flight), then, when no edge is in flight, walks the next edge towards the goal.
/// An edge is a list of steps: tell the app something and wait for its answer, or enter a state. A newer goal waits
/// for the edge in flight; terminating overtakes every edge, and a force quit overtakes terminating. Suspending is
/// abandoned by any other goal, since the app was not told of it.
///
///     notRunning ──requestLaunch──▶ notRunning(waiting) ──permitLaunch──▶ launching ──ready──▶ running
///         ▲                                                                  │                    │ edges
///         └───────────────allGone────────────── terminating ◀───────────────┴────────────────────┘
///
/// At most one edge deadline is armed, and it belongs to the phase; beside it there are the watchdog (running,
/// not suspended) and the grant of background time (background, not suspended). See docs/lifecycle.md.
public struct AppMachine: Sendable {
    /// What the configuration says.
    public var rules: AppRules
    /// The state that was last asked for.
    public internal(set) var goal: Goal = .notRunning
    /// Counts the requests that set the goal: whoever waits for one can tell that a newer one came.
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
    /// Whether a debugger is attached, so that deadlines rest.
    public var isTraced: Bool { tracedSince != nil }

    /// Whether a delegate hears its messages and answers them.
    public internal(set) var hasDelegate = false
    /// Whether the session is locked or the machine about to sleep: in the foreground it is not seen.
    public internal(set) var isCovered = false
    /// Whether a policy took it further away while it was covered: it comes back to the foreground all the same.
    var comesBack = false
    /// Whether it has answered didEnterBackground since it was last in the foreground, so that it may be ended without
    /// notice.
    public internal(set) var isPrepared = false
    /// Its grant of background time is over, and something holds it.
    var grantIsOver = false
    /// Only an event woke it: it is suspended again when its time is over.
    public internal(set) var sleepsAgain = false
    /// It was launched on its way to being suspended, and nothing says when it has begun its work, or that it is done with
    /// the connection by which it was probed: it has its background time first.
    public internal(set) var settlesIn = false
    /// Background time that it has after a launch for an event; nil for `event_time`.
    var wokenFor: Duration?
    /// It is suspended whatever holds it.
    public internal(set) var isForced = false
    /// Whether it wants no snapshot taken until it enters the background again.
    public internal(set) var declinesSnapshot = false

    var phase: Phase = .notRunning(.resting)
    var edgeDeadline: Deadline?
    var watchdogDeadline: Deadline?
    var grant: Deadline?
    /// What holds it in the background; nil for nothing.
    var backgroundTime: Shared<BackgroundTime>?
    /// Its scenes that are connected or wanted; nil for none.
    var scenes: Shared<[SceneMachine]>?
    /// The interval now in force; WATCHDOG_USEC can change it.
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
    /// When the restarts within the window were.
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
        /// READY came before the exec was reported.
        var isReady = false
        /// The launch message whose answer a delegate owes.
        var awaiting: Message?
    }

    struct Running: Sendable, Hashable {
        var state: AppState
        var edge: Edge?
        /// How often it was stopped again since it was suspended.
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
        /// nil when the app announced the end itself and its exit will tell.
        var reason: TerminationReason?
        var state: AppState
        var interrupted: Transition?
        var cause: ExitCause?
        var stage: Stage
        /// False while a launch is in flight and may still bring a process.
        var hasProcess: Bool
        /// A launch was asked for meanwhile.
        var relaunch: Relaunch?
        /// A stop was asked for meanwhile: it decides whether events launch the app afterwards.
        var stoppedBy: TerminationReason?
        /// Others wait for its memory. Not recorded: a supervisor that takes over gives it the ordinary grace.
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

    /// Why the incarnation is being ended, as far as that is known already.
    public var endingReason: TerminationReason? {
        switch phase {
        case .terminating(let terminating): terminating.reason
        case .notRunning, .launching, .running: nil
        }
    }

    /// Whether it is launched and ready and not on its way to sleep, or a oneshot that is done: what requires it may start.
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

    /// Whether its process has ended and the rules decide what follows: a oneshot is done, or it is started again
    /// after its delay. Nobody has to launch it, and whoever does would go round the delay.
    public var isEndingByItself: Bool {
        guard case .terminating(let terminating) = phase, terminating.cause != nil, terminating.stoppedBy == nil,
            goal != .notRunning, let reason = terminating.reason, !reason.wasAskedFor
        else { return false }
        if rules.isOneshot, reason == .exitSuccess { return true }
        // It never came up: launched at once for those who wait for it, it would be launched for ever.
        if terminating.interrupted == .launching { return true }
        switch rules.restart {
        case .never: return false
        case .onFailure: return reason.isFailure
        case .always: return true
        }
    }

    /// Whether it is being launched and no process is known yet.
    var isComingToExec: Bool {
        guard case .launching(let launching) = phase else { return false }
        return !launching.hasProcess
    }

    /// Whether it asked to be launched and waits for ``permitLaunch(now:)``.
    public var isWaitingForPermission: Bool {
        if case .notRunning(.waiting) = phase { return true }
        return false
    }

    /// Whether it may be launched by an event.
    public var allowsLaunchByEvent: Bool {
        !failed && (lastEnding?.allowsLaunchByEvent ?? true)
    }

    /// Whether an eviction kills it: it wants that, or could prepare.
    public var isEvictedWithoutNotice: Bool {
        switch rules.eviction {
        case .kill: true
        case .automatic: isPrepared
        case .terminate, .never: false
        }
    }

    /// Every deadline that is armed now.
    public var deadlines: [Deadline] {
        [edgeDeadline, watchdogDeadline, grant, taskDeadline].compactMap { $0 }
    }

    /// When ``AppEvent/deadline`` must be sent, `nil` for never. A traced app has none.
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

    /// The goal with interruptions taken into account, and with what covers the app.
    public var effectiveGoal: Goal {
        guard goal == .active else { return goal }
        // One that would end in the background is not ended because somebody looks away.
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
