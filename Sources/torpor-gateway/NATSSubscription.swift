// SPDX-License-Identifier: Apache-2.0

import CNATS
import Configuration
import Gateway
import GatewayConfiguration
import HTTPServing
import Linux
import Varlink
import WireText

/// A subscription of one subject. Its messages arrive one after the other on a thread of the library.
final class NATSSubscription: @unchecked Sendable {
    // The class is Sendable because only the thread that opens connections uses `handle`.
    let rules: GatewaySubscription
    private let source: NATSSource
    private var handle: OpaquePointer?
    private var pull: NATSPull?
    /// The way in which messages of the current subscription arrive.
    private(set) var wanted = Way.off

    /// How the messages of this subscription arrive.
    enum Way {
        /// The messages do not arrive at all: another machine owns the app, or the owner is not known.
        case off
        /// At once when they are published; no stream stores them.
        case live
        /// A stream stores them and pushes them to this gateway.
        case pushed
        /// A stream stores the messages, and the gateway asks for them. Only the gateway on the machine that owns the
        /// app asks.
        case pulled
    }

    /// The most unacknowledged messages that the server sends.
    private static let mostPending: Int64 = 16
    /// The most messages and bytes that wait in the library for one subscription.
    private static let mostWaiting: Int32 = 65_536
    private static let mostBytesWaiting: Int32 = 32 << 20
    /// How long the server waits for an acknowledgement before it sends a message again. This is longer than the
    /// supervisor usually takes for ``mostPending`` messages. If its disk takes seconds for each message, some messages
    /// come twice.
    private static let acknowledgement = PostQueue.patience * 3
    /// After an error, messages are left in the stream for this time, so that a busy supervisor can recover.
    private static let rest = Duration.seconds(2)
    /// Whether a message of a stream is being posted.
    private let isPosting = Monitor(false)
    /// The end of the pause after an error. Only the library's thread uses this.
    private var restsUntil = Duration.zero

    init(_ rules: GatewaySubscription, _ source: NATSSource) {
        self.rules = rules
        self.source = source
    }

    /// The way in which messages should arrive now.
    var way: Way {
        let standing: OwnerWatch.Standing =
            rules.app.isConstant ? source.surroundings.owners.standing(of: rules.app.description) : .needsNone
        guard rules.durable != nil else {
            // While the supervisor is away (`unknown`), live messages are queued here, as for every other app.
            return standing == .elsewhere ? .off : .live
        }
        switch standing {
        case .needsNone: return .pushed
        case .here: return .pulled
        case .elsewhere: return .off
        case .unknown: return wanted == .pushed ? .pushed : .off
        }
    }

    /// Starts to receive messages in this way. Returns a sentence if that fails.
    func begin(_ way: Way, _ connection: OpaquePointer) -> String? {
        let problem: String?
        switch way {
        case .off: problem = nil
        case .live:
            let status = begin(connection)
            problem = status == NATS_OK ? nil : NATSSource.text(status)
        case .pushed: problem = beginDurable(connection)
        case .pulled: problem = beginPulling(connection)
        }
        if problem == nil { wanted = way }
        return problem
    }

    private func beginPulling(_ connection: OpaquePointer) -> String? {
        let consumer = NATSPull.Consumer(
            subject: rules.pattern.description,
            name: rules.durable ?? "",
            stream: rules.stream,
            mostPending: Self.mostPending,
            acknowledgement: Self.acknowledgement
        )
        do throws(NATSPull.Trouble) {
            pull = try NATSPull(consumer, connection) { [self] message in takeDurable(message) }
            return nil
        } catch {
            switch error {
            case .problem(let sentence): return sentence
            // The consumer was created when messages for the app were not yet restricted to the machine that owns the
            // app. It pushes to only one gateway at a time, so use it as it is.
            case .pushes: return beginDurable(connection)
            }
        }
    }

    /// Whether the subscription can only be ended together with the connection. If the subscription ended alone, the
    /// library would delete the durable consumer and the messages that wait there.
    var needsConnectionToEnd: Bool { wanted == .pushed || wanted == .pulled && pull == nil }

    /// Keeps this object alive while the library may call back, until the library reports its last call.
    private func retain(_ status: natsStatus, _ closure: Unmanaged<NATSSubscription>) -> natsStatus {
        guard status == NATS_OK else {
            closure.release()
            return status
        }
        natsSubscription_SetOnCompleteCB(
            handle,
            { closure in Unmanaged<NATSSubscription>.fromOpaque(closure!).release() },
            closure.toOpaque()
        )
        if let handle { Self.limit(handle) }
        return status
    }

