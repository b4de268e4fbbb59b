// SPDX-License-Identifier: Apache-2.0

import AppConnection
import Configuration
import Gateway
import GatewayConfiguration
import HTTPServing
import Linux
import WireText

/// Runs a process for each source, and starts a process that has ended again: after 1, 2, 4 … 60 s. Each process
/// belongs to a thread here: if the thread ends, the kernel ends the process.
final class SourceProcesses: Sendable {
    private struct State: Sendable {
        /// Threads that have not ended.
        var running = 0
        /// What `systemctl status` shows of a source.
        var sentences: [GatewaySource: String] = [:]
    }

    /// The data that the processes are started with.
    struct Start: Sendable {
        /// The path of the configuration.
        var file: String
        /// The content of the configuration.
        var text: [UInt8]
        /// The socket to which this program sends its state (sd_notify(3)); nil for none.
        var notifySocket: String?
    }

    private let start: Start
    private let log: GatewayLog
    private let stop: Stop
    private let state = Monitor(State())

    /// If a process has run for this time before it ended, the delay before its restart is the shortest one again.
    private static let steady = Duration.seconds(60)
    /// How long a process may take to end: it first posts the messages that it has received, for 5 s at most.
    private static let patience = Duration.seconds(6)
    /// Limits for a process that a broker may have taken over: the shortest interval between two sentences, and the
    /// longest sentence in bytes.
    private static let interval = Duration.milliseconds(100)
    private static let longest = 1024
    /// The environment variables that the processes must not inherit, because systemd set them for this process.
    private static let own = ["NOTIFY_SOCKET=", "WATCHDOG_PID=", "WATCHDOG_USEC=", "LISTEN_"]

    /// Starts the threads. Throws if one cannot be started.
    init(_ sources: [GatewaySource], _ start: Start, _ log: GatewayLog, _ stop: Stop) throws(Errno) {
        (self.start, self.log, self.stop) = (start, log, stop)
        for source in sources {
            state.withLock { $0.running += 1 }
            try WorkerThread.start(named: "source") { [self] in
                keepRunning(source)
                state.withLock { $0.running -= 1 }
                state.wake()
            }
        }
    }

    /// Waits until all processes have ended, once the stop is requested; false at the deadline (CLOCK_MONOTONIC).
    func finish(until deadline: Duration) -> Bool {
        let isFinished: Bool? = state.wait(until: deadline) { state, _ in state.running == 0 ? true : nil }
        return isFinished ?? false
    }

    // MARK: A thread

    private func keepRunning(_ source: GatewaySource) {
        var pause = Backoff()
        while !stop.isRequested {
            let began = Clock.monotonic()
            let end = run(source)
            if stop.isRequested { return }
            if Clock.monotonic() - began >= Self.steady { pause.reset() }
            let delay = pause.next()
            log.say(.error, "\(source): \(end), and is started again in \(delay.components.seconds) s")
            show(source, "\(source): \(end).")
            if stop.wait(delay) { return }
            show(source, nil)
        }
    }

    /// Runs a process until it has ended. Returns how it ended.
    private func run(_ source: GatewaySource) -> String {
        do throws(Errno) {
            let text = try Memory.file(named: "gateway.toml")
            try Descriptor.writeAll(text.raw, start.text)
            let pipe = try Descriptor.pipe()
            let environment = ThisProcess.environment.filter { entry in !Self.own.contains { entry.hasPrefix($0) } }
            // Execute the program that is running, even if an upgrade has replaced its file.
            let child = try ChildProcess(
                "/proc/self/exe",
                arguments: ["torpor-gateway", "--config", start.file, "--source", "\(source)"],
                environment: environment,
                dependingWith: (text.raw, pipe.write.raw, 2)
            )
            pipe.write.close()
            try follow(child, pipe.read, source)
            return "its process (\(child.pid)) \(Self.describe(child.reap()))"
        } catch {
            return "its process cannot be run (\(error))"
        }
    }

    /// Returns when the process has ended. Ends it when this program must end.
    private func follow(_ child: ChildProcess, _ sentences: Descriptor, _ source: GatewaySource) throws(Errno) {
        let poller = try Poller()
        try poller.add(child.pidfd.raw, .readable, tag: 0)
        try poller.add(stop.counter.raw, .readable, tag: 1)
        try poller.add(sentences.raw, .readable, tag: 2)
        while true {
            _ = try Descriptor.wait(poller.descriptor.raw, timeout: nil)
            var ready: Set<UInt64> = []
            try poller.drain { tag, _ in ready.insert(tag) }
            if ready.contains(0) { return }
            if ready.contains(1) {
                try Pidfd.sendSignal(child.pidfd.raw, Signal.terminate)
                if child.reap(within: Self.patience) == nil { child.kill() }
                return
            }
            guard ready.contains(2), let bytes = try Descriptor.read(sentences.raw, maximum: 64 << 10) else { continue }
            guard !bytes.isEmpty else {
                try poller.remove(sentences.raw)
                continue
            }
            // Show only the newest of the lines.
            let lines = bytes.split(separator: 10, omittingEmptySubsequences: false)
            if let line = lines.dropLast().last {
                let sentence = String(wire: line.prefix(Self.longest)).onOneLine
                show(source, sentence.isEmpty ? nil : sentence)
            }
            _ = stop.wait(Self.interval)
        }
    }

    private static func describe(_ status: Int32) -> String {
        if let signal = WaitStatus.signal(status) { return "was ended by \(Signal.name(signal.number))" }
        return switch WaitStatus.exitCode(status) {
        case nil, 0: "has ended"
        case let code?: "has ended with status \(code)"
        }
    }

    /// Shows in `systemctl status` what is wrong with a source; nil if nothing is.
    private func show(_ source: GatewaySource, _ sentence: String?) {
        let all = state.withLock { state in
            state.sentences[source] = sentence
            return state.sentences.values.sorted().joined(separator: " ")
        }
        guard let notifySocket = start.notifySocket else { return }
        try? NotifySpeech.say("STATUS=\(all)", to: notifySocket)
    }
}
