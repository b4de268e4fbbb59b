// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Linux
import Processes

/// Watches the sockets that suspended apps opened themselves: for connections (`wake_on_connect`) and for data (the
/// background mode `voip`). If an app ends while it is suspended, keeps its listening sockets open.
package final class ConnectionWatch: EventRoom, EventSource {
    package unowned(unsafe) let wakes: Wakes
    let poll: SocketPoll
    private var sleeping: [AppID: SleepingSockets] = [:]
    private var ports: [AppID: HeldPorts] = [:]
    private var leftBehind: [AppID: LeftBehind] = [:]
    private var serving: [AppID: ServingApp] = [:]
    /// For each app whose sockets were watched: when it last woke up or ended.
    private var awakeSince: [AppID: Duration] = [:]
    /// Searches for the sockets of apps that are about to be suspended.
    var inspections: [AppID: SocketInspection] = [:]
    /// Apps for which torpord has logged that it polls their sockets. It logs this only once per app.
    private(set) var told: Set<AppID> = []
    /// Makes a search for the sockets of an app's processes; see ``SocketFinder/init(_:_:obstacle:_:)``. Tests replace
    /// it.
    var newFinder = { (tree: ProcessTree, loop: EventLoop, obstacle: Errno?, done: @escaping (SocketFinder) -> Void) in
        SocketFinder(tree, loop, obstacle: obstacle, done)
    }

    package init(_ wakes: Wakes) {
        self.wakes = wakes
        poll = SocketPoll(wakes.loop)
    }

    /// Takes over the ports that an earlier torpord held open. Called before torpord knows which apps run.
    package func takeOver() {
        for app in apps {
            let copies = host.inheritance.take(DescriptorName.ports(app.name)).compactMap { SocketCopy($0) }
            if !copies.isEmpty { ports[app.id] = HeldPorts(app, copies, self) }
        }
    }

    package func configure() { for app in apps { touched(app) } }

    package func added(_ app: AppRuntime) { touched(app) }

    package func concerns(_ app: AppRuntime) -> Bool {
        !ConnectionWish(app.specification).isNothing || !app.specification.sockets.isEmpty || sleeping[app.id] != nil
            || serving[app.id] != nil
            || ports[app.id] != nil
    }

    package func touched(_ app: AppRuntime) {
        let wish = ConnectionWish(app.specification, lost: sockets.lost(by: app))
        if wish.isNothing, sleeping[app.id] == nil, serving[app.id] == nil, ports[app.id] == nil { return }
        let machine = machine(app)
        serve(app, machine, wish)
        guard machine.mayRun, machine.state == .suspended, machine.transition == nil, !wish.isNothing,
            let tree = app.run.tree
        else {
            if machine.endingReason == .evicted { keepPorts(of: app) }
            if let one = sleeping.removeValue(forKey: app.id) {
                one.close()
                awakeSince[app.id] = now
            }
            return lookAtPorts(of: app, machine, wish)
        }
        if let one = sleeping[app.id] {
            if one.tree === tree, one.wish == wish { return one.retry() }
            one.close()
        }
        let one = SleepingSockets(app, tree, wish, self)
        sleeping[app.id] = one
        // Deferred, because pending data may wake the app at once, and callers must learn first that the app is
        // suspended.
        loop.later { [weak one] in one?.find() }
    }

    /// If a client waits for an answer of the app while the app is in the background for an event, extends the app's
    /// background time.
    private func serve(_ app: AppRuntime, _ machine: AppMachine, _ wish: ConnectionWish) {
        if let one = serving[app.id], !one.goesOn { serving[app.id] = nil }
        guard machine.sleepsAgain, wish.hasClients, machine.state == .background, machine.transition == nil,
            let tree = app.run.tree
        else { return }
        let one = serving[app.id] ?? ServingApp(app, tree, self)
        serving[app.id] = one
        one.look()
    }

    package func forget(_ app: AppRuntime) {
        sleeping.removeValue(forKey: app.id)?.close()
        ports.removeValue(forKey: app.id)?.close()
        leftBehind[app.id] = nil
        serving[app.id] = nil
        awakeSince[app.id] = nil
        inspections.removeValue(forKey: app.id)?.cancel()
        told.remove(app.id)
    }

    package var held: [(name: String, descriptors: [Int32])] { ports.values.filter { !$0.isEmpty }.map(\.held) }

    // MARK: Apps that were ended in their sleep

    /// The addresses at which torpord listens for an app that has ended.
    package func heldPorts(of app: AppRuntime) -> [String] { ports[app.id]?.addresses ?? [] }

    /// Whether the app is suspended and no connection can wake it, although its configuration says so, because it
    /// listens nowhere.
    package func listensNowhere(_ app: AppRuntime) -> Bool { sleeping[app.id]?.listensNowhere ?? false }

    /// The places of the app's `sockets` that torpord could not bind and where the app itself listens, while it is
    /// suspended: connections there wake it.
    func ownPlaces(of app: AppRuntime) -> Set<UInt64> { sleeping[app.id]?.ownPlaces ?? [] }

    /// Whether the app is suspended with the background mode `voip`, and has no connection on which data could wake it.
    package func isUnconnected(_ app: AppRuntime) -> Bool { sleeping[app.id]?.isUnconnected ?? false }

    package func ended(_ app: AppRuntime, _ ending: Ending) { if ending.reason == .evicted { keepPorts(of: app) } }

    /// Called when an app ends while suspended: keeps its listening sockets open.
    private func keepPorts(of app: AppRuntime) {
        guard let copies = sleeping.removeValue(forKey: app.id)?.takePorts(), !copies.isEmpty else { return }
        let held = HeldPorts(app, copies, self)
        ports[app.id] = held
        host.hold(held.held.name, held.held.descriptors, replacing: true)
    }

    /// Closes the ports held for an app, because the app is about to be launched, or because no connection launches it
    /// now.
    package func letGo(_ app: AppRuntime) { ports.removeValue(forKey: app.id)?.close() }

    private func lookAtPorts(of app: AppRuntime, _ machine: AppMachine, _ wish: ConnectionWish) {
        let isGone = !machine.isAlive && machine.lastEnding == .evicted && !machine.failed
        let isOnItsWay =
            machine.isWaitingToLaunch || machine.transition == .launching || machine.endingReason == .evicted
        let comesBack = machine.mayRun && (isGone || isOnItsWay) && !coordinator.isLeaving(app.id)
        if !comesBack || wish.incoming == .none { letGo(app) }
        guard comesBack, wish.incoming != .none || wish.outgoing, isGone, !isOnItsWay, isStarted, !isEnding,
            !coordinator.isShuttingDown
        else { return }
        ports[app.id]?.watch()
        let isHeld = !(ports[app.id]?.isEmpty ?? true)
        if app.wasKilledAsleep == true, machine.rules.restart != .never {
            launchAgain(app, "its end while suspended")
        } else if wish.incoming != .none, !isHeld {
            launchAgain(app, "the loss of its port")
        }
    }

    /// Launches an app again in two cases. In the first, the app was killed while suspended: torpord restarts it, as it
    /// would have done after a kill while running. An app with the mode `voip` could not be woken otherwise, because
    /// its connections have ended. In the second, the app was evicted and torpord could not keep its
    /// ports open (copying sockets may be forbidden), so that no connection could launch it. The app is suspended again
    /// after the launch, unless other apps wait for it. If memory is short, the launch waits.
    private func launchAgain(_ app: AppRuntime, _ why: String) {
        // Do not launch the app while memory is short, or while another app's launch waits for memory.
        guard app.wasCutShort == true, app.pendingWake == nil, !host.isMemoryShort,
            !host.isMemoryAwaited
        else { return }
        let event = WakeEvent(.connection, "port", why, at: now)
        let isAwaited = coordinator.bringsOthersBack(app.id)
        guard case .woken? = try? wakes.happened(event, for: app), !isAwaited else { return }
        try? request(.suspend, of: app.id)
    }

    /// Called when memory is no longer short: launches the apps whose launch waited for this.
    package func memoryIsEnough() {
        loop.later { [weak self] in
            guard let self else { return }
            for app in apps where app.wasCutShort == true { touched(app) }
        }
    }

    /// Called when an app is suspended. Returns, for each socket (by inode number), how long torpord waits before it
    /// wakes the app for the data that is pending there.
    func leftBehind(by app: AppID, _ sockets: [UInt32: LeftBehind.Pending]) -> [UInt32: Duration] {
        guard !sockets.isEmpty else {
            leftBehind[app] = nil
            return [:]
        }
        return leftBehind[app, default: LeftBehind()].fellAsleep(sockets, after: awakeSince[app].map { now - $0 })
    }

    /// Logs once per app why its sockets are polled and not watched.
    func cannotCopy(_ app: AppRuntime, _ error: Errno) {
        guard told.insert(app.id).inserted else { return }
        let reason =
            error == .tooManyOpenFiles || error == .tooManyOpenFilesInSystem
            ? "it has too many" : "they cannot be copied (\(error); ‘torpor doctor’ says more)"
        log.info("\(app.name): while it is suspended its sockets are polled twice a second: \(reason)")
    }
}
