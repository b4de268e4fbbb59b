// SPDX-License-Identifier: Apache-2.0

import Alerts
import Configuration
import Engine
import EventLoop

/// The `commands` of `[supervisor.alerts]`: run for each alert that is shown, one at a time.
final class AlertCommands {
    /// What is run.
    struct Job {
        var number: Int64
        var app: AppRuntime
        var variables: [String: String]
        /// Not run before: more alerts may join it.
        var after = Duration.zero
        var urgency: Alert.Urgency
    }

    private let loop: EventLoop
    private unowned(unsafe) let host: any AlertHost
    /// Jobs that wait.
    private(set) var waiting: [Job] = []
    private var isRunning = false
    private var timer: TimerSource?
    /// A job begins: that is stored first.
    var onBegin: ((Int64) -> Void)?
    /// A job has ended, with sentences about the commands that failed.
    var onEnd: ((Int64, [String]) -> Void)?

    /// How many jobs may wait; then the oldest that is not critical is dropped.
    static let most = 256

    init(_ loop: EventLoop, _ host: any AlertHost) {
        self.loop = loop
        self.host = host
    }

    /// Adds a job, or replaces the one of the same number that waits.
    func add(_ job: Job) {
        if let index = waiting.firstIndex(where: { $0.number == job.number }) {
            waiting[index] = job
        } else {
            waiting.append(job)
        }
        while waiting.count > Self.most {
            let index = waiting.firstIndex { $0.urgency != .critical } ?? waiting.startIndex
            let dropped = waiting.remove(at: index)
            onEnd?(dropped.number, ["too many alerts wait for their commands: it is left out"])
        }
        // Whoever adds it stores it first.
        loop.later { [weak self] in self?.runNext() }
    }

    /// The alert is closed: its job is not run, if it waits.
    func remove(_ number: Int64) { waiting.removeAll { $0.number == number } }

    private func runNext() {
        guard !isRunning, !waiting.isEmpty else { return }
        guard let index = waiting.firstIndex(where: { $0.after <= loop.now }) else {
            if timer == nil { timer = try? loop.timer { [weak self] in self?.runNext() } }
            if let soonest = waiting.map(\.after).min() { timer?.arm(at: soonest) }
            return
        }
        let job = waiting.remove(at: index)
        isRunning = true
        onBegin?(job.number)
        run(job, host.alertRules.commands[...], [])
    }

    private func run(_ job: Job, _ commands: ArraySlice<[String]>, _ failures: [String]) {
        guard let command = commands.first else {
            isRunning = false
            onEnd?(job.number, failures)
            return runNext()
        }
        host.runAlertCommand(command, job.variables, of: job.app) { [weak self] failure in
            self?.run(job, commands.dropFirst(), failures + (failure.map { [$0] } ?? []))
        }
    }
}
