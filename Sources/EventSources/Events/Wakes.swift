// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Linux
package import Mailbox
import TorporAPI
package import Varlink

/// An event that may wake an app.
package struct WakeEvent {
    package let source: WakeSource
    /// The name of the socket, timer, topic or other thing from which the event comes.
    package let name: String
    /// What happened, as a text for the log and the history, such as `a connection at http (127.0.0.1:8000)`.
    package let text: String
    /// How the event wakes the app. If nil, the event wakes no app: its message waits until the app runs.
    package var wake: Wake?
    /// The message about the event; nil if the app notices the event itself, for example a connection.
    package var mail: MailDraft?
    /// Whether the event came over a socket whose traffic the kernel does not report to torpord: a Unix or vsock
    /// connection, a datagram, or a socket in another network namespace.
    package var isUntraced = false
    /// When the event happened, on the event loop's clock.
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

    /// The background modes that the event belongs to. If `wake_after_force_quit` names one of them, the event
    /// launches the app even after a force quit.
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

    /// The value of the member `event` in `TORPOR_LAUNCH_OPTIONS`.
    package var json: JSON { ["source": .string(source.rawValue), "name": .string(name), "text": .string(text)] }
}

/// What torpord did with an event.
package enum WakeOutcome {
    /// The app runs already, so it need not be woken.
    case runs
    /// The app is being woken.
    case woken
    /// The app is not woken. The text gives the reason, without the app's name (`is not launched by events until …`).
    /// `until`: when to retry the event; if nil, retry it when the app's state changes.
    case heldBack(String, until: Duration?)
}

/// A source of events, such as sockets, timers, files or devices.
package protocol EventSource: AnyObject {
    /// Called when a new configuration with its apps is in force, and at the start.
    func configure()
    /// Called when an app was added without a new configuration.
    func added(_ app: AppRuntime)
    /// Whether the source watches anything for the app, by its current configuration or an earlier one. If not,
    /// `touched` is not called for the app. Called when a configuration comes into force, and when the app's own
    /// configuration changes.
    func concerns(_ app: AppRuntime) -> Bool
    /// Called, often, when an app's state may have changed, or when its events are no longer held back. Only called
    /// for apps for which ``concerns(_:)`` is true.
    func touched(_ app: AppRuntime)
    /// Called when an app is removed for good, while the table of apps still contains the app.
    func forget(_ app: AppRuntime)
    /// Called when an incarnation of the app, one run of its process, has ended.
    func ended(_ app: AppRuntime, _ ending: Ending)
    /// Called after apps were removed for good and are no longer in the table of apps.
    func appsLeft()
    /// The source's descriptors that torpor-keeper holds, with their ``DescriptorName``. A new torpor-keeper gets them
    /// too.
    var held: [(name: String, descriptors: [Int32])] { get }
}

extension EventSource {
    package func ended(_ app: AppRuntime, _ ending: Ending) {}
    package func appsLeft() {}
    package var held: [(name: String, descriptors: [Int32])] { [] }
}

/// An event for which torpord is waking an app.
package struct PendingWake {
    package let event: WakeEvent
    /// When the wake-up was requested.
    package let since: Duration

    package init(event: WakeEvent, since: Duration) { (self.event, self.since) = (event, since) }
}

