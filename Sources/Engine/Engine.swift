// SPDX-License-Identifier: Apache-2.0

public import EventLoop
public import Lifecycle
import Linux
import TorporAPI

/// Carries out the decisions of the core (module `Lifecycle`), for an ``Engine``.
package protocol ActionPerformer: AnyObject {
    /// Records decisions before any of them is carried out: if torpord dies, the next torpord carries them out.
    func writeAhead(_ outputs: [AppAction])
    /// Carries out decisions that were recorded.
    func carryOut(_ outputs: [AppAction])
    /// Records an app's whole state. Call this after a change that the lifecycle core did not decide: changes that the
    /// core decides are recorded without this call.
    func record(_ app: AppRuntime)
    /// Called before the lifecycle core (the coordinator) handles an event.
    func willHandle(_ event: AppEvent, of app: AppRuntime)
    /// Called after the lifecycle core has handled an event, and before its decisions are carried out.
    func handled(_ event: AppEvent, of app: AppRuntime)
    /// Called when a deadline of an app has passed. Returns false while a debugger is attached to the app, because a
    /// debugger pauses deadlines: the lifecycle core then gets no event `deadline`.
    func isJudged(_ app: AppRuntime) -> Bool
    /// Called when an app has left the configuration and has stopped, after the observers were notified.
    func forget(_ app: AppRuntime)
    /// Called when all actions are carried out and all observers were notified.
    func settled()
}

/// The engine of torpord: events go in, the core (module `Lifecycle`) decides, and its decisions are carried out.
///
/// Everything runs on one thread. An event that occurs while actions are carried out waits until they are done. A
/// request may reach the core in between, but the resulting decisions wait too. So decisions are carried out in
/// order, each completely before the next.
public final class Engine {
    /// The event loop, on which everything runs.
    public let loop: EventLoop
    /// The lifecycle core, which decides and has the lifecycle state of every app.
    public let coordinator: Coordinator
    /// What torpord stores for each app beyond its lifecycle state.
    public let apps = AppTable()
    /// Carries out the lifecycle core's decisions.
    package unowned(unsafe) var performer: (any ActionPerformer)?

    /// Whether the first launches have begun.
    package private(set) var isStarted = false
    /// Work that waits until the first launches have begun.
    private var afterStart: [() -> Void] = []
    /// Whether torpord is shutting down, so that nothing new may begin.
    package var isEnding = false

    private enum Fact {
        case event(AppEvent, AppID)
        case work(() -> Void)
    }
    private var facts: [Fact] = []
    /// Decisions of the lifecycle core. The decisions before the index `nextDecided` are carried out already.
    private var decided: [[AppAction]] = []
    private var nextDecided = 0
    private var isDraining = false
    private var observers: [any LifecycleObserver] = []
    /// Apps that another part of torpord (a ``Room``) marked as changed.
    private var news: Set<AppID> = []
    private var paceTimer: TimerSource?

    /// The maximum number of launches at the same time: enough to keep every processor busy.
    private static let launchesAtOnce = max(4, 2 * ThisProcess.processorCount)
    /// The longest time that a launch waits because of ``launchesAtOnce``. After this time, launches in progress no
    /// longer count towards the limit, so that a few launches that are slow to reach their exec do not block all
    /// others.
    private static let launchPatience = Duration.milliseconds(50)

    /// - Parameter loop: runs the engine, and its clock is the engine's clock.
    package init(_ loop: EventLoop, _ coordinator: Coordinator) {
        self.loop = loop
        self.coordinator = coordinator
        self.coordinator.launchesAtOnce = Self.launchesAtOnce
    }

    /// A copy of the app's lifecycle machine.
    package func machine(_ app: AppID) -> AppMachine { coordinator.machine(app) }

    // MARK: The start

    /// Calls `work` once the first launches have begun, or at once if they have already.
    package func whenStarted(_ work: @escaping () -> Void) { if isStarted { work() } else { afterStart.append(work) } }

    /// Records that the first launches have begun.
    package func started() { isStarted = true }

    /// Runs the work that waited until the first launches have begun.
    package func goOnAfterStart() {
        for work in afterStart { work() }
        afterStart = []
    }

    // MARK: Observers

    /// Adds an observer for the lifecycles of all apps.
    package func add(_ observer: any LifecycleObserver) { observers.append(observer) }

    /// Adds an app that the lifecycle core knows already, and notifies all observers.
    package func add(_ app: AppRuntime) {
        apps.append(app)
        for observer in observers { observer.added(app) }
    }

    /// Notifies all observers that an app entered a state.
    package func entered(_ app: AppRuntime, from: AppState, to: AppState) {
        for observer in observers { observer.entered(app, from: from, to: to) }
    }

    /// Notifies all observers that an incarnation (one run of an app) ended.
    package func ended(_ app: AppRuntime, _ ending: Ending) {
        for observer in observers { observer.ended(app, ending) }
    }

    // MARK: Facts in, actions out

    /// Passes an event to the lifecycle core, after all earlier events.
    package func deliver(_ event: AppEvent, to app: AppID) {
        facts.append(.event(event, app))
        drain()
    }

    /// Passes a request of a user, an event or a policy to the lifecycle core.
    ///
    /// - Throws: ``RequestError`` when the app cannot do what is requested now.
    package func request(_ request: Request, of app: AppID) throws(RequestError) {
        let outputs = try coordinator.request(request, of: app, now: loop.now)
        rememberSeen(request, apps[app])
        perform(outputs)
        settle()
    }

