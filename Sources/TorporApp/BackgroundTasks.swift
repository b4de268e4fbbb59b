// SPDX-License-Identifier: Apache-2.0

import Linux
import TorporAPI
import Varlink

/// What is to be done when a task's time is nearly up.
struct ExpiringTask {
    var name: String
    var onExpiry: (@Sendable (Duration) async -> Void)?
    var cancel: (@Sendable () -> Void)?
    /// Its end was announced: what is to be cancelled is known only afterwards when there is very little time.
    var isExpiring = false
}

/// The tasks of this process.
struct BackgroundTasks {
    var begun: [Int64: ExpiringTask] = [:]
    /// How many of a name were asked for and have no token yet.
    var asked: [String: Int] = [:]
    /// What is left of those whose end was announced before their token was known here.
    var expiredEarly: [Int64: Duration] = [:]

    /// A question for a task of this name has its answer.
    mutating func answered(_ name: String) {
        asked[name, default: 1] -= 1
        if asked[name] == 0 { asked[name] = nil }
        // An announcement that nobody took was not for one of these.
        if asked.isEmpty { expiredEarly = [:] }
    }
}

/// A background task that was begun: while the app is in the background, it is not stopped before this is ended.
public struct BackgroundTask: Sendable {
    /// What it is for.
    public let name: String
    fileprivate let token: Int64?
    fileprivate let app: TorporApp

    /// Ends it. A second call does nothing.
    public func end() async {
        guard let token, app.state.withLock({ $0.tasks.begun.removeValue(forKey: token) != nil }) else { return }
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
        let isExpiring = state.withLock { state in
            guard let token = task.token else { return false }
            state.tasks.begun[token]?.cancel = { work.cancel() }
            return state.tasks.begun[token]?.isExpiring == true
        }
        if isExpiring { work.cancel() }
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
        state.withLock { $0.tasks.asked[name, default: 0] += 1 }
        let token: Int64
        do throws(AppError) {
            guard let given = try await call(.beginTask(name: name))["token"]?.intValue else {
                throw AppError(code: .failed, "the supervisor began the task \(name) without a token: upgrade it")
            }
            token = given
        } catch {
            state.withLock { $0.tasks.answered(name) }
            throw error
        }
        let remaining = state.withLock { state in
            let remaining = state.tasks.expiredEarly.removeValue(forKey: token)
            state.tasks.begun[token] = ExpiringTask(name: name, onExpiry: onExpiry, isExpiring: remaining != nil)
            state.tasks.answered(name)
            return remaining
        }
        if let remaining { await onExpiry?(remaining) }
        return BackgroundTask(name: name, token: token, app: self)
    }

    /// Carries out what the message taskExpiring asks for; false when the task is not one of this process.
    func expire(token: Int64, name: String, remaining: Duration) async -> Bool {
        let (isHere, onExpiry) = state.withLock { state in
            if let task = state.tasks.begun[token] { return (true, task.onExpiry) }
            // The announcement may overtake the answer that brings the token.
            guard state.tasks.asked[name] != nil else { return (false, nil) }
            state.tasks.expiredEarly[token] = remaining
            return (true, nil)
        }
        await onExpiry?(remaining)
        let cancel = state.withLock { state in
            state.tasks.begun[token]?.isExpiring = true
            return state.tasks.begun[token]?.cancel
        }
        cancel?()
        return isHere
    }
}
