// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import MemoryPressure
import Notify
import Output
import Processes
import Store
import Supervisor
import SystemPackage
import TorporAPI
import Varlink
import VarlinkServer

/// Applies a new configuration. Apps whose definition has not changed are not affected.
///
/// A background thread reads the files. The rest of an apply is a single step of the event loop, so that applies never
/// overlap: it compares the new configuration with the one in force, and gives the new definitions to the lifecycle
/// core. But if a second apply comes while apps still restart for the first one, the first caller gets the error
/// `overtaken` for these apps.
extension ControlService {
    /// Carries out an apply and replies. `name`: the requester, for the history. `reply`: nil if SIGHUP requested the
    /// apply; the result then goes to the log.
    func apply(_ request: ApplyRequest, by name: String, _ reply: Reply?) {
        guard supervisor.isStarted else {
            let waits = VerbProgress(
                app: "torpord",
                state: "starting",
                text: "waits until processes left by an earlier torpord are gone"
            )
            if reply?.more == true { reply?.send(waits.json, continues: true) }
            supervisor.engine.whenStarted { [weak self] in self?.apply(request, by: name, reply) }
            return
        }
        if let refusal = applyRefusal {
            log.warning("the configuration is not reloaded: \(refusal)")
            reply.map { $0.fail(refusal) }
            return
        }
        if !request.diff { supervisor.service.reload() }
        readAndApply(request, by: name, reply)
    }

    private func readAndApply(_ request: ApplyRequest, by name: String, _ reply: Reply?) {
        configurationReads.ask(ConfigurationPlace(replacing: supervisor.configuration)) { [weak self] result in
            self?.findChangedEnvironments { [weak self] changed in
                self?.findObstacles(request, result, changed) { [weak self] obstacles in
                    guard let self else { return }
                    // Another configuration came into force since this one was read. Read the files again, because this
                    // one may be older.
                    guard let obstacles else { return self.readAndApply(request, by: name, reply) }
                    let found = Found(environments: changed, obstacles: obstacles)
                    let trouble = self.apply(request, result, by: name, reply, found)
                    if !request.diff {
                        self.supervisor.recovery.readsConfiguration = false
                        self.supervisor.service.reloaded(trouble: trouble)
                    }
                    self.supervisor.rest.soon()
                }
            }
        }
    }

    /// What was found out about the apps before an apply, beside the configuration.
    struct Found {
        /// The running apps whose `environment_file` has other contents than at their launch.
        var environments: Set<String> = []
        /// Why running apps could not be launched again, by name.
        var obstacles: [String: String] = [:]
    }

    package func take(bundle: String, by asker: String, _ completion: @escaping () -> Void) {
        guard supervisor.isStarted else {
            supervisor.engine.whenStarted { [weak self] in self?.take(bundle: bundle, by: asker, completion) }
            return
        }
        let place = ConfigurationPlace(supervisor.configuration.sources, rereading: bundle)
        configurationReads.ask(place) { [weak self] result in
            _ = self?.apply(ApplyRequest(), result, by: asker, nil, isFromDisk: false)
            completion()
        }
    }

