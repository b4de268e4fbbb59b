// SPDX-License-Identifier: Apache-2.0

package import EventLoop
package import Lifecycle
import Linux

/// Carries out what the core decides, for an ``Engine``.
package protocol ActionPerformer: AnyObject {
    /// Writes down what was decided, before anything of it is done: a torpord that is lost then leaves it to the next one.
    func writeAhead(_ outputs: [AppAction])
    /// Does what was written down.
    func carryOut(_ outputs: [AppAction])
    /// Writes all that is known of an app down, since what the shell knows of it has changed.
    func record(_ app: AppRuntime)
    /// The core is about to be told of a fact.
    func willHandle(_ event: AppEvent, of app: AppRuntime)
    /// The core was told of a fact; what it decided is not carried out yet.
    func handled(_ event: AppEvent, of app: AppRuntime)
    /// A deadline of an app has passed. Returns whether it is judged; else it is looked at again when the core says so.
    func isJudged(_ app: AppRuntime) -> Bool
    /// An app has left the configuration and come to rest. Observers have forgotten it.
    func forget(_ app: AppRuntime)
    /// All is carried out, and everybody has heard of it.
    func settled()
}

/// The heart of the shell: facts go in, the core decides, and what it decided is carried out.
///
/// Everything runs on one thread. A fact that arises while actions are carried out waits until they are done. A request may
/// reach the core meanwhile; what the core decides on it waits too, so that actions are carried out in the order of the
/// decisions, each wholly before the next.
package final class Engine {
    package let loop: EventLoop
    /// The core: what is decided, and the state of every app.
    package let coordinator: Coordinator
    /// The apps, as the shell has them.
    package let apps = AppTable()
    /// Who does what is decided.
    package unowned(unsafe) var performer: (any ActionPerformer)?

    /// The first launches are begun.
    package private(set) var isStarted = false
    /// What waits until then.
    private var afterStart: [() -> Void] = []
    /// The supervisor ends: nothing may begin any more.
    package var isEnding = false

    private enum Fact {
        case event(AppEvent, AppID)
        case work(() -> Void)
    }
    private var facts: [Fact] = []
    /// What the core decided, until it is carried out; those before `nextDecided` are.
    private var decided: [[AppAction]] = []
    private var nextDecided = 0
    private var isDraining = false
    private var observers: [any LifecycleObserver] = []
    /// Apps of which a room knows something new.
    private var news: Set<AppID> = []
    private var paceTimer: TimerSource?

    /// Enough that no processor waits for the next one.
    private static let launchesAtOnce = max(4, 2 * ThisProcess.processorCount)
    /// A launch that has not come to its exec after this long holds up no other.
    private static let launchPatience = Duration.milliseconds(50)

    /// - Parameter loop: what runs it, and whose time it goes by.
    package init(_ loop: EventLoop, _ coordinator: Coordinator) {
        self.loop = loop
        self.coordinator = coordinator
        self.coordinator.launchesAtOnce = Self.launchesAtOnce
    }

    /// Where an app is, as the core has it.
    package func machine(_ app: AppID) -> AppMachine { coordinator.machine(app) }

    // MARK: The start

    /// Calls back when the first launches are begun: at once where they are.
    package func whenStarted(_ work: @escaping () -> Void) { if isStarted { work() } else { afterStart.append(work) } }

    /// The first launches are begun.
    package func started() { isStarted = true }

    /// What waited for the start is done.
    package func goOnAfterStart() {
        for work in afterStart { work() }
        afterStart = []
    }

    // MARK: Observers

    /// From now on it hears of all that apps go through.
    package func add(_ observer: any LifecycleObserver) { observers.append(observer) }

    /// Takes in one app more, of which the core knows, and tells all observers.
    package func add(_ app: AppRuntime) {
        apps.append(app)
        for observer in observers { observer.added(app) }
    }

    /// Tells all observers of a state.
    package func entered(_ app: AppRuntime, from: AppState, to: AppState) {
        for observer in observers { observer.entered(app, from: from, to: to) }
    }

    /// Tells all observers of an ending.
    package func ended(_ app: AppRuntime, _ ending: Ending) {
        for observer in observers { observer.ended(app, ending) }
    }

    // MARK: Facts in, actions out

    /// Hands a fact to the core, after all that came before it.
    package func deliver(_ event: AppEvent, to app: AppID) {
        facts.append(.event(event, app))
        drain()
    }

    /// Asks the core for something on behalf of a person, an event or a policy.
    ///
    /// - Throws: ``RequestError`` when the app cannot do that now.
    package func request(_ request: Request, of app: AppID) throws(RequestError) {
        perform(try coordinator.request(request, of: app, now: loop.now))
        // A failure that somebody has seen is in the history, and no longer how the app is: it was reset, or stopped while
        // it waited to be restarted.
        let isSeen = request == .reset || request == .stop(.stopped) && !coordinator.machine(app).isAlive
        if isSeen, let reason = apps[app].lastReason, !reason.wasAskedFor { apps[app].lastExit = nil }
        settle()
    }

    /// Carries out what the core decided, after all that it decided before. It is written down at once.
    package func perform(_ outputs: [AppAction]) {
        performer?.writeAhead(outputs)
        performWritten(outputs)
    }

    /// Carries out what was written ahead when it was decided.
    package func performWritten(_ outputs: [AppAction]) {
        decided.append(outputs)
        if !isDraining { carryOutAll() }
    }

    /// What is decided for an app and not begun yet.
    package func decidedActions(of app: AppID) -> ActionMask {
        var mask = ActionMask()
        for outputs in decided[nextDecided...] {
            for output in outputs where output.app == app { mask.formUnion(ActionMask(output.action)) }
        }
        return mask
    }

    /// Does something as if it were a fact: whatever arises from it waits until it is done.
    package func uninterrupted(_ work: @escaping () -> Void) {
        facts.append(.work(work))
        drain()
    }

    /// Carries out what the core said to something that is no fact, such as a task.
    package func takeIn(_ outputs: [AppAction]) {
        perform(outputs)
        settle()
    }

    /// A room knows something new of an app: those who follow it look at it again.
    package func touch(_ app: AppID) {
        news.insert(app)
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

    /// After the core has spoken: timers, and everybody who follows the apps that were touched.
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
        for id in coordinator.takeForgotten() {
            let app = apps[id]
            for observer in observers { observer.forget(app) }
            app.deadlineTimer?.cancel()
            performer?.forget(app)
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
                if self.performer?.isJudged(self.apps[id]) ?? true { self.deliver(.deadline, to: id) }
            }
        }
        app.deadlineTimer?.arm(at: next)
    }
}
