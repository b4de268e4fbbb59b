// SPDX-License-Identifier: Apache-2.0

public import Configuration
import EventLoop
import Lifecycle
import Linux
import Notify
import Output
import Processes
import Recovery
import ServiceManager
import Store
import SystemPackage
import TorporAPI
import Varlink
import VarlinkServer

/// The shell around the pure core: facts go in through the loop, actions come out and are carried out.
///
/// Everything runs on one thread. A fact that arises while actions are carried out waits in `facts` until they are
/// done. A request may reach the core meanwhile; what the core decides on it waits in `decided`, so that actions are
/// carried out in the order of the decisions, each wholly before the next.
public final class Supervisor {
    /// The configuration in force.
    var configuration: TorporConfiguration
    /// Whom it names.
    var accounts: NamedAccounts
    let loop: EventLoop
    let keeper: Keeper
    let log: DaemonLog
    let runtime: RuntimeDirectory
    let events = EventLog()
    /// What has happened since the start, in numbers.
    var counters = Counters()
    /// Microseconds since 1970.
    let startedAt = Clock.realtimeMicroseconds()
    let processes: ProcessTable
    let batch: OutputBatch
    /// What the torpord that comes after this one goes on from.
    var recovery: RecoveryFile
    /// What the one before this one left in the keeper.
    let inheritance: Inheritance
    /// What outlives the boot.
    let store: Store
    /// What of that is not stored yet.
    let journal: StoreJournal?
    /// What was remembered is with the apps: from now on it is kept up to date.
    var isRemembered = false
    /// Why nothing can be stored now.
    var storeTrouble: String?
    /// The texts of the configuration in force, for the next torpord.
    var configurationFile: Descriptor?
    /// What torpord was called with.
    let arguments: [String]
    /// The path that the keeper starts torpord by.
    let program: String
    let datagrams = DatagramBuffer()
    /// Policies; nil while nobody wants any.
    var governance: Governance?
    var cgroups: CgroupTree?
    var cgroupTrouble: String?
    /// systemd, where this is a service of it.
    var manager: ServiceManager?
    /// Where apps live under systemd; nil where there is no such place.
    var scope: AppsScope?
    /// What the service manager is told.
    private(set) lazy var service = ServiceReport(self)
    /// Sleep of the machine, and the lock of the session.
    private(set) lazy var interruptions = Interruptions(self)
    var coordinator: Coordinator
    var apps = AppTable()
    var server: VarlinkServer?
    /// What all apps are offered at their own sockets.
    let appService = VarlinkService(
        info: Supervisor.serviceInfo,
        interfaces: [VarlinkInterface(name: AppInterface.name, description: AppInterface.description)]
    )
    var waiters: [Waiter] = []
    /// Commands that run for the supervisor, by process.
    var helpers: [Int32: (ExitStatus) -> Void] = [:]
    /// How many apps' programs are being looked into (``StackLook``).
    var looks = 0
    /// Apps that wait for their share of the machine.
    let profiles = ProfileQueue()
    /// What apps saved of themselves.
    private(set) lazy var stateArchives = StateArchives(loop: loop)
    /// Their own, so that no app waits with its state behind the pictures of others.
    private(set) lazy var snapshotFolders = StateArchives(loop: loop, workers: 2)
    /// How many snapshots are taken at once.
    private(set) lazy var snapshotQueue = SnapshotQueue(loop)
    /// Reads snapshots for clients.
    private(set) lazy var snapshotReads = SideWork(loop, named: "snapshots")
    /// Reads the configuration again: one reading for all who ask before it begins.
    private(set) lazy var configurationReads = Aside(
        loop,
        named: "configuration",
        joining: { (question: inout ConfigurationPlace, _: ConfigurationPlace) in },
        { $0.read() }
    )
    /// Writes the configuration in force down for the next boot.
    private(set) lazy var configurationWrites = SideWork(loop, named: "configuration")
    /// Reads icons for clients, wherever they are.
    private(set) lazy var iconReads = SideWork(loop, named: "icons", isInOrder: false)
    /// Reads files of variables for launches, and looks for those that say that an app is ready: for one app as well as
    /// for another whose disk hangs.
    private(set) lazy var launchReads = SideWork(loop, named: "launches", isInOrder: false)
    /// Looks at the memory of apps that the kernel does not keep to their limits.
    var memoryTimer: TimerSource?
    /// Sees to it that there is memory.
    private(set) lazy var memoryWatch = MemoryWatch(self)
    /// Watches the files of apps.
    private(set) var pathSource: PathSource?
    /// What waits to be told to apps.
    private(set) lazy var mailboxes = Mailboxes(self)
    /// What apps are told of the machine.
    var notifications: Notifications { Notifications(supervisor: self) }
    /// Events that wake apps.
    private(set) lazy var wakes = Wakes(self)
    /// Looks which apps play or record sound in the background.
    private(set) lazy var audioMode = AudioMode(self)
    /// Times that wake apps.
    private(set) lazy var timers = Timers(self)
    /// Sockets that apps are given.
    private(set) lazy var sockets = ListeningSockets(self)
    /// Sockets that apps open themselves.
    private(set) lazy var connectionWatch = ConnectionWatch(self)
    /// Hears where the machine is.
    private(set) lazy var locationMode = LocationMode(self)
    /// Hears what Bluetooth devices do.
    private(set) lazy var bluetoothMode = BluetoothMode(self)
    /// Whether the clock is set, and what day it is.
    private(set) lazy var wallClock = WallClock(self, timers)
    /// Looks for file locks of apps that are suspended.
    private(set) lazy var lockWatch = LockWatch(self)
    /// What a torpord before this one left running, until it is gone.
    var leftOver: [LeftOverApp] = []

