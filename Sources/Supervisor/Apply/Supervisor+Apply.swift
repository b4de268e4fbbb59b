// SPDX-License-Identifier: Apache-2.0

import Configuration
import EventLoop
import Lifecycle
import Linux
import Notify
import Output
import Processes
import Store
import SystemPackage
import TorporAPI
import Varlink
import VarlinkServer

/// Going by another configuration: what changed is touched, nothing else.
///
/// The files are read beside the loop. From then on an apply is one step: what was read is compared with what runs, and
/// the core takes the new definitions, before anything else happens. So applies never overlap; what one caused may still
/// be under way when the next one comes, and whoever waited for the first is told that its apps were asked for something
/// else.
extension Supervisor {
    /// What the core has to know of an app.
    static func definition(_ app: AppSpecification) -> AppDefinition {
        AppDefinition(
            name: app.name,
            rules: app.rules,
            requires: app.requires,
            after: app.after,
            launchesIntoForeground: app.launch == .foreground,
            needsMemory: app.memoryNeeded != nil
        )
    }

    /// Carries out an apply and answers it; without a reply it was a SIGHUP, and the log has the answer. `name`: who
    /// asks for it, as history has it.
    func apply(_ request: ApplyRequest, by name: String, _ reply: Reply?) {
        guard isStarted else {
            let waits = VerbProgress(
                app: "torpord",
                state: "starting",
                text: "waits until what an earlier torpord left is gone"
            )
            if reply?.more == true { reply?.send(waits.json, continues: true) }
            afterStart.append { [weak self] in self?.apply(request, by: name, reply) }
            return
        }
        if let refusal = applyRefusal {
            log.warning("the configuration is not read again: \(refusal)")
            reply.map { fail($0, refusal) }
            return
        }
        if !request.diff { service.reload() }
        configurationReads.ask(ConfigurationPlace(configuration.sources)) { [weak self] result in
            guard let self else { return }
            let trouble = self.apply(request, result, by: name, reply)
            if !request.diff {
                self.recovery.readsConfiguration = false
                self.service.reloaded(trouble: trouble)
            }
            self.restSoon()
        }
    }