    /// Limits how many messages wait in the library, since otherwise a server could fill up the memory. Messages beyond
    /// the limit are lost, which is logged; a stream sends them again.
    static func limit(_ subscription: OpaquePointer) {
        natsSubscription_SetPendingLimits(subscription, mostWaiting, mostBytesWaiting)
    }

    private static let handler: natsMsgHandler = { connection, _, message, closure in
        guard let message else { return }
        let subscription = Unmanaged<NATSSubscription>.fromOpaque(closure!).takeUnretainedValue()
        if subscription.rules.durable == nil {
            subscription.take(message, connection)
        } else {
            subscription.isPosting.withLock { $0 = true }
            subscription.takeDurable(message)
            subscription.isPosting.withLock { $0 = false }
            subscription.isPosting.wake()
        }
        natsMsg_Destroy(message)
    }

    /// Subscribes to messages that are sent from now on.
    func begin(_ connection: OpaquePointer) -> natsStatus {
        let subject = rules.pattern.description
        let kept = Unmanaged.passRetained(self)
        let closure = kept.toOpaque()
        if let group = rules.group {
            return retain(
                natsConnection_QueueSubscribe(&handle, connection, subject, group, Self.handler, closure),
                kept
            )
        }
        return retain(natsConnection_Subscribe(&handle, connection, subject, Self.handler, closure), kept)
    }

    /// Subscribes to messages that a stream keeps for this gateway; returns a sentence if that fails.
    func beginDurable(_ connection: OpaquePointer) -> String? {
        guard let durable = rules.durable else { return nil }
        var stream: OpaquePointer?
        var status = natsConnection_JetStream(&stream, connection, nil)
        guard status == NATS_OK, let stream else { return NATSSource.text(status) }
        defer { jsCtx_Destroy(stream) }
        var code = jsErrCode(0)
        // If another program created the consumer, its settings may differ and must not be changed: try again without
        // settings.
        for withSettings in [true, false] {
            let kept = Unmanaged.passRetained(self)
            let closure = kept.toOpaque()
            status = durable.withCString { durable in
                withOptional(rules.stream) { name in
                    var options = jsSubOptions()
                    jsSubOptions_Init(&options)
                    options.Stream = name
                    options.ManualAck = true
                    options.Config.Durable = durable
                    options.Config.AckPolicy = js_AckExplicit
                    if withSettings {
                        options.Config.AckWait = Self.acknowledgement.microseconds * 1_000
                        options.Config.MaxAckPending = Self.mostPending
                    }
                    let subject = rules.pattern.description
                    return js_Subscribe(&handle, stream, subject, Self.handler, closure, nil, &options, &code)
                }
            }
            if retain(status, kept) == NATS_OK { return nil }
        }
        return Self.sentence(status, code, stream: rules.stream)
    }

    static func sentence(_ status: natsStatus, _ code: jsErrCode, stream: String?) -> String {
        switch Int(code.rawValue) {
        case 10_059: "there is no stream \(stream ?? "with the subject")"
        case 10_039: "the server has no JetStream for this account"
        case 0: NATSSource.text(status)
        default: "\(NATSSource.text(status)), error \(code.rawValue) of JetStream"
        }
    }

    /// Ends the subscription after the current message. A stream keeps its messages.
    func end(_ connection: OpaquePointer) {
        wanted = .off
        if let pull {
            // Wait until the acknowledgements have reached the server.
            _ = pull.end()
            natsConnection_FlushTimeout(connection, 1_000)
            self.pull = nil
        }
        guard let handle else { return }
        if rules.durable == nil {
            natsSubscription_Drain(handle)
            natsSubscription_WaitForDrainCompletion(handle, 2_000)
            natsSubscription_Destroy(handle)
        } else {
            // Wait until the acknowledgement has reached the server: otherwise the server would send the message again.
            let _: Bool? = isPosting.wait(until: Clock.monotonic() + .seconds(3)) { isPosting, _ in
                isPosting ? nil : true
            }
            natsConnection_FlushTimeout(connection, 1_000)
        }
        self.handle = nil
    }

    // MARK: Messages

    /// Converts a message to a push; nil if the message is not valid, which is logged.
    private func push(_ message: OpaquePointer) -> Push? {
        let subject = String(terminatedWire: natsMsg_GetSubject(message))
        let size = Int(natsMsg_GetDataLength(message))
        let bytes = Array(UnsafeRawBufferPointer(start: natsMsg_GetData(message), count: size))
        do throws(NoMessage) {
            return try rules.push(
                subject: subject,
                bytes: bytes,
                maxPayload: source.surroundings.maxPayload,
                sender: source.sender
            ) { name in
                var value: UnsafePointer<CChar>?
                guard natsMsgHeader_Get(message, name, &value) == NATS_OK else { return nil }
                return value.map { String(terminatedWire: $0) }
            }
        } catch {
            source.say(.warning, "\(subject): \(error)")
            return nil
        }
    }