/// Decides whether events wake apps, adds the events' messages to mailboxes, and measures how long the wake-ups took.
package final class Wakes: Room, LifecycleObserver {
    package let engine: Engine
    package let recorder: Recorder
    /// A prefix for the paths of `/proc` and `/sys` files about sound, power and load. Empty, except in tests.
    var kernelFiles = ThisProcess.environment("TORPOR_KERNEL_FILES") ?? ""
    /// The address of the bus of the machine's services, such as NetworkManager; nil for the system bus.
    var busAddress: String?
    /// The rest of the supervisor, which owns this object.
    package unowned(unsafe) let host: any EventHost
    /// Notifies apps of changes of the machine.
    package private(set) lazy var notifications = Notifications(self)
    /// Watches files and directories for apps.
    package private(set) var pathSource: PathSource?
    /// Checks which apps play or record sound in the background.
    package private(set) lazy var audioMode = AudioMode(self)
    /// Timers that wake apps.
    package private(set) lazy var timers = Timers(self)
    /// Sockets that torpord binds for apps.
    package private(set) lazy var sockets = ListeningSockets(self)
    /// Sockets that apps open themselves.
    package private(set) lazy var connectionWatch = ConnectionWatch(self)
    /// The background mode `location`: positions of the machine for apps.
    package private(set) lazy var locationMode = LocationMode(self)
    /// The background modes for Bluetooth: events of devices for apps.
    package private(set) lazy var bluetoothMode = BluetoothMode(self)
    /// Announces services of apps on the local network.
    private lazy var announcements = ServiceAnnouncements(self)
    /// Watches the clock, the time zone and the date.
    private(set) lazy var wallClock = WallClock(self, timers)
    /// All sources of events, in the order in which they are called.
    package private(set) var sources: [any EventSource] = []
    private var retryTimers: [AppID: TimerSource] = [:]
    /// Which sources concern an app. The index is the app's id.
    private var concerns: [Concern] = []
    /// Whether a call of `appsLeft` is scheduled already.
    private var isConfiguring = false

    package init(_ engine: Engine, _ recorder: Recorder, _ host: any EventHost) {
        self.engine = engine
        self.recorder = recorder
        self.host = host
    }

    /// Creates the sources that take over descriptors from an earlier torpord. Must be called before torpor-keeper
    /// closes the descriptors that no source has taken.
    package func takeOver() {
        sockets.takeOver()
        connectionWatch.takeOver()
        let files = PathSource(self)
        pathSource = files
        sources = [files, DeviceSource(self), MachineNotices(self), NetworkPlaces(self), announcements]
    }

    /// The app's services on the local network: the name under which each is announced, or why it cannot be announced.
    /// Both are nil while the app is in a state in which the service is not announced.
    package func announcements(
        of app: AppRuntime
    ) -> [(announcement: AnnouncementSpecification, name: String?, problem: String?)] {
        announcements.announcements(of: app)
    }

    /// Starts all sources.
    package func begin() {
        sources += [
            audioMode, wallClock, timers, sockets, locationMode, bluetoothMode, connectionWatch, KeepAlive(self),
        ]
        configure()
    }

    /// From now on, calls `body` when the clock was set, the machine has slept, or the time zone has changed.
    /// `isElsewhere`: whether the time zone has changed.
    package func followClock(_ body: @escaping (_ isElsewhere: Bool) -> Void) {
        wallClock.onChange = body
        wallClock.follow()
    }

    /// Called when a new configuration is in force.
    package func configure() {
        for source in sources { source.configure() }
        concerns = []
    }

    package func added(_ app: AppRuntime) {
        if app.id < concerns.count { concerns[app.id] = Concern() }
        for source in sources { source.added(app) }
    }

    /// A bit for each element of ``sources`` that concerns the app, and the number of the specification for which the
    /// bits were determined.
    private struct Concern {
        var sources: UInt32 = 0
        /// The initial value is a number that no specification has, so that the bits are determined at the first use.
        var specification = UInt32.max
    }

    /// Calls ``EventSource/touched(_:)`` of the sources that concern the app.
    private func touchSources(of app: AppRuntime) {
        while concerns.count <= app.id { concerns.append(Concern()) }
        if concerns[app.id].specification != app.specificationNumber {
            concerns[app.id].specification = app.specificationNumber
            // Only add bits, because a source of an earlier specification may still watch something for the app.
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

    /// Handles an event: adds its message to the app's mailbox, then wakes the app unless events are held back.
    ///
    /// - Throws: ``Mailbox/Refusal`` if the mailbox is full; then the app is not woken.
    @discardableResult
    func happened(_ event: WakeEvent, for app: AppRuntime) throws(Mailbox.Refusal) -> WakeOutcome {
        if var mail = event.mail {
            mail.wake = event.wake.map { $0.foreground ? .foreground : .background }
            try host.add(mail, for: app)
        }
        return wake(app, event)
    }

    /// Handles an event like `happened`. If the app's mailbox is full, the app is still woken, so that it reads its
    /// messages.
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
    package func wake(_ app: AppRuntime, for mail: Mail) -> WakeOutcome {
        guard let how = mail.draft.wake else { return .runs }
        let text = "\(mail.draft.topic) from \(mail.draft.sender), which waited"
        let order = Wake(foreground: how == .foreground)
        var event = WakeEvent(.message, mail.draft.topic, text, wake: order, at: now)
        event.mail = mail.draft
        return wake(app, event)
    }

    /// Wakes the app as `event.wake` says, and delivers its queued messages.
    @discardableResult
    package func wake(_ app: AppRuntime, _ event: WakeEvent) -> WakeOutcome {
        let outcome = event.wake.map { wake(app, event, $0) } ?? .runs
        if case .heldBack = outcome { counters.heldBack() }
        host.deliverMail(to: app)
        return outcome
    }

    private func wake(_ app: AppRuntime, _ event: WakeEvent, _ order: Wake) -> WakeOutcome {
        let machine = machine(app)
        // Treat an app that is terminating, with no launch planned, like an app that has ended: the event would have to
        // launch it, and may be held back.
        let ends = machine.transition == .terminating && !machine.isWaitingToLaunch
        let sleeps = machine.state == .suspended || machine.transition == .suspending || !machine.isAlive || ends
        let isAwake = machine.goal == .active || machine.goal == .inactive
        if !sleeps, order.foreground ? isAwake : true {
            // The app runs already: extend its background time for the event.
            if !isAwake { try? request(.wake(order), of: app.id) }
            return .runs
        }
        // Several events during one suspension wake the app only once.
        if app.pendingWake != nil, !order.foreground { return .woken }
        if sleeps, let heldBack = isHeldBack(app, event) { return heldBack }
        let before = app.pendingWake
        app.pendingWake = PendingWake(event: event, since: now)
        var order = order
        let modes = app.specification.wakeAfterForceQuit
        if event.modes.contains(where: { modes.contains($0.rawValue) }) { order.overridesForceQuit = true }
        if event.source == .timer { order.startsAfresh = true }
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

    /// Why the event may not wake the app now: this machine does not own the app, the session was not unlocked yet,
    /// events woke the app too often, or a policy undid a wake-up. Nil if the event may wake the app; the wake-up is
    /// then counted.
    private func isHeldBack(_ app: AppRuntime, _ event: WakeEvent) -> WakeOutcome? {
        if !machine(app).mayRun {
            return .heldBack("is not owned by this machine, so no event wakes it", until: nil)
        }
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

    /// Called when an incarnation of the app, one run of its process, has ended. If a policy terminated the app soon
    /// after an event had launched it, holds events back: the event's message is still queued and would launch the
    /// app again at once.
    package func ended(_ app: AppRuntime, _ ending: Ending) {
        for source in sources { source.ended(app, ending) }
        guard app.isEndedByPolicy == true, machine(app).launchOrder.reason == .event,
            let launched = app.run.launchedAt,
            now - launched < app.specification.rules.backoff.stableAfter
        else { return }
        undone(app, "was ended by a policy right after an event had launched it")
    }

    /// Called when a policy has refused a launch for an event: holds further events back from the app.
    package func refusedByPolicy(_ app: AppRuntime) {
        undone(app, "was not launched for an event, since a policy forbids it")
    }

    private func undone(_ app: AppRuntime, _ what: String) {
        let now = now
        var ledger = app.wakes ?? WakeLedger()
        let until = ledger.undone(app.specification.wakeStorm, now: now)
        app.wakes = ledger
        note(app, .notWoken, text: "\(what): events wait for \(Quantity.text(until - now))")
        // If events are also held back because they woke the app too often (a wake storm), retry when the later of both
        // pauses ends.
        retry(app, at: max(until, ledger.heldUntil ?? until))
    }

    /// Whether to keep a held-back event and retry it at the next call of ``EventSource/touched(_:)``. True in four
    /// cases: events woke the app too often, a policy undid a wake-up, this machine does not own the app, or the app
    /// may not be woken before the first unlock.
    func isTriedAgain(_ outcome: WakeOutcome, _ app: AppRuntime) -> Bool {
        guard case .heldBack(_, let until) = outcome else { return false }
        return until != nil || !machine(app).mayRun
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

    /// Called when the states of these apps may have changed.
    package func touched(_ apps: [AppRuntime]) {
        for app in apps {
            if app.pendingWake != nil { tellWoken(app) }
            touchSources(of: app)
        }
    }

    /// If the app now runs, records that the pending event has woken it. If the app will not run, drops the pending
    /// event.
    private func tellWoken(_ app: AppRuntime) {
        guard let pending = app.pendingWake else { return }
        let machine = machine(app)
        guard machine.isAlive else {
            // While the app's launch waits for other apps, for memory, or for a policy, keep the pending event.
            if !machine.isWaitingToLaunch { app.pendingWake = nil }
            return
        }
        if machine.state == .suspended, machine.transition == nil, machine.goal == .suspended {
            // The app was suspended again before it ran. Drop the event, so that the next one wakes the app.
            app.pendingWake = nil
        }
        guard machine.state != .suspended, machine.state != .notRunning, machine.transition != .launching,
            machine.transition != .terminating
        else { return }
        app.pendingWake = nil
        if app.run.wasWokenUntraced != pending.event.isUntraced {
            app.run.wasWokenUntraced = pending.event.isUntraced
            record(app)
        }
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

    /// Called when a user asked for the app. Forgets earlier wake-ups, so that they do not count towards a wake storm.
    package func startedByPerson(_ app: AppRuntime) {
        app.wakes?.forget()
        sockets.startedByPerson(app)
    }

    /// Retries held-back events and queued messages of all apps, because apps may be woken again or because torpord
    /// has just started.
    package func lookAgain() {
        for app in apps {
            touchSources(of: app)
            host.retryMail(of: app)
        }
    }

    /// Called when an app is removed for good.
    package func forget(_ app: AppRuntime) {
        if app.id < concerns.count { concerns[app.id] = Concern() }
        for source in sources { source.forget(app) }
        retryTimers[app.id] = nil
        // Several apps may be removed in one turn of the event loop. `appsLeft` makes the sources stop watching for
        // removed apps: call it once, after the last removal.
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
    /// Whether events may wake the app before the first unlock of the session since the boot.
    var wakesBeforeFirstUnlock: Bool {
        switch self.beforeFirstUnlock {
        case .all: true
        case .unprotected: !self.notifications.contains(.protectedData)
        case .none: false
        }
    }
}

extension AppRuntime {
    /// The event for which torpord is waking the app; nil if there is none.
    package var pendingWake: PendingWake? {
        get { slots[PendingWakeSlot.self] }
        set { slots[PendingWakeSlot.self] = newValue }
    }

    /// The record of wake-ups by events, which limits their number; nil if no event has woken the app.
    package var wakes: WakeLedger? {
        get { slots[WakesSlot.self] }
        set { slots[WakesSlot.self] = newValue }
    }
}

private enum PendingWakeSlot: Slot { typealias Value = PendingWake }
private enum WakesSlot: Slot { typealias Value = WakeLedger }
