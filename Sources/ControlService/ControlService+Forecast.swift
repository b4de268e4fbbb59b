// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import PolicyHost
import Processes
import Supervisor
import TorporAPI

/// Forecasts for an app's status: what wakes it, and what suspends it.
extension ControlService {
    /// How long the app was suspended in this run, and how much processor time and memory that has saved; nil if the
    /// app does not run.
    func sleep(
        of app: AppRuntime,
        _ summary: AppSummary,
        _ processes: (stats: [ProcessStat], leftOut: Int)
    ) -> SleepInfo? {
        guard let tree = app.run.tree else { return nil }
        let asleep = app.times.asleep(until: loop.now).inSeconds
        return SleepInfo(
            seconds: asleep,
            awake: max(0, (summary.uptime ?? 0) - asleep),
            processor: summary.cpuSeconds ?? 0,
            pagedOut: Int64(clamping: tree.pagedOut(processes))
        )
    }

    /// The app's memory as it counts for its memory limit; nil if it has no limit, or does not run.
    func countedMemory(of app: AppRuntime) -> CountedMemory? {
        guard app.specification.memoryLimit != nil, let tree = app.run.tree else { return nil }
        let usage = app.run.usage
        let bytes = Int64(clamping: usage.memoryBytes)
        if tree.hasMemoryController { return CountedMemory(bytes: bytes, .cgroup) }
        guard usage.processes <= Self.mostShares else { return CountedMemory(bytes: bytes, .resident) }
        return CountedMemory(bytes: Int64(clamping: tree.proportionalMemory()), .proportional)
    }

    /// The maximum number of processes whose shares of memory are read for a status, which takes up to a millisecond
    /// for each.
    private static let mostShares = 32

    /// Adds to the app's status what wakes the app and what suspends it.
    func forecast(_ app: AppRuntime, in status: inout AppStatus) {
        let machine = coordinator.machine(app.id)
        if let since = app.times.all.first(where: { $0.state == machine.state })?.time {
            status.stateSince = Clock.realtimeMicroseconds() - (loop.now - since).microseconds
        }
        status.suspendedBy = suspender(of: machine)
        let listening = listeningAddresses(of: app)
        let connects = app.specification.wakeOnConnect != .none
        if machine.isForceQuit { status.forceQuit = launchesAfterForceQuit(app) }
        let wakers = wakers(of: app, connections: connects ? listening : [])
        let missing = coordinator.failedRequirement(of: app.id).map { "requires \(apps[$0].name), which has failed" }
        if let reason = machine.blocksWaking?.text ?? missing {
            let overriding = machine.blocksWaking == nil ? [] : wakersInSpite(of: machine, app)
            status.wokenBy = wakers.filter(overriding.contains)
            status.notWokenBy = wakers.filter { !overriding.contains($0) }.map { "\($0) (it \(reason))" }
            return
        }
        let silent = unconnected(app)
        status.wokenBy = wakers.filter { silent == nil || $0 != BackgroundMode.voip.rawValue }
        status.notWokenBy = connects ? [] : listening.map { "connections to \($0) (wake_on_connect is not set)" }
        if connects, app.run.tree == nil, listening.isEmpty, !machine.isWaitingToLaunch {
            status.notWokenBy = ["connections (no process has its port until it is launched)"]
        }
        if supervisor.wakes.connectionWatch.listensNowhere(app) {
            status.notWokenBy.append("connections (it listens on no port)")
        }
        if let silent { status.notWokenBy.append("\(BackgroundMode.voip.rawValue) (\(silent))") }
        let unbound = supervisor.wakes.sockets.unbound(of: app)
        let unreached = supervisor.wakes.sockets.unreached(of: app)
        for socket in app.specification.sockets where socket.wake != .none && unbound.contains(socket.identity) {
            let reason = unreached.contains(socket.identity) ? "its file is gone" : "torpord cannot listen there"
            status.notWokenBy.append("connections to \(socket.plan.address) (\(reason))")
        }
        status.notWokenBy += supervisor.wakes.pathSource?.troubles(of: app) ?? []
        if wakers.isEmpty, let manager = supervisor.policyManager, manager.isNeverWoken(app),
            manager.chain.slots.contains(where: { $0.settings.name == "server" })
        {
            let what = coordinator.hasDependents(app.id) ? "clients other than the apps that require it" : "any event"
            status.notWokenBy.append(what + (machine.isAlive ? " (so the policy server leaves it running)" : ""))
        }
    }

    /// Whether no event wakes the app, which is suspended: its status has no ``AppStatus/wokenBy``. Unlike a forecast,
    /// this does not read the app's sockets.
    func isNeverWoken(_ app: AppRuntime, _ machine: AppMachine) -> Bool {
        let wakers = wakers(of: app, connections: [])
        guard machine.blocksWaking != nil else { return wakers.isEmpty }
        let overriding = wakersInSpite(of: machine, app)
        return !wakers.contains(where: overriding.contains)
    }

