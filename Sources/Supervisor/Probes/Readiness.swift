// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux

/// Checks repeatedly whether an app is ready, and reports it to the core. Releasing the last reference ends the checks.
package final class ReadinessProbe {
    private let probe: Probe
    private weak var app: AppRuntime?
    private unowned(unsafe) let supervisor: Supervisor
    private var timer: TimerSource?
    private var current: ProbeTry?
    /// Why the app was not ready at the last try; nil before the first result.
    private(set) var problem: String?
    private var startedAt: Duration?
    /// When an app has been probed for this long and is not ready, ``longProblem`` tells callers that wait for the app
    /// the reason.
    private static let patience = Duration.seconds(5)
    /// The ``problem`` of an app that has been probed for longer than ``patience``; otherwise nil.
    package var longProblem: String? {
        startedAt.map { supervisor.loop.now - $0 >= Self.patience } ?? false ? problem : nil
    }
    /// The last problem with the probe's file that was logged, so that the same problem is not logged again.
    private var said: String?

    init(_ probe: Probe, app: AppRuntime, supervisor: Supervisor) {
        self.probe = probe
        self.app = app
        self.supervisor = supervisor
    }

    func start() {
        startedAt = supervisor.loop.now
        timer = try? supervisor.loop.timer { [weak self] in self?.tryOnce() }
        tryOnce()
    }

    private func tryOnce() {
        guard let app, isLaunching(app) else { return }
        current = ProbeTry(probe, of: app, supervisor, isQuiet: false) { [weak self] problem in self?.tried(problem) }
    }

    private func tried(_ problem: String?) {
        current = nil
        guard let app, isLaunching(app) else { return }
        self.problem = problem
        guard let problem else { return supervisor.deliver(.ready, to: app.id) }
        if case .file(let path) = probe.kind, problem != said, problem != ProbeTry.isMissing(path) {
            said = problem
            supervisor.log.warning("\(app.name) \(problem)")
        }
        timer?.arm(after: probe.interval)
        if longProblem != nil { supervisor.clients?.touched([app]) }
    }

    private func isLaunching(_ app: AppRuntime) -> Bool {
        supervisor.coordinator.machine(app.id).transition == .launching
    }
}

extension Incarnation {
    package var probe: ReadinessProbe? {
        get { slots[ProbeSlot.self] }
        set { slots[ProbeSlot.self] = newValue }
    }
}

private enum ProbeSlot: Slot { typealias Value = ReadinessProbe }
