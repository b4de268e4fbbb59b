// SPDX-License-Identifier: Apache-2.0

package import Archives
package import Configuration
package import Engine
import EventLoop
package import EventSources
import Lifecycle
import Linux
package import MemoryPressure
import Notify
package import Output
package import Processes
package import Recovery
import ServiceManager
package import Store
import SystemPackage
import TorporAPI
import Varlink
package import VarlinkServer

/// The shell around the core, which itself does no I/O: it passes events to the core, and carries out the actions that
/// the core returns.
///
/// Everything runs on one thread, in an order that ``Engine`` determines.
package final class Supervisor: Room {
    /// The configuration in force.
    package let inForce: ConfigurationInForce
    package var configuration: TorporConfiguration { inForce.configuration }
    /// The core, and the queue that carries out the core's decisions in order.
    package let engine: Engine
    package let keeper: Keeper
    /// Reports what happens, to the log, the journal, the history and clients.
    package let recorder: Recorder
    package let runtime: RuntimeDirectory
    package var events: EventLog { recorder.events }
    package let processes: ProcessTable
    let batch: OutputBatch
    /// The file in which the next torpord finds the state of the apps.
    package let recovery: RecoveryFile
    /// The descriptors that the previous torpord left in torpor-keeper.
    package let inheritance: InheritedDescriptors
    package let store: Store
    /// Loads and saves the state that survives a reboot.
    package private(set) lazy var persistence = Persistence(self, store)
    /// The arguments that torpord was started with.
    let invocation: Invocation
    /// Asks the configured policies for decisions, and follows them; nil while no policy is configured.
    package var policyManager: PolicyManager?
    /// Reports to the service manager.
    package private(set) lazy var service = ServiceReport(self)
    private lazy var session = SessionRooms(self)
    /// Interrupts apps while the machine sleeps or the session is locked.
    package var interruptions: Interruptions { session.interruptions }
    var ownershipClock: OwnershipClock { session.ownershipClock }
    /// The helper process in a user's desktop session, which shows alerts and reports the focus.
    package var desktop: Desktop { session.desktop }
    /// What users are doing in apps.
    package var activities: Activities { session.activities }
    /// Alerts that apps show to users.
    package var alerts: AppAlerts { session.alerts }
    /// The apps' own sockets, and the messages on them.
    private(set) lazy var appSockets = AppSockets(self)
    package private(set) lazy var launcher = Launcher(self)
    /// The systemd scope and the cgroups in which apps run.
    package private(set) lazy var place = AppsPlace(self)
    /// The sockets on which apps send sd_notify messages, and the descriptors that apps store by such messages.
    private(set) lazy var notifySockets = NotifySockets(self)
    /// Takes over from an earlier torpord.
    private(set) lazy var takeover = Takeover(self)
    /// Makes the runtime directory again after it was removed.
    private(set) lazy var runtimeRepair = RuntimeRepair(self)
    /// Ends the supervisor, with or without its apps.
    package private(set) lazy var shutdown = Shutdown(self)
    /// Releases memory when a start or a change of the configuration is over.
    package private(set) lazy var rest = MemoryTrim(self)
    /// Upgrades torpord and torpor-keeper to the programs on disk.
    package private(set) lazy var upgrades = Upgrade(self)
    /// Stops, continues and ends processes.
    package private(set) lazy var processControl = ProcessControl(self)
    /// Makes a report when an app fails.
    private(set) lazy var reports = Reports(self)
    /// Answers clients of the control socket. It must be set before ``run()``.
    package var clients: (any ClientService)?
    /// The state that apps have saved, in archives.
    package private(set) lazy var savedStates = SavedStates(engine, recorder, self)
    /// The last snapshot of each app.
    package private(set) lazy var snapshots = Snapshots(engine, recorder, self, savedStates)
    /// The folders that apps keep their data in.
    package private(set) lazy var dataFolders = DataFolders(self)
    /// Applies the resource profiles and limits of apps.
    package private(set) lazy var shares = Shares(self)
    /// Watches memory pressure and evicts apps.
    package private(set) lazy var memoryWatch = MemoryWatch(engine, recorder, self)
    /// Messages that wait for apps.
    package private(set) lazy var mailboxes = Mailboxes(engine, recorder, self)
    /// The values of the apps' settings.
    package private(set) lazy var settings = Settings(self)
    /// Downloads and uploads for apps.
    package private(set) lazy var transfers = AppTransfers(self)
    /// Events that wake apps.
    package private(set) lazy var wakes = Wakes(engine, recorder, self)
    /// Apps that are instances of templates.
    package private(set) lazy var scenes = Scenes(self)
    /// Scenes that apps show in their own process.
    package var innerScenes: InnerScenes { scenes.inner }
    /// Looks for file locks that suspended apps hold.
    private(set) lazy var lockWatch = LockWatch(engine, recorder)
    /// Whether torpor-keeper is lost. If so, this torpord carries out no more actions, because another torpord takes
    /// over or all apps are ended.
    package var isKeeperLost = false
    private var signals: [SignalSource] = []

    /// Claims the runtime directory. Everything else begins in ``run()``.
    ///
    /// - Parameter invalid: the errors of the configuration on disk, if `configuration` is used in its place;
    ///   otherwise nil.
    /// - Throws: ``StartError`` with a sentence.
    package init(
        _ configuration: TorporConfiguration,
        _ startup: Startup,
        insteadOf invalid: DiagnosticList? = nil
    ) throws(StartError) {
        let roster = SceneRoster(state: configuration.supervisor.stateDirectory)
        let configuration = roster.complete(configuration)
        let loop = startup.loop
        keeper = startup.keeper
        // Enlarge the descriptor table before the store starts a thread: once a process has several threads, each
        // growth of the table takes 10 to 30 ms.
        let sockets = configuration.apps.reduce(0) { $0 + $1.sockets.count }
        ThisProcess.reserveDescriptors(configuration.apps.count * Self.descriptorsAnApp + sockets + 512)
        inheritance = startup.inheritance
        invocation = startup.invocation
        let inherited = inheritance.take(DescriptorName.configuration).first
        let log = DaemonLog(level: configuration.supervisor.logLevel)
        runtime = try RuntimeDirectory(
            configuration.supervisor,
            lock: inheritance.take(DescriptorName.lock).first,
            needsLogs: configuration.apps.contains { $0.log == .file || $0.standardError != .log }
        )
        processes = ProcessTable(manager: runtime.socket)
        recovery = try Self.openRecovery(runtime, inheritance, configuration, log)
        batch = try Self.openBatch(runtime, inheritance, configuration, log)
        store = Persistence.openStore(
            configuration,
            startup,
            Persistence.openJournal(runtime, inheritance, log)
        )
        let events = EventLog()
        // Event numbers continue from the last one, even if the clock was set back.
        events.sequence = Int64(clamping: recovery.nextEvent)
        do throws(DependencyError) {
            engine = Engine(loop, try Coordinator(configuration.apps.map { AppDefinition($0) }))
        } catch {
            throw StartError("\(error)")
        }
        let (file, kept) = (recovery, store)
        recorder = Recorder(engine, log, events, keepEvent: { kept.append($0) }, keepNumber: { file.nextEvent = $0 })
        inForce = ConfigurationInForce(
            configuration,
            invalid,
            inherited,
            roster,
            engine,
            recorder,
            runtime,
            recovery,
            keeper
        )
        engine.performer = self
        for (id, app) in configuration.apps.enumerated() {
            apps.append(AppRuntime(id: id, specification: app, owner: self))
        }
    }

    package static let serviceInfo = VarlinkServiceInfo(
        vendor: "Torpor",
        product: "torpord",
        version: Supervisor.version,
        url: "https://torpor.io"
    )

    var controlListener: Descriptor? { clients?.listener }

    /// Makes the control socket again after its path was removed.
    package func listenAgain() throws(VarlinkServerError) {
        try clients?.listenAgain()
        if let controlListener { hold(DescriptorName.control, controlListener.raw) }
    }

    /// How many descriptors each app needs: two sockets, a FIFO, pidfds of its main process and of its delegate, and one
    /// for descriptors that the app stores.
    private static let descriptorsAnApp = 6

    /// Runs until every app is gone after a signal or the end of the main app. Returns the exit status.
    package func run() throws(StartError) -> Int32 {
        processes.owner = { [weak self] name in
            guard let self, let id = self.coordinator.id(of: name) else { return nil }
            if !self.takeover.isOver { self.launcher.lookUpAccount(of: self.apps[id]) }
            return self.launcher.userID(of: self.apps[id])
        }
        keeper.keepsExits = true
        keeper.onExit = { [weak self] record in self?.exited(record) }
        keeper.onHoldRefused = { [weak self] name, error in
            self?.log.warning("the keeper cannot hold \(name): \(error)")
            guard let self, error == .resourceBusy, let app = DescriptorName.appOfStore(name),
                let id = self.coordinator.id(of: app)
            else { return }
            self.notifySockets.pauseStore(of: self.apps[id])
        }
        keeper.onOrphan = { [weak self] record in self?.orphanExited(record) }
        keeper.onLaunched = { [weak self] in self?.takeover.launchedForPredecessor($0, $1, $2) }
        keeper.onLost = { [weak self] in self?.keeperLost() }
        do throws(VarlinkServerError) {
            try clients?.listen(taking: inheritance.take(DescriptorName.control).first)
        } catch {
            giveUp()
            throw StartError(error.description)
        }
        do {
            for number in [Signal.terminate, Signal.interrupt] {
                signals.append(try loop.signal(number) { [weak self] in self?.shutdown.ask() })
            }
            signals.append(
                try loop.signal(Signal.user2) { [weak self] in self?.upgrades.begin { (_: String?) in } }
            )
            signals.append(
                try loop.signal(Signal.hangup) { [weak self] in self?.clients?.apply(by: "SIGHUP") }
            )
            for number in [Signal.user1, Signal.quit] {
                signals.append(
                    try loop.signal(number) { [weak self] in
                        self?.log.info("ignored \(Signal.name(number)): this version does not use it")
                    }
                )
            }
        } catch {
            throw StartError("could not listen for signals: \(error)")
        }
        if let trouble = place.trouble { log.info(trouble) }
        for warning in configuration.warnings { log.warning(warning.description) }
        // The engine notifies the observers in this order.
        let observers: [any LifecycleObserver] = [
            Announcements(engine, recorder), launcher, persistence, shares, snapshots, savedStates, memoryWatch,
            lockWatch, shares.gpuWatch, appSockets,
            service,
            interruptions, mailboxes, settings, permissions, permissions.denials, wakes,
            dataFolders, protection, transfers, alerts, scenes,
            activities,
            innerScenes, HoldingPages(self), reports.failureCommands,
            Covers(self), launcher.healthChecks, desktop.soundFocus, desktop.focus,
        ]
        for observer in observers { engine.add(observer) }
        if let clients { engine.add(clients) }
        holdOwnFiles()
        settings.takeOver()
        desktop.takeOver()
        wakes.takeOver()
        activities.claim()
        permissions.denials.claim()
        launcher.environments.claim()
        // A launch that a policy of the earlier torpord has put off does not begin before the policies are loaded.
        if !configuration.supervisor.policies.isEmpty {
            perform(coordinator.setAsksForAdmission(true, now: loop.now))
        }
        let fresh = takeover.recover()
        takeover.isOver = true
        activities.takeOver()
        permissions.denials.begin()
        launcher.environments.takeOver()
        for app in apps { record(app) }
        suspendUnowned()
        ownershipClock.begin()
        forgetDirectories()
        inForce.begin()
        runtimeRepair.begin()
        appSockets.renewLost()
        keeper.settled()
        service.begin()
        store.releaseWrites()
        if keeper.isFallback {
            let text = "the upgrade failed: the torpord on disk did not start, so the previous one continues"
            note(.upgradeFailed, text: text)
        }
        govern()
        protection.configure()
        interruptions.follow(configuration.supervisor)
        memoryWatch.configure()
        dataFolders.configure()
        launcher.tidyBundles()
        wakes.begin()
        desktop.begin()
        scenes.begin()
        innerScenes.begin()
        inForce.keepForNextBoot()
        persistence.remember(fresh) { [weak self] in
            self?.takeover.whenLeftOverIsGone {
                self?.whenGoverned { self?.launchAtStart(fresh) }
            }
        }
        do {
            try loop.run()
        } catch {
            throw StartError("the event loop failed: \(error)")
        }
        policyManager?.close()
        persistence.close(quickly: shutdown.handsOver != nil)
        let status = shutdown.isFinished ? shutdown.exitStatus : 0
        cleanUp(status: status)
        return status
    }

    private func launchAtStart(_ fresh: [AppRuntime]) {
        let first = fresh.compactMap { launchAtStart($0) } + shutdown.mainAtStart
        shutdown.goOn()
        recovery.endsWhatIsFound = false
        perform(coordinator.launch(first, now: loop.now))
        suspendAsBefore(first.map(\.app))
        snapshots.takeStock()
        note(
            .started,
            text: "torpord \(Supervisor.version) supervises \(Readable.count(apps.count, "app")), control socket "
                + runtime.socket
        )
        engine.settle()
        engine.started()
        service.launch(first.map(\.app))
        if recovery.readsConfiguration {
            clients?.apply(by: "the start after a stop that left the apps running")
        }
        wakes.timers.begin()
        alerts.begin()
        engine.goOnAfterStart()
        // Calls of clients may wait for apps that are not launched at the start: check these calls now.
        clients?.begin()
        wakes.lookAgain()
        shutdown.followMain()
        rest.soon()
    }

    // MARK: The end

    /// Called after a failed start. torpor-keeper must end too, since the next start would fail in the same way, unless
    /// apps of an earlier torpord still run.
    private func giveUp() {
        guard keeper.endsWithoutApps() else { return }
        place.cgroups?.removeAll()
        place.scope?.release()
        runtime.remove(apps: [])
        keeper.sayBye()
    }

    private func cleanUp(status: Int32) {
        if let handsOver = shutdown.handsOver {
            clients?.close(leavingSocket: true)
            for app in apps { app.server?.closeConnectionsBeforeExit() }
            keeper.handOver(replacingKeeper: handsOver == .withKeeper)
            return keeper.finishSending()
        }
        transfers.endHelpers()
        desktop.endHelper()
        if shutdown.isLeaving {
            if !shutdown.isFinished { clients?.close(leavingSocket: true) }
            for app in apps {
                app.capture?.close()
                app.server?.closeConnectionsBeforeExit()
            }
            keeper.sayBye(status: 0, keepingParked: true)
            keeper.finishSending()
        }
        guard shutdown.isFinished else { return }
        clients?.close(leavingSocket: false)
        for app in apps {
            app.capture?.close(remove: true)
            app.notifySocket?.close()
            app.server?.close()
        }
        wakes.sockets.closeAll()
        place.cgroups?.removeAll()
        place.scope?.release()
        // Send this message before the recovery file is removed. If torpor-keeper found neither the message nor the
        // file, it would start another torpord, and that would begin without any state.
        keeper.sayBye(status: UInt8(truncatingIfNeeded: status))
        runtime.remove(apps: apps.map(runtime.directory))
    }
}

