// SPDX-License-Identifier: Apache-2.0

import AppConnection
import Configuration
import Gateway
import GatewayConfiguration
import Linux
import TorporAPI

/// Pushes the states of apps to the server after they are saved, on a thread of its own. States are pushed one after
/// the other, and for each app only the newest.
final class StatePusher: Sendable {
    private struct State: Sendable {
        /// Apps whose saved state may be newer than the server's, each with its owner.
        var changed: [String: String] = [:]
        var isStopping = false
        var isFinished = false
    }

    private let states: GatewayStates
    private let socket: String
    private let login: NATSLogin
    private let surroundings: GatewayContext
    private let notifySocket: String?
    private let state = Monitor(State())

    /// Used only by the thread.
    private struct Progress {
        /// The apps whose push has failed, with their owners. They are tried again at `retryAt`.
        var left: [String: String] = [:]
        var retryAt: Duration?
        var pause = Backoff()
        /// The last logged problem of each app, so that a problem is not logged again.
        var told: [String: String] = [:]
    }

    /// Starts the thread. Throws a sentence that describes the error.
    static func start(
        _ states: GatewayStates,
        socket: String,
        notifySocket: String?,
        _ surroundings: GatewayContext
    ) throws -> StatePusher {
        let pusher = StatePusher(
            states,
            socket,
            try NATSLogin(states.broker, surroundings.secrets),
            notifySocket,
            surroundings
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
        _ notifySocket: String?,
        _ surroundings: GatewayContext
    ) {
        self.states = states
        self.socket = socket
        self.login = login
        self.notifySocket = notifySocket
        self.surroundings = surroundings
    }

    /// Stops the thread after the push in progress. Returns false if the deadline (CLOCK_MONOTONIC) comes first.
    func finish(until deadline: Duration) -> Bool {
        state.withLock { $0.isStopping = true }
        state.wake()
        let isFinished: Bool? = state.wait(until: deadline) { state, _ in state.isFinished ? true : nil }
        return isFinished ?? false
    }

    private func take(_ apps: [Ownership]) {
        // `owner == "here"`: a new owner has just claimed the state, so push it. Skip an app that a user has forced to
        // run on a machine that does not own it: its state must not replace the owner's.
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
            // While the server cannot be reached, do not try each newly saved state at once: wait for the next retry.
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
        // After one failure, do not try the other apps in this round: they would fail for the same reason.
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

    /// Logs a problem with an app's state, unless the same problem was logged last for this app.
    private func tell(_ app: String, _ level: LogLevel, _ sentence: String, _ progress: inout Progress) {
        // Ignore numbers in the comparison: a size, for example, differs after each save.
        let what = sentence.filter { !$0.isNumber }
        guard progress.told[app] != what else { return }
        progress.told[app] = what
        surroundings.log.say(level, "state: \(sentence)")
        tellStatus(progress)
    }

    /// Reports in the service's status line which apps' states are not pushed.
    private func tellStatus(_ progress: Progress) {
        guard let notifySocket else { return }
        let apps = progress.told.keys.sorted().joined(separator: ", ")
        let status = apps.isEmpty ? "States are pushed." : "The states of these apps are not pushed: \(apps)"
        try? NotifySpeech.say("STATUS=\(status)", to: notifySocket)
    }
}
