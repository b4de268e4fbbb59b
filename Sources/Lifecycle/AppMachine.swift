// SPDX-License-Identifier: Apache-2.0

/// The lifecycle of one app, as a value: an event and the time go in, actions come out.
///
/// An app has a *goal*, the state that was last requested. An *edge* is a transition to another state, as a list of
/// steps: send a message and wait for the answer, or enter a state. Each function first applies the event or request,
/// which may end the current edge. If no edge is in progress then, the function starts the next edge towards the goal.
/// A newer goal waits until the current edge ends, with three exceptions. A new goal cancels suspending at once,
/// because the app gets no message about suspending. Terminating overrides every edge. A force quit overrides
/// terminating.
///
///     notRunning ──requestLaunch──▶ notRunning(waiting) ──permitLaunch──▶ launching ──ready──▶ running
///         ▲                                                                  │                    │ edges
///         └───────────────allGone────────────── terminating ◀───────────────┴────────────────────┘
///
/// At most one edge deadline is armed, and it belongs to the phase. The watchdog (while the app runs and is not
/// suspended) and the background time have their own deadlines. See docs/lifecycle.md.
public struct AppMachine: Sendable {
    /// The part of the app's configuration that decides its lifecycle.
    public var rules: AppRules
    /// The state that was last requested for the app.
    public internal(set) var goal: Goal = .notRunning
    /// Counts the requests that set the goal. By this number, a caller that waits for the result of its request notices
    /// that a newer request has replaced it.
    public internal(set) var goalGeneration = 0
    /// The number of the current or last incarnation (a run of the app from launch to exit); 0 before the first.
    public internal(set) var incarnation: UInt32 = 0
    /// The number of interruptions in progress. While there is one, an app with the goal `active` is inactive.
    public internal(set) var interruptions = 0
    /// The number of restarts by the restart policy since this number was last reset.
    public internal(set) var restarts = 0
    /// Whether the app restarted too often, so that the restart policy gave up.
    public internal(set) var failed = false
    /// How the last incarnation ended.
    public internal(set) var lastEnding: TerminationReason?
    /// Whether a oneshot app has exited successfully since its launch was last requested.
    public internal(set) var isDone = false
    /// Whether a debugger is attached, which pauses the app's deadlines.
    public var isTraced: Bool { tracedSince != nil }

    /// Whether a delegate (the library in the app that answers messages) is connected.
    public internal(set) var hasDelegate = false
    /// Whether the session is locked or the machine is about to sleep, so that no user sees the app.
    public internal(set) var isCovered = false
    /// Whether a policy moved the app out of the foreground while no user could see it (``isCovered``). If so, the app
    /// returns to the foreground as soon as users can see it again.
    var comesBack = false
    /// Whether the app has answered didEnterBackground since it was last in the foreground. Such an app has saved its
    /// state, so torpord may kill it without notice.
    public internal(set) var isPrepared = false
    /// Whether the app's background time is over, but something keeps it awake: it is reported once that is over.
    var grantIsOver = false
    /// Whether the app was woken only for an event or a dependent. Such an app is suspended again when its background
    /// time is over.
    public internal(set) var sleepsAgain = false
    /// Whether the app became ready (by exec or a probe) with the goal `suspended`. It gets its background time first,
    /// because otherwise torpord might suspend it before it began its work, or while it still answers the readiness
    /// probe. Also true while the app is awake for the time of ``AppEvent/settles(_:)``.
    public internal(set) var settlesIn = false
    /// The background time after a launch for an event; nil means the app's `event_time`.
    var wokenFor: Duration?
    /// Whether the app is suspended even if tasks, holds or modes would keep it in the background.
    public internal(set) var isForced = false
    /// Whether the app may have unsaved changes, because since its last didEnterBackground it was resumed, got an event
    /// or a message in the background, or was launched there. The app gets didEnterBackground again before it is
    /// suspended.
    public internal(set) var isUnsaved = false
    /// Whether the app got didEnterBackground only as the last step of its launch. If so, ``isUnsaved`` becomes true
    /// when the app's first background time is over.
    var isToldOnlyAtLaunch = false
    /// Whether the app declined snapshots until it enters the background again.
    public internal(set) var declinesSnapshot = false

