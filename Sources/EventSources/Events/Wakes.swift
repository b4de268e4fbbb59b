// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Linux
package import Mailbox
import TorporAPI
package import Varlink

/// Something that happened for an app.
package struct WakeEvent {
    package let source: WakeSource
    /// What of the app's it is: the name of a socket, a timer, a topic.
    package let name: String
    /// What happened, for people: `a connection at http (127.0.0.1:8000)`.
    package let text: String
    /// How it wakes the app; nil for what waits until the app runs anyway.
    package var wake: Wake?
    /// What the app is told; nil where it sees for itself (a connection).
    package var mail: MailDraft?
    /// When it happened, in the loop's time.
    package var at: Duration

    package init(
        _ source: WakeSource,
        _ name: String,
        _ text: String,
        wake: Wake? = Wake(),
        mail: MailDraft? = nil,
        at: Duration
    ) {
        self.source = source
        self.name = name
        self.text = text
        self.wake = wake
        self.mail = mail
        self.at = at
    }

    /// The background modes that it belongs to, as `wake_after_force_quit` names them.
    package var modes: [BackgroundMode] {
        switch source {
        case .audio: [.audio]
        case .location: [.location]
        case .bluetooth: [.bluetoothCentral, .bluetoothPeripheral]
        case .connection: [.voip]
        case .fetch: [.fetch]
        case .accessory: [.externalAccessory]
        case .message:
            mail?.message == Message.didReceiveRemoteNotification.rawValue ? [.remoteNotification] : []
        case .socket, .timer, .path, .settings, .device, .notification, .transfer: []
        }
    }

    /// The member `event` of `TORPOR_LAUNCH_OPTIONS`.
    package var json: JSON { ["source": .string(source.rawValue), "name": .string(name), "text": .string(text)] }
}

/// What became of an event.
package enum WakeOutcome {
    /// The app runs: there was nothing to wake.
    case runs
    /// It is on its way.
    case woken
    /// It is not woken, for the reason in the sentence (`web is not launched by events until …` without the name); it is
    /// tried again at that time, or, with nil, not before something about the app changes.
    case heldBack(String, until: Duration?)
}

/// Something that events come from: sockets, timers, files, devices.
package protocol EventSource: AnyObject {
    /// Another configuration is in force: the supervisor has these apps now. Called at the start too.
    func configure()
    /// There is one app more, under the same configuration.
    func added(_ app: AppRuntime)
    /// Whether there may be something of this app's here, by what is configured for it and by what is had of it. Where there
    /// is not, the source is not told when the app is touched. Asked when a configuration comes into force, and when the app
    /// goes by another part of it.
    func concerns(_ app: AppRuntime) -> Bool
    /// The state of an app that it ``concerns(_:)`` may have changed, or it may be woken again after it was held back. Called
    /// often.
    func touched(_ app: AppRuntime)
    /// The app is gone for good. It is among the supervisor's apps still.
    func forget(_ app: AppRuntime)
    /// An incarnation of the app is over.
    func ended(_ app: AppRuntime, _ ending: Ending)
    /// Apps are gone for good, and among the supervisor's apps no more.
    func appsLeft()
    /// What the keeper holds for it under names of ``DescriptorName``: another keeper is given it too.
    var held: [(name: String, descriptors: [Int32])] { get }
}

extension EventSource {
    package func ended(_ app: AppRuntime, _ ending: Ending) {}
    package func appsLeft() {}
    package var held: [(name: String, descriptors: [Int32])] { [] }
}

/// What an app was woken by and has not come to yet.
package struct PendingWake {
    package let event: WakeEvent
    /// When it was asked to wake.
    package let since: Duration
}