    var leftOverTimer: TimerSource?
    var leftOverGone: (() -> Void)?
    var runtimeWatch: IOSource?
    var runtimeRepair: TimerSource?
    /// The programs on disk are looked at.
    var isUpgrading = false
    /// This torpord makes way for the next one.
    var handsOver: HandOver?
    /// The supervisor ends and leaves its apps to the next one (`on_exit = "leave"`).
    private var isLeaving = false
    /// Every app is gone and the loop stops.
    var isFinished = false
    /// What was wrong with the configuration on disk at the start.
    private let invalid: DiagnosticList?
    /// Nothing is carried out any more: all that is left is to end every process.
    var isKeeperLost = false
    /// What waits until the start is over: requests to go by another configuration.
    var afterStart: [() -> Void] = []
    private(set) var isStarted = false
    /// What an earlier torpord left is taken over: from now on nothing waits for a directory of users.
    private var isRecovered = false
    /// Whoever asked to stop has asked once: the next time it hurries.
    private var isAskedToStop = false
    /// Runs until what was begun is over, and nothing of it needs to stay in memory.
    var restTimer: TimerSource?
    var restTries = 0
    var restMark: UInt32?
    /// How each app's last incarnation ended, for those who wait.
    var lastEndings: [AppID: (ending: Ending, text: String)] = [:]

    private enum Fact {
        case event(AppEvent, AppID)
        case work(() -> Void)
    }
    private var facts: [Fact] = []
    /// What the core decided, until it is carried out; those before `nextDecided` are.
    private var decided: [[AppAction]] = []
    private var nextDecided = 0
    private var isDraining = false
    private var isFinishing = false
    private var signals: [SignalSource] = []
    private var paceTimer: TimerSource?

