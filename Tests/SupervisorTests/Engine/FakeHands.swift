// SPDX-License-Identifier: Apache-2.0

import Configuration
import EventLoop
import Lifecycle
import Output

@testable import Supervisor

/// A machine without processes: what the core decides is done at once, or when a test says so.
final class FakeHands: ActionPerformer, OutputOwner {
    /// What became of each decision, in order: `write 0 launch`, `do 0 launch`.
    private(set) var diary: [String] = []
    /// Apps that do nothing by themselves.
    var isIdle: Set<AppID> = []
    /// Runs while an action is carried out.
    var onAction: ((AppRuntime, Action) -> Void)?
    /// Apps of which a debugger, say, keeps the deadlines from being judged.
    var unjudged: Set<AppID> = []
    private(set) var forgotten: [String] = []
    private(set) var recorded = 0
    private(set) var timesSettled = 0
    /// Written down and not carried out yet.
    private(set) var owed = 0
    unowned let engine: Engine

    init(_ engine: Engine) {
        self.engine = engine
        engine.performer = self
    }

    func writeAhead(_ outputs: [AppAction]) {
        owed += outputs.count
        for output in outputs { diary.append("write \(output.app) \(Self.name(output.action))") }
    }

    func carryOut(_ outputs: [AppAction]) {
        for output in outputs {
            owed -= 1
            diary.append("do \(output.app) \(Self.name(output.action))")
            let app = engine.apps[output.app]
            onAction?(app, output.action)
            perform(output.action, app)
            diary.append("done \(output.app) \(Self.name(output.action))")
        }
    }

    func record(_ app: AppRuntime) { recorded += 1 }
    func willHandle(_ event: AppEvent, of app: AppRuntime) { diary.append("fact \(app.id) \(event)") }
    func handled(_ event: AppEvent, of app: AppRuntime) {}
    func isJudged(_ app: AppRuntime) -> Bool { !unjudged.contains(app.id) }
    func settled() { timesSettled += 1 }

    func forget(_ app: AppRuntime) {
        forgotten.append(app.name)
        engine.apps.remove(app)
    }

    private func perform(_ action: Action, _ app: AppRuntime) {
        switch action {
        case .entered(let state):
            engine.entered(app, from: app.lastState, to: state)
            app.lastState = state
        case .ended(let ending):
            engine.ended(app, ending)
            app.run = Incarnation()
        case .launch, .stopProcesses, .signalStop, .killProcesses, .endRemains:
            if !isIdle.contains(app.id) { answer(action, app.id) }
        case .tell, .warn, .signalWatchdog, .continueProcesses, .report, .requestLaunch, .askForAdmission,
            .takeSnapshot,
            .askForMemory:
            break
        }
    }

    /// What a process would do, as facts.
    func answer(_ action: Action, _ app: AppID) {
        switch action {
        case .launch: engine.deliver(.launched, to: app)
        case .stopProcesses: engine.deliver(.stopConfirmed, to: app)
        case .signalStop: engine.deliver(.mainExited(.exited(code: 0)), to: app)
        case .killProcesses:
            engine.deliver(.mainExited(.signaled(9, coreDumped: false)), to: app)
            engine.deliver(.allGone, to: app)
        case .endRemains: engine.deliver(.allGone, to: app)
        default: break
        }
    }

    private static func name(_ action: Action) -> String {
        String("\(action)".prefix { $0 != "(" })
    }

    // MARK: Output

    func logFile(of app: AppRuntime) -> LogFile { preconditionFailure("nothing is written in these tests") }
    func outputArrived(_ app: AppRuntime) {}
    func hold(_ name: String, _ descriptor: Int32) {}
    func warn(_ sentence: String) {}
}

/// An engine with apps, and what it had done.
struct FakeShell {
    let engine: Engine
    let hands: FakeHands

    /// - Parameter apps: the apps, in the order of their ids.
    init(_ apps: [AppDefinition]) throws {
        engine = Engine(try EventLoop(), try Coordinator(apps))
        hands = FakeHands(engine)
        for (id, app) in apps.enumerated() {
            engine.apps.append(AppRuntime(id: id, specification: AppSpecification(name: app.name), owner: hands))
        }
    }

    init(_ names: String...) throws { try self.init(names.map { AppDefinition(name: $0) }) }

    func state(_ app: AppID) -> AppState { engine.machine(app).state }
}

/// Writes down what it is told.
final class FakeObserver: LifecycleObserver {
    private(set) var diary: [String] = []
    /// What it last heard of each app's state.
    private(set) var states: [AppID: AppState] = [:]
    private(set) var endings: [AppID: Int] = [:]
    private(set) var forgotten: [AppID] = []
    /// Runs when apps are touched.
    var onTouch: (([AppRuntime]) -> Void)?
    /// Runs when an app ends.
    var onEnd: ((AppRuntime) -> Void)?

    func entered(_ app: AppRuntime, from: AppState, to: AppState) {
        diary.append("\(app.name) \(from.rawValue) → \(to.rawValue)")
        states[app.id] = to
    }

    func ended(_ app: AppRuntime, _ ending: Ending) {
        diary.append("\(app.name) ended")
        endings[app.id, default: 0] += 1
        onEnd?(app)
    }

    func touched(_ apps: [AppRuntime]) {
        diary.append("touched " + apps.map(\.id).sorted().map(String.init).joined(separator: ","))
        onTouch?(apps)
    }

    func forget(_ app: AppRuntime) {
        diary.append("\(app.name) forgotten")
        forgotten.append(app.id)
    }
}
