// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Notify
import Output
import Processes
import Recovery
import Store
import TorporAPI
import VarlinkServer

/// Continues the work of an earlier torpord from wherever it stopped. The recovery file contains what that torpord
/// knew; torpor-keeper's table, pidfds and /proc show what exists now.
///
/// The order is: state machines and their processes; sockets and FIFOs, with the data that waits in them; exits that no
/// torpord has handled; unfinished launches; actions that were decided but perhaps not carried out. Only after that
/// does the event loop check deadlines.
final class Takeover: ShellRoom {
    unowned(unsafe) let supervisor: Supervisor
    /// Set when the takeover is complete. From then on, torpord must not look up users on this thread, because a lookup
    /// may block.
    var isOver = false
    /// Orphans of an earlier torpord that are being ended.
    var leftOver: [OrphanApp] = []
    var leftOverTimer: TimerSource?
    var leftOverGone: (() -> Void)?
    /// The slots in the recovery file of removed apps whose processes are being ended, by the names of the apps. They are
    /// freed only then: if torpord dies before, the next one must search for these processes.
    var slotsOfRemoved: [String: Int] = [:]
    /// The commands that an earlier torpord has launched (``OutlivingCommand``) and that run, by app.
    private(set) var commandsLeft: [String: [OrphanedProcess]] = [:]
    /// The apps of which helper commands of an earlier torpord were killed.
    var appsWithEndedHelpers: Set<String> = []
    /// What is beside the apps' cgroups (``CgroupTree/entries()``), if the earlier torpord had all of them in the place
    /// that this torpord uses; otherwise empty.
    private var cgroupsFound: Set<String> = []

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    /// What remains to be done for an app once everything is restored.
    private enum Unfinished {
        /// The app's launch was not complete. Its process exists, and was launched by this torpor-keeper (`isOurs`) or
        /// an earlier one.
        case launched(Launched, isOurs: Bool)
        /// The app's launch was not complete, and torpor-keeper will report its result.
        case launching
        /// The app's launch was not complete, and there is no process.
        case nothing
        /// The app's main process has ended, and it is not known how.
        case ended(Identity)

        /// Whether no process of the app is left.
        var isGone: Bool {
            switch self {
            case .launched, .launching: false
            case .nothing, .ended: true
            }
        }
    }

