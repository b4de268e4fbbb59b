// SPDX-License-Identifier: Apache-2.0

import Linux
import TorporAPI
import Varlink

/// A background task, and what to do shortly before its time is over.
struct ExpiringTask {
    var name: String
    var onExpiry: (@Sendable (Duration) async -> Void)?
    var cancel: (@Sendable () -> Void)?
    /// Whether torpord has announced that the task's time is nearly over. If the task begins with very little time
    /// left, the announcement may come before `cancel` is set.
    var isExpiring = false
    /// Whether `onExpiry` was called, or is about to be.
    var isTold = false
}

/// The background tasks that this process began.
struct BackgroundTasks {
    var begun: [Int64: ExpiringTask] = [:]
    /// For each name, how many tasks were requested and have no token yet.
    var asked: [String: Int] = [:]
    /// For each token, the remaining time of a task whose expiry was announced before the reply with the token
    /// arrived.
    var expiredEarly: [Int64: Duration] = [:]
    /// Whether ``TorporApp/keepTime()`` runs.
    var isTimed = false

    /// Records that the supervisor has answered one of the requests for a task of this name.
    mutating func answered(_ name: String) {
        asked[name, default: 1] -= 1
        if asked[name] == 0 { asked[name] = nil }
        // No request is pending, so announcements that no task has claimed were not for this process.
        if asked.isEmpty { expiredEarly = [:] }
    }
}

/// A background task that was begun: in the background, the app is not suspended before the task ends.
public struct BackgroundTask: Sendable {
    /// The task's name, which says what it is for.
    public let name: String
    fileprivate let token: Int64?
    fileprivate let app: TorporApp

    /// Ends the task. A second call does nothing.
    public func end() async {
        guard let token, app.state.withLock({ $0.tasks.begun.removeValue(forKey: token) != nil }) else { return }
        _ = await app.engine.call(.endTask(token: token))
    }
}

extension TorporApp {
    /// Runs `body` as a background task: if the app enters the background, it is not suspended before `body` returns
    /// or the time for tasks (`task_time`) is over.
    ///
    /// Shortly before the time is over (`expiry_warning`), `onExpiry` is called with the remaining time, and then
    /// `body` is cancelled, also while a method of the delegate runs. If `body` does not return in time, the app is terminated (`task-expired`). If the calling
    /// task is cancelled, so is `body`.
    ///
    /// - Throws: what `body` throws; ``AppError`` if the supervisor refuses the task, in which case `body` does not
    ///   run.
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

    /// Begins a background task that ``BackgroundTask/end()`` must end; `onExpiry` is called shortly before the time
    /// is up. The task also ends with the process.
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
            let isExpiring = remaining != nil
            state.tasks.begun[token] =
                ExpiringTask(name: name, onExpiry: onExpiry, isExpiring: isExpiring, isTold: isExpiring)
            state.tasks.answered(name)
            return remaining
        }
        keepTime()
        if let remaining { await onExpiry?(remaining) }
        return BackgroundTask(name: name, token: token, app: self)
    }

    /// Lets the tasks of this process expire when taskExpiring does not come in time: it waits while another message
    /// is not answered, perhaps because the delegate works for a task, and a process without a delegate never gets it.
    private func keepTime() {
        let starts = state.withLock { state in
            defer { state.tasks.isTimed = true }
            return !state.tasks.isTimed
        }
        guard starts else { return }
        Task { [weak self] in
            while let pause = await self?.expireOverdue() { try? await Task.sleep(for: pause) }
        }
    }

    /// How often the time is requested, unless a shorter time is left.
    private static var lookInterval: Duration { .seconds(1) }
    /// The default of `expiry_warning`, for a supervisor that is too old to report it.
    private static var defaultWarning: Duration { .seconds(5) }

    /// Returns how long to wait before the next call; nil if no task is left that can expire.
    private func expireOverdue() async -> Duration? {
        let (isOpen, isBlocked) = state.withLock { state in
            state.tasks.isTimed = state.tasks.begun.values.contains { !$0.isTold }
            return (state.tasks.isTimed, state.inFlight != nil || !isDelegate)
        }
        guard isOpen else { return nil }
        guard isBlocked, let reply = try? await call(.backgroundTime),
            let remaining = reply["remaining_ms"]?.intValue.map({ Duration.milliseconds($0) })
        else { return Self.lookInterval }
        let warning = reply["expiry_warning_ms"]?.intValue.map { Duration.milliseconds($0) } ?? Self.defaultWarning
        guard remaining <= warning else { return min(remaining - warning, Self.lookInterval) }
        let begun = state.withLock { $0.tasks.begun.mapValues(\.name) }
        // A function that is called at the expiry may take its time, which is not the time of the others.
        await withTaskGroup(of: Void.self) { group in
            for (token, name) in begun {
                group.addTask { _ = await self.expire(token: token, name: name, remaining: remaining) }
            }
        }
        return Self.lookInterval
    }

    /// Handles the message taskExpiring; returns false if the task does not belong to this process.
    func expire(token: Int64, name: String, remaining: Duration) async -> Bool {
        let (isHere, onExpiry) = state.withLock { state in
            if let task = state.tasks.begun[token] {
                state.tasks.begun[token]?.isTold = true
                return (true, task.isTold ? nil : task.onExpiry)
            }
            // If this process is waiting for the token of a task with this name, the task may be that one: the
            // announcement of its expiry can arrive before the reply with the token. So remember the announcement.
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
