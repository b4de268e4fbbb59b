// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Processes

/// When an app was last told to save its state (didEnterBackground), and what it had done by then.
struct ToldToSave {
    /// Traffic after this time is work that is not saved (CLOCK_MONOTONIC).
    var at: Duration
    /// When the message was sent (CLOCK_MONOTONIC).
    let sentAt: Duration
    /// When the app answered; nil if it has not.
    var answeredAt: Duration?
    /// Whether torpord sent the message because the app had worked since the previous one.
    var isForWork = false
    /// Whether the app is stopped right after the message or after its answer.
    var isFresh = false
    /// Whether a task, a mode or an operator has kept the app awake since then. What an app does in a task it saves
    /// itself; it may also begin another task at each such message, and would never be suspended.
    var isHeld = false
    /// Whether the message was the last step of a launch into the background. What the app does after that is its
    /// start, so the processor time that it uses proves nothing.
    var isForLaunch = false
    /// The processor time that the app had used when it answered, or when it got the message if it does not answer; nil
    /// if unknown.
    var processorTime: Duration?

    var isAnswered: Bool { answeredAt != nil }

    init(at time: Duration) { (at, sentAt) = (time, time) }
}

/// The last questions before an app is stopped: has it worked since it was last told to save its state, so that an
/// eviction would lose something? And can it be woken, or does it not listen yet, or has it not connected yet?
extension ProcessControl {
    /// An app that has used less processor time than this since it saved its state counts as idle: the time in which it
    /// finishes its answer, and in which its timers run.
    private static let idle = Duration.milliseconds(10)
    /// The same, if the processor time is known only in clock ticks of 10 ms, or if the time to save is part of it.
    private static let idleRoughly = Duration.milliseconds(30)
    /// How long after its launch an app may begin to listen, or connect, if its `launch_deadline` is not longer.
    private static let listening = Duration.seconds(30)
    /// The time between two looks whether an app listens or is connected.
    private static let listeningPause = Duration.seconds(1)

    /// How exactly the kernel tells the time of traffic.
    private static let tick = Duration.milliseconds(10)
    /// The connection of the probe that found the app ready may be closed this long after that.
    private static let probeEnds = Duration.milliseconds(100)

    /// Called when the app gets didEnterBackground.
    func tellsToSave(_ app: AppRuntime) {
        let machine = machine(app)
        guard hearsToSave(app), !machine.rules.hasScenes else { return }
        var told = ToldToSave(at: Clock.monotonic())
        told.isForLaunch = app.run.toldToSave == nil && !machine.launchOrder.foreground
        if told.isForLaunch, machine.rules.readiness == .probe { told.at += Self.probeEnds }
        told.isForWork = app.run.savesForWork == true
        told.isFresh = machine.transition == .suspending
        told.isHeld = machine.isHeld
        told.processorTime = told.isForLaunch ? nil : Self.processorTime(of: app)
        app.run.savesForWork = nil
        app.run.toldToSave = told
    }

    /// Called when the app has answered didEnterBackground.
    func saved(_ app: AppRuntime) {
        guard var told = app.run.toldToSave else { return }
        told.answeredAt = Clock.monotonic()
        told.isFresh = machine(app).transition == .suspending
        if !told.isForLaunch { told.processorTime = Self.processorTime(of: app) }
        app.run.toldToSave = told
    }

    /// Called when the app's snapshot is over. The app may have been asked for it by a connection, which is no work.
    func showed(_ app: AppRuntime) {
        guard var told = app.run.toldToSave else { return }
        told.at = Clock.monotonic()
        told.isFresh = machine(app).transition == .suspending
        if !told.isForLaunch { told.processorTime = Self.processorTime(of: app) }
        app.run.toldToSave = told
    }

    /// When the app last worked on didEnterBackground, to its answer or, if it has not answered yet, to a later time;
    /// nil if it gets no such message, or missed its deadline.
    func saving(_ app: AppRuntime) -> ClosedRange<Duration>? {
        guard let told = app.run.toldToSave else { return nil }
        // The times of closed connections are not exact.
        let began = told.sentAt - Self.tick * 2
        if let answeredAt = told.answeredAt { return began...(answeredAt + Self.tick * 2) }
        guard coordinator[app.id].awaitedMessage == .didEnterBackground else { return nil }
        return began...(Clock.monotonic() + .seconds(60))
    }

    private func hearsToSave(_ app: AppRuntime) -> Bool {
        supervisor.appSockets.hearsByChannel(app.id) || app.specification.signals[.didEnterBackground] != nil
    }