    /// Applies the configuration that was read. Returns an error text if it is not applied.
    private func apply(
        _ request: ApplyRequest,
        _ result: Result<(configuration: TorporConfiguration, accounts: NamedAccounts), DiagnosticList>,
        by name: String,
        _ reply: Reply?,
        _ found: Found = Found(),
        isFromDisk: Bool = true
    ) -> String? {
        // Check again, because a reason to refuse may have come up while the files were read.
        if let refusal = applyRefusal {
            log.warning("the reloaded configuration is not applied: \(refusal)")
            reply.map { $0.fail(refusal) }
            return refusal
        }
        switch result {
        case .failure(let list):
            refuse(list, by: name, reply)
            if !request.diff, isFromDisk { supervisor.recovery.isDiskInvalid = true }
            return Supervisor.diskIsInvalid
        case .success(var new):
            if isFromDisk, let refusal = refusalOfNothing(request, new.configuration) {
                log.error("the configuration is not applied: \(refusal)")
                reply?.fail(refusal)
                return refusal
            }
            new.configuration = completed(new.configuration)
            do throws(Selection.Unknown) {
                let applied = changes(request, new.configuration, found)
                let chosen = try applied.chosen()
                if request.diff {
                    let living = Set(apps.filter { coordinator.machine($0.id).isAlive }.map(\.name))
                    let down = Set(apps.filter { coordinator.machine($0.id).isDown }.map(\.name))
                    reply?.send(applied.preview(chosen, living: living, down: down).json)
                } else {
                    if isFromDisk { supervisor.recovery.isDiskInvalid = false }
                    goBy(applied, chosen, new.accounts, by: name, reply)
                }
            } catch {
                reply?.fail(
                    ManagerInterface.ErrorName.unknownApp,
                    ["name": .string(error.name), "nearest": .optional(error.nearest)]
                )
            }
            return nil
        }
    }

    /// A text that says why no configuration can be applied now; nil if one can be applied.
    var applyRefusal: String? {
        if supervisor.isEnding || coordinator.isShuttingDown {
            return "torpord is shutting down: start it again to load the configuration"
        }
        if supervisor.upgrades.isUnderWay { return "an upgrade is under way: ask again when it is done" }
        if supervisor.isKeeperLost { return "torpor-keeper is gone, so torpord is ending" }
        return nil
    }

    /// Why a configuration without apps is not applied: its file was probably emptied, or moved, by mistake. Nil if
    /// there are apps, the request has `force`, or no app would be removed.
    private func refusalOfNothing(_ request: ApplyRequest, _ new: TorporConfiguration) -> String? {
        guard !request.force, !request.diff, new.apps.isEmpty, new.templates.isEmpty else { return nil }
        let count = apps.count { !coordinator.isLeaving($0.id) }
        guard count > 0 else { return nil }
        return "\(new.sources.path) has no apps, so nothing was changed: ‘torpor apply --force’ removes "
            + (count == 1 ? "the app that there is" : "all \(count) apps")
    }

    private func refuse(_ list: DiagnosticList, by name: String, _ reply: Reply?) {
        let errors = list.diagnostics.count { $0.severity == .error }
        let text = "the configuration has \(errors == 1 ? "an error" : "\(errors) errors"): nothing was changed"
        note(.configurationInvalid, text: text, reason: name)
        for diagnostic in list.diagnostics { log.error(diagnostic.description) }
        reply?.fail(
            ManagerInterface.ErrorName.invalidConfiguration,
            ["diagnostics": .array(list.diagnostics.map { DiagnosticInfo($0).json })]
        )
    }

    // MARK: The step

