// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Supervisor
import SystemPackage
import TorporAPI
import Varlink
import VarlinkServer

/// Checks a new configuration before it is applied: which running apps could not be launched with it.
extension ControlService {
    /// The longest time that an apply or a restart waits for the check whether apps can be launched. A slow disk or user
    /// directory does not delay it any longer: if a launch then fails, the launch reports why.
    private static let patience = Duration.seconds(5)

    /// The longest time that an apply, and a request for the status of an app, waits for the files of
    /// `environment_file`.
    private static let environmentPatience = Duration.seconds(2)
    private static let statusPatience = Duration.milliseconds(250)

    /// Sends the status of an app, which says whether its `environment_file` has other contents than at its launch.
    func sendStatus(of app: AppRuntime, _ reply: Reply) {
        let running = coordinator.machine(app.id).isAlive ? [app] : []
        findChangedEnvironments(of: running, within: Self.statusPatience) { [weak self] changed in
            guard let self else { return }
            // It may have been removed while a disk was awaited.
            guard apps.contains(where: { $0 === app }) else {
                return reply.fail(Selection.Unknown(name: app.name, nearest: nil))
            }
            var status = self.status(app)
            if !changed.isEmpty { status.outdated = true }
            reply.send(BoundedReply.shortened(Replies.status(status)))
        }
    }

    /// Finds out which running apps have an `environment_file` with other contents than at their launch; none if the
    /// disk does not answer in time.
    func findChangedEnvironments(_ then: @escaping (Set<String>) -> Void) {
        let running = apps.filter { coordinator.machine($0.id).isAlive }
        findChangedEnvironments(of: running, within: Self.environmentPatience, then)
    }

    private func findChangedEnvironments(
        of apps: [AppRuntime],
        within patience: Duration,
        _ then: @escaping (Set<String>) -> Void
    ) {
        var launched: [String: EnvironmentAtLaunch] = [:]
        for app in apps { launched[app.name] = app.environmentAtLaunch }
        guard !launched.isEmpty else { return then([]) }
        let answer = Once(then)
        environmentReads.ask(launched) { answer.give($0) }
        answer.timer = try? loop.timer { answer.give([]) }
        answer.timer?.arm(after: patience)
    }

    /// Finds out which running apps could not be launched again with the new configuration; the apply leaves them
    /// running. Calls `then` with the reason for each such app, by name, or with nil if another configuration came into
    /// force in between.
    func findObstacles(
        _ request: ApplyRequest,
        _ result: ConfigurationRead,
        _ environments: Set<String>,
        _ then: @escaping ([String: String]?) -> Void
    ) {
        guard request.restart, !request.diff, applyRefusal == nil, case .success(let new) = result else {
            return then([:])
        }
        let configuration = completed(new.configuration)
        let applied = changes(request, configuration, Found(environments: environments))
        guard let chosen = try? applied.chosen() else { return then([:]) }
        let ended = configuration.apps.filter { app in
            guard let id = coordinator.id(of: app.name) else { return false }
            return coordinator.machine(id).isAlive && applied.isReplaced(app.name, chosen)
        }
        guard !ended.isEmpty else { return then([:]) }
        let count = appliedCount
        findObstacles(ended) { [weak self] obstacles in
            guard let self else { return }
            then(self.appliedCount == count ? obstacles : nil)
        }
    }

