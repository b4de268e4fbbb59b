// SPDX-License-Identifier: Apache-2.0

/// What the machine needs to know of an app's configuration, in memory once for all apps that go by the same.
@dynamicMemberLookup
public struct AppRules: Sendable, Hashable {
    private static let usual = Shared(AppRuleValues())
    @usableFromInline var shared: Shared<AppRuleValues>

    /// The rules of an app whose configuration says nothing.
    public init() { shared = Self.usual }

    /// One of ``AppRuleValues``.
    @inlinable
    public subscript<T>(dynamicMember path: any WritableKeyPath<AppRuleValues, T> & Sendable) -> T {
        get { shared.value[keyPath: path] }
        _modify { yield &shared.value[keyPath: path] }
    }
}

/// The rules one by one. The defaults are those of docs/lifecycle.md.
///
/// Every `Duration?` is a deadline or a limit; `nil` is the configuration's `"none"`.
public struct AppRuleValues: Sendable, Hashable {
    static let usualBackgroundTime = Duration.seconds(5)

    /// Time to ready.
    public var launchDeadline: Duration? = .seconds(5)
    /// Time to answer willResignActive, didBecomeActive, willEnterForeground, resumed.
    public var transitionDeadline: Duration? = .seconds(5)
    /// Time to answer didEnterBackground.
    public var backgroundDeadline: Duration? = .seconds(5)
    /// Time until every process is confirmed stopped.
    public var suspendDeadline: Duration? = .seconds(2)
    /// Time between SIGTERM and SIGKILL.
    public var grace: Duration? = .seconds(5)
    /// The most that EXTEND_TIMEOUT_USEC may stretch an edge to; `nil` means ten times its deadline.
    public var extensionLimit: Duration?
    /// What a missed transition deadline does.
    public var onMissedTransition: MissedTransition = .goOn
    /// The heartbeat that the app must send, `nil` for none.
    public var watchdog: Duration?
    /// Time in the background that is granted after didEnterBackground was answered.
    public var backgroundTime: Duration? = usualBackgroundTime
    /// Time in the background that an event grants.
    public var eventTime: Duration? = .seconds(30)
    /// What all background tasks of the app share per stay in the background; `nil` for no limit.
    public var taskTime: Duration? = .seconds(30)
    /// What all background tasks of the app share per day; `nil` for no limit.
    public var taskBudget: Duration?
    /// How long before its end a background task is told.
    public var expiryWarning: Duration = .seconds(5)
    /// Time to take a snapshot of the app; `nil` where none is taken.
    public var snapshotDeadline: Duration?
    /// What happens to an app that holds a lock which others need when it would be suspended.
    public var onLock: LockRule = .defer
    /// Instead of entering the background, the app is terminated.
    public var exitsOnSuspend = false
    /// How the app says that it is ready.
    public var readiness: Readiness = .exec
    /// The messages that the app hears as a signal and answers with `X_TORPOR_DONE`; all others count as answered.
    public var answeredMessages: Set<Message> = []
    /// Done when it exits with 0; what requires it may start then.
    public var isOneshot = false
    /// When the app is started again.
    public var restart: RestartPolicy = .onFailure
    /// How soon, and how often.
    public var backoff = RestartBackoff()
    /// Whether it shows scenes, each with a lifecycle of its own, which hear in its place that they come and go.
    public var hasScenes = false
    /// How an eviction treats the app.
    public var eviction: EvictionRule = .automatic
    /// Exit codes that count as success beside 0.
    public var successExitCodes: Set<Int32> = []
    /// Signals that count as success.
    public var successSignals: Set<Int32> = []

    /// The rules of an app whose configuration says nothing.
    public init() {}
}

/// `on_missed_transition`.
public enum MissedTransition: String, Sendable, Hashable, CaseIterable {
    /// The edge goes on and the miss is reported.
    case goOn = "continue"
    /// The app is ended with the reason `unresponsive`.
    case end
}

/// Who decides that an app is ready.
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
    /// As `kill` when the app has answered didEnterBackground and so could prepare, else as `terminate`.
    case automatic = "auto"
    /// Killed without notice.
    case kill
    /// Continued, SIGTERM, a short grace, SIGKILL.
    case terminate
    case never
}

/// `on_lock`.
public enum LockRule: String, Sendable, Hashable, CaseIterable {
    /// The app runs on until it lets go, at most for `task_time`; then it is ended.
    case `defer`
    /// The app is ended.
    case terminate
    /// The app is suspended with its locks.
    case ignore
}

/// `restart_backoff`: a geometric series of delays, and when to give up.
public struct RestartBackoff: Sendable, Hashable {
    /// The delay before the first restart; zero is at once, every time.
    public var initial: Duration = .milliseconds(100)
    /// What each further delay is multiplied with.
    public var factor: Double = 2
    /// The longest delay.
    public var cap: Duration = .seconds(60)
    /// More restarts than this within `window` mark the app failed.
    public var limit = 10
    /// The window of `limit`, in monotonic time.
    public var window: Duration = .seconds(300)
    /// Running time after which the delay begins again at `initial`.
    public var stableAfter: Duration = .seconds(10)
    /// Each delay is moved at random by up to this part of itself.
    public var jitter: Double = 0.1

    /// The backoff of an app whose configuration says nothing.
    public init() {}

    /// The delay before restart number `attempt` (from 0), without jitter.
    public func delay(attempt: Int) -> Duration {
        // Ten thousand attempts with the same delay are none to count through.
        guard factor > 1, initial > .zero else { return min(initial, cap) }
        var delay = initial
        for _ in 0..<max(0, attempt) {
            delay = delay * factor
            if delay >= cap { return cap }
        }
        return min(delay, cap)
    }
}
