// SPDX-License-Identifier: Apache-2.0

import Configuration
import Gateway
import GatewayConfiguration
import Linux
import TorporAPI

/// Pushes the states of apps to the server after they are saved, on a thread of its own. States are pushed one after
/// the other, and for each app only the newest.
final class StatePusher: Sendable {
    private struct State: Sendable {
        /// Apps whose state may be newer than what the server has, or whose owner has changed.
        var changed: [String: Ownership] = [:]
        var isStopping = false
        var isFinished = false
    }

    private let states: GatewayStates
    private let socket: String
    private let login: NATSLogin
    private let surroundings: GatewayContext
    /// Says in `systemctl status` what is wrong; an empty sentence means that nothing is wrong.
    private let show: @Sendable (String) -> Void
    private let state = Monitor(State())

    /// The progress of the pushes. Only the thread uses it.
    private struct Progress {
        /// Apps that are tried again at `retryAt`.
        var left: [String: Ownership] = [:]
        var retryAt: Duration?
        var pause = Backoff()
        /// Apps that were moved to this machine before their former machine has pushed their states. They are checked
        /// again at `lookAt`.
        var awaited: [String: Awaited] = [:]
        var lookAt: Duration?
        var lookPause = Backoff()
        /// For each app, the last problem that was logged, so that it is logged only once.
        var told: [String: String] = [:]

        /// When the next retry or check is due; nil for never.
        var wakesAt: Duration? { [retryAt, lookAt].compactMap(\.self).min() }

        /// Sets the time at which the apps in `left` are tried again.
        mutating func wait() {
            if left.isEmpty { pause.reset() } else { retryAt = Clock.monotonic() + pause.next() }
            if awaited.isEmpty {
                lookPause.reset()
                lookAt = nil
            } else if lookAt == nil {
                lookAt = Clock.monotonic() + lookPause.next()
            }
        }
    }

    private struct Awaited {
        var row: Ownership
        /// When to log that the app's state is not pushed.
        var tellAt: Duration
    }

    /// How long the gateway of the machine from which an app was moved may take for its last push.
    private static let patience = Duration.seconds(15)

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

    /// Stops the thread after the push in progress. Returns false if the deadline (CLOCK_MONOTONIC) comes first.
    func finish(until deadline: Duration) -> Bool {
        state.withLock { $0.isStopping = true }
        state.wake()
        let isFinished: Bool? = state.wait(until: deadline) { state, _ in state.isFinished ? true : nil }
        return isFinished ?? false
    }

    private func take(_ apps: [Ownership]) {
        // Leave out an app that a user has forced to run here: its state is not the owner's. A machine that becomes the
        // owner of an app has just claimed the app's state.
        let chosen = apps.filter { $0.owner != "forced" && states.keeps($0.app) }
        guard !chosen.isEmpty else { return }
        state.withLock { state in
            for app in chosen { state.changed[app.app] = app }
        }
        state.wake()
    }

    // MARK: The thread

    private func run() {
        let pushing = StatePushing(states, socket: socket, login)
        var progress = Progress()
        while true {
            let next: [String: Ownership]?? = state.wait(until: progress.wakesAt) { state, _ in
                if state.isStopping { return .some(nil) }
                guard !state.changed.isEmpty else { return nil }
                defer { state.changed = [:] }
                return state.changed
            }
            if case .some(.none) = next { return }
            progress.left.merge((next ?? nil) ?? [:]) { $1 }
            let now = Clock.monotonic()
            if let lookAt = progress.lookAt, now >= lookAt {
                progress.lookAt = nil
                progress.left.merge(progress.awaited.mapValues(\.row)) { new, _ in new }
            }
            // While the server cannot be reached, one attempt is enough for all apps.
            guard progress.retryAt.map({ now >= $0 }) ?? true else { continue }
            progress.retryAt = nil
            let apps = progress.left.sorted { $0.key < $1.key }
            progress.left = [:]
            for (_, row) in apps { push(row, pushing, &progress) }
            progress.wait()
        }
    }

    private func push(_ row: Ownership, _ pushing: StatePushing, _ progress: inout Progress) {
        // If one app of a round has failed, do not try the others in this round.
        guard progress.left.isEmpty else {
            progress.left[row.app] = row
            return
        }
        let log = surroundings.log
        let app = row.app
        if row.owner != "here" { progress.awaited[app] = nil }
        do throws(StateTrouble) {
            switch try pushing.push(app, owner: row.owner) {
            case .kept(let isNew):
                isWell(app, &progress)
                if isNew { log.say(.debug, "state: \(app): pushed") }
            case .noToken:
                try adopt(
                    row,
                    pushing,
                    .warning,
                    "this machine owns \(app) and holds no token of its state, which is not pushed: "
                        + "‘torpor-gateway state claim \(app)’",
                    &progress
                )
            case .lost(let node):
                try adopt(
                    row,
                    pushing,
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
                progress.left[app] = row
            }
        }
    }

    /// Claims the state of an app that this machine owns without a token, if the former owner has released the state.
    /// Otherwise logs what is wrong.
    private func adopt(
        _ row: Ownership,
        _ pushing: StatePushing,
        _ level: LogLevel,
        _ sentence: String,
        _ progress: inout Progress
    ) throws(StateTrouble) {
        let app = row.app
        // Do nothing if another machine owns the app.
        guard row.owner == "here" else { return }
        if let node = try pushing.adopt(app) {
            isWell(app, &progress)
            surroundings.log.say(.info, "state: \(app): is claimed, since \(node) has given it back")
            return
        }
        // An app that was moved may be here before the former owner's gateway has pushed its last state.
        guard row.imported != nil else { return tell(app, level, sentence, &progress) }
        let now = Clock.monotonic()
        let tellAt = progress.awaited[app]?.tellAt ?? now + Self.patience
        progress.awaited[app] = Awaited(row: row, tellAt: tellAt)
        if now >= tellAt {
            tell(app, level, "\(sentence) (with --local if it was moved here)", &progress)
        }
    }

    /// Records that the server has the app's state, so that no problem remains.
    private func isWell(_ app: String, _ progress: inout Progress) {
        progress.awaited[app] = nil
        if progress.told.removeValue(forKey: app) != nil { tellStatus(progress) }
    }

    /// Logs what is wrong with an app's state. The same problem is logged only once.
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
        let apps = progress.told.keys.sorted().joined(separator: ", ")
        show(apps.isEmpty ? "" : "The states of these apps are not pushed: \(apps).")
    }
}
