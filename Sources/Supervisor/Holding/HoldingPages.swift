// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Processes
import TorporAPI
import Varlink

/// Shows a holding page to browsers that wait for an app: while the app starts, torpor-holding accepts the
/// connections that the app does not accept yet (`holding` of a socket).
///
/// Each such launch gets one process of torpor-holding, without privileges, that ends with the launch. If that
/// process cannot be started, or dies, connections wait until the app accepts them.
final class HoldingPages: ShellRoom, LifecycleObserver {
    unowned(unsafe) let supervisor: Supervisor
    /// A thread that reads snapshots and icons.
    private let disk: BackgroundWorker
    private var told: Set<String> = []

    /// The holding page of one app that starts.
    final class Holding {
        /// When the app's start began.
        let since: Duration
        /// Fires when the page is due; after that, at each check of whether the page is still needed.
        var timer: TimerSource?
        /// One end of a pair of sockets: closing it makes torpor-holding end.
        var control: Descriptor?
        /// Reads the byte that torpor-holding sends for each client that it told to try again.
        var news: IOSource?
        var process: Descriptor?
        var isOver = false

        init(since: Duration) { self.since = since }
    }

    init(_ supervisor: Supervisor) {
        self.supervisor = supervisor
        disk = BackgroundWorker(supervisor.loop, named: "holding", isInOrder: false)
    }

    /// The longest time that torpord waits for the first accepted connection of an app that gives no signal when it is
    /// ready, counted from its launch.
    private static let longestSilence = Duration.seconds(120)
    private static let lookAgain = Duration.seconds(10)
    /// The longest time that torpor-holding waits before it answers connections that it finds queued at its start. It
    /// is short because these clients have waited for some time already.
    private static let firstLook = Duration.milliseconds(200)
    private static let nobody: UInt32 = 65534

    func touched(_ apps: [AppRuntime]) {
        for app in apps where app.holding != nil || Self.wants(app) { look(at: app) }
    }

    func forget(_ app: AppRuntime) { end(app) }

    private static func wants(_ app: AppRuntime) -> Bool { app.specification.sockets.contains { $0.holding != nil } }

    private func look(at app: AppRuntime) {
        let machine = machine(app)
        guard !isEnding, Self.wants(app), machine.isWaitingToLaunch || machine.transition == .launching || isSilent(app)
        else {
            return end(app)
        }
        guard app.holding == nil else { return }
        let holding = Holding(since: app.run.launchedAt ?? now)
        app.holding = holding
        let wait = app.specification.sockets.filter { $0.holding != nil }.map(\.holdingAfter).min() ?? .zero
        holding.timer = try? loop.timer { [weak self, weak app, weak holding] in
            guard let self, let app, let holding, app.holding === holding else { return }
            holding.timer = nil
            prepare(app, holding)
        }
        holding.timer?.arm(after: wait)
    }

    /// Whether the app runs, gives no signal when it is ready, and was launched less than ``longestSilence`` ago. Only
    /// the first connection that such an app accepts shows that it is ready.
    private func isSilent(_ app: AppRuntime) -> Bool {
        let machine = machine(app)
        guard machine.isAlive, machine.rules.readiness == .exec, machine.transition != .terminating,
            let began = app.run.launchedAt
        else { return false }
        return machine.state != .suspended && now - began < Self.longestSilence
    }

    /// Ends the app's holding page, which is no longer needed.
    private func end(_ app: AppRuntime) {
        guard let holding = app.holding else { return }
        app.holding = nil
        holding.isOver = true
        holding.timer?.cancel()
        holding.news?.cancel()
        // When this end is closed, torpor-holding completes the responses that it has begun, and then ends.
        holding.control = nil
        if isEnding, let process = holding.process { try? Pidfd.sendSignal(process.raw, Signal.kill) }
    }

    // MARK: The page

    private func prepare(_ app: AppRuntime, _ holding: Holding) {
        let title = app.specification.presentation.title ?? app.name
        let wantsPicture = app.specification.sockets.contains { $0.holding == .snapshot }
        let picture = wantsPicture ? supervisor.snapshots.picture(of: app) : nil
        let (icon, names) = (app.specification.presentation.icon, Account.Names(app.specification))
        disk.ask {
            HoldingDocument.page(
                title: title,
                icon: icon.flatMap { HoldingDocument.icon(AppIcon(file: $0, of: names)) },
                picture: picture.flatMap(HoldingDocument.image)
            )
        } _: { [weak self, weak app] page in
            guard let self, let app, app.holding === holding else { return }
            do throws(LaunchError) {
                try start(app, holding, page)
            } catch {
                tell(app, error.description)
            }
        }
    }