    /// Takes the directory, and nothing else yet.
    ///
    /// - Parameter invalid: what is wrong with the configuration on disk, in whose place this one is in force.
    /// - Throws: ``StartError`` with a sentence.
    public init(
        _ configuration: TorporConfiguration,
        _ startup: Startup,
        insteadOf invalid: DiagnosticList? = nil
    ) throws(StartError) {
        self.configuration = configuration
        self.invalid = invalid
        accounts = NamedAccounts(configuration)
        loop = startup.loop
        keeper = startup.keeper
        // Before the store has a thread.
        let sockets = configuration.apps.reduce(0) { $0 + $1.sockets.count }
        ThisProcess.reserveDescriptors(configuration.apps.count * Self.descriptorsAnApp + sockets + 512)
        inheritance = startup.inheritance
        arguments = startup.arguments
        program = startup.program
        configurationFile = inheritance.take(HeldName.configuration).first
        log = DaemonLog(level: configuration.supervisor.logLevel)
        runtime = try RuntimeDirectory(
            configuration.supervisor,
            lock: inheritance.take(HeldName.lock).first,
            needsLogs: configuration.apps.contains { $0.log == .file || $0.standardError != .log }
        )
        processes = ProcessTable(manager: runtime.socket)
        recovery = try Self.openRecovery(runtime, inheritance, configuration, log)
        batch = try Self.openBatch(runtime, inheritance, configuration, log)
        journal = Self.openJournal(runtime, inheritance, log)
        store = Self.openStore(configuration, startup, journal)
        // Numbers go on where they were, also when the clock was set back.
        events.sequence = Int64(clamping: recovery.nextEvent)
        do throws(DependencyError) {
            coordinator = try Coordinator(configuration.apps.map(Self.definition))
        } catch {
            throw StartError("\(error)")
        }
        coordinator.launchesAtOnce = Self.launchesAtOnce
        findCgroups()
        for (id, app) in configuration.apps.enumerated() {
            apps.append(AppRuntime(id: id, specification: app, supervisor: self))
        }
    }

    static let serviceInfo = VarlinkServiceInfo(
        vendor: "Torpor",
        product: "torpord",
        version: Supervisor.version,
        url: "https://torpor.io"
    )

    /// Its two sockets, its FIFO, its pidfd, and room for what it stores.
    private static let descriptorsAnApp = 5
    /// Enough that no processor waits for the next one.
    private static let launchesAtOnce = max(4, 2 * ThisProcess.processorCount)
    /// A launch that has not come to its exec after this long holds up no other.
    private static let launchPatience = Duration.milliseconds(50)

