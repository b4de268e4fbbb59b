// SPDX-License-Identifier: Apache-2.0

import CNATS
import Gateway
import Linux
import Varlink
import WireText

/// Fetches messages from a durable consumer of JetStream, on a thread of its own (pull consumer). Several gateways may
/// share the consumer: each message goes to one gateway that asks for messages. A machine that has lost power does not
/// ask, so no message is sent to it.
final class NATSPull: @unchecked Sendable {
    // The class is Sendable because only its thread uses the subscription.
    private struct State: Sendable {
        var isEnding = false
        var isFinished = false
    }

    /// The durable consumer to fetch messages from.
    struct Consumer {
        var subject: String
        var name: String
        var stream: String?
        var mostPending: Int64
        /// How long the server waits for the acknowledgement of a message before it sends the message again.
        var acknowledgement: Duration
    }

    /// Why messages cannot be pulled.
    enum Trouble: Error {
        /// A consumer of this name exists, but it pushes messages instead.
        case pushes
        case problem(String)
    }

    private let subscription: OpaquePointer
    private let state = Monitor(State())

    /// How many messages one request asks for.
    private static let batch: Int32 = 16
    /// How long one request waits for messages, in milliseconds. To end this object may take as long.
    private static let time: Int64 = 1_000

    /// Creates the consumer if it is missing, and begins to fetch. `take` is called on the thread for each message, and
    /// must not destroy the message.
    init(
        _ consumer: Consumer,
        _ connection: OpaquePointer,
        _ take: @escaping @Sendable (OpaquePointer) -> Void
    ) throws(Trouble) {
        var context: OpaquePointer?
        let status = natsConnection_JetStream(&context, connection, nil)
        guard status == NATS_OK, let context else { throw .problem(NATSSource.text(status)) }
        defer { jsCtx_Destroy(context) }
        let stream: String
        if let name = consumer.stream {
            stream = name
        } else {
            stream = try Self.stream(with: consumer.subject, connection)
        }
        try Self.makeConsumer(consumer, stream, context)
        var handle: OpaquePointer?
        var code = jsErrCode(0)
        let subscribed = stream.withCString { stream in
            var options = jsSubOptions()
            jsSubOptions_Init(&options)
            options.Stream = stream
            return js_PullSubscribe(&handle, context, consumer.subject, consumer.name, nil, &options, &code)
        }
        guard subscribed == NATS_OK, let handle else { throw .problem(Self.sentence(subscribed, code, stream)) }
        subscription = handle
        NATSSubscription.limit(handle)
        do throws(Errno) {
            try WorkerThread.start(named: "pull") { [self] in run(take) }
        } catch {
            natsSubscription_Destroy(handle)
            throw .problem("\(error)")
        }
    }

    /// The name of the stream that stores the subject.
    private static func stream(with subject: String, _ connection: OpaquePointer) throws(Trouble) -> String {
        var answer: OpaquePointer?
        let question: JSON = ["subject": .string(subject)]
        let status = natsConnection_RequestString(
            &answer,
            connection,
            "$JS.API.STREAM.NAMES",
            question.description,
            5_000
        )
        guard status == NATS_OK, let answer else { throw .problem(NATSSource.text(status)) }
        defer { natsMsg_Destroy(answer) }
        let bytes = UnsafeRawBufferPointer(start: natsMsg_GetData(answer), count: Int(natsMsg_GetDataLength(answer)))
        let names = (try? JSON.parse(Array(bytes)[...]))?["streams"]?.arrayValue ?? []
        guard let name = names.first?.stringValue else { throw .problem("there is no stream with the subject") }
        return name
    }

    /// Create the consumer here, not by subscribing: when a subscription ends, the library deletes the consumer that it
    /// created for that subscription.
    private static func makeConsumer(
        _ consumer: Consumer,
        _ stream: String,
        _ context: OpaquePointer
    ) throws(Trouble) {
        var code = jsErrCode(0)
        var info: UnsafeMutablePointer<jsConsumerInfo>?
        var status = js_GetConsumerInfo(&info, context, stream, consumer.name, nil, &code)
        if status == NATS_OK {
            defer { jsConsumerInfo_Destroy(info) }
            if let to = info?.pointee.Config?.pointee.DeliverSubject, to.pointee != 0 { throw .pushes }
            return
        }
        // Error 10014 of JetStream: the consumer does not exist.
        guard code.rawValue == 10_014 || status == NATS_NOT_FOUND else {
            throw .problem(sentence(status, code, stream))
        }
        status = consumer.name.withCString { name in
            consumer.subject.withCString { subject in
                var configuration = jsConsumerConfig()
                jsConsumerConfig_Init(&configuration)
                configuration.Durable = name
                configuration.FilterSubject = subject
                configuration.AckPolicy = js_AckExplicit
                configuration.AckWait = consumer.acknowledgement.microseconds * 1_000
                configuration.MaxAckPending = consumer.mostPending
                return js_AddConsumer(nil, context, stream, &configuration, nil, &code)
            }
        }
        guard status == NATS_OK else { throw .problem(sentence(status, code, stream)) }
    }

    private static func sentence(_ status: natsStatus, _ code: jsErrCode, _ stream: String) -> String {
        NATSSubscription.sentence(status, code, stream: stream)
    }

    private func run(_ take: (OpaquePointer) -> Void) {
        while !state.withLock({ $0.isEnding }) {
            var list = natsMsgList()
            var code = jsErrCode(0)
            let status = natsSubscription_Fetch(&list, subscription, Self.batch, Self.time, &code)
            if status == NATS_OK {
                for index in 0..<Int(list.Count) {
                    if let message = list.Msgs[index] { take(message) }
                }
                natsMsgList_Destroy(&list)
                continue
            }
            if status == NATS_CONNECTION_CLOSED || status == NATS_INVALID_SUBSCRIPTION { break }
            // The connection may be lost, and the library reconnects: try again later.
            if status != NATS_TIMEOUT { ThisProcess.sleep(.milliseconds(Self.time)) }
        }
        natsSubscription_Destroy(subscription)
        state.withLock { $0.isFinished = true }
        state.wake()
    }

    /// Stops after the request in progress. Returns false if that takes longer than three seconds.
    func end() -> Bool {
        state.withLock { $0.isEnding = true }
        let isFinished: Bool? = state.wait(until: Clock.monotonic() + .seconds(3)) { state, _ in
            state.isFinished ? true : nil
        }
        return isFinished ?? false
    }
}
