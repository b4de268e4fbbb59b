// SPDX-License-Identifier: Apache-2.0

import Configuration
public import Linux
public import TorporAPI
import Varlink

/// Which apps of several machines (`owner = "external"`) this machine owns, as the supervisor tells it. Follows the
/// supervisor on a thread of its own, and finds the next one if it is replaced.
public final class OwnerWatch: Sendable {
    /// How an app stands.
    public enum Standing: Sendable, Hashable {
        /// The supervisor has not answered since the start, or does not answer now.
        case unknown
        /// The app needs no owner, or is not there.
        case needsNone
        /// This machine owns it.
        case here
        /// This machine does not own it.
        case elsewhere
    }

    /// Is told what the supervisor tells, on the thread of this object. Without elements something else has changed:
    /// the supervisor is gone, or apps need no owner any more.
    public typealias Observer = @Sendable ([Ownership]) -> Void

    private struct State: Sendable {
        /// The supervisor has answered, once.
        var isLearnt = false
        var isKnown = false
        /// Stays when the supervisor is gone.
        var owners: [String: String] = [:]
        var observers: [Observer] = []
    }

    private let socket: String
    private let log: GatewayLog
    private let state = Monitor(State())

    /// How long the supervisor may take for its first answer.
    private static let patience: Int32 = 10_000
    /// How long a supervisor is left alone that cannot tell.
    private static let rest = Duration.seconds(30)

    /// Knows nothing before ``start()``.
    public init(socket: String, log: GatewayLog) {
        self.socket = socket
        self.log = log
    }

    /// Begins to follow the supervisor. Throws if no thread can be started.
    public func start() throws(Errno) {
        try WorkerThread.start(named: "owners") { [self] in
            var pause = Duration.zero
            while true { pause = followNext(after: pause) }
        }
    }

    /// Follows the next supervisor until it is gone, and waits. `pause`: how long it waited before. Returns how long it
    /// waits now.
    ///
    /// The loop must not contain this: with so much in a loop, Swift's optimiser runs for a quarter of an hour.
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

    /// Follows one supervisor until it is gone. Returns true for one that does not tell who owns apps.
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

    /// Calls `observer` from now on.
    public func onChange(_ observer: @escaping Observer) { state.withLock { $0.observers.append(observer) } }

    /// Waits until the supervisor has answered. Returns false at the deadline (CLOCK_MONOTONIC).
    @discardableResult
    public func waitUntilLearnt(until deadline: Duration) -> Bool {
        let isLearnt: Bool? = state.wait(until: deadline) { state, _ in state.isLearnt ? true : nil }
        return isLearnt ?? false
    }

    /// How the app stands now.
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

    /// Whether the app needed an owner when the supervisor last told.
    public func isOfSeveralMachines(_ app: String) -> Bool {
        state.withLock { Self.owner(of: app, in: $0.owners) != nil }
    }

    /// The app may be named without the number of its only instance.
    private static func owner(of app: String, in owners: [String: String]) -> String? {
        owners[app] ?? owners.first { $0.key.hasPrefix(app + "@") }?.value
    }
}
