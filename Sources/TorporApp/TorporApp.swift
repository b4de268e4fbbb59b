// SPDX-License-Identifier: Apache-2.0

import AppConnection
import Linux
import TorporAPI
import Varlink

/// This process as an app of a Torpor supervisor.
///
///     @main struct Notes: AppDelegate {
///         static func main() async throws { try await TorporApp.run(Notes()) }
///         func didFinishLaunching(_ app: TorporApp, options: LaunchOptions) async throws { … }
///         func didEnterBackground(_ app: TorporApp) async throws { try await app.saveState(…) }
///         func willTerminate(_ app: TorporApp, reason: String) async throws { try await app.saveState(…) }
///     }
///
/// The app has `ready = "delegate"` in its configuration. All members can be used from every task and thread.
public final class TorporApp: Sendable {
    /// Whether a supervisor started this process. Without one, an app gets the messages of its launch and its end,
    /// runs its background tasks, and saves nothing.
    public var isSupervised: Bool { environment.socket != nil }
    /// The app's name; nil without a supervisor.
    public var name: String? { environment.app }
    /// Why the app was launched.
    public let launchOptions: LaunchOptions
    /// The directory for the app's files (TORPOR_STATE_DIRECTORY).
    public var stateDirectory: String? { environment.stateDirectory }

    let environment: AppEnvironment
    let engine: Engine
    let isDelegate: Bool
    let state = Monitor(State())

    struct State {
        var inFlight: InFlight?
        var tasks = BackgroundTasks()
    }

    /// The message that the delegate is handling.
    struct InFlight {
        var id: Int64
        var answerBy: Duration?
        var declined: [Declined] = []
        var fetched: FetchResult?
    }

    init(environment: AppEnvironment, isDelegate: Bool, takesSignals: Bool) throws(AppError) {
        self.environment = environment
        self.isDelegate = isDelegate
        launchOptions =
            environment.socket == nil && environment.options == .emptyObject
            ? .unsupervised : LaunchOptions(environment.options)
        do throws(Errno) {
            engine = try Engine(path: environment.socket, isDelegate: isDelegate, takesSignals: takesSignals)
        } catch {
            throw AppError(code: .failed, "the app cannot listen to its supervisor: \(error)")
        }
    }

    deinit { engine.finish() }

    /// Runs the app: attaches to the supervisor, passes messages to the delegate, and returns when the app should end
    /// (SIGTERM, or Ctrl-C without a supervisor), or after ``finish()``.
    ///
    /// When the supervisor is replaced, the app attaches again; no message is lost or delivered twice. Without a
    /// supervisor (no TORPOR_APP_SOCKET), this process itself sends the delegate the messages of a launch into the
    /// foreground and those of the end.
    ///
    /// - Parameters:
    ///   - delegate: receives the messages.
    ///   - takesSignals: whether this method handles SIGTERM and SIGINT. If not, the program must handle them and
    ///     call ``finish()``.
    ///   - sendsHeartbeats: whether to send the heartbeats that `watchdog` requires. A task sends them, so they stop
    ///     when the program's tasks no longer run.
    /// - Throws: ``AppError`` if the process cannot be the app's delegate.
    public static func run(
        _ delegate: some AppDelegate,
        takesSignals: Bool = true,
        sendsHeartbeats: Bool = true
    ) async throws(AppError) {
        try await run(
            delegate,
            environment: AppEnvironment(),
            takesSignals: takesSignals,
            sendsHeartbeats: sendsHeartbeats
        )
    }

    static func run(
        _ delegate: some AppDelegate,
        environment: AppEnvironment,
        takesSignals: Bool,
        sendsHeartbeats: Bool
    ) async throws(AppError) {
        let app = try TorporApp(environment: environment, isDelegate: true, takesSignals: takesSignals)
        let heartbeats = sendsHeartbeats ? app.startHeartbeats() : nil
        defer {
            heartbeats?.cancel()
            app.engine.finish()
        }
        if app.isSupervised {
            try await MessageLoop(app: app, delegate: delegate).run()
        } else {
            await UnsupervisedLoop(app: app, delegate: delegate).run()
        }
    }

    /// Connects a process of an app whose delegate is another process. This process can then hold background tasks,
    /// save state and make calls.
    public static func withoutDelegate() throws(AppError) -> TorporApp {
        try TorporApp(environment: AppEnvironment(), isDelegate: false, takesSignals: false)
    }

    /// Makes ``run(_:takesSignals:sendsHeartbeats:)`` return once the current message is answered.
    public func finish() { engine.end() }

    // MARK: While a message is in flight

    /// The time left to answer the current message; nil if there is no current message, or if the message has no
    /// deadline.
    public var timeToAnswer: Duration? {
        state.withLock { $0.inFlight?.answerBy }.map { max(.zero, $0 - Clock.monotonic()) }
    }

    /// Reports that the current message takes longer, and why. The deadline is extended within `extension_limit`,
    /// except for didEnterBackground. Does nothing if there is no current message.
    public func pending(_ text: String, expected: Duration) async throws(AppError) {
        guard isSupervised, let id = state.withLock({ $0.inFlight?.id }) else { return }
        var answer = AppAnswer(id: id, result: .pending, text: text)
        answer.expectedMilliseconds = max(0, expected.microseconds / 1000)
        _ = try await call(.answer(answer))
        state.withLock { $0.inFlight?.answerBy = Clock.monotonic() + expected }
    }

    /// Declines something that torpord offers to the app (``Declined``), as part of the answer to the current
    /// message.
    public func decline(_ what: Declined) {
        state.withLock { state in
            if state.inFlight?.declined.contains(what) == false { state.inFlight?.declined.append(what) }
        }
    }

    // MARK: Asking

    /// Sends a call; throws the failure as an ``AppError``.
    func call(_ request: AppRequest) async throws(AppError) -> JSON {
        switch await engine.call(request) {
        case .success(let reply): return reply
        case .failure(let error): throw AppError(error)
        }
    }

    /// The app's state, such as `background`; `active` without a supervisor.
    public func currentState() async throws(AppError) -> String {
        guard isSupervised else { return "active" }
        return try await call(.state)["state"]?.stringValue ?? "active"
    }

    /// Asks another app to open a URL, whose scheme must be in this app's `may_open`. The other app is brought to the
    /// foreground. Returns the other app's name once the request is durable, before the URL is opened.
    ///
    /// - Throws: ``AppError``: `notPermitted` if `may_open` does not include the scheme, `failed` if no app opens it.
    @discardableResult
    public func openURL(_ url: String) async throws(AppError) -> String {
        guard isSupervised else { throw AppError(code: .failed, "there is no supervisor that could open \(url)") }
        return try await call(.openURL(url, token: .random()))["app"]?.stringValue ?? ""
    }

    /// Whether another app opens URLs of the scheme; false without a supervisor.
    ///
    /// - Throws: ``AppError``: `notPermitted` if `may_open` of this app does not include the scheme.
    public func canOpen(scheme: String) async throws(AppError) -> Bool {
        guard isSupervised else { return false }
        return try await call(.canOpen(scheme: scheme))["can"]?.boolValue ?? false
    }

    /// How long the app may still run for its background tasks; nil while there is no limit, as in the foreground.
    public func backgroundTimeRemaining() async throws(AppError) -> Duration? {
        guard isSupervised else { return nil }
        return try await call(.backgroundTime)["remaining_ms"]?.intValue.map { .milliseconds($0) }
    }
}