    /// Runs until a signal ends it, or its main app has ended, and every app is gone. Returns the exit status.
    public func run() throws(StartError) -> Int32 {
        processes.owner = { [weak self] name in
            guard let self, let id = self.coordinator.id(of: name) else { return nil }
            if !self.isRecovered { self.lookUpAccount(of: self.apps[id]) }
            return self.userID(of: self.apps[id])
        }
        keeper.keepsExits = true
        keeper.onExit = { [weak self] record in self?.exited(record) }
        keeper.onHoldRefused = { [weak self] name, error in
            self?.log.warning("the keeper cannot hold \(name): \(error)")
        }
        keeper.onOrphan = { [weak self] record in self?.orphanExited(record) }
        keeper.onLaunched = { [weak self] in self?.launchedForPredecessor($0, $1, $2) }
        keeper.onLost = { [weak self] in self?.keeperLost() }
        do throws(VarlinkServerError) {
            let interface = VarlinkInterface(name: ManagerInterface.name, description: ManagerInterface.description)
            // Without its path nobody finds it: then a new one is made.
            let held = inheritance.take(HeldName.control).first
            var limits = VarlinkServer.Limits()
            // Clients do not take what torpord needs to launch.
            let files = (try? ThisProcess.limit(Self.openFiles).soft) ?? 1024
            limits.connections = min(limits.connections, max(64, Int(clamping: files / 4)))
            server = try VarlinkServer(
                loop: loop,
                path: runtime.socket,
                taking: File.exists(runtime.socket) ? held : nil,
                info: Self.serviceInfo,
                interfaces: [interface],
                limits: limits
            )
        } catch {
            giveUp()
            throw StartError(error.description)
        }
        server?.refusal = { [weak self] peer in
            guard let sentence = self?.accounts.authority.refusal(ofAllBy: peer) else { return nil }
            return VarlinkServer.Refusal(
                error: ManagerInterface.ErrorName.notPermitted,
                parameters: ["message": .string(sentence)]
            )
        }
        server?.handler = { [weak self] call, peer, reply in self?.serve(call, peer, reply) }
        do {
            for number in [Signal.terminate, Signal.interrupt] {
                signals.append(try loop.signal(number) { [weak self] in self?.askToFinish() })
            }
            signals.append(
                try loop.signal(Signal.user2) { [weak self] in self?.upgrade { (_: String?) in } }
            )
            signals.append(
                try loop.signal(Signal.hangup) { [weak self] in self?.apply(ApplyRequest(), by: "SIGHUP", nil) }
            )
            for number in [Signal.user1, Signal.quit] {
                signals.append(
                    try loop.signal(number) { [weak self] in
                        self?.log.info("\(Signal.name(number)) means nothing to this version: ignored")
                    }
                )
            }
        } catch {
            throw StartError("could not listen for signals: \(error)")
        }
        if let cgroupTrouble { log.info(cgroupTrouble) }
        for warning in configuration.warnings { log.warning(warning.description) }
        holdOwnFiles()
        sockets.takeOver()
        connectionWatch.takeOver()
        // Before what nobody has taken of the keeper is let go.
        let pathSource = PathSource(self)
        self.pathSource = pathSource
        wakes.add(pathSource)
        wakes.add(DeviceSource(self))
        wakes.add(MachineNotices(self))
        let fresh = recover()
        isRecovered = true
        for app in apps { record(app) }
        forgetDirectories()
        if configurationFile == nil {
            // It was read from the disk.
            recovery.isDiskInvalid = invalid != nil
            keepConfiguration()
        }
        if let invalid { tellInvalid(invalid) }
        repairRuntimeDirectory()
        watchRuntimeDirectory()
        keeper.settled()
        service.begin()
        store.releaseWrites()
        if keeper.isFallback {
            let text = "the upgrade failed: the torpord on disk did not come up, and the one before it goes on"
            note(.upgradeFailed, text: text)
        }
        govern()
        interruptions.follow(configuration.supervisor)
        memoryWatch.configure()
        wakes.add(audioMode)
        wakes.add(wallClock)
        wakes.add(timers)
        wakes.add(sockets)
        wakes.add(locationMode)
        wakes.add(bluetoothMode)
        wakes.add(connectionWatch)
        wakes.add(KeepAlive(self))
        wakes.configure()
        keepForNextBoot()
        remember(fresh) { [weak self] in
            self?.whenLeftOverIsGone {
                self?.whenGoverned { self?.launchAtStart(fresh) }
            }
        }
        do {
            try loop.run()
        } catch {
            throw StartError("the event loop failed: \(error)")
        }
        governance?.close()
        closeStore(quickly: handsOver != nil)
        let status = isFinished ? exitStatus : 0
        cleanUp(status: status)
        return status
    }

    /// `1 app`, `2 apps`.
    static func count(_ count: Int, _ what: String) -> String { count == 1 ? "1 \(what)" : "\(count) \(what)s" }

    private func launchAtStart(_ fresh: [AppRuntime]) {
        let first = fresh.compactMap { launchAtStart($0) } + mainAtStart
        if recovery.isShuttingDown { isFinishing = true }
        recovery.endsWhatIsFound = false
        perform(coordinator.launch(first, now: loop.now))
        suspendAsBefore(first)
        removeStrangeSnapshots()
        note(
            .started,
            text: "torpord \(Supervisor.version) supervises \(Self.count(apps.count, "app")), control socket "
                + runtime.socket
        )
        settle()
        isStarted = true
        service.launch(first.map(\.app))
        if recovery.readsConfiguration {
            apply(ApplyRequest(), by: "the start after a stop that left the apps", nil)
        }
        timers.begin()
        for work in afterStart { work() }
        afterStart = []
        // What is not launched now may have been waited for.
        for waiter in waiters { check(waiter, nil) }
        wakes.lookAgain()
        followMain()
        restSoon()
    }

    // MARK: Facts in, actions out

    /// Hands a fact to the core, after all that came before it.
    func deliver(_ event: AppEvent, to app: AppID) {
        facts.append(.event(event, app))
        drain()
    }

    /// Asks the core for something on behalf of a person or a policy.
    func request(_ request: Request, of app: AppID) throws(RequestError) {
        perform(try coordinator.request(request, of: app, now: loop.now))
        // A failure that somebody has seen is in the history, and no longer how the app is: it was reset, or stopped while
        // it waited to be restarted.
        let isSeen = request == .reset || request == .stop(.stopped) && !coordinator.machine(app).isAlive
        if isSeen, let reason = apps[app].lastExit.flatMap({ TerminationReason(rawValue: $0.reason) }),
            !reason.wasAskedFor
        {
            apps[app].lastExit = nil
        }
        settle()
    }

