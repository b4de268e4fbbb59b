// SPDX-License-Identifier: Apache-2.0

import Alerts
import Configuration
import Engine
import EventLoop

/// Runs the `commands` of `[supervisor.alerts]` for each alert that is shown, one alert at a time.
final class AlertCommands {
    /// One run of all commands: for one alert, or for a bundle (several alerts that are shown as one).
    struct Job {
        var number: Int64
        var app: AppRuntime
        var variables: [String: String]
        /// The earliest time at which the commands may run. Until then, more alerts may join the bundle.
        var after = Duration.zero
        var urgency: Alert.Urgency
        /// Whether the alert is a permission question. Such a job is not dropped in favour of other alerts.
        var isQuestion = false
    }

    private let loop: EventLoop
    private unowned(unsafe) let host: any AlertHost
    /// Jobs that have not begun, oldest first.
    private(set) var waiting: [Job] = []
    private var isRunning = false
    private var timer: TimerSource?
    /// Called with the alert's number before its commands run, so that the caller stores first that they were started.
    var onBegin: ((Int64) -> Void)?
    /// Called with the alert's number when its commands have ended, with a sentence about each command that failed.
    var onEnd: ((Int64, [String]) -> Void)?

    /// The most jobs that may wait. Beyond that, the oldest job that is for neither a critical alert nor a question is
    /// dropped.
    static let most = 256

    init(_ loop: EventLoop, _ host: any AlertHost) {
        self.loop = loop
        self.host = host
    }

    /// Adds a job, or replaces the waiting job of the same alert.
    func add(_ job: Job) {
        if let index = waiting.firstIndex(where: { $0.number == job.number }) {
            waiting[index] = job
        } else {
            waiting.append(job)
        }
        while waiting.count > Self.most {
            let index =
                waiting.firstIndex { $0.urgency != .critical && !$0.isQuestion }
                ?? waiting.firstIndex { !$0.isQuestion } ?? waiting.startIndex
            let dropped = waiting.remove(at: index)
            onEnd?(dropped.number, ["too many alerts wait for their commands: it is left out"])
        }
        // Begin in a later turn of the event loop, because the caller stores the alert only after this call.
        loop.later { [weak self] in self?.runNext() }
    }

    /// Removes the job of an alert that was closed, if the job has not begun.
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