    /// The events that launch the app in spite of ``AppMachine/blocksWaking``.
    private func wakersInSpite(of machine: AppMachine, _ app: AppRuntime) -> [String] {
        let afterForceQuit = machine.isForceQuit ? app.specification.wakeAfterForceQuit : []
        // Timers launch even an app that was restarted too often (``WakeBlock``), because a timer clears the failed
        // mark.
        guard machine.blocksTimers == nil else { return afterForceQuit }
        return afterForceQuit + app.specification.timers.map { "timer \($0.name)" }
    }

    /// A text that names the events which no longer launch the app because a user stopped it, or the dependents whose
    /// events still do. Nil if no user stopped the app, or if no events would launch it anyway.
    func silencedByStop(_ app: AppRuntime) -> String? {
        guard coordinator.machine(app.id).isStopped else { return nil }
        if let dependents = launchedWithDependents(app) { return dependents }
        let wakers = wakers(of: app, connections: [])
        guard !wakers.isEmpty else { return nil }
        let names = wakers.prefix(3).joined(separator: ", ") + (wakers.count > 3 ? ", …" : "")
        return "nothing launches it until ‘torpor start \(app.name)’, not even \(names)"
    }

    /// What a reset has done, as words that follow the app's name. If a user had stopped the app, names what launches it
    /// from now on.
    func resetText(_ app: AppRuntime, _ machine: AppMachine) -> String {
        guard machine.isRearmed, machine.blocksWaking == nil else { return "was reset" }
        let wakers = wakers(of: app, connections: [])
        let names = wakers.prefix(3).joined(separator: ", ") + (wakers.count > 3 ? ", …" : "")
        let start = app.specification.launch == .onDemand ? "" : "the next start of the supervisor"
        let launchers = [names, start].filter { !$0.isEmpty }.joined(separator: " or ")
        guard !launchers.isEmpty else { return "was reset: no longer counts as stopped" }
        return "was reset: no longer counts as stopped, and is launched by \(launchers)"
    }

    /// A text that names the apps that do not run, and whose events launch an app that a user stopped, because they
    /// require it. Nil if there are none.
    private func launchedWithDependents(_ app: AppRuntime) -> String? {
        var dependents: [AppRuntime] = []
        var seen: Set = [app.id]
        var next = coordinator.dependents(app.id)
        while let other = next.popLast() {
            guard seen.insert(other).inserted else { continue }
            next += coordinator.dependents(other)
            let machine = coordinator.machine(other)
            guard !machine.isAlive, machine.blocksWaking == nil else { continue }
            if !wakers(of: apps[other], connections: []).isEmpty { dependents.append(apps[other]) }
        }
        dependents.sort { $0.id < $1.id }
        guard let first = dependents.first else { return nil }
        let shown = dependents.prefix(3).map { "\($0.name) (\(wakers(of: $0, connections: [])[0]))" }
        let names = shown.joined(separator: ", ") + (dependents.count > 3 ? ", …" : "")
        let verb = "‘torpor stop \(dependents.count > 1 ? "\(first.name) …" : first.name)’"
        return dependents.count > 1
            ? "events that launch \(names), which require it, launch it too: \(verb) prevents that"
            : "an event that launches \(names), which requires it, launches it too: \(verb) prevents that"
    }

    /// The text to add if messages wait for an app that has been suspended; else empty. They woke it, or found it
    /// awake, before a user suspended it, so that only later ones wake it.
    func waitingMail(_ app: AppRuntime, _ machine: AppMachine) -> String {
        let count = machine.state == .suspended ? supervisor.mailboxes.waiting(for: app).count : 0
        guard count > 0 else { return "" }
        return "; \(count) message\(count == 1 ? " waits" : "s wait") in its mailbox until it is woken"
    }

    /// Why no data wakes the app although it has the background mode `voip`: it has no connection. Nil if it has one,
    /// if that is unknown, or if the app does not have the mode.
    private func unconnected(_ app: AppRuntime) -> String? {
        let machine = coordinator.machine(app.id)
        guard app.specification.backgroundModes.contains(.voip) else { return nil }
        if app.run.tree == nil {
            return machine.isWaitingToLaunch ? nil : "it has no connection until it is launched"
        }
        // `keep_alive` belongs to the mode, and wakes the app without a connection.
        guard app.specification.keepAlive == nil, supervisor.wakes.connectionWatch.isUnconnected(app) else {
            return nil
        }
        return "it has no connection"
    }