    /// Whether this machine owns the app; only matters if the rules say that an app needs an owner.
    public internal(set) var ownership: Ownership = .none
    /// The stored value of ``ownedUntil``.
    @OptionallyPacked var lease: Duration? = nil

    var phase: Phase = .notRunning(.resting)
    var edgeDeadline: Deadline?
    var watchdogDeadline: Deadline?
    var grant: Deadline?
    /// Tasks, holds, modes and locks that keep the app in the background; nil for none.
    var backgroundTime: Shared<BackgroundTime>?
    /// The scenes of the app that are connected or that a request wants connected; nil for none.
    var scenes: Shared<[SceneMachine]>?
    /// The watchdog interval in force: the configured one, or the one that the app sent as WATCHDOG_USEC.
    @OptionallyPacked var watchdogInterval: Duration? = nil
    @OptionallyPacked var tracedSince: Duration? = nil
    /// Why the app was launched last, or is about to be launched.
    public internal(set) var launchReason: LaunchReason = .user
    var launchInForeground = true
    /// When the app was launched or last resumed; nil while it is suspended or gone. Together with `ranFor`, the
    /// running time before the last suspension, it shows whether the app has run for `stable_after`.
    @OptionallyPacked var runningSince: Duration? = nil
    @Packed var ranFor: Duration = .zero
    @OptionallyPacked var suspendedSince: Duration? = nil
    /// How long the last suspension lasted; the message `resumed` contains it.
    public internal(set) var lastGap: Duration = .zero
    /// What determines the next restart delay.
    var unstable = Unstable()
    /// Whether the app is in a crash loop: it has ended at least twice in a row without running for `stable_after`, and
    /// now waits until its next restart delay is over.
    public var isCrashLooping: Bool {
        if case .notRunning(.delayed) = phase { unstable.attempt > 1 } else { false }
    }
    /// Times of the restarts within the backoff window.
    var ledger: [Duration] = []
    var jitter: JitterSource

