// SPDX-License-Identifier: Apache-2.0

import AppConnection
import CommandLinePages
import Linux
import TorporAPI
import Varlink

/// Runs a command as a background task. The task lasts as long as the command.
final class TaskRun {
    private let name: String
    private let words: [String]
    private let descriptors: [(there: Int32, here: Int32)]
    /// How long before the end of the task's time this process asks the command to terminate; nil for never.
    private let stopBefore: Duration?

    private let link: AppLink
    private let poller: Poller
    private let signals: EventCounter
    private var isTold = false

    /// How long to wait for a supervisor, at the beginning and at the end.
    private static let patience = Duration.seconds(10)
    /// The interval at which the remaining time is requested while it is unlimited.
    private static let pause = Duration.seconds(1)

    init(
        name: String,
        words: [String],
        descriptors: [(there: Int32, here: Int32)],
        stopBefore: Duration?,
        socket: String
    ) throws {
        self.name = name
        self.words = words
        self.descriptors = descriptors
        self.stopBefore = stopBefore
        link = try AppLink(path: socket, isDelegate: false)
        poller = try Poller()
        signals = try EventCounter()
        try poller.add(link.poller.descriptor.raw, .readable, tag: 0)
        try poller.add(signals.raw, .readable, tag: 0)
    }

    /// Runs the command, and returns its exit status.
    package func run() throws -> Int32 {
        let token = try begin()
        try Signal.count(Signal.terminate, with: signals)
        let child: ChildProcess
        do {
            child = try AppSide.start(words, descriptors: descriptors)
        } catch {
            end(token)
            throw error
        }
        try poller.add(child.pidfd.raw, .readable, tag: 0)
        var nextLook = Clock.monotonic()
        while child.reap(within: .zero) == nil {
            if let stopBefore, !isTold, Clock.monotonic() >= nextLook {
                nextLook = .seconds(1 << 40)
                link.call(.backgroundTime) { [self] result in
                    let left = (try? result.get())?["remaining_ms"]?.intValue.map { Duration.milliseconds($0) }
                    if let left, left <= stopBefore { tell(child) }
                    let pause = left.map { min(max($0 - stopBefore, .milliseconds(20)), Self.pause) } ?? Self.pause
                    nextLook = Clock.monotonic() + pause
                }
            }
            turn(until: isTold || stopBefore == nil ? nil : nextLook)
            if signals.drain() { try? Pidfd.sendSignal(child.pidfd.raw, Signal.terminate) }
        }
        end(token)
        return AppSide.exitStatus(child.reap())
    }

    private func tell(_ child: ChildProcess) {
        isTold = true
        Complaint.say("the time for background tasks is nearly used up: \(words[0]) gets SIGTERM", .warning)
        try? Pidfd.sendSignal(child.pidfd.raw, Signal.terminate)
    }

    private func begin() throws -> Int64 {
        var outcome: Result<JSON, VarlinkClientError>?
        link.call(.beginTask(name: name)) { outcome = $0 }
        let deadline = Clock.monotonic() + Self.patience
        while outcome == nil, Clock.monotonic() < deadline { turn(until: deadline) }
        switch outcome {
        case .success(let reply)?: return reply["token"]?.intValue ?? 0
        case .failure(let error)?: throw AppSide.failure(error)
        case nil:
            throw Failure(
                status: .noSupervisor,
                message: "no supervisor answers at \(link.path): the task \(name) was not begun and nothing was run"
            )
        }
    }

    private func end(_ token: Int64) {
        link.call(.endTask(token: token)) { _ in }
        // Wait at most this long for the answer. If it does not come, the task ends with this process anyway.
        let deadline = Clock.monotonic() + .seconds(1)
        while link.pendingCount > 0, Clock.monotonic() < deadline { turn(until: deadline) }
    }

    private func turn(until time: Duration?) {
        let next = [time, link.wakeTime].compactMap { $0 }.min()
        let timeout = next.map { max(.zero, $0 - Clock.monotonic()) }
        _ = try? Descriptor.wait(poller.descriptor.raw, timeout: timeout)
        for event in link.work() {
            if case .tasksLost = event {
                Complaint.say("the supervisor lost the task \(name): \(words[0]) keeps running without it", .warning)
            }
        }
    }
}