/// Events: whether an app is woken for one, that it is told, and how long that took.
package final class Wakes: Room, LifecycleObserver {
    package let engine: Engine
    package let recorder: Recorder
    /// What stands before `/proc` and `/sys` where sound, power and load are looked up.
    var kernelFiles = ThisProcess.environment("TORPOR_KERNEL_FILES") ?? ""
    /// What it needs of the other rooms. It owns this one.
    package unowned(unsafe) let host: any EventHost
    /// What apps are told of the machine.
    package private(set) lazy var notifications = Notifications(self)
    /// Watches the files of apps.
    package private(set) var pathSource: PathSource?
    /// Looks which apps play or record sound in the background.
    package private(set) lazy var audioMode = AudioMode(self)
    /// Times that wake apps.
    package private(set) lazy var timers = Timers(self)
    /// Sockets that apps are given.
    package private(set) lazy var sockets = ListeningSockets(self)
    /// Sockets that apps open themselves.
    package private(set) lazy var connectionWatch = ConnectionWatch(self)
    /// Hears where the machine is.
    package private(set) lazy var locationMode = LocationMode(self)
    /// Hears what Bluetooth devices do.
    package private(set) lazy var bluetoothMode = BluetoothMode(self)
    /// Whether the clock is set, and what day it is.
    private(set) lazy var wallClock = WallClock(self, timers)
    /// What events come from.
    package private(set) var sources: [any EventSource] = []
    private var retryTimers: [AppID: TimerSource] = [:]
    /// Which sources have something of each app.
    private var concerns: [Concern] = []
    /// Sources are about to be told that apps have left.
    private var isConfiguring = false

    package init(_ engine: Engine, _ recorder: Recorder, _ host: any EventHost) {
        self.engine = engine
        self.recorder = recorder
        self.host = host
    }

    /// Takes what an earlier torpord had of sources, before what nobody has taken of the keeper is let go.
    package func takeOver() {
        sockets.takeOver()
        connectionWatch.takeOver()
        let files = PathSource(self)
        pathSource = files
        sources = [files, DeviceSource(self), MachineNotices(self)]
    }

    /// Sources begin, as the configuration has them.
    package func begin() {
        sources += [
            audioMode, wallClock, timers, sockets, locationMode, bluetoothMode, connectionWatch, KeepAlive(self),
        ]
        configure()
    }

    /// Another configuration is in force.
    package func configure() {
        for source in sources { source.configure() }
        concerns = []
    }

    package func added(_ app: AppRuntime) {
        if app.id < concerns.count { concerns[app.id] = Concern() }
        for source in sources { source.added(app) }
    }

    /// Bits in the order of ``sources``, and of which specification they are.
    private struct Concern {
        var sources: UInt32 = 0
        /// None that there is.
        var specification = UInt32.max
    }

    /// Tells those sources that have something of the app that it was touched.
    private func touchSources(of app: AppRuntime) {
        while concerns.count <= app.id { concerns.append(Concern()) }
        if concerns[app.id].specification != app.specificationNumber {
            concerns[app.id].specification = app.specificationNumber
            // What was had by an older one may be there still.
            for (index, source) in sources.enumerated() where source.concerns(app) {
                concerns[app.id].sources |= 1 << UInt32(index)
            }
        }
        var rest = concerns[app.id].sources
        while rest != 0 {
            sources[rest.trailingZeroBitCount].touched(app)
            rest &= rest - 1
        }
    }

    /// Something happened. What the app shall be told waits in its mailbox; then it is woken, if it may be.
    ///
    /// - Throws: ``Mailbox/Refusal`` when its mailbox has no place for it: it is not woken then.
    @discardableResult
    func happened(_ event: WakeEvent, for app: AppRuntime) throws(Mailbox.Refusal) -> WakeOutcome {
        if var mail = event.mail {
            mail.wake = event.wake.map { $0.foreground ? .foreground : .background }
            try host.add(mail, for: app)
        }
        return wake(app, event)
    }

    /// Something happened for an app. Where its mailbox has no place for it, the app is woken all the same, so that it
    /// makes some.
    @discardableResult
    package func tell(_ event: WakeEvent, for app: AppRuntime) -> WakeOutcome {
        do throws(Mailbox.Refusal) {
            return try happened(event, for: app)
        } catch {
            log.warning("\(app.name) is not notified of \(event.text): it \(error)")
            var rest = event
            rest.mail = nil
            return (try? happened(rest, for: app)) ?? .runs
        }
    }

    /// What waits for the app was to wake it, and could not yet.
    package func wake(_ app: AppRuntime, for mail: Mail) {
        guard let how = mail.draft.wake else { return }
        let text = "\(mail.draft.topic) from \(mail.draft.sender), which waited"
        let order = Wake(foreground: how == .foreground)
        var event = WakeEvent(.message, mail.draft.topic, text, wake: order, at: now)
        event.mail = mail.draft
        wake(app, event)
    }

    /// Wakes the app as the event says, and tells it what waits.
    @discardableResult
    package func wake(_ app: AppRuntime, _ event: WakeEvent) -> WakeOutcome {
        let outcome = event.wake.map { wake(app, event, $0) } ?? .runs
        if case .heldBack = outcome { counters.heldBack() }
        host.deliverMail(to: app)
        return outcome
    }

    private func wake(_ app: AppRuntime, _ event: WakeEvent, _ order: Wake) -> WakeOutcome {
        let machine = machine(app)
        // One that ends, and that nothing launches again yet, is woken as one that has ended: within the same bounds.
        let ends = machine.transition == .terminating && !machine.isWaitingToLaunch
        let sleeps = machine.state == .suspended || machine.transition == .suspending || !machine.isAlive || ends
        let isAwake = machine.goal == .active || machine.goal == .inactive
        if !sleeps, order.foreground ? isAwake : true {
            // Its time in the background is longer for it.
            if !isAwake { try? request(.wake(order), of: app.id) }
            return .runs
        }
        // Several events for one sleep are one wake.
        if app.pendingWake != nil, !order.foreground { return .woken }
        if sleeps, let heldBack = isHeldBack(app, event) { return heldBack }
        let before = app.pendingWake
        app.pendingWake = PendingWake(event: event, since: now)
        var order = order
        let modes = app.specification.wakeAfterForceQuit
        if event.modes.contains(where: { modes.contains($0.rawValue) }) { order.overridesForceQuit = true }
        do throws(RequestError) {
            try request(.wake(order), of: app.id)
        } catch {
            app.pendingWake = before
            let text = "is not woken by \(event.text): it \(error.description)"
            note(app, .notWoken, text: text, reason: event.source.rawValue)
            return .heldBack(error.description, until: nil)
        }
        return .woken
    }

    /// Whether it may not be woken now: before the first unlock, or because it was woken too often.
    private func isHeldBack(_ app: AppRuntime, _ event: WakeEvent) -> WakeOutcome? {
        if host.isBeforeFirstUnlock, !app.specification.wakesBeforeFirstUnlock {
            return .heldBack("is woken by events only after the first unlock (before_first_unlock)", until: nil)
        }
        let rules = app.specification.wakeStorm
        var ledger = app.wakes ?? WakeLedger()
        let verdict = ledger.wake(rules, now: now)
        app.wakes = ledger
        switch verdict {
        case .allowed: return nil
        case .heldBack(let until):
            return .heldBack(ledger.isHeldForPolicy ? "is kept down by a policy" : "was woken too often", until: until)
        case .storm(let count, let until):
            let text =
                "was woken \(count) times in \(Quantity.text(rules.window)), the last time by \(event.text): events wait "
                + "for \(Quantity.text(rules.hold)) (wake_storm, 0xbad22222)"
            note(app, .wakeStorm, text: text, reason: event.source.rawValue)
            retry(app, at: until)
            if rules.ends { try? request(.stop(.wakeStorm), of: app.id) }
            return .heldBack("was woken too often", until: until)
        }
    }

    /// Where a policy ended it, and an event had launched it just before, what that was about waits still, and nothing
    /// launches the app again at once.
    package func ended(_ app: AppRuntime, _ ending: Ending) {
        for source in sources { source.ended(app, ending) }
        guard app.isEndedByPolicy == true, machine(app).launchOrder.reason == .event,
            let launched = app.run.launchedAt,
            now - launched < app.specification.rules.backoff.stableAfter
        else { return }
        undone(app, "was ended by a policy right after an event had launched it")
    }

    /// A policy did not let an event launch the app.
    package func refusedByPolicy(_ app: AppRuntime) {
        undone(app, "was not launched for an event, since a policy forbids it")
    }

    private func undone(_ app: AppRuntime, _ what: String) {
        let now = now
        var ledger = app.wakes ?? WakeLedger()
        let until = ledger.undone(app.specification.wakeStorm, now: now)
        app.wakes = ledger
        note(app, .notWoken, text: "\(what): events wait for \(Quantity.text(until - now))")
        // A storm may hold it for longer.
        retry(app, at: max(until, ledger.heldUntil ?? until))
    }

    /// Whether what came to that is to be remembered and tried again when sources are told that the app was touched: it was
    /// woken too often, or nothing may wake it before the first unlock.
    func isTriedAgain(_ outcome: WakeOutcome, _ app: AppRuntime) -> Bool {
        guard case .heldBack(_, let until) = outcome else { return false }
        return until != nil
            || host.isBeforeFirstUnlock && !app.specification.wakesBeforeFirstUnlock
    }

    private func retry(_ app: AppRuntime, at time: Duration) {
        let id = app.id
        if retryTimers[id] == nil {
            retryTimers[id] = try? loop.timer { [weak self, weak app] in
                guard let self, let app else { return }
                self.retryTimers[id] = nil
                self.touchSources(of: app)
                self.host.retryMail(of: app)
            }
        }
        retryTimers[id]?.arm(at: time)
    }

    /// The states of these apps may have changed.
    package func touched(_ apps: [AppRuntime]) {
        for app in apps {
            if app.pendingWake != nil { tellWoken(app) }
            touchSources(of: app)
        }
    }

    /// Tells of a wake once the app runs, or says why it came to nothing.
    private func tellWoken(_ app: AppRuntime) {
        guard let pending = app.pendingWake else { return }
        let machine = machine(app)
        guard machine.isAlive else {
            // Its launch may wait for others, for memory, or for a policy.
            if !machine.isWaitingToLaunch { app.pendingWake = nil }
            return
        }
        if machine.state == .suspended, machine.transition == nil, machine.goal == .suspended {
            // Somebody had it suspended before it came to run: the next event wakes it anew.
            app.pendingWake = nil
        }
        guard machine.state != .suspended, machine.state != .notRunning, machine.transition != .launching,
            machine.transition != .terminating
        else { return }
        app.pendingWake = nil
        switch pending.event.source {
        case .socket, .connection: app.times.use(at: now)
        case .timer, .fetch, .path, .settings, .device, .accessory, .audio, .location, .bluetooth, .message,
            .notification, .transfer:
            break
        }
        let time = now - pending.event.at
        app.counters.wakes &+= 1
        counters.woken(by: pending.event.source, after: time)
        let took = (time.inSeconds * 100_000).rounded() / 100
        note(
            app,
            .woken,
            text: "woken by \(pending.event.text) after \(took) ms",
            reason: pending.event.source.rawValue
        )
    }

    /// A person started it, or asked for it: what it was woken for before is no storm any more.
    package func startedByPerson(_ app: AppRuntime) { app.wakes?.forget() }

    /// What kept apps from being woken is over, or the supervisor has begun: what waits to wake one does.
    package func lookAgain() {
        for app in apps {
            touchSources(of: app)
            host.retryMail(of: app)
        }
    }

    /// The app is gone for good.
    package func forget(_ app: AppRuntime) {
        if app.id < concerns.count { concerns[app.id] = Concern() }
        for source in sources { source.forget(app) }
        retryTimers[app.id] = nil
        // What nobody is left to hear of is watched no more; once for all that leave together.
        guard !isConfiguring else { return }
        isConfiguring = true
        loop.later { [weak self] in
            guard let self else { return }
            isConfiguring = false
            if !isEnding { for source in sources { source.appsLeft() } }
        }
    }
}

extension AppSpecification {
    /// Whether events wake it before the session was unlocked for the first time.
    var wakesBeforeFirstUnlock: Bool {
        switch self.beforeFirstUnlock {
        case .all: true
        case .unprotected: !self.notifications.contains(.protectedData)
        case .none: false
        }
    }
}

extension AppRuntime {
    /// What it was woken by, until it runs.
    package var pendingWake: PendingWake? {
        get { slots[PendingWakeSlot.self] }
        set { slots[PendingWakeSlot.self] = newValue }
    }

    /// When events woke it.
    package var wakes: WakeLedger? {
        get { slots[WakesSlot.self] }
        set { slots[WakesSlot.self] = newValue }
    }
}

private enum PendingWakeSlot: Slot { typealias Value = PendingWake }
private enum WakesSlot: Slot { typealias Value = WakeLedger }