    private func goBy(
        _ applied: Apply,
        _ chosen: Set<String>,
        _ named: NamedAccounts,
        by name: String,
        _ reply: Reply?
    ) {
        let living = Set(apps.filter { coordinator.machine($0.id).isAlive }.map(\.id))
        // An app that was removed but has not ended yet, and is now added again, counts as new: forget what users
        // requested for it.
        // What it has saved is still there, and the edit that removed it was probably a mistake: its next launch gets it.
        let names = Set(applied.new.apps.map(\.name))
        for app in apps where coordinator.isLeaving(app.id) {
            app.kept.goalOfPerson = nil
            if names.contains(app.name) { app.keepsStateWhenStopped = true }
        }
        let ending = Set(apps.filter { coordinator.isToEnd($0.id) }.map(\.id))
        let down = Set(apps.filter { coordinator.machine($0.id).isDown }.map(\.id))
        let actions: [AppAction]
        do throws(DependencyError) {
            actions = try supervisor.reconfigure(definitions(applied, chosen))
        } catch {
            // No error is expected here, because the loader of the configuration has checked the dependencies already.
            log.error("the configuration is not applied: \(error)")
            reply.map { $0.fail("\(error)") }
            return
        }
        let kept = applied.new.keepingDirectories(of: supervisor.configuration)
        supervisor.shutdown.mainChanges(to: kept.supervisor.main)
        supervisor.inForce.become(kept, named)
        appliedCount += 1
        supervisor.store.setRetention(Retention(kept.supervisor))
        for warning in kept.warnings { log.warning(warning.description) }
        let new = takeSpecifications(applied.new.apps, living: living)
        // Record these actions before the following steps, which record more changes of the same apps.
        supervisor.writeAhead(actions)
        // Collect now which apps the apply changes, because the following steps forget removed apps that do not run.
        let entries = entries(applied, chosen, ending: ending, living: living, down: down)
        tell(applied, entries, by: name)
        supervisor.govern()
        supervisor.interruptions.follow(kept.supervisor)
        supervisor.memoryWatch.configure()
        supervisor.dataFolders.configure()
        supervisor.protection.configure()
        supervisor.transfers.configure()
        supervisor.desktop.configure()
        supervisor.alerts.configure()
        supervisor.launcher.healthChecks.configure()
        supervisor.wakes.configure()
        supervisor.interruptions.coverAll()
        supervisor.scenes.configure()
        desktopSync.configure()
        for entry in entries { apps[entry.id].lastEnding = nil }
        uninterrupted { [weak self] in
            guard let self else { return }
            engine.performWritten(actions)
            // Load the stored data of a new app before the app is launched.
            for app in new { supervisor.persistence.added(app) }
        }
        supervisor.suspendAsBefore(new.map(\.id))
        guard let reply else { return }
        wait(for: entries, applied, reply)
    }

    /// The definitions of all apps in the new configuration, in the form for the lifecycle coordinator.
    private func definitions(_ applied: Apply, _ chosen: Set<String>) -> [AppChange] {
        let names = Set(applied.new.apps.map(\.name))
        let leaving = apps.filter { !names.contains($0.name) && coordinator.machine($0.id).isAlive }
        return applied.new.apps.map { app in
            var change = AppChange(AppDefinition(app))
            switch app.launch {
            case .foreground: change.launchesNew = true
            case .background: change.launchesNew = false
            case .onDemand: break
            }
            if let id = coordinator.id(of: app.name) {
                change.liveRules = apps[id].specification.taking(liveKeysOf: app).rules
                change.isReplaced = applied.isReplaced(app.name, chosen)
            } else {
                supervisor.persistence.prepare(&change)
                change.follows = leaving.filter { app.takesPlace(of: $0.specification) }.map(\.name)
            }
            return change
        }
    }