    private func tell(_ app: AppRuntime, _ trouble: String) {
        guard told.insert(app.name).inserted else { return }
        log.warning("\(app.name): browsers see no holding page while it starts: \(trouble)")
    }

    private func start(_ app: AppRuntime, _ holding: Holding, _ document: [UInt8]) throws(LaunchError) {
        guard let program = ThisProcess.companion("torpor-holding", variable: "TORPOR_HOLDING") else {
            throw LaunchError("torpor-holding is neither beside torpord nor in ../libexec/torpor: install it")
        }
        let sockets = supervisor.wakes.sockets.sockets(of: app).filter { $0.specification.holding != nil }
        let listening = sockets.compactMap { $0.descriptor?.raw }
        guard !listening.isEmpty else { return }
        let after = sockets.map(\.specification.holdingAfter).min() ?? .seconds(2)
        func milliseconds(_ time: Duration) -> String { "\(max(0, time.microseconds / 1000))" }
        var plan = LaunchPlan(
            app: app.name,
            incarnation: machine(app).incarnation,
            executable: program,
            arguments: [
                "torpor-holding", milliseconds(after), milliseconds(min(after, Self.firstLook)),
                milliseconds(now - holding.since),
            ],
            environment: [
                "\(AppTag.helperVariable)=1", "TORPOR_MANAGER_SOCKET=\(supervisor.runtime.socket)",
                "TORPOR_APP=\(app.name)", "TORPOR_INCARNATION=\(machine(app).incarnation)",
            ]
        )
        plan.directory = "/"
        plan.isHelper = true
        plan.oomScoreAdjust = ProcessTree.oomScoreForChildren
        if Users.isRoot { plan.user = (Self.nobody, Self.nobody, [Self.nobody]) }
        do throws(Errno) {
            let page = try Memory.file(named: "holding")
            try File.write(page.raw, at: 0, document)
            let (ours, theirs) = try Sockets.pair(.stream)
            plan.passed = [theirs.raw, page.raw] + listening
            holding.control = ours
            holding.news = try loop.watch(ours.raw, .readable) { [weak self, weak app, weak holding] _ in
                guard let self, let app, let holding else { return }
                // If there is nothing to read, torpor-holding has closed its end, which it does once the app accepts
                // connections.
                guard let bytes = try? Descriptor.read(ours.raw, maximum: 64), !bytes.isEmpty else {
                    holding.news?.cancel()
                    return
                }
                supervisor.scenes.clientComesAgain(app)
            }
            supervisor.keeper.launch(plan) { [weak self, weak app] result in
                switch result {
                case .success(let launched):
                    holding.process = launched.pidfd
                    self?.supervisor.launcher.helpers[launched.pid] = { _ in holding.process = nil }
                    // The holding page was ended before its process was launched. The process ends by itself, because
                    // its socket is closed. But if torpord is ending, kill the process now.
                    if holding.isOver, self?.isEnding ?? true { try? Pidfd.sendSignal(launched.pidfd.raw, Signal.kill) }
                case .failure(let failure): if let app { self?.tell(app, failure.description) }
                }
            }
            withExtendedLifetime((theirs, page)) {}
            // If an app gives no signal when it is ready, no event ends its holding page, so check at intervals.
            holding.timer = try loop.timer { [weak self, weak app, weak holding] in
                guard let self, let app, let holding else { return }
                look(at: app)
                if app.holding === holding { holding.timer?.arm(after: Self.lookAgain) }
            }
            holding.timer?.arm(after: Self.lookAgain)
        } catch {
            throw LaunchError("cannot serve the holding page: \(error)")
        }
    }
}

extension AppRuntime {
    fileprivate var holding: HoldingPages.Holding? {
        get { slots[HoldingSlot.self] }
        set { slots[HoldingSlot.self] = newValue }
    }
}

private enum HoldingSlot: Slot { typealias Value = HoldingPages.Holding }
