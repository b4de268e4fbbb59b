// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
package import Output
import Processes

/// A machine without processes: what the core decides is done at once, or when a test says so.
package final class FakeHands: ActionPerformer, OutputOwner {
    /// What became of each decision, in order: `write 0 launch`, `do 0 launch`.
    package private(set) var diary: [String] = []
    /// Apps that do nothing by themselves.
    package var isIdle: Set<AppID> = []
    /// Runs when decisions are written down.
    package var onWrite: (() -> Void)?
    /// Runs while an action is carried out.
    package var onAction: ((AppRuntime, Action) -> Void)?
    /// Apps of which a debugger, say, keeps the deadlines from being judged.
    package var unjudged: Set<AppID> = []
    package private(set) var forgotten: [String] = []
    package private(set) var recorded = 0
    package private(set) var timesSettled = 0
    /// Written down and not carried out yet.
    package private(set) var owed = 0
    /// The process that stands for those of every app from its launch on: it is looked at, and never told anything.
    package var process: Int32?
    /// A folder in which each app has one that stands for its cgroup, by its name: what is in there a test writes.
    package var cgroups: String?
    package unowned let engine: Engine
    /// Recognises apps of no running supervisor: others on this machine may have apps with the same names.
    private let table = ProcessTable(manager: "/nonexistent/io.torpor")

    package init(_ engine: Engine) {
        self.engine = engine
        engine.performer = self
    }

    package func writeAhead(_ outputs: [AppAction]) {
        onWrite?()
        owed += outputs.count
        for output in outputs { diary.append("write \(output.app) \(Self.name(output.action))") }
    }

    package func carryOut(_ outputs: [AppAction]) {
        for output in outputs {
            owed -= 1
            diary.append("do \(output.app) \(Self.name(output.action))")
            let app = engine.apps[output.app]
            onAction?(app, output.action)
            perform(output.action, app)
            diary.append("done \(output.app) \(Self.name(output.action))")
        }
    }

    package func record(_ app: AppRuntime) { recorded += 1 }
    package func willHandle(_ event: AppEvent, of app: AppRuntime) { diary.append("fact \(app.id) \(event)") }
    package func handled(_ event: AppEvent, of app: AppRuntime) {}
    package func isJudged(_ app: AppRuntime) -> Bool { !unjudged.contains(app.id) }
    package func settled() { timesSettled += 1 }

    package func forget(_ app: AppRuntime) {
        forgotten.append(app.name)
        engine.apps.remove(app)
    }

    private func perform(_ action: Action, _ app: AppRuntime) {
        switch action {
        case .entered(let state):
            app.times.enter(state, at: engine.loop.now)
            engine.entered(app, from: app.lastState, to: state)
            app.lastState = state
        case .ended(let ending):
            engine.ended(app, ending)
            app.run = Incarnation()
        case .launch, .stopProcesses, .signalStop, .killProcesses, .endRemains:
            if !isIdle.contains(app.id) { answer(action, app.id) }
        case .tell, .tellScene, .warn, .signalWatchdog, .continueProcesses, .report, .requestLaunch, .askForAdmission,
            .takeSnapshot,
            .askForMemory:
            break
        }
    }

    /// What a process would do, as facts.
    package func answer(_ action: Action, _ app: AppID) {
        switch action {
        case .launch:
            if let process, let main = try? Identity(of: process) {
                let runtime = engine.apps[app]
                let tag = AppTag(app: runtime.name, incarnation: engine.machine(app).incarnation)
                runtime.run.tree = ProcessTree(
                    tag: tag,
                    main: main,
                    pidfd: try? main.open(),
                    cgroupPath: cgroups.map { $0 + "/" + runtime.name },
                    table: table
                )
            }
            engine.deliver(.launched, to: app)
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

    package func logFile(of app: AppRuntime) -> LogFile { preconditionFailure("nothing is written in these tests") }
    package func outputArrived(_ app: AppRuntime) {}
    package func hold(_ name: String, _ descriptor: Int32) {}
    package func outputTroubled(_ app: AppRuntime, _ sentence: String) {}
}