    /// Gives the apps their new specifications. A running app gets the values that can change while it runs at once,
    /// and the other values when it ends. Creates and returns the apps that are new.
    private func takeSpecifications(_ specifications: [AppSpecification], living: Set<AppID>) -> [AppRuntime] {
        var new: [AppRuntime] = []
        let known = Dictionary(apps.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
        for specification in specifications {
            guard let id = coordinator.id(of: specification.name) else { continue }
            guard let app = known[specification.name] else {
                let app = AppRuntime(id: id, specification: specification, owner: supervisor)
                apps.append(app)
                supervisor.permissions.added(app)
                supervisor.persistence.recall(app)
                new.append(app)
                continue
            }
            let old = app.specification
            let language = (app.next ?? old).presentation.language
            let digests = (app.outdatedDigest, app.lastLaunchDigest)
            if living.contains(id), !app.wasLaunched(with: specification) {
                app.specification = old.taking(liveKeysOf: specification)
                app.next = app.specification == specification ? nil : specification
            } else {
                setLastLaunched(app, specification)
                app.specification = specification
                (app.next, app.recoveredDigest) = (nil, nil)
            }
            supervisor.specificationChanged(app, from: old)
            if (app.next ?? app.specification).presentation.language != language {
                loop.later { [weak self, weak app] in if let app { self?.supervisor.tellLanguage(app) } }
            }
            // The snapshot in progress was started with the old configuration: stop waiting for it.
            if old.snapshot != app.specification.snapshot, let run = app.snapshotRun {
                loop.later { [weak self, weak app] in
                    if let self, let app, app.snapshotRun === run { self.deliver(.snapshotOver, to: app.id) }
                }
            }
            if digests != (app.outdatedDigest, app.lastLaunchDigest) { record(app) }
        }
        return new
    }

    /// Keeps the specification of the app's last run, or what is known of it, if the app has gone down, and the new one
    /// differs from it in a key for which `--restart` launches the app.
    private func setLastLaunched(_ app: AppRuntime, _ new: AppSpecification) {
        guard app.isLastLaunchRecovered, let digest = app.lastLaunchDigest else {
            app.lastLaunched = lastLaunched(app, new)
            return
        }
        let isPending = coordinator.machine(app.id).isDown && new.launch != .onDemand
        app.recoverLastLaunch(isPending && !new.needsNoRestart(after: digest) ? digest : nil)
    }

    private func lastLaunched(_ app: AppRuntime, _ new: AppSpecification) -> AppSpecification? {
        guard coordinator.machine(app.id).isDown, new.launch != .onDemand else { return nil }
        let last = (app.lastLaunched ?? app.specification).taking(liveKeysOf: new)
        let isOther = last != new && ConfigurationDiff.changes(last, new).contains { $0.effect == .restart }
        return isOther ? last : nil
    }

    // MARK: Telling and waiting

    /// What the apply does to each app that it changes or restarts.
    private func entries(
        _ applied: Apply,
        _ chosen: Set<String>,
        ending: Set<AppID>,
        living: Set<AppID>,
        down: Set<AppID>
    ) -> [Apply.Entry] {
        var entries: [Apply.Entry] = []
        for change in applied.diff.apps {
            guard let id = coordinator.id(of: change.name) else { continue }
            var entry = Apply.Entry(name: change.name, id: id, change: change)
            entry.launch = apps[id].next?.launch ?? apps[id].specification.launch
            entry.isAlive = living.contains(id)
            entry.isDown = down.contains(id)
            entry.isReplaced = applied.isReplaced(change.name, chosen) && entry.mayBeReplaced
            entry.scene = applied.scenes[change.name]
            entry.belongings = applied.belongings[change.name]
            entry.pending = applied.pending[change.name] ?? []
            entry.obstacle = entry.isAlive ? applied.obstacles[change.name] : nil
            let machine = coordinator.machine(id)
            entry.incarnation = machine.incarnation
            // An app that is ending and will be launched again counts as alive, so this condition excludes it.
            if change.kind == .added, entry.launch != .onDemand, machine.goal == .notRunning, !machine.isAlive {
                entry.leftAlone =
                    if !machine.mayRun {
                        "this machine does not own it"
                    } else if machine.failed {
                        "it had failed before"
                    } else {
                        "a user had stopped it before"
                    }
            }
            entries.append(entry)
        }
        let replaced = Set(entries.filter(\.isReplaced).map(\.id))
        let others = apps.filter {
            coordinator.isToEnd($0.id) && !ending.contains($0.id) && !coordinator.isLeaving($0.id)
                && !replaced.contains($0.id)
        }
        let restarted = Set(others.map(\.name) + entries.filter(\.isReplaced).map(\.name))
        for app in others {
            var entry = Apply.Entry(name: app.name, id: app.id, change: nil)
            entry.cause = app.specification.requires.first(where: restarted.contains)
            entry.isAlive = true
            entry.incarnation = coordinator.machine(app.id).incarnation
            entries.append(entry)
        }
        return entries
    }

    private func tell(_ applied: Apply, _ entries: [Apply.Entry], by name: String) {
        for change in applied.diff.supervisor { log.info(Apply.text(change, isPublic: true)) }
        let entries = entries.filter { !$0.isAsBefore }
        for entry in entries {
            let text = entry.text(isWaiting: false)
            note(apps[entry.id], .reconfigured, text: text, reason: name)
        }
        let count = entries.count
        let summary = count == 0 ? "no app has changed" : "\(count) app\(count == 1 ? " has" : "s have") changed"
        note(.configurationRead, text: "the configuration was reloaded: \(summary)", reason: name)
    }

    private func wait(for entries: [Apply.Entry], _ applied: Apply, _ reply: Reply) {
        let isWaiting = applied.request.wait
        var items = entries.map { entry in
            let machine = coordinator.machine(entry.id)
            return PendingCall.Item(
                app: entry.id,
                target: target(of: entry, machine),
                incarnation: machine.incarnation,
                generation: machine.goalGeneration
            )
        }
        for index in items.indices where !isWaiting || items[index].target == .done {
            items[index].result = result(apps[items[index].app], ok: true, "is on its way")
        }
        for (index, entry) in entries.enumerated() {
            if entry.obstacle != nil {
                items[index].result = result(apps[entry.id], ok: false, "runs on as before", "not-launchable")
            } else if items[index].target == .done, entry.hasNewSockets,
                let trouble = supervisor.wakes.sockets.trouble(of: apps[entry.id])
            {
                // Nothing launches the app now, so no launch reports this.
                items[index].result = result(apps[entry.id], ok: false, trouble, "not-launchable")
            }
        }
        let waiter = PendingCall(reply: reply, items: items)
        waiter.endsForFailing = true
        waiter.render = { [weak self] results in
            let results = self?.asTheyAreNow(entries, results) ?? results
            return applied.reply(entries, results, isWaiting: isWaiting).json
        }
        waiter.beforeReply = { [weak self] then in self?.whenPathsAreWatched(then) }
        start(waiter, timeoutMilliseconds: applied.request.timeoutMilliseconds)
    }

    /// The results, but for an app that ended while the apply waited for others, how it is now: it may have been
    /// launched again since.
    private func asTheyAreNow(_ entries: [Apply.Entry], _ results: [VerbResult]) -> [VerbResult] {
        zip(entries, results).map { entry, result in
            guard !result.ok, result.error.flatMap({ TerminationReason(rawValue: $0) }) != nil,
                coordinator.id(of: entry.name) == entry.id
            else { return result }
            let (app, machine) = (apps[entry.id], coordinator.machine(entry.id))
            if machine.isAlive, machine.goal != .notRunning, isAtGoal(machine) {
                return self.result(app, ok: true, "is \(machine.state.rawValue)")
            }
            guard let ending = app.lastEnding else { return result }
            let isLaunching = machine.isAlive && machine.transition == .launching
            let text =
                isLaunching
                ? "ended\(app.lastExit.map { " (\($0.sentence))" } ?? ""), and is being launched again" : ending.text
            return self.result(app, ok: false, text, ending.ending.reason.rawValue)
        }
    }

    /// Calls `then` once the `paths` of apps are watched: a file that the client writes after the reply wakes its app.
    private func whenPathsAreWatched(_ then: @escaping () -> Void) {
        guard let paths = supervisor.wakes.pathSource else { return then() }
        paths.whenComplete(within: Self.watchPatience, then)
    }

    /// How long an apply waits until paths are watched, which a disk or a directory service may delay.
    private static let watchPatience = Duration.milliseconds(
        ThisProcess.environment("TORPOR_TEST_WATCH_PATIENCE_MS").flatMap { Int64($0) } ?? 2_000
    )

    private func target(of entry: Apply.Entry, _ machine: AppMachine) -> PendingCall.Target {
        switch entry.change?.kind {
        case .removed: return entry.isAlive ? .gone : .done
        case .changed where !entry.isReplaced: return .done
        case .changed where entry.isAlive: return .newIncarnation(after: entry.incarnation ?? machine.incarnation)
        case .added, .changed:
            if entry.leftAlone != nil { return .done }
            switch entry.launch {
            case .foreground: return .goal(machine.goal == .notRunning ? .active : machine.goal)
            case .background: return .goal(machine.goal == .notRunning ? .background : machine.goal)
            case .onDemand: return .done
            }
        case nil: return .newIncarnation(after: entry.incarnation ?? machine.incarnation)
        }
    }
}
