// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Processes

/// Reads how long processes have kept the engines of graphics cards busy. Tests replace it.
protocol EngineTimeReader: Sendable {
    /// The times for which these processes have used the engines so far. Called on a background thread, because a
    /// graphics driver may block the read.
    func times(of processes: [Int32]) -> EngineTimes
}

/// Reads the times that the kernel reports.
struct KernelEngineTimes: EngineTimeReader {
    func times(of processes: [Int32]) -> EngineTimes { EngineTimes.read(processes) }
}

/// Finds apps that use a graphics card in the background (`gpu_background`).
///
/// An app is measured once each time that it enters the background. The measurement begins after ``patience``, when the
/// card has finished what the app drew on leaving the foreground, and lasts ``interval``. If the app uses more than
/// ``share`` of an engine's time, it counts as using the card.
final class GPUWatch: Room, LifecycleObserver {
    let engine: Engine
    let recorder: Recorder
    private let reader: any EngineTimeReader
    private let worker: BackgroundWorker

    /// How long an app must be in the background before the measurement begins.
    static let patience = Duration.seconds(5)
    /// The time between the two readings of a measurement.
    static let interval = Duration.seconds(2)
    /// The share of an engine's time above which an app counts as using the graphics card; 0.01 is 1 %.
    static let share = 0.01
    /// The most processes of an app that are measured.
    private static let mostProcesses = 256

    init(_ engine: Engine, _ recorder: Recorder, _ reader: any EngineTimeReader = KernelEngineTimes()) {
        self.engine = engine
        self.recorder = recorder
        self.reader = reader
        worker = BackgroundWorker(engine.loop, named: "gpu", isInOrder: false)
    }

    func touched(_ apps: [AppRuntime]) {
        for app in apps {
            guard app.specification.gpuBackground != .ignore else {
                if app.run.gpuLook != nil { app.run.gpuLook = nil }
                continue
            }
            guard isInBackground(app) else {
                // The app has left the background: drop its measurement, so that the app is measured again when it
                // returns there.
                if app.run.gpuLook != nil { app.run.gpuLook = nil }
                continue
            }
            if app.run.gpuLook == nil { begin(app) }
        }
    }

    func ended(_ app: AppRuntime, _ ending: Ending) {}

    func forget(_ app: AppRuntime) {}

    private func isInBackground(_ app: AppRuntime) -> Bool {
        let machine = machine(app)
        return machine.state == .background && machine.transition == nil && app.run.tree != nil
    }

    private func begin(_ app: AppRuntime) {
        let look = GPULook()
        app.run.gpuLook = look
        look.timer = try? loop.timer { [weak self, weak app, weak look] in
            guard let self, let app, let look, app.run.gpuLook === look else { return }
            look.timer?.disarm()
            self.read(app, look)
        }
        look.timer?.arm(after: Self.patience)
    }

    private func read(_ app: AppRuntime, _ look: GPULook) {
        guard isInBackground(app), let tree = app.run.tree else { return }
        let (reader, processes) = (reader, tree.members(atMost: Self.mostProcesses).pids)
        worker.ask {
            (times: reader.times(of: processes), at: Clock.monotonic())
        } _: { [weak self, weak app] found in
            guard let self, let app, app.run.gpuLook === look, self.isInBackground(app) else { return }
            guard let first = look.first else {
                look.first = found
                look.timer?.arm(after: Self.interval)
                return
            }
            look.timer = nil
            guard let busiest = found.times.busiest(since: first.times, over: found.at - first.at),
                busiest.share > Self.share
            else { return }
            self.found(app, busiest.engine, busiest.share)
        }
    }

    private func found(_ app: AppRuntime, _ engine: EngineTimes.Engine, _ share: Double) {
        let percent = max(1, Int((share * 100).rounded()))
        let text = "uses \(percent) % of \(engine.name) of the graphics card \(engine.card) in the background"
        note(app, .gpuInBackground, text: text)
        guard app.specification.gpuBackground == .end else { return }
        let id = app.id
        uninterrupted { [weak self] in try? self?.request(.stop(.gpuInBackground), of: id) }
    }
}

/// A measurement of an app that is in the background.
private final class GPULook {
    var timer: TimerSource?
    var first: (times: EngineTimes, at: Duration)?

    deinit { timer?.cancel() }
}

extension Incarnation {
    fileprivate var gpuLook: GPULook? {
        get { slots[GPULookSlot.self] }
        set { slots[GPULookSlot.self] = newValue }
    }
}

private enum GPULookSlot: Slot { typealias Value = GPULook }
