// SPDX-License-Identifier: Apache-2.0

import CNATS
import Configuration
import Gateway
import GatewayConfiguration
import HTTPServing
import Linux
import WireText

/// A server of NATS. Its own thread opens connections; messages arrive on threads of the library.
final class NATSSource: Sendable {
    /// What the library's threads report.
    private struct State: Sendable {
        var isConnected = false
        var isClosed = false
        /// Whether there was a connection before.
        var wasConnected = false
        /// Whether the program ends: accepted messages are still posted, and no more are accepted.
        var isStopping = false
        var isFinished = false
        /// How many times the ownership of an app may have changed.
        var changes = 0

        var isOver: Bool { isClosed || isStopping }
    }

    let broker: GatewayBroker
    let surroundings: GatewayContext
    private let login: NATSLogin
    private let state = Monitor(State())
    /// Whether the loss of the last connection was logged. If a server ends each connection at once, not every loss is
    /// logged.
    private let isLossTold = Monitor(true)

    var sender: String { "nats:\(broker.name)" }

    /// Starts the thread. Throws a sentence that describes the error.
    static func start(_ broker: GatewayBroker, _ surroundings: GatewayContext) throws -> NATSSource {
        let source = try NATSSource(broker, surroundings)
        surroundings.owners.onChange { [weak source] _ in
            source?.state.withLock { $0.changes += 1 }
            source?.state.wake()
        }
        try WorkerThread.start(named: "nats") {
            source.run()
            source.state.withLock { $0.isFinished = true }
            source.state.wake()
        }
        return source
    }

    /// Posts the messages that were accepted, and accepts no more. Returns false if the deadline (CLOCK_MONOTONIC)
    /// comes first.
    func finish(until deadline: Duration) -> Bool {
        state.withLock { $0.isStopping = true }
        state.wake()
        let isFinished: Bool? = state.wait(until: deadline) { state, _ in state.isFinished ? true : nil }
        return isFinished ?? false
    }

    private init(_ broker: GatewayBroker, _ surroundings: GatewayContext) throws {
        self.broker = broker
        self.surroundings = surroundings
        login = try NATSLogin(broker, surroundings.secrets)
    }

    private func run() {
        var pause = Backoff()
        while !surroundings.stop.isRequested {
            let isStopping = state.withLock { state in
                let isStopping = state.isStopping
                state = State()
                state.isStopping = isStopping
                return isStopping
            }
            if isStopping { return }
            serve()
            if state.withLock({ $0.wasConnected }) { pause.reset() }
            // The library reconnects by itself, unless the server refuses it.
            if surroundings.stop.wait(pause.next()) { return }
        }
    }

    /// Serves one connection, including the library's reconnects.
    private func serve() {
        var options: OpaquePointer?
        guard natsOptions_Create(&options) == NATS_OK, let options else { return }
        defer { natsOptions_Destroy(options) }
        var connection: OpaquePointer?
        var status = prepare(options)
        if status == NATS_OK { status = natsConnection_Connect(&connection, options) }
        guard status == NATS_OK || status == NATS_NOT_YET_CONNECTED, let connection else {
            say(.warning, "no connection to \(broker.url): \(Self.text(status))")
            return
        }
        defer { natsConnection_Destroy(connection) }
        if status == NATS_OK { changed { $0.isConnected = true } }
        let subscriptions = broker.subscriptions.map { NATSSubscription($0, self) }
        follow(subscriptions, connection)
        var why: UnsafePointer<CChar>?
        if natsConnection_GetLastError(connection, &why) != NATS_OK, let why {
            let sentence = "\(sender): \(broker.url) ended the connection: \(String(terminatedWire: why))"
            // Log this only now and then: the server chooses the text, and how often it ends the connection.
            surroundings.log.sayOften(.error, "\(sender) ended", sentence)
        }
        for subscription in subscriptions { subscription.end(connection) }
    }

