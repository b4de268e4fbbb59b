import Linux
import TorporAPI
import Varlink

/// What is to be done when a task's time is nearly up.
struct ExpiringTask {
    var name: String
    var onExpiry: (@Sendable (Duration) async -> Void)?
    var cancel: (@Sendable () -> Void)?
}

/// A background task that was begun: while the app is in the background, it is not stopped before this is ended.
public struct BackgroundTask: Sendable {
    /// What it is for.
    public let name: String
    fileprivate let token: Int64?
    fileprivate let app: TorporApp

    /// Ends it. A second call does nothing.
    public func end() async {
        guard let token, app.state.withLock({ $0.tasks.removeValue(forKey: token) != nil }) else { return }
        _ = await app.engine.call(.endTask(token: token))
    }
}

extension TorporApp {
    /// Runs `body` as a background task: an app that goes to the background meanwhile is not stopped before it returns or
    /// the time for tasks (`task_time`) is used up.
    ///
    /// Shortly before that (`expiry_warning`) `onExpiry` is called with what is left, and then `body` is cancelled; if it
    /// does not return in time, the app is ended (`task-expired`). The cancellation of the calling task reaches `body`.
    ///
    /// - Throws: what `body` throws; an ``AppError`` without having run it when the supervisor does not take the task.
    public func withBackgroundTask<Result: Sendable>(
        _ name: String,
        onExpiry: (@Sendable (_ remaining: Duration) async -> Void)? = nil,
        _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        let task = try await beginBackgroundTask(name, onExpiry: onExpiry)
        let work = Task { try await body() }
        if let token = task.token { state.withLock { $0.tasks[token]?.cancel = { work.cancel() } } }
        let result = await withTaskCancellationHandler {
            await work.result
        } onCancel: {
            work.cancel()
        }
        await task.end()
        return try result.get()
    }

    /// Begins a background task that ``BackgroundTask/end()`` must end; `onExpiry` is called shortly before the time is up.
    /// It ends with the process, too.
    public func beginBackgroundTask(
        _ name: String,
        onExpiry: (@Sendable (_ remaining: Duration) async -> Void)? = nil
    ) async throws(AppError) -> BackgroundTask {
        guard isSupervised else { return BackgroundTask(name: name, token: nil, app: self) }
        let reply = try await call(.beginTask(name: name))
        guard let token = reply["token"]?.intValue else {
            throw AppError(code: .failed, "the supervisor began the task \(name) without a token: upgrade it")
        }
        state.withLock { $0.tasks[token] = ExpiringTask(name: name, onExpiry: onExpiry) }
        return BackgroundTask(name: name, token: token, app: self)
    }

    /// Carries out what the message taskExpiring asks for; false when the task is not one of this process.
    func expire(token: Int64, remaining: Duration) async -> Bool {
        guard let task = state.withLock({ $0.tasks[token] }) else { return false }
        await task.onExpiry?(remaining)
        task.cancel?()
        return true
    }
}