    /// Finds out whether the app may be stopped now. If so, calls `stop`; otherwise the core gets an event. At most one
    /// search through the app's sockets is needed, and none for most apps.
    func lookBeforeStop(_ app: AppRuntime, _ stop: @escaping () -> Void) {
        let needsPort = needsPort(app)
        let needsConnection = !needsPort && needsConnection(app)
        let since = mayHaveWorked(app)
        app.run.toldToSave?.isFresh = false
        if let since, hasUsedProcessor(app, since) { return saveFirst(app) }
        guard needsPort || needsConnection || since != nil else { return stop() }
        let tree = app.run.tree
        supervisor.wakes.connectionWatch.inspect(app) { [weak self] findings in
            guard let self, app.run.tree === tree, isToBeStopped(app) else { return }
            if let since, let traffic = findings.lastTraffic, traffic + Self.tick > since.at { return saveFirst(app) }
            if findings.listens { app.run.hasListened = true }
            let isDeaf = needsPort && !findings.listens || needsConnection && !findings.isConnected
            guard isDeaf else { return stop() }
            app.run.stop = .none
            deliver(.settles(Self.listeningPause), to: app.id)
        }
    }

    private func saveFirst(_ app: AppRuntime) {
        app.run.stop = .none
        app.run.savesForWork = true
        deliver(.worked, to: app.id)
    }

    /// When the app was told to save its state, if it may have worked since then; nil if there is nothing to find out.
    private func mayHaveWorked(_ app: AppRuntime) -> ToldToSave? {
        guard coordinator[app.id].transition == .suspending, !coordinator[app.id].rules.hasScenes, hearsToSave(app)
        else { return nil }
        guard let told = app.run.toldToSave else {
            // An earlier torpord told the app to save its state, before the app entered the background.
            return app.times.all.first { $0.state == .background }.map { ToldToSave(at: $0.time) }
        }
        if told.isFresh || told.isHeld { return nil }
        // The app did not answer, and clients keep it busy: ask it once and not again and again.
        let deadline = app.specification.rules.transitionDeadline ?? .zero
        if told.isForWork, Clock.monotonic() - told.at < deadline + .seconds(1) { return nil }
        return told
    }

    private func hasUsedProcessor(_ app: AppRuntime, _ told: ToldToSave) -> Bool {
        guard let before = told.processorTime, let used = Self.processorTime(of: app).map({ $0 - before }) else {
            return false
        }
        return used >= (app.run.tree?.cgroupPath != nil && told.isAnswered ? Self.idle : Self.idleRoughly)
    }

    private static func processorTime(of app: AppRuntime) -> Duration? {
        guard let tree = app.run.tree else { return nil }
        if let time = tree.processorTime() { return time }
        let ticks = tree.quickMembers().reduce(UInt64(0)) { sum, pid in
            (try? ProcFS.stat(pid)).map { sum &+ $0.userTicks &+ $0.systemTicks } ?? sum
        }
        return Clock.duration(ticks: ticks)
    }

    /// Whether only a connection to a socket that the app opens itself could wake the app, the app was launched to be
    /// suspended or for an event, and it may still be about to open that socket.
    private func needsPort(_ app: AppRuntime) -> Bool {
        app.specification.wakeOnConnect != .none && app.specification.sockets.isEmpty && app.run.hasListened != true
            && mayStillOpenSockets(app)
    }

    /// Whether only data on a connection that the app makes itself (the mode `voip`) could wake the app, the app was
    /// launched to be suspended or for an event, and it may still be about to connect.
    private func needsConnection(_ app: AppRuntime) -> Bool {
        app.specification.isWokenOnlyByVoip && mayStillOpenSockets(app)
    }

    private func mayStillOpenSockets(_ app: AppRuntime) -> Bool {
        let machine = machine(app)
        guard machine.transition == .suspending, !machine.isForced, machine.mayRun, !machine.launchOrder.foreground,
            app.run.isAskedToSleep != true, let launchedAt = app.run.launchedAt
        else { return false }
        return loop.now - launchedAt < max(Self.listening, app.specification.rules.launchDeadline ?? .zero)
    }
}

extension Incarnation {
    var toldToSave: ToldToSave? {
        get { slots[ToldToSaveSlot.self] }
        set { slots[ToldToSaveSlot.self] = newValue }
    }

    /// Whether the next didEnterBackground is sent because the app has worked since the last one.
    var savesForWork: Bool? {
        get { slots[SavesForWorkSlot.self] }
        set { slots[SavesForWorkSlot.self] = newValue }
    }

    /// Whether the app had a socket for clients when torpord last looked.
    var hasListened: Bool? {
        get { slots[HasListenedSlot.self] }
        set { slots[HasListenedSlot.self] = newValue }
    }

    /// Whether a user has asked to suspend the app since it is ready: then it is suspended at once.
    package var isAskedToSleep: Bool? {
        get { slots[IsAskedToSleepSlot.self] }
        set { slots[IsAskedToSleepSlot.self] = newValue }
    }
}

private enum ToldToSaveSlot: Slot { typealias Value = ToldToSave }
private enum SavesForWorkSlot: Slot { typealias Value = Bool }
private enum HasListenedSlot: Slot { typealias Value = Bool }
private enum IsAskedToSleepSlot: Slot { typealias Value = Bool }