    /// Carries out what the core decided, after all that it decided before. It is written down at once: a torpord that is
    /// lost before its turn comes leaves it to the next one.
    func perform(_ outputs: [AppAction]) {
        writeAhead(outputs)
        performWritten(outputs)
    }

    /// Carries out what was written ahead when it was decided.
    func performWritten(_ outputs: [AppAction]) {
        decided.append(outputs)
        if !isDraining { carryOutAll() }
    }

    /// What is decided for an app and not begun yet.
    func decidedActions(of app: AppID) -> ActionMask {
        var mask = ActionMask()
        for outputs in decided[nextDecided...] {
            for output in outputs where output.app == app { mask.formUnion(ActionMask(output.action)) }
        }
        return mask
    }

    /// Does something as if it were a fact: whatever arises from it waits until it is done.
    func uninterrupted(_ work: @escaping () -> Void) {
        facts.append(.work(work))
        drain()
    }

    /// Carries out what the core said to something that is no fact, such as a task.
    func takeIn(_ outputs: [AppAction]) {
        perform(outputs)
        settle()
    }

    private func drain() {
        guard !isDraining else { return }
        carryOutAll()
        settle()
    }

    /// Decisions first: the core is told of the next fact when all that it decided is carried out.
    private func carryOutAll() {
        isDraining = true
        var index = 0
        while true {
            while nextDecided < decided.count {
                nextDecided += 1
                carryOut(decided[nextDecided - 1])
            }
            decided.removeAll(keepingCapacity: true)
            nextDecided = 0
            guard index < facts.count else { break }
            let fact = facts[index]
            index += 1
            switch fact {
            case .event(let event, let app):
                rememberMissedDeadline(event, app)
                let actions = coordinator.handle(event, of: app, now: loop.now)
                traceReady(apps[app], after: event)
                writeAhead(actions)
                carryOut(actions)
            case .work(let work): work()
            }
        }
        facts.removeAll(keepingCapacity: true)
        isDraining = false
    }

    /// After the core has spoken: timers, announcements and those who wait, for every app that was touched.
    private func settle() {
        guard !isDraining else { return }
        for id in coordinator.takePutOff() { armDeadline(apps[id]) }
        let touched = coordinator.takeTouched()
        for id in touched {
            announceTransition(apps[id])
            armDeadline(apps[id])
            checkProfile(apps[id])
            checkSnapshot(apps[id])
            keep(apps[id])
        }
        if let governance, !touched.isEmpty { governance.touched(touched) }
        if !touched.isEmpty { service.touched() }
        if !touched.isEmpty { interruptions.touched(touched) }
        if !touched.isEmpty { wakes.touched(touched) }
        if !touched.isEmpty, !waiters.isEmpty { checkWaiters(touched) }
        if coordinator.isHoldingLaunches { armPace() }
        forgetRemoved()
        followMain()
        finishWhenGone()
    }

    /// Ends the loop once everything is ended that was to be. An end that comes before the store has said what it knows waits
    /// for that, as long as a start does, if a timer makes up for what it misses: one that is new is only kept then.
    func finishWhenGone() {
        guard isFinishing, coordinator.isEverythingGone, apps.allSatisfy({ $0.hooks == nil }) else { return }
        guard isRemembered || !timers.arePersistent else { return }
        isFinished = true
        loop.stop()
    }

    private func armPace() {
        if paceTimer == nil {
            paceTimer = try? loop.timer { [weak self] in
                guard let self else { return }
                self.paceTimer?.disarm()
                self.perform(self.coordinator.passOverLaunches(now: self.loop.now))
                self.settle()
            }
        }
        // Not put off by launches that come to their exec meanwhile: now and then one more beside them does no harm.
        if paceTimer?.deadline == nil { paceTimer?.arm(after: Self.launchPatience) }
    }