    /// Goes by what was read; gives in half a sentence why nothing is changed.
    private func apply(
        _ request: ApplyRequest,
        _ result: Result<(configuration: TorporConfiguration, accounts: NamedAccounts), DiagnosticList>,
        by name: String,
        _ reply: Reply?
    ) -> String? {
        // It may have come while the files were read.
        if let refusal = applyRefusal {
            log.warning("the configuration that was read again is not taken: \(refusal)")
            reply.map { fail($0, refusal) }
            return refusal
        }
        switch result {
        case .failure(let list):
            refuse(list, by: name, reply)
            if !request.diff { recovery.isDiskInvalid = true }
            return Self.diskIsInvalid
        case .success(let new):
            do throws(Selection.Unknown) {
                let outdated = Set(apps.filter(\.isOutdatedSinceRecovery).map(\.name))
                let applied = Apply(request, from: runningConfiguration, to: new.configuration, outdated: outdated)
                let chosen = try applied.chosen()
                if request.diff {
                    let living = Set(apps.filter { coordinator.machine($0.id).isAlive }.map(\.name))
                    reply?.send(applied.preview(chosen, living: living).json)
                } else {
                    recovery.isDiskInvalid = false
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

    /// Why no other configuration can be taken now, in a sentence.
    private var applyRefusal: String? {
        if isEnding || coordinator.isShuttingDown {
            return "torpord is shutting down, and no app is launched any more: start it again to have it read the files"
        }
        if isUpgrading { return "an upgrade is under way: ask again when it is done" }
        if isKeeperLost { return "torpor-keeper is gone, and torpord ends" }
        return nil
    }

    /// The configuration in force, with every app as it goes by it: one that runs may have older values.
    private var runningConfiguration: TorporConfiguration {
        var running = configuration
        running.apps = apps.filter { !coordinator.isLeaving($0.id) }.map(\.specification)
        return running
    }

    /// In half a sentence.
    static let diskIsInvalid = "the configuration on disk is not valid, the one before stays in force"

    /// The supervisor begins with the configuration that was in force last, since the one on disk is not valid.
    func tellInvalid(_ list: DiagnosticList) {
        recovery.isDiskInvalid = true
        note(
            .configurationInvalid,
            text:
                "the configuration on disk is not valid: the apps are launched as the last valid one says, until ‘torpor "
                + "apply’ finds one that is",
            reason: "the start"
        )
        for diagnostic in list.diagnostics { log.error(diagnostic.description) }
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
        // What comes back is new: what a person wanted of the old one is over.
        for app in apps where coordinator.isLeaving(app.id) { app.kept.goalOfPerson = nil }
        let ending = Set(apps.filter { coordinator.isToEnd($0.id) }.map(\.id))
        let actions: [AppAction]
        do throws(DependencyError) {
            actions = try coordinator.reconfigure(definitions(applied, chosen), now: loop.now)
        } catch {
            // The loader has looked for this already.
            log.error("the configuration is not applied: \(error)")
            reply.map { fail($0, "\(error)") }
            return
        }
        let kept = applied.new.keepingDirectories(of: configuration)
        mainChanges(to: kept.supervisor.main)
        configuration = kept
        accounts = named
        log.level = kept.supervisor.logLevel
        store.setRetention(Retention(kept.supervisor))
        configurationChanged(kept.sources)
        for warning in kept.warnings { log.warning(warning.description) }
        takeSpecifications(applied.new.apps, living: living)
        // Before what follows is decided, and recorded of these apps too.
        writeAhead(actions)
        // An app that was removed and does not run is forgotten by the first step after this.
        let entries = entries(applied, chosen, ending: ending, living: living)
        tell(applied, entries, by: name)
        govern()
        interruptions.follow(kept.supervisor)
        memoryWatch.configure()
        wakes.configure()
        interruptions.coverAll()
        for entry in entries { lastEndings[entry.id] = nil }
        uninterrupted { [weak self] in self?.performWritten(actions) }
        guard let reply else { return }
        wait(for: entries, applied, reply)
    }

    /// Every app of the new configuration, as the core takes it.
    private func definitions(_ applied: Apply, _ chosen: Set<String>) -> [AppChange] {
        applied.new.apps.map { app in
            var change = AppChange(Self.definition(app))
            switch app.launch {
            case .foreground: change.launchesNew = true
            case .background: change.launchesNew = false
            case .onDemand: break
            }
            if let id = coordinator.id(of: app.name) {
                change.liveRules = apps[id].specification.taking(liveKeysOf: app).rules
                change.isReplaced = applied.isReplaced(app.name, chosen)
            }
            return change
        }
    }

    private func takeSpecifications(_ specifications: [AppSpecification], living: Set<AppID>) {
        let known = Dictionary(apps.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
        for specification in specifications {
            guard let id = coordinator.id(of: specification.name) else { continue }
            guard let app = known[specification.name] else {
                apps.append(AppRuntime(id: id, specification: specification, supervisor: self))
                continue
            }
            let old = app.specification
            let wasOutdated = app.isOutdated
            if living.contains(id) {
                app.specification = old.taking(liveKeysOf: specification)
                app.next = app.specification == specification ? nil : specification
            } else {
                app.specification = specification
                app.next = nil
            }
            specificationChanged(app, from: old)
            // One that is being taken is of the configuration that was.
            if old.snapshot != app.specification.snapshot, let run = app.snapshotRun {
                loop.later { [weak self, weak app] in
                    if let self, let app, app.snapshotRun === run { self.deliver(.snapshotOver, to: app.id) }
                }
            }
            if app.isOutdated != wasOutdated { record(app) }
        }
    }

    /// The incarnation is over: the next one goes by what the configuration says.
    func takeNextSpecification(_ app: AppRuntime) {
        app.isOutdatedSinceRecovery = false
        guard let next = app.next else { return }
        let old = app.specification
        app.specification = next
        app.next = nil
        specificationChanged(app, from: old)
    }

    /// Brings what was made for an app into line with its specification.
    private func specificationChanged(_ app: AppRuntime, from old: AppSpecification) {
        app.capture?.log?.limits = LogLimits(app.specification)
        if app.specification.appLimits != old.appLimits { limitsChanged(app, from: old.appLimits) }
        if app.specification.resources != old.resources { profilesChanged(app) }
    }

    /// A configuration is in force from now on. What it was read from must be where the next torpord finds it before
    /// anything is done about it: a torpord that dies in between is followed by one that finishes the apply, since it
    /// launches what has no record yet and ends what its configuration does not name.
    func configurationChanged(_ sources: ConfigurationSources) {
        keepConfiguration()
        keepForNextBoot()
    }

    // MARK: Telling and waiting

    /// What happens to each app that is touched.
    private func entries(
        _ applied: Apply,
        _ chosen: Set<String>,
        ending: Set<AppID>,
        living: Set<AppID>
    ) -> [Apply.Entry] {
        var entries: [Apply.Entry] = []
        for change in applied.diff.apps {
            guard let id = coordinator.id(of: change.name) else { continue }
            var entry = Apply.Entry(name: change.name, id: id, change: change)
            entry.isReplaced = applied.isReplaced(change.name, chosen) && living.contains(id)
            entry.isAlive = living.contains(id)
            entry.incarnation = coordinator.machine(id).incarnation
            entry.launch = apps[id].next?.launch ?? apps[id].specification.launch
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
        for entry in entries {
            let text = entry.text(isWaiting: false, isPublic: true)
            note(apps[entry.id], .reconfigured, text: text, reason: name)
        }
        let count = entries.count
        let summary = count == 0 ? "no app has changed" : "\(count) app\(count == 1 ? " has" : "s have") changed"
        note(.configurationRead, text: "the configuration was read again: \(summary)", reason: name)
    }

    private func wait(for entries: [Apply.Entry], _ applied: Apply, _ reply: Reply) {
        let isWaiting = applied.request.wait
        var items = entries.map { entry in
            let machine = coordinator.machine(entry.id)
            return Waiter.Item(
                app: entry.id,
                target: target(of: entry, machine),
                incarnation: machine.incarnation,
                generation: machine.goalGeneration
            )
        }
        for index in items.indices where !isWaiting || items[index].target == .done {
            items[index].result = result(apps[items[index].app], ok: true, "is on its way")
        }
        let waiter = Waiter(reply: reply, items: items)
        waiter.render = { results in applied.reply(entries, results, isWaiting: isWaiting).json }
        start(waiter, timeoutMilliseconds: applied.request.timeoutMilliseconds)
    }

    private func target(of entry: Apply.Entry, _ machine: AppMachine) -> Waiter.Target {
        switch entry.change?.kind {
        case .removed: return entry.isAlive ? .gone : .done
        case .added:
            switch entry.launch {
            case .foreground: return .goal(.active)
            case .background: return .goal(.background)
            case .onDemand: return .done
            }
        case .changed where !entry.isReplaced: return .done
        case .changed, nil: return .newIncarnation(after: entry.incarnation ?? machine.incarnation)
        }
    }
}
