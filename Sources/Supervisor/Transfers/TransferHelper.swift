// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Linux
import Processes
import TransferProtocol
import Varlink

/// The process that transfers for one app (torpor-transfer): it runs as the app's user, and ends with torpord, as commands
/// that run for apps do. It is there while the app has a transfer that runs, and a little longer.
///
/// What it says may be the app's own invention: it is bounded, and nonsense ends it.
final class TransferHelper {
    /// What comes of it.
    struct Callbacks {
        let report: (TransferReport) -> Void
        /// It is gone; a sentence, where nobody asked for that.
        let ended: (String?) -> Void
    }

    /// What is found for its start beside the loop.
    struct Facts: Sendable {
        let account: Account?
        /// What downloads leave free of the filesystem, bytes.
        let minimumFree: Int64
    }

    /// Bytes of one message; a URL and its header fields have far fewer.
    private static let longestMessage = 64 << 10
    /// Bytes that are read in a turn of the loop.
    private static let turn = 64 << 10
    /// Bytes that may wait to be written: it reads all the time, unless it was stopped.
    private static let mostWaiting = 16 << 20

    let app: String
    private unowned(unsafe) let supervisor: Supervisor
    private let callbacks: Callbacks
    private var socket: Descriptor?
    private var source: IOSource?
    private var framer = MessageFramer(limit: longestMessage)
    private var outgoing: [UInt8] = []
    private var sent = 0
    private var pidfd: Descriptor?
    private var isOver = false
    /// Bytes that its downloads leave free.
    let minimumFree: Int64

    /// The number of the process; nil until it is launched.
    private(set) var pid: Int32?

    /// Starts it; it takes commands from now on.
    init(_ plan: LaunchPlan, of app: String, minimumFree: Int64, _ supervisor: Supervisor, _ callbacks: Callbacks) {
        self.app = app
        self.minimumFree = minimumFree
        self.supervisor = supervisor
        self.callbacks = callbacks
        let theirs: Descriptor
        do throws(Errno) {
            let (ours, other) = try Sockets.pair(.stream)
            try Descriptor.setNonBlocking(ours.raw)
            source = try supervisor.loop.watch(ours.raw, .readable) { [weak self] events in self?.happened(events) }
            socket = ours
            theirs = other
        } catch {
            supervisor.loop.later { [weak self] in self?.end("cannot be started: \(error)") }
            return
        }
        var plan = plan
        plan.passed = [theirs.raw]
        supervisor.keeper.launch(plan) { [weak self, weak supervisor] result in
            switch result {
            case .success(let launched):
                supervisor?.launcher.helpers[launched.pid] = { [weak self] status in
                    self?.end("ended (\(Self.words(status)))")
                }
                guard let self, !self.isOver else {
                    try? Pidfd.sendSignal(launched.pidfd.raw, Signal.kill)
                    return
                }
                self.pid = launched.pid
                self.pidfd = launched.pidfd
            case .failure(let failure): self?.end(failure.description)
            }
        }
        withExtendedLifetime(theirs) {}
        send(.hello)
    }

    deinit { stop() }

    private static func words(_ status: ExitStatus) -> String {
        switch status {
        case .exited(let code): "exit status \(code)"
        case .signaled(let signal, _): Signal.name(signal)
        }
    }

    /// Tells it something.
    func send(_ command: TransferCommand) {
        guard socket != nil else { return }
        outgoing += command.json.serialised() + [0]
        guard outgoing.count - sent <= Self.mostWaiting else { return end("reads nothing any more") }
        flush()
    }

    /// It is not needed any more.
    func dismiss() {
        guard !isOver else { return }
        isOver = true
        stop()
    }

    private func happened(_ events: IOEvents) {
        if events.contains(.writable) { flush() }
        if events != .writable { read() }
    }

    private func flush() {
        guard let socket else { return }
        while sent < outgoing.count {
            do throws(Errno) {
                let part = Array(outgoing[sent..<min(sent + Self.turn, outgoing.count)])
                guard let count = try Sockets.send(socket.raw, part) else { break }
                sent += count
            } catch {
                // Its end is told by the keeper.
                break
            }
        }
        if sent == outgoing.count { (outgoing, sent) = ([], 0) }
        source?.setEvents(outgoing.isEmpty ? .readable : [.readable, .writable])
    }

    private func read() {
        guard let socket else { return }
        let bytes: [UInt8]?
        do throws(Errno) {
            // What it may send along is let go of here.
            bytes = try Promptly.run { () throws(Errno) in try Descriptor.read(socket.raw, maximum: Self.turn) }
        } catch {
            return end("cannot be heard: \(error)")
        }
        guard let bytes else { return }
        // That it ended is told by the keeper, with how.
        guard !bytes.isEmpty else { return hangUp() }
        framer.append(bytes)
        while !isOver {
            let message: ArraySlice<UInt8>?
            do throws(MessageFramer.TooLong) { message = try framer.next() } catch {
                return end("says nonsense: \(error)")
            }
            guard let message else { return }
            let report: TransferReport
            do {
                report = try TransferReport(json: JSON.parse(message))
            } catch {
                return end("says nonsense: \(error)")
            }
            callbacks.report(report)
        }
    }

    /// Nothing more comes: what is left of it is ended.
    private func hangUp() {
        source?.cancel()
        source = nil
        if let pidfd { try? Pidfd.sendSignal(pidfd.raw, Signal.kill) }
    }

    private func end(_ why: String) {
        guard !isOver else { return }
        isOver = true
        stop()
        callbacks.ended(why)
    }

    private func stop() {
        source?.cancel()
        source = nil
        socket = nil
        if let pidfd { try? Pidfd.sendSignal(pidfd.raw, Signal.kill) }
        pidfd = nil
    }
}