    /// After a reset, or a stop or force quit of an app that has no process, forgets why the app last failed: its status
    /// must no longer show a failure that the user has dealt with. The history still contains the failure. Instead, the
    /// status shows that a user has stopped the app, since it is not launched at the next boot either. Called before the
    /// decisions are recorded, because otherwise the next torpord would show the failure again.
    private func rememberSeen(_ request: Request, _ app: AppRuntime) {
        let reason: TerminationReason
        switch request {
        case .reset:
            if app.lastReason?.wasAskedFor == false || coordinator[app.id].isRearmed { app.lastExit = nil }
            return
        case .stop(.stopped): reason = .stopped
        case .forceQuit: reason = .forceQuit
        default: return
        }
        guard !coordinator[app.id].isAlive, app.lastReason != .stopped, app.lastReason != .forceQuit else { return }
        // An app that has failed stays so until it is stopped or reset.
        let exit = LastExit(reason: reason.rawValue, at: Clock.realtimeMicroseconds())
        app.lastExit = coordinator[app.id].failed ? nil : exit
    }

    /// Records decisions of the lifecycle core at once, and carries them out after all earlier decisions.
    package func perform(_ outputs: [AppAction]) {
        performer?.writeAhead(outputs)
        performWritten(outputs)
    }

    /// Carries out decisions that are already recorded.
    package func performWritten(_ outputs: [AppAction]) {
        decided.append(outputs)
        if !isDraining { carryOutAll() }
    }

    /// Actions that the lifecycle core decided for an app and that have not begun.
    package func decidedActions(of app: AppID) -> ActionMask {
        var mask = ActionMask()
        for outputs in decided[nextDecided...] {
            for output in outputs where output.app == app { mask.formUnion(ActionMask(output.action)) }
        }
        return mask
    }

    /// Runs `work` like an event: events and decisions that it causes wait until it has returned.
    package func uninterrupted(_ work: @escaping () -> Void) {
        facts.append(.work(work))
        drain()
    }

    /// Carries out decisions of the lifecycle core that follow from a direct call and not from an event, for example
    /// from the beginning of a background task.
    package func takeIn(_ outputs: [AppAction]) {
        perform(outputs)
        settle()
    }

    /// Notifies observers about an app, because another part of torpord knows something new about it.
    package func touch(_ app: AppID) {
        news.insert(app)
        settle()
    }

    private func drain() {
        guard !isDraining else { return }
        carryOutAll()
        settle()
    }

    /// Carries out all decisions and events, in order. The lifecycle core gets an event only after all its earlier
    /// decisions are carried out.
    private func carryOutAll() {
        isDraining = true
        var index = 0
        while true {
            while nextDecided < decided.count {
                nextDecided += 1
                performer?.carryOut(decided[nextDecided - 1])
            }
            decided.removeAll(keepingCapacity: true)
            nextDecided = 0
            guard index < facts.count else { break }
            let fact = facts[index]
            index += 1
            switch fact {
            case .event(let event, let app):
                performer?.willHandle(event, of: apps[app])
                let actions = coordinator.handle(event, of: app, now: loop.now)
                performer?.handled(event, of: apps[app])
                performer?.writeAhead(actions)
                performer?.carryOut(actions)
            case .work(let work): work()
            }
        }
        facts.removeAll(keepingCapacity: true)
        isDraining = false
    }

    /// Arms timers and notifies the observers about changed apps, after the lifecycle core has decided.
    package func settle() {
        guard !isDraining else { return }
        for id in coordinator.takePutOff() { armDeadline(apps[id]) }
        var touched = coordinator.takeTouched()
        if !news.isEmpty {
            touched.formUnion(news)
            news = []
        }
        if !touched.isEmpty {
            let touched = touched.map { apps[$0] }
            for app in touched { armDeadline(app) }
            for observer in observers { observer.touched(touched) }
        }
        if coordinator.isHoldingLaunches { armPace() }
        let forgotten = coordinator.takeForgotten()
        for id in forgotten {
            let app = apps[id]
            for observer in observers { observer.forget(app) }
            app.deadlineTimer?.cancel()
            performer?.forget(app)
        }
        if !forgotten.isEmpty {
            // What the forgotten apps had, such as their sockets, is closed now.
            loop.later { [weak self] in
                guard let self else { return }
                self.perform(self.coordinator.launchFollowers(now: self.loop.now))
                self.settle()
            }
        }
        performer?.settled()
    }

    // MARK: Timers

    private func armPace() {
        if paceTimer == nil {
            paceTimer = try? loop.timer { [weak self] in
                guard let self else { return }
                self.paceTimer?.disarm()
                self.perform(self.coordinator.passOverLaunches(now: self.loop.now))
                self.settle()
            }
        }
        // Do not re-arm an armed timer. As a result, the timer may fire less than `launchPatience` after the newest
        // launches began. At most `launchesAtOnce` launches then begin too early, which is harmless.
        if paceTimer?.deadline == nil { paceTimer?.arm(after: Self.launchPatience) }
    }

    private func armDeadline(_ app: AppRuntime) {
        let next = coordinator.nextDeadline(app.id)
        guard next != app.armedFor else { return }
        app.armedFor = next
        guard let next else {
            // Most apps have no deadline most of the time, so a timer for each would waste memory.
            app.deadlineTimer = nil
            return
        }
        if app.deadlineTimer == nil {
            let id = app.id
            app.deadlineTimer = try? loop.timer { [weak self] in
                guard let self else { return }
                self.apps[id].armedFor = nil
                if self.performer?.isJudged(self.apps[id]) ?? true { self.deliver(.deadline, to: id) }
            }
        }
        app.deadlineTimer?.arm(at: next)
    }
}
