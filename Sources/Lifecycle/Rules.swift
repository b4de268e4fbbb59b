// SPDX-License-Identifier: Apache-2.0

/// The part of an app's configuration that decides its lifecycle. Apps with equal rules share one copy in memory.
@dynamicMemberLookup
public struct AppRules: Sendable, Hashable {
    private static let usual = Shared(AppRuleValues())
    @usableFromInline var shared: Shared<AppRuleValues>

    /// The rules of an app with an empty configuration.
    public init() { shared = Self.usual }

    /// Gives access to the values of ``AppRuleValues`` as if they were properties of the rules.
    @inlinable
    public subscript<T>(dynamicMember path: any WritableKeyPath<AppRuleValues, T> & Sendable) -> T {
        get { shared.value[keyPath: path] }
        _modify { yield &shared.value[keyPath: path] }
    }
}

/// The values of ``AppRules``. The defaults are those of docs/lifecycle.md.
///
/// Every `Duration?` is a deadline or a limit; unless its comment says otherwise, `nil` is `"none"` in the
/// configuration.
public struct AppRuleValues: Sendable, Hashable {
    static let usualBackgroundTime = Duration.seconds(5)

    /// The longest time from the launch until the app is ready.
    public var launchDeadline: Duration? = .seconds(5)
    /// Time to answer willResignActive, didBecomeActive, willEnterForeground, resumed.
    public var transitionDeadline: Duration? = .seconds(5)
    /// Time to answer didEnterBackground.
    public var backgroundDeadline: Duration? = .seconds(5)
    /// Time to answer a message that no transition waits for, such as mail and performFetch.
    public var messageDeadline: Duration? = .seconds(30)
    /// The longest time until every process of the app is confirmed stopped, when the app is being suspended.
    public var suspendDeadline: Duration? = .seconds(2)
    /// Time between SIGTERM and SIGKILL.
    public var grace: Duration? = .seconds(5)
    /// The longest time to which EXTEND_TIMEOUT_USEC may extend a transition; `nil`: ten times its deadline.
    public var extensionLimit: Duration?
    /// What happens when the app misses a transition deadline.
    public var onMissedTransition: MissedTransition = .goOn
    /// The longest time between two heartbeats of the app; `nil` for none.
    public var watchdog: Duration?
    /// How long the app may stay in the background after it has answered didEnterBackground.
    public var backgroundTime: Duration? = usualBackgroundTime
    /// How long the app may stay in the background when an event has woken it.
    public var eventTime: Duration? = .seconds(30)
    /// The time that all background tasks together may use while the app stays in the background; `nil` for no limit.
    public var taskTime: Duration? = .seconds(30)
    /// The time that all background tasks together may use per day; `nil` for no limit.
    public var taskBudget: Duration?
    /// The app is warned this long before the time of its background tasks is over.
    public var expiryWarning: Duration = .seconds(5)
    /// Time to take a snapshot; `nil` if none is taken.
    public var snapshotDeadline: Duration?
    /// What happens if the app must be suspended while it holds a file lock that another process waits for.
    public var onLock: LockRule = .defer
    /// Whether the app is terminated instead of entering the background.
    public var exitsOnSuspend = false
    /// How the app says that it is ready.
    public var readiness: Readiness = .exec
    /// The messages that the app gets as a signal and answers with `X_TORPOR_DONE`. If no delegate is connected, all
    /// other messages count as answered when they are sent.
    public var answeredMessages: Set<Message> = []
    /// Whether the app is a oneshot, which runs once: when it exits with 0, it is done, and apps that require it may
    /// start.
    public var isOneshot = false
    /// When the app is restarted.
    public var restart: RestartPolicy = .onFailure
    /// The delays between restarts, and how many restarts are allowed.
    public var backoff = RestartBackoff()
    /// Whether the app has scenes. Each scene has its own lifecycle and gets the foreground and background messages.
    public var hasScenes = false
    /// How the app is evicted.
    public var eviction: EvictionRule = .automatic
    /// Who decides whether this machine may launch and wake the app.
    public var owner: OwnerRule = .none
    /// Exit codes other than 0 that count as success.
    public var successExitCodes: Set<Int32> = []
    /// Signals that count as success.
    public var successSignals: Set<Int32> = []

    /// The rules of an app with an empty configuration.
    public init() {}
}

/// The values of `on_missed_transition`: what happens when an app misses the deadline of a transition.
public enum MissedTransition: String, Sendable, Hashable, CaseIterable {
    /// The transition continues, and torpord reports the missed deadline.
    case goOn = "continue"
    /// The app is terminated with the reason `unresponsive`.
    case end
}

/// How an app becomes ready.
public enum Readiness: Sendable, Hashable {
    /// The app is ready when its exec has succeeded.
    case exec
    /// The app is ready when it sends READY=1.
    case notify
    /// The app is ready when torpord's readiness probe succeeds (tcp, http, command or file).
    case probe
    /// The app is ready when its delegate has answered the last launch message.
    case delegate
}

/// The values of `restart`: when the app is restarted.
public enum RestartPolicy: String, Sendable, Hashable, CaseIterable {
    case never
    case onFailure = "on-failure"
    case always
}

/// The values of `evict`: how the app is evicted.
public enum EvictionRule: String, Sendable, Hashable, CaseIterable {
    /// Like `kill` if the app has answered didEnterBackground, so that it has saved its state; otherwise like
    /// `terminate`.
    case automatic = "auto"
    /// The app gets SIGKILL without notice.
    case kill
    /// The app is continued and gets SIGTERM, and SIGKILL after a short grace (the time between the two signals).
    case terminate
    case never
}

/// The values of `owner`: who decides whether this machine may launch and wake the app.
public enum OwnerRule: String, Sendable, Hashable, CaseIterable {
    /// This machine may always launch and wake the app.
    case none
    /// A user or a cluster engine, by `torpor own` and `torpor disown`.
    case external
}

/// The values of `on_lock`: what happens if the app must be suspended while it holds a file lock that another process
/// waits for.
public enum LockRule: String, Sendable, Hashable, CaseIterable {
    /// The app keeps running until it releases the lock, at most for `task_time`; then torpord terminates it.
    case `defer`
    /// torpord terminates the app.
    case terminate
    /// torpord suspends the app although it holds the lock.
    case ignore
}

/// `restart_backoff`: restart delays that grow by a factor, and the limit of restarts.
public struct RestartBackoff: Sendable, Hashable {
    /// The delay before the first restart; if it is zero, every restart is immediate.
    public var initial: Duration = .milliseconds(100)
    /// Each delay is longer than the one before by this factor.
    public var factor: Double = 2
    /// The longest delay.
    public var cap: Duration = .seconds(60)
    /// If the app restarts more often than this within `window`, it is marked failed.
    public var limit = 10
    /// The time within which restarts count towards `limit`, in monotonic time.
    public var window: Duration = .seconds(300)
    /// After an app has run this long, its next restart has the `initial` delay again.
    public var stableAfter: Duration = .seconds(10)
    /// Each delay varies at random by up to this fraction of itself.
    public var jitter: Double = 0.1

    /// The backoff of an app with an empty configuration.
    public init() {}

    /// The delay before restart number `attempt` (from 0), without jitter.
    public func delay(attempt: Int) -> Duration {
        // With a constant delay, skip the loop: `attempt` may be large.
        guard factor > 1, initial > .zero else { return min(initial, cap) }
        var delay = initial
        for _ in 0..<max(0, attempt) {
            delay = delay * factor
            if delay >= cap { return cap }
        }
        return min(delay, cap)
    }
}