    /// Whether the app has `restart = "always"` but was evicted, and nothing launches it again: no event, no
    /// connection, and no app that it requires.
    func isStranded(_ app: AppRuntime) -> Bool {
        guard app.wasCutShort == true else { return false }
        let machine = coordinator.machine(app.id)
        guard machine.mayRun, !machine.isAlive, !machine.isWaitingToLaunch, !machine.failed,
            machine.rules.restart == .always, app.specification.wakeOnConnect == .none,
            !coordinator.comesBackWithRequirement(app.id)
        else { return false }
        // Data on a connection wakes an app in the mode voip, but the connections of an app end with its processes.
        return wakers(of: app, connections: []).allSatisfy { $0 == BackgroundMode.voip.rawValue }
    }

    /// A text that names the events which launch the app after a force quit.
    func launchesAfterForceQuit(_ app: AppRuntime) -> String {
        let modes = app.specification.wakeAfterForceQuit
        let allowed = app.specification.backgroundModes.map(\.rawValue).filter(modes.contains).sorted()
        return allowed.isEmpty
            ? "no event launches it again" : "no event launches it again except \(allowed.joined(separator: ", "))"
    }

    /// What will suspend the app; nil if the app is not in the background, or if it is in a transition.
    private func suspender(of machine: AppMachine) -> Suspender? {
        guard machine.state == .background, machine.transition == nil else { return nil }
        if machine.goal == .suspended { return machine.settlesIn && !machine.isHeld ? .launch : .asked }
        if machine.sleepsAgain { return .eventTime }
        return supervisor.policyManager.map(\.chain.slots.isEmpty) ?? true ? .nobody : .policy
    }

    /// What will suspend the app without a user's request, as a sentence; nil if nothing will.
    func suspension(of app: AppRuntime) -> String? {
        let machine = coordinator.machine(app.id)
        // While a debugger is attached, the deadline is paused, so the time until it is unknown.
        let deadline = machine.isTraced ? nil : machine.deadlines.first { $0.kind == .backgroundTime }
        let left = deadline.map { deadline in
            Quantity.text(.seconds(max(1, Int64((deadline.at - loop.now).inSeconds.rounded(.up)))))
        }
        switch suspender(of: machine) {
        case nil, .nobody, .asked: return nil
        case .eventTime, .launch: return "it is suspended " + (left.map { "in \($0)" } ?? "soon")
        case .policy: return "a policy may suspend it" + (left.map { ", in \($0) at the earliest" } ?? "")
        }
    }

    private func wakers(of app: AppRuntime, connections: [String]) -> [String] {
        let specification = app.specification
        let unbound = supervisor.wakes.sockets.unbound(of: app)
        let topics = supervisor.mailboxes.topics(of: app)
        let isDeaf = supervisor.wakes.connectionWatch.listensNowhere(app)
        guard specification.wakeOnConnect != .none, !isDeaf, app.run.tree != nil || !connections.isEmpty else {
            return specification.wakers(exceptAt: unbound, topics: topics)
        }
        return specification.wakers(
            connections: connections.isEmpty ? ["connections"] : connections.map { "connections to \($0)" },
            exceptAt: unbound,
            topics: topics
        )
    }

    /// The addresses of the listening sockets that the app's processes opened themselves. The search ends after 2 ms,
    /// so some may be missing. If the app does not run: the addresses of the ports that torpord holds open for it.
    private func listeningAddresses(of app: AppRuntime) -> [String] {
        guard let tree = app.run.tree else { return supervisor.wakes.connectionWatch.heldPorts(of: app) }
        let end = Clock.monotonic() + .milliseconds(2)
        let given = supervisor.wakes.sockets.numbers(of: app)
        var seen: Set<UInt32> = []
        var addresses: [String] = []
        for pid in tree.quickMembers() {
            listen(pid, given, &seen, &addresses, until: end)
            if Clock.monotonic() >= end { break }
        }
        return addresses.sorted()
    }

    /// Adds the listening addresses of one process; adds none if torpord may not inspect the process.
    private func listen(
        _ pid: Int32,
        _ given: Set<UInt32>,
        _ seen: inout Set<UInt32>,
        _ addresses: inout [String],
        until end: Duration
    ) {
        guard let pidfd = try? Identity(of: pid).open(),
            let reading = try? SocketCopyReading(pid, pidfd: pidfd, seen: seen, most: 256)
        else { return }
        _ = try? reading.read(until: end)
        for copy in reading.copies {
            if copy.facts.listens, !given.contains(copy.inode), !addresses.contains(copy.facts.local) {
                addresses.append(copy.facts.local)
            }
            copy.descriptor.close()
        }
        seen = reading.seen
    }

    /// The app's services on the local network.
    func announcements(of app: AppRuntime) -> [AnnouncementInfo] {
        supervisor.wakes.announcements(of: app).map { announcement, name, problem in
            AnnouncementInfo(
                type: announcement.type,
                port: Int64(announcement.port(of: app.specification) ?? 0),
                time: announcement.time.rawValue,
                name: name,
                trouble: problem
            )
        }
    }
}