    /// An app that was never launched. `seed` only determines the random jitter of its restart delays.
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
        /// No launch is planned.
        case resting
        /// The app restarts when its restart delay is over.
        case delayed
        /// The launch waits until the coordinator permits it.
        case waiting
    }

    struct Unstable: Sendable, Hashable {
        /// The number of consecutive restarts since the app last ran for as long as `stable_after`.
        var attempt: UInt32 = 0
        /// The number of launches in a row that a restart ended before the app was ready. Not recorded: a new
        /// supervisor counts anew.
        var launchesCutOff: UInt32 = 0
    }

    struct Launching: Sendable, Hashable {
        /// Whether the app's program has started (its exec succeeded).
        var hasProcess = false
        /// Whether the app sent READY=1 before its exec was reported.
        var isReady = false
        /// The launch message that the delegate (the library in the app) has not answered yet.
        var awaiting: Message?
    }

    struct Running: Sendable, Hashable {
        var state: AppState
        var edge: Edge?
        /// How often torpord stopped the suspended app again, after another process had continued it.
        var stoppedAgain = 0
    }

    struct Edge: Sendable, Hashable {
        let transition: Transition
        let steps: [Step]
        var index = 0
        /// The message whose answer the transition waits for.
        var awaiting: Message?
    }

    enum Step: Sendable, Hashable {
        case tell(Message, DeadlineKind)
        case enter(AppState)
    }

    struct Terminating: Sendable, Hashable {
        /// Why torpord terminates the app; nil if the app itself announced that it exits (STOPPING=1). In that case its
        /// exit status determines the reason.
        var reason: TerminationReason?
        var state: AppState
        var interrupted: Transition?
        var cause: ExitCause?
        var stage: Stage
        /// Whether a process exists; false while a launch is still in progress and may create one.
        var hasProcess: Bool
        /// A launch that was requested while the app was terminating.
        var relaunch: Relaunch?
        /// The reason of a stop that was requested while the app was already terminating. This reason decides whether
        /// events may launch the app afterwards.
        var stoppedBy: TerminationReason?
        /// Whether the app gets only a short grace (time until SIGKILL), to free memory. Not recorded: a new
        /// supervisor uses the usual grace.
        var isHurried = false
        /// Whether all processes are gone and the app is being cleaned up, by `after_stop` for example. Not recorded: a
        /// new supervisor begins the cleanup again.
        var isCleaningUp = false

        enum Stage: Sendable, Hashable { case asked, signaled, announced, killed, cleaning }
    }

    struct Relaunch: Sendable, Hashable {
        var foreground: Bool
        var reason: LaunchReason
    }

    // MARK: What can be read

    /// The state that the app is in.
    public var state: AppState {
        switch phase {
        case .notRunning: .notRunning
        case .launching(let launching):
            if !launching.hasProcess { .notRunning } else { launchInForeground ? .inactive : .background }
        case .running(let running): running.state
        case .terminating(let terminating): terminating.state
        }
    }

    /// The transition in progress; nil if there is none.
    public var transition: Transition? {
        switch phase {
        case .notRunning: nil
        case .launching: .launching
        case .running(let running): running.edge?.transition
        case .terminating: .terminating
        }
    }

    /// Whether the app has a process, or its launch has begun.
    public var isAlive: Bool {
        switch phase {
        case .notRunning: false
        case .launching, .running, .terminating: true
        }
    }

    /// The message whose answer the current transition waits for; nil if there is none.
    public var awaitedMessage: Message? {
        switch phase {
        case .running(let running): running.edge?.awaiting
        case .terminating(let terminating): terminating.stage == .asked ? .willTerminate : nil
        case .launching(let launching): launching.awaiting
        case .notRunning: nil
        }
    }

    /// Why the incarnation is being terminated; nil if the app is not terminating, or while the reason is unknown.
    public var endingReason: TerminationReason? {
        switch phase {
        case .terminating(let terminating): terminating.reason
        case .notRunning, .launching, .running: nil
        }
    }

    /// Whether apps that require this app may start: this app is running and will not be suspended, or it is a oneshot
    /// that has exited successfully.
    public var isUp: Bool {
        if rules.isOneshot { return isDone }
        switch phase {
        case .running(let running): return mayRun && running.state != .suspended && goal != .suspended
        case .notRunning, .launching, .terminating: return false
        }
    }

    /// Whether a launch of the app is planned or waits for permission.
    public var isWaitingToLaunch: Bool {
        switch phase {
        case .notRunning(.delayed), .notRunning(.waiting): true
        case .terminating(let terminating): terminating.relaunch != nil
        case .notRunning(.resting), .launching, .running: false
        }
    }

    /// Whether the app is terminating because its main process exited, and its dependents must not launch it again.
    /// This is the case if the app is a oneshot that is done, if it exited during its launch, or if its restart policy
    /// restarts it after a delay.
    public var isEndingByItself: Bool {
        guard case .terminating(let terminating) = phase, terminating.cause != nil, terminating.stoppedBy == nil,
            goal != .notRunning, let reason = terminating.reason, !reason.wasAskedFor
        else { return false }
        if rules.isOneshot, reason == .exitSuccess { return true }
        // The app exited during its launch. Its dependents must not launch it again at once, because that could repeat
        // forever.
        if terminating.interrupted == .launching { return true }
        switch rules.restart {
        case .never: return false
        case .onFailure: return reason.isFailure
        case .always: return true
        }
    }

    /// Whether the app is being launched, and its exec is not reported yet.
    var isComingToExec: Bool {
        guard case .launching(let launching) = phase else { return false }
        return !launching.hasProcess
    }

    /// Whether the app's launch waits for ``permitLaunch(now:)``.
    public var isWaitingForPermission: Bool {
        if case .notRunning(.waiting) = phase { return true }
        return false
    }

    /// Whether the app does not run because it failed or exited. False if a request, an eviction or a shutdown ended
    /// the app, if it is a oneshot that is done or has exited with success and is never restarted, or if it may not run
    /// on this machine.
    public var isDown: Bool {
        guard mayRun else { return false }
        return switch phase {
        case .notRunning(.resting):
            failed
                || !isDone && lastEnding?.wasAskedFor == false
                    && !(rules.restart == .never && lastEnding == .exitSuccess)
        case .notRunning(.delayed): true
        case .notRunning(.waiting), .launching, .running, .terminating: false
        }
    }

    /// Whether an event may launch the app.
    public var allowsLaunchByEvent: Bool {
        mayRun && !failed && (lastEnding?.allowsLaunchByEvent ?? true)
    }

    /// Whether the app, once suspended, is evicted with SIGKILL, without a message first. Its rules either demand this
    /// or leave the choice to torpord, which then does so if the app has answered didEnterBackground.
    public var isEvictedWithoutNotice: Bool {
        switch rules.eviction {
        case .kill: true
        case .automatic: isPrepared
        case .terminate, .never: false
        }
    }

    /// The armed deadlines of the transition, the watchdog, the background time, the tasks and the message that the app
    /// works on. Deadlines of snapshots, holds, locks and scenes are not included, but ``nextDeadline`` takes them into
    /// account.
    public var deadlines: [Deadline] {
        [edgeDeadline, watchdogDeadline, grant, taskDeadline, messageDeadline].compactMap { $0 }
    }

    /// The deadline that the app has missed, if one has passed: the one that is judged first, if several have. The end
    /// of the background time is not missed: the app had nothing to do by then.
    public func missedDeadline(now: Duration) -> Deadline? {
        [messageDeadline, edgeDeadline, watchdogDeadline, taskDeadline].lazy.compactMap { $0 }.first { $0.at <= now }
    }

    /// The time at which the caller must send ``AppEvent/deadline``; `nil` for never. While a debugger is attached, all
    /// deadlines are paused except the end of the ownership.
    public var nextDeadline: Duration? {
        if tracedSince != nil, !isResting { return ownedUntil }
        var next = edgeDeadline?.at
        if let at = ownedUntil { next = next.map { min($0, at) } ?? at }
        if let at = watchdogDeadline?.at { next = next.map { min($0, at) } ?? at }
        if let at = grant?.at { next = next.map { min($0, at) } ?? at }
        if backgroundTime != nil, let at = nextBackgroundDeadline { next = next.map { min($0, at) } ?? at }
        if scenes != nil, let at = nextSceneDeadline { next = next.map { min($0, at) } ?? at }
        return next
    }

    var isResting: Bool {
        if case .notRunning = phase { return true }
        return false
    }

    /// The goal that the app moves to. This is ``goal``, or a less active state while the app is interrupted, while no
    /// user can see it, or while this machine does not own it.
    public var effectiveGoal: Goal {
        if !mayRun { return goal == .notRunning ? .notRunning : .suspended }
        guard goal == .active else { return goal }
        // An app that exits on suspend must not be terminated just because the session is locked.
        if isCovered { return rules.exitsOnSuspend ? .inactive : .background }
        return interruptions > 0 ? .inactive : goal
    }

    mutating func setGoal(_ new: Goal) {
        if new == .background || new == .suspended { parkScenes() }
        goal = new
        goalGeneration += 1
        // If another machine may own the app, suspend it even if tasks, holds or modes keep it awake.
        isForced = new == .suspended && !mayRun
        sleepsAgain = false
        settlesIn = false
        if new != .suspended { forgetLocks() }
    }
}
