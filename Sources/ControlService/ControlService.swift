// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
package import Engine
import EventLoop
import EventSources
import Lifecycle
package import Linux
import MemoryPressure
import Output
import Permissions
import Processes
package import Supervisor
import SystemPackage
import TorporAPI
import Varlink
package import VarlinkServer

/// Serves the clients of the Varlink interface `io.torpor.Manager`. It uses all other parts of the supervisor; none of
/// them uses it.
package final class ControlService: ShellRoom, ClientService {
    package unowned(unsafe) let supervisor: Supervisor
    package var engine: Engine { supervisor.engine }
    private(set) var server: VarlinkServer?
    /// Calls that wait until their apps have reached a state.
    var pendingCalls: [PendingCall] = []
    /// Reads the configuration's files again. Requests that come before a read begins share its result.
    let configurationReads: CoalescingReader<ConfigurationPlace, ConfigurationRead>
    let configurationComparison: ConfigurationComparison
    /// Finds out, on a background thread, why apps could not be launched with a new configuration.
    let launchObstacles: BackgroundWorker
    /// Finds out, on a background thread, which apps have other files of variables than at their launch.
    let environmentReads: CoalescingReader<[String: EnvironmentAtLaunch], Set<String>>
    /// Finds out, on a background thread, which files of the configuration every user can change.
    let exposureReads: CoalescingReader<ConfigurationSources, [DoctorCheck]>
    /// How many configurations were applied. Code that waits compares the number before and after the wait, to detect
    /// that another configuration was applied.
    var appliedCount = 0
    /// Reads icon files on a background thread, so that the event loop does not wait for a disk.
    let iconReads: BackgroundWorker
    let desktopSync: DesktopSync

    /// - Parameter supervisor: must outlive this object.
    package init(_ supervisor: Supervisor) {
        self.supervisor = supervisor
        configurationReads = CoalescingReader(
            supervisor.loop,
            named: "configuration",
            joining: { (question: inout ConfigurationPlace, other: ConfigurationPlace) in question.join(other) },
            { $0.read() }
        )
        configurationComparison = ConfigurationComparison(supervisor.loop)
        launchObstacles = BackgroundWorker(supervisor.loop, named: "obstacles")
        environmentReads = CoalescingReader(
            supervisor.loop,
            named: "environments",
            joining: { (question: inout [String: EnvironmentAtLaunch], newer: [String: EnvironmentAtLaunch]) in
                question.merge(newer) { $1 }
            },
            { EnvironmentAtLaunch.changed($0) }
        )
        exposureReads = CoalescingReader(
            supervisor.loop,
            named: "exposures",
            joining: { (question: inout ConfigurationSources, newer: ConfigurationSources) in question = newer },
            { Doctor.exposures($0) }
        )
        iconReads = BackgroundWorker(supervisor.loop, named: "icons", isInOrder: false)
        desktopSync = DesktopSync(supervisor)
    }

    /// Called when the app was removed: fails the calls that wait for the app, ends the streams of its log, and removes
    /// its desktop entry, which stayed as long as the app was listed.
    package func forget(_ app: AppRuntime) {
        endWaiting(for: app)
        desktopSync.configure()
        for follower in app.outputFollowers { (follower as? LogFollower)?.end() }
        app.outputFollowers = []
    }

    package var listener: Descriptor? { server?.listener }

    package func listenAgain() throws(VarlinkServerError) { try server?.listenAgain() }

    package func apply(by asker: String) { apply(ApplyRequest(), by: asker, nil) }

    package func close(leavingSocket: Bool) { server?.close(leavingSocket: leavingSocket) }

    /// Accepts clients from now on.
    ///
    /// - Parameter held: the listening socket of an earlier torpord; nil if there is none. It is used only if it is
    ///   still bound to the path, because otherwise no client could connect to it.
    package func listen(taking held: Descriptor?) throws(VarlinkServerError) {
        let path = supervisor.runtime.socket
        var limits = VarlinkServer.Limits()
        // Limit connections, so that clients do not use up the file descriptors that torpord needs to launch apps.
        let files = (try? ThisProcess.limit(NotifySockets.openFiles).soft) ?? 1024
        limits.connections = min(limits.connections, max(64, Int(clamping: files / 4)))
        let server = try VarlinkServer(
            loop: loop,
            path: path,
            taking: held != nil && VarlinkServer.isBound(path: path) ? held : nil,
            info: Supervisor.serviceInfo,
            interfaces: [VarlinkInterface(name: ManagerInterface.name, description: ManagerInterface.description)],
            limits: limits
        )
        server.refusal = { [weak self] peer in self?.refusalError(for: peer) }
        server.secondDecision = { [weak self] peer, decide in self?.decideAgain(about: peer, decide) }
        server.discard = { [weak self] connection, uid in self?.supervisor.discard(connection, of: uid) }
        server.handler = { [weak self] call, peer, reply in self?.serve(call, peer, reply) }
        self.server = server
    }

    private func serve(_ call: VarlinkCall, _ peer: Peer, _ reply: Reply) {
        do throws(FieldError) {
            guard let request = try ManagerRequest(call: call) else {
                return reply.fail(VarlinkErrorName.methodNotFound, ["method": .string(call.method)])
            }
            let inForce = supervisor.inForce
            guard inForce.accounts.authority.refusal(of: request, to: peer) != nil else {
                return answer(request, peer, reply)
            }
            inForce.renewAuthority { [weak self] in
                if let refusal = inForce.accounts.authority.refusal(of: request, to: peer) {
                    return reply.fail(ManagerInterface.ErrorName.notPermitted, ["message": .string(refusal)])
                }
                self?.answer(request, peer, reply)
            }
        } catch {
            reply.fail(error)
        }
    }

    private func answer(_ request: ManagerRequest, _ peer: Peer, _ reply: Reply) {
        let selection = selection
        do throws(Selection.Unknown) {
            switch request {
            case .list:
                sampleUsage()
                send(list: apps.all, templates: templates, reply)
            case .listOf(let patterns):
                let chosen = try selection.resolve(patterns)
                sampleUsage()
                send(list: chosen, templates: [], reply)
            case .status(let name): sendStatus(of: try selection.one(name), reply)
            case .verb(let verb):
                if let state = verb.state, AppState(rawValue: state) == nil {
                    let names = AppState.allCases.map(\.rawValue).joined(separator: ", ")
                    return reply.fail("there is no state \(state): choose one of \(names)")
                }
                if carryOutInside(verb, for: peer, reply) { return }
                let chosen = try selection.resolve(verb.apps)
                if verb.verb == .discard { return discard(verb, chosen, for: peer, reply) }
                let applicable = chosen.filter { applies(verb, to: $0) }
                if verb.verb == .restart { return restart(verb, applicable, for: peer, reply) }
                carryOut(verb, applicable, for: peer, reply)
            case .openScene(let request): openScene(request, for: peer, reply)
            case .scenes(let template): try scenes(of: template, reply)
            case .apply(let request): apply(request, by: Self.name(of: peer), reply)
            case .signal(let name, let signal, let token): send(signal, to: try selection.resolve([name]), token, reply)
            case .post(let request): try post(request, for: peer, reply)
            case .open(let request): try open(request, for: peer, reply)
            case .handlers(let request): handlers(of: request, reply)
            case .activities(let name): try activities(of: name, reply)
            case .continueActivity(let request): try continueActivity(request, for: peer, reply)
            case .mailbox(let request):
                let app = try selection.one(request.app)
                supervisor.persistence.whenLoaded { [self] in
                    reply.send(supervisor.mailboxes.mailbox(request, of: app, by: Self.name(of: peer)).json)
                }
            case .unhandled(let request): try unhandled(request, reply)
            case .replayUnhandled(let request): try replay(request, by: Self.name(of: peer), reply)
            case .dropUnhandled(let request): try drop(request, by: Self.name(of: peer), reply)
            case .transfers(let request): try transfers(request, reply)
            case .cancelTransfers(let request): try cancel(request, by: Self.name(of: peer), reply)
            case .scheduleAlert(let request): try schedule(request, reply)
            case .alerts(let request): try alerts(request, reply)
            case .cancelAlerts(let request): try cancel(request, reply)
            case .answerAlert(let request): try answer(request, by: Self.name(of: peer), reply)
            case .setBadge(let name, let count): setBadge(count, of: try selection.one(name), reply)
            case .data(let names): data(of: names, reply)
            case .purgeData(let request): purge(request, by: Self.name(of: peer), reply)
            case .permissions(let patterns):
                try permissions(of: patterns.isEmpty ? selection.apps : selection.resolve(patterns), reply)
            case .answerPermissions(let request):
                try answer(request, by: Self.name(of: peer), reply)
            case .protection:
                supervisor.protection.lookAgain()
                reply.send(["apps": .array(supervisor.protection.infos.map(\.json))])
            case .lockData: lockData(by: Self.name(of: peer), reply)
            case .unlockData: unlockData(by: Self.name(of: peer), reply)
            case .settings(let name):
                let app = try selection.one(name)
                supervisor.persistence.whenLoaded { [self] in
                    reply.send(["settings": .array(supervisor.settings.infos(of: app).map(\.json))])
                }
            case .setSettings(let request):
                let app = try selection.one(request.app)
                supervisor.settings.set(request, of: app, by: Self.name(of: peer)) { outcome in
                    switch outcome {
                    case .success(let result): reply.send(result.json)
                    case .failure(let refusal): reply.fail("\(refusal)")
                    }
                }
            case .logs(let request):
                do throws(Selection.Unknown) {
                    logs(request, try selection.one(request.app), reply)
                } catch {
                    guard sendLeftLog(request, reply) else { throw error }
                }
            case .events(let request):
                History(supervisor, request, reply).begin()
            case .reports(let name): try reports(of: name, reply)
            case .exportState(let name, let offset):
                if let (app, session) = supervisor.innerScenes.scene(named: name) {
                    return exportState(of: app, scene: session.name, at: offset, for: peer, reply)
                }
                exportState(of: try selection.one(name), at: offset, for: peer, reply)
            case .importState(let request):
                if let (app, session) = supervisor.innerScenes.scene(named: request.app) {
                    return importState(request, of: session, inside: app, reply)
                }
                importState(request, of: try selection.one(request.app), reply)
            case .owners: owners(reply)
            case .snapshot(let name, let offset):
                if let (app, session) = supervisor.innerScenes.scene(named: name) {
                    return supervisor.snapshots.sendSnapshot(of: app, scene: session.name, at: offset, reply)
                }
                supervisor.snapshots.sendSnapshot(of: try selection.one(name), at: offset, reply)
            case .icon(let name, let variant): sendIcon(of: try selection.one(name), variant, reply)
            case .desktopApps: reply.send(Replies.desktopApps(desktopApps))
            case .doctor: doctor(reply)
            case .policies: policies(reply)
            case .reloadPolicy(let name): reloadPolicy(name, reply)
            case .evictionOrder: evictionOrder(reply)
            case .memory: supervisor.memoryWatch.report { reply.send(Replies.memory($0)) }
            case .timers(let patterns): try timers(patterns.isEmpty ? nil : patterns, reply)
            case .recordPolicies(let request): recordPolicies(request, reply)
            case .graph: reply.send(Replies.graph(graph))
            case .metrics: reply.send(Replies.metrics(metrics))
            case .describe: describe(reply)
            case .upgrade: upgrade(reply)
            }
        } catch {
            if error.problem == nil, let hint = sceneHint(error.name) { return reply.fail(hint) }
            reply.fail(error)
        }
    }

    package func timers(_ patterns: [String]?, _ reply: Reply) throws(Selection.Unknown) {
        let chosen = try patterns.map { patterns throws(Selection.Unknown) in try selection.resolve(patterns) }
        reply.send(Replies.timers(supervisor.wakes.timers.statuses(of: chosen ?? selection.apps)))
    }

    /// Starts the next torpord and replies whether it started, before this torpord exits.
    func upgrade(_ reply: Reply) {
        supervisor.upgrades.begin { sentence in
            reply.send(UpgradeReply(ok: sentence == nil, message: sentence ?? "the next torpord is started").json)
        }
    }

    // MARK: Views

    var info: SupervisorInfo {
        var info = SupervisorInfo(
            version: Supervisor.version,
            instance: Int64(supervisor.keeper.instance),
            pid: ThisProcess.pid,
            apps: Int64(apps.count),
            phase: supervisor.isEnding ? "ending" : supervisor.service.isReady ? "running" : "starting",
            upgradeFailure: supervisor.keeper.isFallback
                ? "the torpord on disk did not start, so the previous one continues: see its log" : nil,
            configurationFailure: supervisor.recovery.isDiskInvalid ? Supervisor.diskIsInvalid : nil
        )
        info.troubles = [supervisor.persistence.trouble, supervisor.persistence.losses.sentence].compactMap(\.self)
        for app in apps {
            guard let log = app.capture?.log else { continue }
            if let error = log.failure {
                info.troubles.append("the log of \(app.name) cannot be written: \(error); its output is dropped")
            } else if let error = log.rotationFailure {
                info.troubles.append("the log of \(app.name) cannot be rotated: \(error); it keeps growing")
            }
        }
        return info
    }

    private var graph: [GraphNode] {
        apps.map { app in
            let machine = coordinator.machine(app.id)
            return GraphNode(
                app: app.name,
                state: machine.state.rawValue,
                failed: machine.failed,
                requires: app.specification.requires,
                after: app.specification.after
            )
        }
    }

    func status(_ app: AppRuntime) -> AppStatus {
        let run = app.run
        if let tree = run.tree, run.usage.processes < Self.mostProcesses || Self.isUsageOld(run, loop.now) {
            (app.run.usage, app.run.sampledAt) = (tree.usage(), loop.now)
        }
        supervisor.processControl.checkStillSuspended(app)
        inspectStop(app)
        let machine = coordinator.machine(app.id)
        let specification = app.specification
        let now = loop.now
        var status = AppStatus(summary: summary(app))
        forecast(app, in: &status)
        status.memoryLimit = specification.memoryLimit.map(Int64.init(clamping:))
        status.countedMemory = countedMemory(of: app)
        status.exec = specification.exec
        status.container = supervisor.launcher.containers.info(of: app)
        status.sandbox = sandbox(of: app)
        status.protection = supervisor.protection.info(of: app)
        let processes = app.run.tree?.processes(atMost: Self.mostProcesses) ?? (stats: [], leftOut: 0)
        status.sleep = sleep(of: app, status.summary, processes)
        status.health = specification.check.map {
            HealthInfo(check: $0.text, isKnown: app.run.health?.isKnown ?? false)
        }
        status.ready = specification.readiness.text
        status.requires = specification.requires
        status.after = specification.after
        status.requiredBy = coordinator.dependents(app.id).map { apps[$0].name }
        status.mailbox = Int64(supervisor.mailboxes.waiting(for: app).count)
        status.unhandled = Int64(supervisor.mailboxes.unhandled.count(of: app))
        status.work = supervisor.work(of: app)
        status.transfers = Int64(supervisor.transfers.count(of: app))
        status.dataFolder = supervisor.dataFolders.folder(of: app)
        addBundle(of: app, to: &status)
        status.unfitSettings = supervisor.settings.unfit(of: app)
        status.watchdogMilliseconds = specification.rules.watchdog.map { $0.microseconds / 1000 }
        status.deadlines = machine.deadlines.map { deadline in
            DeadlineInfo(
                name: deadline.kind.rawValue,
                limitMilliseconds: (deadline.at - deadline.started).microseconds / 1000,
                remainingMilliseconds: machine.isTraced ? nil : max(0, (deadline.at - now).microseconds / 1000)
            )
        }
        status.traced = machine.isTraced
        status.outdated = machine.isAlive && app.isOutdated
        let archives = supervisor.savedStates.archives(of: app)
        status.archive = archives.found.map(ArchiveInfo.init)
        status.archivesAside = archives.foundAside.map(ArchiveInfo.init)
        status.snapshot = supervisor.snapshots.found(of: app)
        status.sockets = supervisor.wakes.sockets.sockets(of: app).map(\.info)
        status.announcements = announcements(of: app)
        status.cgroup = app.run.tree?.cgroupPath
        let profile = supervisor.shares.profileText(app)
        status.profile = profile.state?.rawValue
        status.profileDone = profile.done
        status.profileMissing = profile.missing
        if let tree = app.run.tree {
            status.processes = processes.stats.map(Self.processInfo)
            if processes.leftOut > 0 { status.processesLeftOut = Int64(processes.leftOut) }
            status.stopped =
                machine.state != .suspended && status.processes.first { $0.pid == tree.addressee.pid }?.state == "T"
        }
        switch specification.log {
        case .file:
            app.capture?.drain()
            let lines = LogReader(path: supervisor.launcher.logPath(of: app)).read(LogQuery(count: 10)).lines
            status.log = lines.map { $0.shortened(to: Report.longestText) }
        case .journal: status.journal = JournalPlace(of: app, supervisor.place.cgroups)
        case .inherit, .null: break
        }
        status.reports = app.reports.reversed()
        if app.run.tree != nil { status.launch = LaunchTimes(app.run.timeline) }
        return status
    }

    /// The maximum number of processes in a status, and the maximum length of their command lines in bytes, also as
    /// JSON: an app's own processes determine both.
    private static let mostProcesses = 500
    private static let longestCommand = 4_096

    private static func processInfo(_ stat: ProcessStat) -> ProcessInfo {
        var words = (try? ProcFS.cmdline(stat.pid, limit: longestCommand)) ?? []
        // Of the arguments of torpor-container and conmon, show only the container's name.
        if words.count == 7, words[0] == "torpor-container" { words = ["torpor-container", words[2]] }
        if stat.comm == "conmon", let name = words.firstIndex(of: "-n"), name + 1 < words.count {
            words = ["conmon", words[name + 1]]
        }
        return ProcessInfo(
            pid: stat.pid,
            parent: stat.parent,
            state: String(stat.state),
            command: (words.isEmpty ? stat.comm : words.joined(separator: " ")).shortened(toSerialised: longestCommand),
            threads: Int64(stat.threads)
        )
    }
}
