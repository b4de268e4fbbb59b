// SPDX-License-Identifier: Apache-2.0

/// The configuration of an app as far as its machine needs it. Apps with equal rules share them in memory.
@dynamicMemberLookup
public struct AppRules: Sendable, Hashable {
    private static let usual = Shared(AppRuleValues())
    @usableFromInline var shared: Shared<AppRuleValues>

    /// The rules of an app with an empty configuration.
    public init() { shared = Self.usual }

    /// One of the ``AppRuleValues``.
    @inlinable
    public subscript<T>(dynamicMember path: any WritableKeyPath<AppRuleValues, T> & Sendable) -> T {
        get { shared.value[keyPath: path] }
        _modify { yield &shared.value[keyPath: path] }
    }
}

/// The rules themselves. The defaults are those of docs/lifecycle.md.
///
/// Every `Duration?` is a deadline or a limit; `nil` is `"none"` in the configuration.
public struct AppRuleValues: Sendable, Hashable {
    static let usualBackgroundTime = Duration.seconds(5)

    /// Time until the app is ready.
    public var launchDeadline: Duration? = .seconds(5)
    /// Time to answer willResignActive, didBecomeActive, willEnterForeground, resumed.
    public var transitionDeadline: Duration? = .seconds(5)
    /// Time to answer didEnterBackground.
    public var backgroundDeadline: Duration? = .seconds(5)
    /// Time until every process is confirmed stopped.
    public var suspendDeadline: Duration? = .seconds(2)
    /// Time between SIGTERM and SIGKILL.
    public var grace: Duration? = .seconds(5)
    /// The longest time to which EXTEND_TIMEOUT_USEC may extend an edge; `nil` means ten times its deadline.
    public var extensionLimit: Duration?
    /// What a missed transition deadline does.
    public var onMissedTransition: MissedTransition = .goOn
    /// The longest time between two heartbeats of the app; `nil` for none.
    public var watchdog: Duration?
    /// Time in the background after didEnterBackground was answered.
    public var backgroundTime: Duration? = usualBackgroundTime
    /// Time in the background for an event.
    public var eventTime: Duration? = .seconds(30)
    /// The time that all background tasks share in one stay in the background; `nil` for no limit.
    public var taskTime: Duration? = .seconds(30)
    /// The time that all background tasks share per day; `nil` for no limit.
    public var taskBudget: Duration?
    /// How long before the end of its time a background task is warned.
    public var expiryWarning: Duration = .seconds(5)
    /// Time to take a snapshot; `nil` if none is taken.
    public var snapshotDeadline: Duration?
    /// What happens to an app that is to be suspended while it holds a lock that others need.
    public var onLock: LockRule = .defer
    /// Whether the app is terminated instead of entering the background.
    public var exitsOnSuspend = false
    /// How the app says that it is ready.
    public var readiness: Readiness = .exec
    /// The messages that reach the app as a signal and that it answers with `X_TORPOR_DONE`. Others count as
    /// answered.
    public var answeredMessages: Set<Message> = []
    /// Whether the app runs once: when it exits with 0, it is done and apps that require it may start.
    public var isOneshot = false
    /// When the app is restarted.
    public var restart: RestartPolicy = .onFailure
    /// The delays between restarts, and their limit.
    public var backoff = RestartBackoff()
    /// Whether the app has scenes. They have lifecycles of their own and get the foreground and background messages.
    public var hasScenes = false
    /// How the app is evicted.
    public var eviction: EvictionRule = .automatic
    /// Exit codes other than 0 that count as success.
    public var successExitCodes: Set<Int32> = []
    /// Signals that count as success.
    public var successSignals: Set<Int32> = []

    /// The rules of an app with an empty configuration.
    public init() {}
}

/// `on_missed_transition`.
public enum MissedTransition: String, Sendable, Hashable, CaseIterable {
    /// The edge continues and the miss is reported.
    case goOn = "continue"
    /// The app is terminated with the reason `unresponsive`.
    case end
}

/// How an app becomes ready.
public enum Readiness: Sendable, Hashable {
    /// A successful exec is enough.
    case exec
    /// The app sends READY=1.
    case notify
    /// A probe of the supervisor succeeds (tcp, http, command, file).
    case probe
    /// The app's delegate has answered the last launch message.
    case delegate
}

/// `restart`.
public enum RestartPolicy: String, Sendable, Hashable, CaseIterable {
    case never
    case onFailure = "on-failure"
    case always
}

/// `evict`.
public enum EvictionRule: String, Sendable, Hashable, CaseIterable {
    /// As `kill` if the app has answered didEnterBackground and so is prepared, otherwise as `terminate`.
    case automatic = "auto"
    /// Killed without notice.
    case kill
    /// Continued, then SIGTERM, a short grace, SIGKILL.
    case terminate
    case never
}

/// `on_lock`.
public enum LockRule: String, Sendable, Hashable, CaseIterable {
    /// The app keeps running until it releases the lock, at most for `task_time`; then it is terminated.
    case `defer`
    /// The app is terminated.
    case terminate
    /// The app is suspended although it holds the lock.
    case ignore
}

/// `restart_backoff`: delays that grow by a factor, and when to give up.
public struct RestartBackoff: Sendable, Hashable {
    /// The delay before the first restart; with zero every restart is immediate.
    public var initial: Duration = .milliseconds(100)
    /// The factor from one delay to the next.
    public var factor: Double = 2
    /// The longest delay.
    public var cap: Duration = .seconds(60)
    /// More restarts than this within `window` mark the app failed.
    public var limit = 10
    /// The window of `limit`, in monotonic time.
    public var window: Duration = .seconds(300)
    /// After running this long, an app starts again with the `initial` delay.
    public var stableAfter: Duration = .seconds(10)
    /// Each delay varies at random by up to this fraction of itself.
    public var jitter: Double = 0.1

    /// The backoff of an app with an empty configuration.
    public init() {}

    /// The delay before restart number `attempt` (from 0), without jitter.
    public func delay(attempt: Int) -> Duration {
        // With a constant delay there is nothing to multiply, however many attempts there were.
        guard factor > 1, initial > .zero else { return min(initial, cap) }
        var delay = initial
        for _ in 0..<max(0, attempt) {
            delay = delay * factor
            if delay >= cap { return cap }
        }
        return min(delay, cap)
    }
}
