// SPDX-License-Identifier: Apache-2.0

import Configuration
public import Linux
public import TorporAPI
import Varlink

/// Follows which apps this machine owns, among those that several machines can own (`owner = "external"`). The
/// supervisor reports this to a thread of this object, which reconnects when the supervisor is replaced.
public final class OwnerWatch: Sendable {
    /// Whether this machine owns an app, as far as is known.
    public enum Standing: Sendable, Hashable {
        /// Unknown: the supervisor has not answered yet, or does not answer now.
        case unknown
        /// The app needs no owner, or does not exist.
        case needsNone
        /// This machine owns the app.
        case here
        /// This machine does not own the app.
        case elsewhere
    }

    /// Called on this object's thread with the apps whose owner the supervisor has reported. The list is empty if
    /// something else has changed: the supervisor is gone, or apps no longer need an owner.
    public typealias Observer = @Sendable ([Ownership]) -> Void

    private struct State: Sendable {
        /// Whether the supervisor has answered at least once.
        var isLearnt = false
        var isKnown = false
        /// The owner of each app, as last reported. Kept while the supervisor is gone.
        var owners: [String: String] = [:]
        var observers: [Observer] = []
    }

    private let socket: String
    private let log: GatewayLog
    private let state = Monitor(State())

    /// How long the supervisor may take for its first answer.
    private static let patience: Int32 = 10_000
    /// The delay before a supervisor that does not support the request is asked again.
    private static let rest = Duration.seconds(30)

    /// Creates an object that knows no owners until ``start()`` is called.
    public init(socket: String, log: GatewayLog) {
        self.socket = socket
        self.log = log
    }

    /// Starts the thread that follows the supervisor. Throws if the thread cannot be started.
    public func start() throws(Errno) {
        try WorkerThread.start(named: "owners") { [self] in
            var pause = Duration.zero
            while true { pause = followNext(after: pause) }
        }
    }

    /// Follows the next supervisor until it is gone, then sleeps. `pause`: the length of the previous sleep. Returns
    /// the length of this sleep.
    ///
    /// This is a function of its own because Swift's optimiser takes a quarter of an hour if the loop in ``start()``
    /// contains all of it.
    @inline(never)
    private func followNext(after pause: Duration) -> Duration {
        let isOld = follow()
        let isNew = state.withLock { state in
            defer { state.isKnown = isOld }
            return state.isKnown
        }
        if isNew || isOld { tell([]) }
        let pause = isOld ? Self.rest : isNew ? .milliseconds(20) : min(pause * 2, .seconds(1))
        ThisProcess.sleep(pause)
        return pause
    }

    private static let call = ManagerRequest.owners.call

    /// Follows one supervisor until it is gone. Returns true if the supervisor is of a version that does not report
    /// owners.
    private func follow() -> Bool {
        do throws(VarlinkClientError) {
            let client = try VarlinkClient(path: socket, timeout: .seconds(10))
            _ = try client.callMore(Self.call, firstTimeoutMilliseconds: Self.patience) { take($0) }
        } catch {
            guard case .service = error else { return false }
            log.sayOften(.warning, "owners", "torpord does not tell which apps this machine owns: \(error)")
        }
        state.withLock { state in
            state.isLearnt = true
            state.owners = [:]
        }
        return true
    }

    private func take(_ reply: JSON) {
        guard let rows = reply["apps"]?.arrayValue else { return }
        let apps = rows.compactMap { try? Ownership(json: $0) }
        state.withLock { state in
            if reply["whole"]?.boolValue == true { state.owners = [:] }
            for app in apps { state.owners[app.app] = app.owner }
            state.isKnown = true
            state.isLearnt = true
        }
        tell(apps)
    }

    private func tell(_ apps: [Ownership]) {
        state.wake()
        let observers = state.withLock { $0.observers }
        for observer in observers { observer(apps) }
    }

    /// Registers `observer` for all later changes.
    public func onChange(_ observer: @escaping Observer) { state.withLock { $0.observers.append(observer) } }

    /// Waits until the supervisor has answered for the first time. Returns false if the deadline (CLOCK_MONOTONIC)
    /// comes first.
    @discardableResult
    public func waitUntilLearnt(until deadline: Duration) -> Bool {
        let isLearnt: Bool? = state.wait(until: deadline) { state, _ in state.isLearnt ? true : nil }
        return isLearnt ?? false
    }

    /// Whether this machine owns the app now.
    public func standing(of app: String) -> Standing {
        state.withLock { state in
            guard state.isKnown else { return .unknown }
            switch Self.owner(of: app, in: state.owners) {
            case nil: return .needsNone
            case "here": return .here
            default: return .elsewhere
            }
        }
    }

    /// Whether several machines can own the app, according to the supervisor's last report.
    public func isOfSeveralMachines(_ app: String) -> Bool {
        state.withLock { Self.owner(of: app, in: $0.owners) != nil }
    }

    /// The owner of an app. If an app has only one instance, a message may name the app without the instance's number.
    private static func owner(of app: String, in owners: [String: String]) -> String? {
        owners[app] ?? owners.first { $0.key.hasPrefix(app + "@") }?.value
    }
}
