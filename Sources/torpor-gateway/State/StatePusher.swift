// SPDX-License-Identifier: Apache-2.0

import Configuration
import Gateway
import GatewayConfiguration
import Linux
import TorporAPI

/// Pushes the states of apps when they are saved, on a thread of its own: one at a time, and of each app the newest.
final class StatePusher: Sendable {
    private struct State: Sendable {
        /// Apps whose state may be newer than what the server has, with their owner.
        var changed: [String: String] = [:]
        var isStopping = false
        var isFinished = false
    }

    private let states: GatewayStates
    private let socket: String
    private let login: NATSLogin
    private let surroundings: GatewayContext
    /// Says in `systemctl status` what is wrong; an empty sentence if nothing is.
    private let show: @Sendable (String) -> Void
    private let state = Monitor(State())

    /// The thread's own.
    private struct Progress {
        /// Apps that are tried again at `retryAt`.
        var left: [String: String] = [:]
        var retryAt: Duration?
        var pause = Backoff()
        /// What was told of each app, so that it is told once.
        var told: [String: String] = [:]
    }

    /// Starts the thread. Throws a sentence.
    static func start(
        _ states: GatewayStates,
        socket: String,
        _ surroundings: GatewayContext,
        show: @escaping @Sendable (String) -> Void
    ) throws -> StatePusher {
        let pusher = StatePusher(
            states,
            socket,
            try NATSLogin(states.broker, surroundings.secrets),
            surroundings,
            show
        )
        surroundings.owners.onChange { [weak pusher] apps in pusher?.take(apps) }
        try WorkerThread.start(named: "states") {
            pusher.run()
            pusher.state.withLock { $0.isFinished = true }
            pusher.state.wake()
        }
        return pusher
    }

    private init(
        _ states: GatewayStates,
        _ socket: String,
        _ login: NATSLogin,
        _ surroundings: GatewayContext,
        _ show: @escaping @Sendable (String) -> Void
    ) {
        self.states = states
        self.socket = socket
        self.login = login
        self.surroundings = surroundings
        self.show = show
    }

    /// Ends the thread after the push under way; false at the deadline (CLOCK_MONOTONIC).
    func finish(until deadline: Duration) -> Bool {
        state.withLock { $0.isStopping = true }
        state.wake()
        let isFinished: Bool? = state.wait(until: deadline) { state, _ in state.isFinished ? true : nil }
        return isFinished ?? false
    }

    private func take(_ apps: [Ownership]) {
        // A new owner has claimed the state just before. What an app does that a person has forced to run is not the
        // owner's.
        let chosen = apps.filter { ($0.saved || $0.owner == "here") && $0.owner != "forced" && states.keeps($0.app) }
        guard !chosen.isEmpty else { return }
        state.withLock { state in
            for app in chosen { state.changed[app.app] = app.owner }
        }
        state.wake()
    }

    // MARK: The thread

    private func run() {
        let pushing = StatePushing(states, socket: socket, login)
        var progress = Progress()
        while true {
            let retryAt = progress.retryAt
            let next: [String: String]?? = state.wait(until: retryAt) { state, _ in
                if state.isStopping { return .some(nil) }
                guard !state.changed.isEmpty else { return nil }
                defer { state.changed = [:] }
                return state.changed
            }
            if case .some(.none) = next { return }
            // While the server is away, one try is enough for all.
            let isDue = retryAt.map { Clock.monotonic() >= $0 } ?? true
            progress.left.merge((next ?? nil) ?? [:]) { $1 }
            guard isDue else { continue }
            progress.retryAt = nil
            let apps = progress.left.sorted { $0.key < $1.key }
            progress.left = [:]
            for (app, owner) in apps { push(app, owner, pushing, &progress) }
            if progress.left.isEmpty {
                progress.pause.reset()
            } else {
                progress.retryAt = Clock.monotonic() + progress.pause.next()
            }
        }
    }

    private func push(_ app: String, _ owner: String, _ pushing: StatePushing, _ progress: inout Progress) {
        // The first failure of a round says enough about the others.
        guard progress.left.isEmpty else {
            progress.left[app] = owner
            return
        }
        let log = surroundings.log
        do throws(StateTrouble) {
            switch try pushing.push(app) {
            case .kept(let isNew):
                if progress.told.removeValue(forKey: app) != nil { tellStatus(progress) }
                if isNew { log.say(.debug, "state: \(app): pushed") }
            case .noToken:
                guard owner == "here" else { return }
                tell(
                    app,
                    .warning,
                    "this machine owns \(app) and holds no token of its state, which is not pushed: "
                        + "‘torpor-gateway state claim \(app)’",
                    &progress
                )
            case .lost(let node):
                tell(
                    app,
                    .error,
                    "the state of \(app) was claimed since by \(node.isEmpty ? "another program" : node): it is not "
                        + "pushed any more",
                    &progress
                )
            }
        } catch {
            switch error {
            case .tooLarge(let sentence), .wrong(let sentence): tell(app, .error, sentence, &progress)
            case .away, .overtaken:
                log.sayOften(.warning, "state", "state: \(error); it is tried again")
                progress.left[app] = owner
            }
        }
    }

    /// Logs what is wrong with an app's state, once until something else is.
    private func tell(_ app: String, _ level: LogLevel, _ sentence: String, _ progress: inout Progress) {
        // A size changes with each save.
        let what = sentence.filter { !$0.isNumber }
        guard progress.told[app] != what else { return }
        progress.told[app] = what
        surroundings.log.say(level, "state: \(sentence)")
        tellStatus(progress)
    }

    /// Says in `systemctl status` whose states are not pushed.
    private func tellStatus(_ progress: Progress) {
        let apps = progress.told.keys.sorted().joined(separator: ", ")
        show(apps.isEmpty ? "" : "The states of these apps are not pushed: \(apps).")
    }
}