extension Supervisor: OutputOwner {
    package func logFile(of app: AppRuntime) -> LogFile { launcher.logFile(of: app) }

    package func outputArrived(_ app: AppRuntime) { launcher.outputArrived(app) }

    package func outputTroubled(_ app: AppRuntime, _ sentence: String) {
        guard app.logTroubles.mayBeNoted(now: loop.now) else { return log.warning("\(app.name): \(sentence)") }
        note(app, .logTroubled, text: sentence)
    }
}

/// Why the supervisor could not start, in a sentence.
package struct StartError: Error, CustomStringConvertible {
    package let description: String
    /// Whether a retry may succeed, because the only problem was a lack of descriptors or memory.
    package let mayPass: Bool

    package init(_ description: String, mayPass: Bool = false) {
        self.description = description
        self.mayPass = mayPass
    }
}

/// Limits the events about an app's log: a disk that is nearly full fails and works again all the time.
private struct LogTroubles {
    private static let most = 10
    private static let window = Duration.seconds(3600)

    private var began = Duration.zero
    private var count = 0

    mutating func mayBeNoted(now: Duration) -> Bool {
        if count == 0 || now - began >= Self.window { (began, count) = (now, 0) }
        count += 1
        return count <= Self.most
    }
}

private enum LogTroublesSlot: Slot { typealias Value = LogTroubles }

extension AppRuntime {
    fileprivate var logTroubles: LogTroubles {
        get { slots[LogTroublesSlot.self, default: LogTroubles()] }
        set { slots[LogTroublesSlot.self] = newValue }
    }
}