    /// Posts a message that no server stores. It waits here until it is posted, while later messages wait in the
    /// library's buffer.
    private func take(_ message: OpaquePointer, _ connection: OpaquePointer?) {
        let isRequest = natsMsg_GetReply(message) != nil
        guard let push = push(message) else {
            return reply(message, connection, .refused("it is not a message for an app"))
        }
        var pause = Backoff()
        while true {
            let outcome = source.surroundings.queue.post(push)
            switch outcome {
            case .taken: source.surroundings.log.say(.debug, "\(push.sender): \(push.app) \(push.topic)")
            case .full where !isRequest && rules.onFull == .wait, .unavailable where !isRequest:
                source.surroundings.log.sayOften(
                    .warning,
                    "\(push.sender) \(push.app)",
                    "\(push.sender): \(push.app) \(push.topic): \(outcome.text); it waits in the gateway"
                )
                if source.surroundings.stop.wait(pause.next()) { return complain(outcome, push, "; it is lost") }
                continue
            case .elsewhere(let text):
                // Do not reply: the gateway on the machine that owns the app posts the message and replies.
                source.surroundings.log.say(.debug, "\(push.sender): \(push.app) \(push.topic): \(text)")
                return
            case .full, .unavailable, .refused, .unknownApp: complain(outcome, push, isRequest ? "" : "; it is lost")
            }
            return reply(message, connection, outcome)
        }
    }

    /// Posts a message of a stream. The stream stores the message until it is acknowledged, and sends it again if it is
    /// not.
    private func takeDurable(_ message: OpaquePointer) {
        // The program ends: do not acknowledge the message, so that the stream sends it to the next subscriber.
        if source.surroundings.stop.isRequested { return }
        guard let push = push(message) else {
            natsMsg_Term(message, nil)
            return
        }
        guard Clock.monotonic() >= restsUntil else {
            natsMsg_NakWithDelay(message, delay(message), nil)
            return
        }
        let outcome = source.surroundings.queue.post(push)
        if case .unavailable = outcome { restsUntil = Clock.monotonic() + Self.rest }
        switch outcome {
        case .taken:
            source.surroundings.log.say(.debug, "\(push.sender): \(push.app) \(push.topic)")
            natsMsg_Ack(message, nil)
        case .elsewhere:
            let advice = rules.app.isConstant ? "" : ": give each app of several machines a subscription of its own"
            complain(outcome, push, "; it waits in its stream\(advice)")
            natsMsg_NakWithDelay(message, delay(message), nil)
        case .full where rules.onFull == .wait, .unavailable:
            complain(outcome, push, "; it waits in its stream")
            natsMsg_NakWithDelay(message, delay(message), nil)
        case .full, .refused, .unknownApp:
            complain(outcome, push, "; it is lost")
            natsMsg_Term(message, nil)
        }
    }

    /// Milliseconds until the message is sent again. The delay grows with each delivery.
    private func delay(_ message: OpaquePointer) -> Int64 {
        var data: UnsafeMutablePointer<jsMsgMetaData>?
        guard natsMsg_GetMetaData(&data, message) == NATS_OK, let data else { return 1_000 }
        defer { jsMsgMetaData_Destroy(data) }
        return min(60_000, 1_000 << Int64(min(6, max(1, data.pointee.NumDelivered) - 1)))
    }

    /// Sends the outcome to a requester.
    private func reply(_ message: OpaquePointer, _ connection: OpaquePointer?, _ outcome: PostOutcome) {
        guard let to = natsMsg_GetReply(message) else { return }
        let answer: JSON =
            if case .taken(let reply) = outcome {
                reply
            } else {
                ["error": .string(outcome.text), "temporary": .bool(outcome.isTemporary)]
            }
        let bytes = answer.serialised()
        natsConnection_Publish(connection, to, bytes, Int32(bytes.count))
    }

    private func complain(_ outcome: PostOutcome, _ push: Push, _ consequence: String) {
        source.surroundings.log.sayOften(
            .warning,
            "\(push.sender) \(push.app)",
            "\(push.sender): \(push.app) \(push.topic): \(outcome.text)\(consequence)"
        )
    }
}

private func withOptional<Result>(_ text: String?, _ body: (UnsafePointer<CChar>?) -> Result) -> Result {
    guard let text else { return body(nil) }
    return text.withCString(body)
}