    /// Takes over running apps. Returns the apps without a usable record, which are launched as after a boot.
    func recover() -> [AppRuntime] {
        let began = loop.now
        var left = Dictionary(
            supervisor.keeper.leftOver.map { (AppTag(app: $0.app, incarnation: $0.incarnation), $0) },
            uniquingKeysWith: { $1 }
        )
        let waiting = Set(supervisor.keeper.waitingExits.map { AppTag(app: $0.app, incarnation: $0.incarnation) })
        let tabled = Set(left.keys)
        let known = waiting.union(tabled)
        var strays: [AppTag: [Identity]] = [:]
        var hasSought = false
        /// Finds processes that are missing from torpor-keeper's table because another keeper launched them. Reads all
        /// of /proc, which is slow, so this is done at most once.
        func seekStrays() {
            guard !hasSought else { return }
            hasSought = true
            let found = supervisor.processes.strays(manager: supervisor.runtime.socket)
            for (tag, members) in found.apps {
                let isKnown = coordinator.id(of: tag.app) != nil
                // The exit of a removed app's main process may wait while its other processes live.
                if (isKnown ? known : tabled).contains(tag) { continue }
                // Check the user, because a process of another user can have any tag in its environment. If there is no
                // such app any more, the user is not known; all these processes are then only ended.
                let ours = isKnown ? members.filter { supervisor.processes.mayBe($0.pid, of: tag.app) } : members
                if !ours.isEmpty { strays[tag] = ours }
            }
            endHelpers(found.helpers)
        }
        takeCompanions(&left)
        let commands = left.values.filter { OutlivingCommand(number: $0.incarnation) != nil }
        commandsLeft = Dictionary(grouping: commands, by: \.app)
        if left.isEmpty { seekStrays() }
        if let cgroups = supervisor.place.cgroups, supervisor.recovery.place == cgroups.digest {
            cgroupsFound = cgroups.entries()
        }
        var unfinished: [(app: AppRuntime, incarnation: UInt32, rest: Unfinished)] = []
        var fresh: [AppRuntime] = []
        let entries = Dictionary(supervisor.recovery.entries.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
        for app in apps {
            if let entry = entries[app.name] { app.slot = entry.slot }
            guard let entry = entries[app.name], let memory = entry.record else {
                supervisor.appSockets.forgetLedger(of: app)
                fresh.append(app)
                continue
            }
            var reader = RecordReader(memory)
            guard coordinator.restore(app.id, from: &reader) else {
                log.error("the record of \(app.name) is damaged: it is taken over as /proc shows it")
                fresh.append(app)
                continue
            }
            app.undone = ActionMask(rawValue: entry.undone)
            let tag = AppTag(app: app.name, incarnation: coordinator[app.id].incarnation)
            if coordinator[app.id].isAlive, !known.contains(tag) { seekStrays() }
            var fields = AppRecord(from: &reader)
            fields.amend(entry.amendment)
            coordinator.restoreLater(app.id, from: &reader)
            let channel = ChannelRecord(from: &reader)
            coordinator.restoreWake(app.id, from: &reader)
            coordinator.restoreWait(app.id, from: &reader)
            supervisor.wakes.sockets.restore(app, from: &reader)
            supervisor.appSockets.restoreChannel(of: app, channel)
            let rest = restore(app, fields, &left, &strays, waiting)
            findCommand(of: app, &left)
            // If the earlier torpord has never launched the app, launch it as after a boot.
            let isAlive = coordinator[app.id].isAlive
            if coordinator[app.id].goalGeneration == 0, !isAlive { fresh.append(app) }
            supervisor.endStaleOwnership(of: app, isGone: !isAlive || rest?.isGone ?? false)
            if let rest { unfinished.append((app, coordinator[app.id].incarnation, rest)) }
        }
        // torpor-keeper's table contains only main processes. If an app has no usable record and its main process has
        // ended, the app's other processes are found only in /proc. The first torpord of a keeper has read /proc
        // already (see above), because the table of a new keeper is empty.
        if !fresh.isEmpty, supervisor.keeper.instance > 1 { seekStrays() }
        // The same is true of an app that was removed, and had not ended completely when the earlier torpord died.
        let removed = entries.values.filter { coordinator.id(of: $0.name) == nil }
        if !removed.isEmpty { seekStrays() }
        fresh = adoptFound(fresh, &left, &strays)
        endLeftOver(Array(left.values), strays)
        // Those that are waited for have their pidfds elsewhere, and the others were ended.
        commandsLeft = [:]
        forgetSlots(of: removed)
        let recovered = apps.filter { coordinator[$0.id].isAlive }
        let unheard = recovered.filter { !supervisor.inheritance.has(DescriptorName.notify($0.name)) }.map(\.id)
        for app in apps { takeOver(app) }
        supervisor.keeper.deliverWaiting()
        for id in unheard { hearAfterSilence(apps[id]) }
        for (app, incarnation, rest) in unfinished { finish(app, incarnation, rest) }
        for app in unheard.map({ apps[$0] }) {
            // Call this a second time, because `finish` may have found out only now that the app was launched. The app
            // may have sent READY=1 already.
            takeForReady(app)
            // torpor-keeper must get the socket only now: if it holds the socket, the next torpord concludes that no
            // message was lost.
            if let socket = app.notifySocket { supervisor.hold(DescriptorName.notify(app.name), socket.descriptor.raw) }
        }
        for app in apps where app.undone != [] || coordinator[app.id].isAlive { goOn(app) }
        engine.takeIn(coordinator.carryOn(shuttingDown: supervisor.recovery.isShuttingDown, now: loop.now))
        if leftOver.isEmpty { engine.takeIn(coordinator.orphansAreGone(now: loop.now)) }
        // If an earlier torpord died early in its shutdown, it has ended only some of the apps: end the others too.
        if supervisor.recovery.isShuttingDown { engine.takeIn(coordinator.shutDown(now: loop.now)) }
        supervisor.recovery.keeper = supervisor.keeper.pid
        supervisor.recovery.hasWholeTokens = true
        noteCgroupPlace()
        for name in supervisor.inheritance.remaining {
            supervisor.keeper.release(name)
            // These descriptors belong to apps that are no longer configured. An app may have stored a descriptor whose
            // close blocks, so limit how long the close may take.
            for descriptor in supervisor.inheritance.take(name) { descriptor.closesPromptly = true }
        }
        if supervisor.keeper.instance > 1 || !recovered.isEmpty {
            let time = (loop.now - began).microseconds
            let text = "a new torpord has taken over \(Readable.count(recovered.count, "running app"))"
            note(.tookOver, text: "\(text) in \(time / 1000).\(time / 100 % 10) ms")
        }
        return fresh
    }

    // MARK: Machines and processes

    /// Connects the app's record with the processes that exist. Returns what remains to be done for the app; nil if
    /// nothing does.
    private func restore(
        _ app: AppRuntime,
        _ record: AppRecord,
        _ left: inout [AppTag: OrphanedProcess],
        _ strays: inout [AppTag: [Identity]],
        _ waiting: Set<AppTag>
    ) -> Unfinished? {
        let machine = coordinator.machine(app.id)
        record.restore(app)
        if !supervisor.recovery.hasWholeTokens { app.tokens.areOfEarlierVersion() }
        app.announced = machine.transition
        app.lastState = machine.state
        guard machine.isAlive else {
            if let digest = record.outdatedDigest, !app.specification.needsNoRestart(after: digest) {
                app.recoverLastLaunch(digest)
            }
            return nil
        }
        recorder.restoreTimeline(app, launch: record.launch, states: record.times)
        app.recoveredDigest = record.outdatedDigest
        // If the configuration was changed back while no torpord was running, the app's configuration is not outdated.
        if app.wasLaunched(with: app.specification) { app.recoveredDigest = nil }
        let tag = AppTag(app: app.name, incarnation: machine.incarnation)
        let entry = left.removeValue(forKey: tag)
        let stray = strays.removeValue(forKey: tag)?.first
        guard machine.hasProcess else {
            if let entry { return entry.isLaunching ? .launching : .launched(entry.launched, isOurs: !entry.isAdopted) }
            guard let stray, let pidfd = try? stray.open() else { return .nothing }
            adopt(app, stray, pidfd)
            return .launched(Launched(pid: stray.pid, startTime: stray.startTime, pidfd: pidfd), isOurs: false)
        }
        guard let leader = record.leader ?? entry.map({ Identity(pid: $0.pid, startTime: $0.startTime) }) else {
            return .ended(Identity(pid: 0, startTime: 0))
        }
        var pidfd = entry?.pidfd
        let isUnknown = entry == nil && !waiting.contains(tag)
        if isUnknown {
            // An earlier keeper has launched the process. Find it by a pidfd that was held for it, or else by its pid
            // and start time.
            pidfd = supervisor.inheritance.take(DescriptorName.process(app.name)).first ?? (try? leader.open())
            if let pidfd { adopt(app, leader, pidfd) }
        }
        let cgroup =
            record.hasCgroup
            ? supervisor.place.cgroups?.path(of: app.name, around: leader.pid, known: cgroupsFound) : nil
        app.run.tree = tree(tag, leader, pidfd, cgroup, isOurs: entry.map { !$0.isAdopted } ?? false)
        app.run.tree?.isContainer = record.container != nil
        app.run.profileState = record.profileState
        if let state = record.profileState {
            app.run.tree?.restore(app.specification.profile(in: state))
        } else {
            app.run.tree?.born = Launcher.birthScore(app, machine.launchOrder)
        }
        if let main = record.main, main != leader { app.run.tree?.restoreMain(main) }
        if let cause = machine.exitCause {
            app.run.exitRecord = MainExit(pid: leader.pid, status: Self.status(of: cause))
            return nil
        }
        return pidfd == nil && isUnknown && record.main == leader ? .ended(leader) : nil
    }

    /// The processes of an incarnation (one run of an app). `isOurs`: whether the current torpor-keeper has launched
    /// them. If so, processes of the app whose parent ends become children of this keeper.
    func tree(
        _ tag: AppTag,
        _ main: Identity,
        _ pidfd: Descriptor?,
        _ cgroup: String?,
        isOurs: Bool
    ) -> ProcessTree {
        ProcessTree(
            tag: tag,
            main: main,
            pidfd: pidfd,
            cgroupPath: cgroup,
            table: supervisor.processes,
            adopter: isOurs ? ThisProcess.parent : nil
        )
    }

    private func adopt(_ app: AppRuntime, _ identity: Identity, _ pidfd: Descriptor) {
        let name = app.name
        supervisor.keeper.adopt(
            app: name,
            incarnation: coordinator[app.id].incarnation,
            identity: identity,
            pidfd: pidfd.raw
        ) { [weak self] error in
            if let error, error != .fileExists {
                self?.log.error("the keeper cannot watch process \(identity.pid) of \(name): \(error)")
            }
        }
    }

    /// Adopts apps that run without a usable record, if `orphans` in the configuration permits this. Returns the other
    /// apps.
    private func adoptFound(
        _ unknown: [AppRuntime],
        _ left: inout [AppTag: OrphanedProcess],
        _ strays: inout [AppTag: [Identity]]
    ) -> [AppRuntime] {
        guard supervisor.configuration.supervisor.orphans == .adopt, !supervisor.recovery.endsWhatIsFound else {
            return unknown
        }
        return unknown.filter { app in
            // If this keeper has had an earlier torpord, its table contains every main process, so any other process is
            // an orphan.
            let others = supervisor.keeper.instance > 1 ? [] : strays.keys.filter { $0.app == app.name }
            let mains = left.keys.filter { $0.app == app.name && OutlivingCommand(number: $0.incarnation) == nil }
            let tags = mains + others
            guard let tag = tags.max(by: { $0.incarnation < $1.incarnation }) else { return true }
            let entry = left.removeValue(forKey: tag)
            guard
                let main = entry.map({ Identity(pid: $0.pid, startTime: $0.startTime) })
                    ?? strays.removeValue(forKey: tag)?.first,
                let pidfd = entry?.pidfd ?? (try? main.open()), let stat = try? ProcFS.stat(main.pid)
            else { return true }
            let running: AppState = app.specification.launch == .background ? .background : .active
            let cgroup = supervisor.place.cgroups.map { $0.path(of: app.name, around: main.pid) }.flatMap {
                File.exists($0) ? $0 : nil
            }
            let isFrozen = cgroup.map { Cgroup.isFrozen($0) } ?? false
            let tree = tree(tag, main, pidfd, cgroup, isOurs: entry.map { !$0.isAdopted } ?? false)
            tree.isContainer = app.specification.container != nil
            let first = tree.addressee == main ? stat : (try? ProcFS.stat(tree.addressee.pid)) ?? stat
            let state: AppState = first.state == "T" || isFrozen ? .suspended : running
            coordinator.adopt(app.id, in: state, incarnation: tag.incarnation, now: loop.now)
            if entry == nil { adopt(app, main, pidfd) }
            app.run.tree = tree
            app.run.launchedAt = loop.now
            app.lastState = state
            app.kept.isWithoutRecord = true
            note(app, .adopted, text: "was found running without a record, and is adopted")
            return false
        }
    }

    // MARK: Sockets, FIFOs, stored descriptors

    private func takeOver(_ app: AppRuntime) {
        let isAlive = coordinator[app.id].isAlive
        supervisor.notifySockets.takeStore(app)
        let notify = supervisor.inheritance.take(DescriptorName.notify(app.name)).first
        let channel = supervisor.inheritance.take(DescriptorName.channel(app.name)).first
        let output = supervisor.inheritance.take(DescriptorName.output(app.name)).first
        if isAlive || notify != nil || output != nil { supervisor.launcher.lookUpAccount(of: app) }
        do throws(LaunchError) {
            if isAlive || notify != nil {
                // An inherited socket already has the right owner, so do not fail if the user cannot be looked up now.
                let user =
                    notify == nil
                    ? try supervisor.launcher.identity(of: app) : try? supervisor.launcher.identity(of: app)
                try supervisor.launcher.prepare(app, user, taking: notify, channel: channel, holdsNotify: !isAlive)
            }
            // An app that already writes to its FIFO keeps this FIFO, even if the configuration has changed.
            if output != nil || (isAlive && app.specification.log == .file) {
                _ = try supervisor.launcher.capture(app, taking: output)
            }
        } catch {
            log.error("\(app.name) was taken over without some of its descriptors: \(error)")
        }
    }

    // MARK: What was under way

    private func finish(_ app: AppRuntime, _ incarnation: UInt32, _ rest: Unfinished) {
        let machine = coordinator.machine(app.id)
        // If the app's exit, or the failure of its launch, was handled in between, there is nothing left to do: its
        // next launch may even have begun.
        guard machine.isAlive, machine.incarnation == incarnation else { return }
        switch rest {
        case .launched(let process, let isOurs):
            guard !machine.hasProcess else { break }
            supervisor.launcher.launched(
                app,
                machine.launchOrder,
                .success(process),
                cgroupPath: cgroup(of: app),
                isOurs: isOurs
            )
        case .launching: break
        case .nothing:
            guard !machine.hasProcess else { break }
            if machine.transition == .launching {
                // As in every launch, torpor-keeper must hold the socket first, so that messages of the app wait in the
                // socket if torpord dies before it reads them.
                if let socket = app.notifySocket {
                    supervisor.hold(DescriptorName.notify(app.name), socket.descriptor.raw)
                }
                reportCutOff(.beforeStart, of: app)
                // If this keeper was asked to launch the app and has no process of it, then no process was launched, so
                // launch the app. If another keeper was asked, this is not certain.
                if supervisor.recovery.keeper == supervisor.keeper.pid {
                    supervisor.perform(.launch(machine.launchOrder), of: app)
                } else {
                    perform(coordinator.repeatLaunch(app.id, now: loop.now))
                }
            }
            if machine.transition == .terminating { deliver(.launchFailed, to: app.id) }
        case .ended(let main):
            if app.run.exitRecord == nil { supervisor.mainExited(app, MainExit(pid: main.pid, status: nil)) }
        }
    }

    /// Records for the next torpord whether all apps' cgroups are in the place that this torpord uses. It stays so,
    /// since apps are launched only there.
    private func noteCgroupPlace() {
        cgroupsFound = []
        guard let cgroups = supervisor.place.cgroups else { return }
        let isComplete = apps.allSatisfy { app in
            app.run.tree?.cgroupPath.map { $0.utf8.starts(with: (cgroups.base + "/").utf8) } ?? true
        }
        supervisor.recovery.place = isComplete ? cgroups.digest : 0
    }

    func cgroup(of app: AppRuntime) -> String? {
        supervisor.place.cgroups.map { $0.path(of: app.name) }.flatMap { File.exists($0) ? $0 : nil }
    }

    /// Called when torpor-keeper reports that the program of a launch was executed, if an earlier torpord requested the
    /// launch.
    func launchedForPredecessor(_ name: String, _ incarnation: UInt32, _ process: Launched) {
        guard let id = coordinator.id(of: name) else { return }
        let machine = coordinator.machine(id)
        guard machine.incarnation == incarnation, machine.isAlive, !machine.hasProcess else { return }
        supervisor.launcher.launched(apps[id], machine.launchOrder, .success(process), cgroupPath: cgroup(of: apps[id]))
    }

    /// Called when the app's notify socket was lost together with torpord and torpor-keeper. Messages of the app may
    /// have been lost with the socket, or refused by the kernel while there was no socket, and programs send most
    /// messages only once. So torpord acts as if it had received READY=1 and a heartbeat, or sends the app again the
    /// message whose answer it awaits.
    private func hearAfterSilence(_ app: AppRuntime) {
        deliver(.heartbeat, to: app.id)
        if !takeForReady(app), let message = coordinator[app.id].awaitedMessage {
            app.undone.formUnion(ActionMask(.tell(message)))
        }
    }

    @discardableResult private func takeForReady(_ app: AppRuntime) -> Bool {
        let machine = coordinator.machine(app.id)
        guard machine.transition == .launching, machine.hasProcess, app.specification.isReadyByNotify else {
            return false
        }
        // podman may still be pulling the container's image. If so, wait: torpor-container reports when the container
        // runs.
        guard supervisor.launcher.containers.isRunning(app) != false else { return false }
        note(app, .said, text: "is taken as ready: its READY=1 may have been lost with the torpord that died")
        deliver(.ready, to: app.id)
        return true
    }

    private func goOn(_ app: AppRuntime) {
        supervisor.snapshots.removeDeclinedSnapshot(of: app)
        let machine = coordinator.machine(app.id)
        let undone = app.undone
        app.undone = []
        if undone.contains(.ended), !machine.isAlive { reportEnding(of: app, machine) }
        if app.channel != nil, machine.isAlive { supervisor.appSockets.expectReturn(of: app) }
        if let tree = app.run.tree, tree.main != tree.leader, app.run.exitRecord == nil { supervisor.watchMain(app) }
        for action in machine.actionsToRepeat(undone) {
            if case .launch = action { continue }  // `finish` has repeated the launch.
            supervisor.perform(action, of: app)
        }
        if app.run.exitRecord != nil, machine.transition == .terminating {
            reportCutOff(.afterStop, of: app)
            if undone.contains(.endRemains) {
                supervisor.perform(.endRemains, of: app)
            } else {
                supervisor.processControl.sweep(app)
            }
        }
        if machine.transition == .launching, machine.hasProcess { supervisor.launcher.startProbe(app) }
        if app.run.profileState != nil { supervisor.launcher.containers.watchEnd(of: app) }
        supervisor.shares.checkProfile(app)
        supervisor.shares.watchMemory(app)
        if machine.state == .suspended {
            supervisor.memoryWatch.entered(app, from: .suspended, to: .suspended)
            supervisor.lockWatch.followLocks(app)
            let id = app.id
            loop.later { [weak self] in
                guard let self else { return }
                self.supervisor.processControl.checkStillSuspended(self.apps[id])
            }
        }
        if let slot = app.slot { supervisor.recovery.setUndone(slot, app.undone.rawValue) }
    }

    private static func status(of cause: ExitCause) -> ExitStatus? {
        switch cause {
        case .exited(let code): .exited(code)
        case .signaled(let signal, let coreDumped): .signaled(signal, coreDumped: coreDumped)
        case .outOfMemory, .memoryLimit: .signaled(Signal.kill, coreDumped: false)
        case .unknown: nil
        }
    }
}