    /// Starts and ends subscriptions as the ownership of their apps changes. Returns when the connection has ended or
    /// must be made again. If a stream does not exist yet, tries again later.
    private func follow(_ subscriptions: [NATSSubscription], _ connection: OpaquePointer) {
        var pause = Backoff()
        var retryAt: Duration?
        while true {
            let seen = state.withLock { $0 }
            if seen.isOver { return }
            var isFailing = false
            let isDue = retryAt.map { Clock.monotonic() >= $0 } ?? true
            for subscription in subscriptions {
                let way = subscription.way
                guard way != subscription.wanted else { continue }
                if subscription.wanted != .off {
                    if subscription.needsConnectionToEnd { return }
                    say(
                        .info,
                        "\(subscription.rules.pattern) is left, since this machine seems not to own \(subscription.rules.app)"
                    )
                    subscription.end(connection)
                }
                // Before the connection is up, only subscriptions to live messages can be requested: the library sends
                // these when it has connected.
                guard way != .off, way == .live || seen.isConnected, isDue else {
                    if way != .off, way == .live || seen.isConnected { isFailing = true }
                    continue
                }
                guard let problem = subscription.begin(way, connection) else { continue }
                isFailing = true
                guard !natsConnection_IsClosed(connection) else { continue }
                let rules = subscription.rules
                let what = rules.durable == nil ? "" : " of \(rules.stream ?? "JetStream")"
                say(way == .live ? .error : .warning, "cannot subscribe to \(rules.pattern)\(what): \(problem)")
            }
            if !isFailing {
                pause.reset()
                retryAt = nil
            } else if isDue {
                retryAt = Clock.monotonic() + pause.next()
            }
            let _: Bool? = state.wait(until: retryAt) { state, _ in
                let isNews = state.isConnected != seen.isConnected || state.changes != seen.changes
                return state.isOver || isNews ? true : nil
            }
        }
    }

    private func prepare(_ options: OpaquePointer) -> natsStatus {
        let closure = Unmanaged.passUnretained(self).toOpaque()
        let connected: natsConnectionHandler = { _, source in
            NATSSource.from(source).changed { $0.isConnected = true }
        }
        let steps =
            login.set(options) + [
                natsOptions_SetMaxReconnect(options, -1),
                natsOptions_SetReconnectWait(options, 1_000),
                natsOptions_SetRetryOnFailedConnect(options, true, connected, closure),
                natsOptions_SetReconnectedCB(options, connected, closure),
                natsOptions_SetDisconnectedCB(
                    options,
                    { _, source in NATSSource.from(source).changed { $0.isConnected = false } },
                    closure
                ),
                natsOptions_SetClosedCB(
                    options,
                    { _, source in NATSSource.from(source).changed { $0.isClosed = true } },
                    closure
                ),
                natsOptions_SetErrorHandler(
                    options,
                    { _, _, status, source in
                        let source = NATSSource.from(source)
                        source.say(.warning, "\(source.broker.url): \(NATSSource.text(status))")
                    },
                    closure
                ),
            ]
        return steps.first { $0 != NATS_OK } ?? NATS_OK
    }

    // MARK: What the library's threads tell

    private static func from(_ pointer: UnsafeMutableRawPointer?) -> NATSSource {
        Unmanaged<NATSSource>.fromOpaque(pointer!).takeUnretainedValue()
    }

    private func changed(_ change: @Sendable (inout State) -> Void) {
        let (was, now) = state.withLock { state in
            let before = state
            change(&state)
            if state.isConnected { state.wasConnected = true }
            return (before, state)
        }
        state.wake()
        if now.isConnected, !was.isConnected {
            guard isLossTold.withLock({ $0 }) else { return }
            surroundings.log.say(.info, "\(sender): connected to \(broker.url)")
        } else if was.isConnected, !now.isConnected || now.isClosed {
            let isTold = say(.warning, "the connection to \(broker.url) is lost")
            isLossTold.withLock { $0 = isTold }
        }
    }

    @discardableResult
    func say(_ level: LogLevel, _ sentence: String) -> Bool {
        surroundings.log.sayOften(level, "\(sender) \(sentence)", "\(sender): \(sentence)")
    }

    static func text(_ status: natsStatus) -> String { String(terminatedWire: natsStatus_GetText(status)) }
}