    /// Finds out which of the apps could not be launched. Later calls `then` with the reasons by app, or without any
    /// reason if finding out takes too long.
    func findObstacles(_ specifications: [AppSpecification], _ then: @escaping ([String: String]) -> Void) {
        let answer = Once(then)
        var waiting: [String: [SocketPlan]] = [:]
        for next in specifications where !next.sockets.isEmpty {
            guard let id = coordinator.id(of: next.name) else { continue }
            let plans = supervisor.wakes.sockets.waiting(next.sockets, of: apps[id])
            if !plans.isEmpty { waiting[next.name] = plans }
        }
        let own: Set<UInt32> = waiting.isEmpty ? [] : supervisor.wakes.sockets.numbers
        // Questions are not merged: an apply and a restart may ask about different specifications of the same app.
        launchObstacles.ask(
            { [waiting, state = supervisor.runtime.state] in
                LaunchObstacle.find(specifications, sockets: waiting, own: own, state: state)
            },
            { answer.give($0) }
        )
        answer.timer = try? loop.timer { answer.give([:]) }
        answer.timer?.arm(after: Self.patience)
    }

    /// The new configuration, completed with the existing scenes and the present values of settings.
    func completed(_ new: TorporConfiguration) -> TorporConfiguration {
        var new = supervisor.inForce.roster.complete(new)
        // Socket addresses may contain settings of the app: fill in the current values, not the defaults.
        for index in new.apps.indices {
            let next = new.apps[index]
            new.apps[index] = supervisor.settings.filled(next, of: coordinator.id(of: next.name).map { apps[$0] })
        }
        return new
    }

    /// What an apply of the new configuration changes.
    func changes(_ request: ApplyRequest, _ new: TorporConfiguration, _ found: Found) -> Apply {
        let digests = Dictionary(
            apps.compactMap { app in recoveredDigest(of: app).map { (app.name, $0) } },
            uniquingKeysWith: { $1 }
        )
        let outdated = Set(digests.keys)
        let back = new.apps.filter { next in digests[next.name].map { $0 == next.launchDigest } ?? false }
        let launchOnly = new.apps.filter { next in
            digests[next.name].map { next.needsNoRestart(after: $0) } ?? false
        }
        var apply = Apply(
            request,
            from: runningConfiguration,
            to: new,
            outdated: outdated,
            launchOnly: Set(launchOnly.map(\.name)),
            takenBack: Set(back.map(\.name)),
            environments: found.environments,
            obstacles: found.obstacles
        )
        for change in apply.diff.apps where change.kind == .removed {
            guard let id = coordinator.id(of: change.name), apps[id].specification.scene == nil else { continue }
            apply.belongings[change.name] = belongings(of: apps[id])
        }
        apply.notePending(since: supervisor.configuration)
        return apply
    }

    /// The digest of the configuration with which an earlier torpord launched the app, if that is an older one and the
    /// app runs, or has gone down (``AppRuntime/lastLaunchDigest``).
    private func recoveredDigest(of app: AppRuntime) -> UInt64? {
        if let digest = app.recoveredDigest { return digest }
        let machine = coordinator.machine(app.id)
        guard machine.isDown, !machine.isAlive, app.isLastLaunchRecovered else { return nil }
        return app.lastLaunchDigest
    }

    /// What is removed with an app, in words; nil if there is nothing.
    private func belongings(of app: AppRuntime) -> String? {
        let values = supervisor.settings.values(of: app)
        let counts = [
            (app.specification.declaredSettings.count { values.isSet($0) }, "setting"),
            (supervisor.mailboxes.waiting(for: app).count, "message"),
            (supervisor.alerts.count(of: app), "alert"),
        ]
        var words = counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)\($0.0 == 1 ? "" : "s")" }
        if let state = supervisor.savedStates.archives(of: app).found {
            words.append("saved state (\(Bytes.text(state.bytes)))")
        }
        guard let last = words.last else { return nil }
        return words.count == 1 ? last : words.dropLast().joined(separator: ", ") + " and " + last
    }

    /// The configuration in force, in which each running app has the specification with which it was launched.
    private var runningConfiguration: TorporConfiguration {
        var running = supervisor.configuration
        running.apps = apps.filter { !coordinator.isLeaving($0.id) }.map { app in
            app.lastLaunched.flatMap { coordinator.machine(app.id).isDown ? $0 : nil } ?? app.specification
        }
        return running
    }
}