    private func armDeadline(_ app: AppRuntime) {
        let next = coordinator.nextDeadline(app.id)
        guard next != app.armedFor else { return }
        app.armedFor = next
        guard let next else {
            // Most apps have none most of the time.
            app.deadlineTimer = nil
            return
        }
        if app.deadlineTimer == nil {
            let id = app.id
            app.deadlineTimer = try? loop.timer { [weak self] in
                guard let self else { return }
                self.apps[id].armedFor = nil
                // What the app has said already counts before any deadline is judged.
                self.hear(self.apps[id])
                if self.restsForTracer(self.apps[id]) { return }
                self.deliver(.deadline, to: id)
            }
        }
        app.deadlineTimer?.arm(at: next)
    }

    private func rememberMissedDeadline(_ event: AppEvent, _ id: AppID) {
        guard event == .deadline else { return }
        let now = loop.now
        let machine = coordinator.machine(id)
        guard let missed = machine.deadlines.first(where: { $0.at <= now }) else { return }
        missedDeadline(missed, apps[id], awaiting: machine.awaitedMessage)
    }

    // MARK: The end

    /// Whether nothing may begin any more.
    var isEnding: Bool { isFinishing || isLeaving || isFinished || handsOver != nil }

    /// SIGTERM or SIGINT: everything is terminated in its order, or left, as `on_exit` says, or because systemd restarts the
    /// service. A second one hurries.
    private func askToFinish() {
        let now = loop.now
        // Or it was when the torpord before this one died.
        let isUnderWay = isFinishing || recovery.isShuttingDown
        let reason = isUnderWay ? nil : reasonToLeaveApps
        if let reason {
            note(.stopping, text: "stopping: the apps run on, and the next torpord takes them over", reason: reason)
            service.stop(leavingApps: true)
            recovery.readsConfiguration = true
            isLeaving = true
            return loop.stop()
        }
        if isFinishing, isAskedToStop {
            log.info("asked again to stop: ending what is left at once")
            for app in apps where coordinator.machine(app.id).isAlive {
                if let outputs = try? coordinator.request(.forceQuit, of: app.id, now: now) { perform(outputs) }
            }
            settle()
        } else if !isUnderWay {
            note(.stopping, text: "stopping: every app is terminated")
            beginToFinish()
        } else {
            log.info("asked to stop: everything is being ended already")
        }
        // The keeper asks again what it asked of a torpord that died before it had finished: that is no hurry.
        isAskedToStop = true
    }

    /// Everything is terminated in its order, and then the supervisor ends.
    func beginToFinish() {
        isFinishing = true
        recovery.isShuttingDown = true
        uninterrupted { [weak self] in
            guard let self else { return }
            self.perform(self.coordinator.shutDown(now: self.loop.now))
            self.service.stop(leavingApps: false)
        }
    }

    /// What is wrong now is wrong the next time too: the keeper ends as well, unless apps of an earlier torpord run.
    private func giveUp() {
        guard keeper.leftOver.isEmpty else { return }
        cgroups?.removeAll()
        scope?.release()
        runtime.remove(apps: [])
        keeper.sayBye()
    }

    private func cleanUp(status: Int32) {
        if let handsOver {
            server?.close(leavingSocket: true)
            keeper.handOver(replacingKeeper: handsOver == .withKeeper)
            return keeper.finishSending()
        }
        if isLeaving {
            for app in apps { app.capture?.close() }
            keeper.sayBye(status: 0, keepingParked: true)
            keeper.finishSending()
        }
        guard isFinished else { return }
        server?.close()
        for app in apps {
            app.capture?.close(remove: true)
            app.notifySocket?.close()
            app.server?.close()
        }
        sockets.closeAll()
        cgroups?.removeAll()
        scope?.release()
        // Before the recovery file goes: without it, and without a good-bye, the next torpord would begin anew.
        keeper.sayBye(status: UInt8(truncatingIfNeeded: status))
        runtime.remove(apps: apps.map(runtime.directory))
    }
}

/// Why the supervisor could not start, in a sentence.
public struct StartError: Error, CustomStringConvertible {
    /// The sentence.
    public let description: String

    init(_ description: String) { self.description = description }
}
