// SPDX-License-Identifier: Apache-2.0

import AppConnection
import Linux
import TorporAPI
import Varlink

/// The thread that talks to the supervisor, and the calls from tasks to it.
final class Engine: Sendable {
    /// A report of the thread. Reports come in order.
    enum Item: Sendable {
        case link(AppLink.Event)
        /// SIGTERM or SIGINT arrived, or the program asked to end.
        case signal
        /// The time is over in which the supervisor would have sent a first message.
        case silence
    }

    typealias Reply = CheckedContinuation<Result<JSON, VarlinkClientError>, Never>

    private struct Inbox {
        var calls: [(AppRequest, Reply)] = []
        var isOver = false
    }

    let items: AsyncStream<Item>
    private let out: AsyncStream<Item>.Continuation
    private let inbox = Monitor(Inbox())
    private let bell: EventCounter
    private let signals: EventCounter
    private let takesSignals: Bool

    private static let endingSignals = [Signal.terminate, Signal.interrupt]

    /// Starts the thread. If `path` is nil there is no supervisor, and only signals are reported.
    init(path: String?, isDelegate: Bool, takesSignals: Bool) throws(Errno) {
        (items, out) = AsyncStream.makeStream(of: Item.self)
        bell = try EventCounter()
        signals = try EventCounter()
        let poller = try Poller()
        try poller.add(bell.raw, .readable, tag: 0)
        try poller.add(signals.raw, .readable, tag: 0)
        let link: AppLink?
        if let path {
            let made = try AppLink(path: path, isDelegate: isDelegate)
            try poller.add(made.poller.descriptor.raw, .readable, tag: 0)
            link = made
        } else {
            link = nil
        }
        self.takesSignals = takesSignals
        if takesSignals {
            for number in Self.endingSignals { try Signal.count(number, with: signals) }
        }
        let parts = ThreadParts(poller: poller, link: link)
        try WorkerThread.start(named: "torpor-app") { [self] in run(parts) }
    }

    /// Values that are handed to the thread, which alone uses them from then on.
    private struct ThreadParts: @unchecked Sendable {
        let poller: Poller
        let link: AppLink?
    }

    /// Sends a call and waits for the answer, however long the supervisor is unavailable.
    func call(_ request: AppRequest) async -> Result<JSON, VarlinkClientError> {
        await withCheckedContinuation { reply in
            let isTaken = inbox.withLock { inbox in
                if !inbox.isOver { inbox.calls.append((request, reply)) }
                return !inbox.isOver
            }
            if isTaken { bell.signal() } else { reply.resume(returning: .failure(.disconnected)) }
        }
    }

    /// Emits ``Item/silence`` after `time`.
    func listen(for time: Duration) {
        Task { [out] in
            try? await Task.sleep(for: time)
            out.yield(.silence)
        }
    }

    /// Ends the program on its own request: the thread emits ``Item/signal``, in order with other items.
    func end() { signals.signal() }

    /// Ends the thread; later calls get no answer.
    func finish() {
        inbox.withLock { $0.isOver = true }
        bell.signal()
    }

    private func run(_ parts: ThreadParts) {
        let link = parts.link
        var isEnding = false
        while true {
            let timeout = link?.wakeTime.map { max(.zero, $0 - Clock.monotonic()) }
            _ = try? Descriptor.wait(parts.poller.descriptor.raw, timeout: timeout)
            bell.drain()
            let (calls, isOver) = inbox.withLock { inbox in
                defer { inbox.calls = [] }
                return (inbox.calls, inbox.isOver)
            }
            for (request, reply) in calls {
                if let link {
                    link.call(request) { reply.resume(returning: $0) }
                } else {
                    reply.resume(returning: .failure(.disconnected))
                }
            }
            for event in link?.work() ?? [] { out.yield(.link(event)) }
            if signals.drain() {
                isEnding = true
                out.yield(.signal)
            }
            // When the program ends, do not wait for a supervisor that no longer runs.
            if let link, isOver || isEnding && !link.isAttached { link.giveUp() }
            if isOver { break }
        }
        // Restore the default actions, so that a second Ctrl-C ends a program that hangs while it exits.
        if takesSignals { for number in Self.endingSignals { try? Signal.ignore(number, false) } }
        out.finish()
    }
}
