// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Linux
package import Mailbox
import TorporAPI
package import Varlink

/// An event for an app.
package struct WakeEvent {
    package let source: WakeSource
    /// The name of the app's socket, timer or topic.
    package let name: String
    /// What happened, for users: `a connection at http (127.0.0.1:8000)`.
    package let text: String
    /// How it wakes the app; nil if it waits until the app runs anyway.
    package var wake: Wake?
    /// The message for the app; nil if the app notices the event itself (a connection).
    package var mail: MailDraft?
    /// When it happened, on the loop's clock.
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
        case .socket, .timer, .path, .settings, .device, .notification, .transfer, .alert: []
        }
    }

    /// The member `event` of `TORPOR_LAUNCH_OPTIONS`.
    package var json: JSON { ["source": .string(source.rawValue), "name": .string(name), "text": .string(text)] }
}

/// The outcome of an event.
package enum WakeOutcome {
    /// The app runs: there was no need to wake it.
    case runs
    /// The app is being woken.
    case woken
    /// The app is not woken, for the reason in the sentence (`web is not launched by events until …` without the
    /// name). It is retried at that time; with nil, when something about the app changes.
    case heldBack(String, until: Duration?)
}

/// A source of events: sockets, timers, files, devices.
package protocol EventSource: AnyObject {
    /// A new configuration is in force, with its apps. Called at the start too.
    func configure()
    /// An app was added under the same configuration.
    func added(_ app: AppRuntime)
    /// Whether the source has, or should have, something for this app, by its configuration or from earlier. If not,
    /// the source is not called when the app is touched. Asked when a configuration comes into force, and when the
    /// app takes over another part of it.
    func concerns(_ app: AppRuntime) -> Bool
    /// Called often, for apps for which ``concerns(_:)`` is true: the app's state may have changed, or its events are
    /// no longer held back.
    func touched(_ app: AppRuntime)
    /// The app is being removed for good. The supervisor still has it.
    func forget(_ app: AppRuntime)
    /// An incarnation of the app is over.
    func ended(_ app: AppRuntime, _ ending: Ending)
    /// Apps were removed for good, and the supervisor no longer has them.
    func appsLeft()
    /// What the keeper holds for the source, by names of ``DescriptorName``: a new keeper gets it too.
    var held: [(name: String, descriptors: [Int32])] { get }
}

extension EventSource {
    package func ended(_ app: AppRuntime, _ ending: Ending) {}
    package func appsLeft() {}
    package var held: [(name: String, descriptors: [Int32])] { [] }
}

/// An event that is waking an app.
package struct PendingWake {
    package let event: WakeEvent
    /// When the wake-up was requested.
    package let since: Duration

    package init(event: WakeEvent, since: Duration) { (self.event, self.since) = (event, since) }
}

/// Events: decides whether they wake apps, adds their messages, and measures how long it took.
package final class Wakes: Room, LifecycleObserver {
    package let engine: Engine
    package let recorder: Recorder
    /// Prefix of `/proc` and `/sys` for sound, power and load.
    var kernelFiles = ThisProcess.environment("TORPOR_KERNEL_FILES") ?? ""
    /// What it needs of the other rooms. It owns this one.
    package unowned(unsafe) let host: any EventHost
    /// Notifies apps of changes of the machine.
    package private(set) lazy var notifications = Notifications(self)
    /// Watches the files of apps.
    package private(set) var pathSource: PathSource?
    /// Checks which apps play or record sound in the background.
    package private(set) lazy var audioMode = AudioMode(self)
    /// Timers that wake apps.
    package private(set) lazy var timers = Timers(self)
    /// Sockets that torpord binds for apps.
    package private(set) lazy var sockets = ListeningSockets(self)
    /// Sockets that apps open themselves.
    package private(set) lazy var connectionWatch = ConnectionWatch(self)
    /// Gets positions of the machine.
    package private(set) lazy var locationMode = LocationMode(self)
    /// Gets events of Bluetooth devices.
    package private(set) lazy var bluetoothMode = BluetoothMode(self)
    /// Watches the clock, the time zone and the date.
    private(set) lazy var wallClock = WallClock(self, timers)
    /// All sources of events.
    package private(set) var sources: [any EventSource] = []
    private var retryTimers: [AppID: TimerSource] = [:]
    /// Which sources concern each app.
    private var concerns: [Concern] = []
    /// Sources are about to be told that apps were removed.
    private var isConfiguring = false

    package init(_ engine: Engine, _ recorder: Recorder, _ host: any EventHost) {
        self.engine = engine
        self.recorder = recorder
        self.host = host
    }

    /// Takes over the sources' descriptors from an earlier torpord, before unclaimed ones are released in the keeper.
    package func takeOver() {
        sockets.takeOver()
        connectionWatch.takeOver()
        let files = PathSource(self)
        pathSource = files
        sources = [files, DeviceSource(self), MachineNotices(self)]
    }

    /// Starts the sources.
    package func begin() {
        sources += [
            audioMode, wallClock, timers, sockets, locationMode, bluetoothMode, connectionWatch, KeepAlive(self),
        ]
        configure()
    }

    /// From now on calls `body` when the clock was set or the machine has slept, and, with true, when the time zone has
    /// changed.
    package func followClock(_ body: @escaping (_ isElsewhere: Bool) -> Void) {
        wallClock.onChange = body
        wallClock.follow()
    }

    /// A new configuration is in force.
    package func configure() {
        for source in sources { source.configure() }
        concerns = []
    }

    package func added(_ app: AppRuntime) {
        if app.id < concerns.count { concerns[app.id] = Concern() }
        for source in sources { source.added(app) }
    }

    /// A bit for each of ``sources``, and the specification that they were computed for.
    private struct Concern {
        var sources: UInt32 = 0
        /// No specification has this number.
        var specification = UInt32.max
    }

    /// Calls the sources that concern the app.
    private func touchSources(of app: AppRuntime) {
        while concerns.count <= app.id { concerns.append(Concern()) }
        if concerns[app.id].specification != app.specificationNumber {
            concerns[app.id].specification = app.specificationNumber
            // A source may still have something from an older specification.
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

    /// Handles an event: adds its message to the app's mailbox, then wakes the app if allowed.
    ///
    /// - Throws: ``Mailbox/Refusal`` if the mailbox is full: then the app is not woken.
    @discardableResult
    func happened(_ event: WakeEvent, for app: AppRuntime) throws(Mailbox.Refusal) -> WakeOutcome {
        if var mail = event.mail {
            mail.wake = event.wake.map { $0.foreground ? .foreground : .background }
            try host.add(mail, for: app)
        }
        return wake(app, event)
    }

    /// Handles an event for an app. If its mailbox is full, the app is woken nevertheless, so that it makes room.
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

    /// Wakes the app for a queued message that could not wake it before.
    package func wake(_ app: AppRuntime, for mail: Mail) {
        guard let how = mail.draft.wake else { return }
        let text = "\(mail.draft.topic) from \(mail.draft.sender), which waited"
        let order = Wake(foreground: how == .foreground)
        var event = WakeEvent(.message, mail.draft.topic, text, wake: order, at: now)
        event.mail = mail.draft
        wake(app, event)
    }

    /// Wakes the app as the event says, and delivers queued messages.
    @discardableResult
    package func wake(_ app: AppRuntime, _ event: WakeEvent) -> WakeOutcome {
        let outcome = event.wake.map { wake(app, event, $0) } ?? .runs
        if case .heldBack = outcome { counters.heldBack() }
        host.deliverMail(to: app)
        return outcome
    }

    private func wake(_ app: AppRuntime, _ event: WakeEvent, _ order: Wake) -> WakeOutcome {
        let machine = machine(app)
        // An app that is ending, and not yet to be launched again, is woken like one that has ended: within the same
        // limits.
        let ends = machine.transition == .terminating && !machine.isWaitingToLaunch
        let sleeps = machine.state == .suspended || machine.transition == .suspending || !machine.isAlive || ends
        let isAwake = machine.goal == .active || machine.goal == .inactive
        if !sleeps, order.foreground ? isAwake : true {
            // The event extends its time in the background.
            if !isAwake { try? request(.wake(order), of: app.id) }
            return .runs
        }
        // Several events during one suspension make one wake-up.
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

    /// Why it may not be woken now: before the first unlock, or because it was woken too often.
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

    /// If a policy ended the app just after an event had launched it, the event's message is still queued, and no
    /// event launches the app again at once.
    package func ended(_ app: AppRuntime, _ ending: Ending) {
        for source in sources { source.ended(app, ending) }
        guard app.isEndedByPolicy == true, machine(app).launchOrder.reason == .event,
            let launched = app.run.launchedAt,
            now - launched < app.specification.rules.backoff.stableAfter
        else { return }
        undone(app, "was ended by a policy right after an event had launched it")
    }

    /// A policy refused to let an event launch the app.
    package func refusedByPolicy(_ app: AppRuntime) {
        undone(app, "was not launched for an event, since a policy forbids it")
    }

    private func undone(_ app: AppRuntime, _ what: String) {
        let now = now
        var ledger = app.wakes ?? WakeLedger()
        let until = ledger.undone(app.specification.wakeStorm, now: now)
        app.wakes = ledger
        note(app, .notWoken, text: "\(what): events wait for \(Quantity.text(until - now))")
        // A wake storm may hold it longer.
        retry(app, at: max(until, ledger.heldUntil ?? until))
    }

    /// Whether to keep the event and retry it when sources are told that the app was touched: the app was woken too
    /// often, or may not be woken before the first unlock.
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

    /// Records a wake-up once the app runs, or why it failed.
    private func tellWoken(_ app: AppRuntime) {
        guard let pending = app.pendingWake else { return }
        let machine = machine(app)
        guard machine.isAlive else {
            // Its launch may wait for other apps, for memory, or for a policy.
            if !machine.isWaitingToLaunch { app.pendingWake = nil }
            return
        }
        if machine.state == .suspended, machine.transition == nil, machine.goal == .suspended {
            // It was suspended again before it ran: the next event wakes it.
            app.pendingWake = nil
        }
        guard machine.state != .suspended, machine.state != .notRunning, machine.transition != .launching,
            machine.transition != .terminating
        else { return }
        app.pendingWake = nil
        switch pending.event.source {
        case .socket, .connection: app.times.use(at: now)
        case .timer, .fetch, .path, .settings, .device, .accessory, .audio, .location, .bluetooth, .message,
            .notification, .transfer, .alert:
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

    /// A user started it, or asked for it: earlier wake-ups no longer count as a storm.
    package func startedByPerson(_ app: AppRuntime) { app.wakes?.forget() }

    /// Apps may be woken again, or the supervisor has begun: retries wake-ups for queued messages.
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
        // Stops watching what no app needs; once for all apps that are removed together.
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
    /// Whether events wake it before the first unlock of the session.
    var wakesBeforeFirstUnlock: Bool {
        switch self.beforeFirstUnlock {
        case .all: true
        case .unprotected: !self.notifications.contains(.protectedData)
        case .none: false
        }
    }
}

extension AppRuntime {
    /// The event that is waking it, until it runs.
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
