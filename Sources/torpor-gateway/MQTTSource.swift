// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import Configuration
import Gateway
import GatewayConfiguration
import HTTPServing
import Linux
import WireText

/// A broker of MQTT, on its own thread.
///
/// A message of QoS 1 is acknowledged when the supervisor has stored it: until then the broker keeps it for this
/// client. If the message cannot be posted now, the gateway ends the connection, and the broker sends the message again
/// on the next connection.
final class MQTTSource {
    private let broker: GatewayBroker
    private let surroundings: GatewayContext
    private let handle: OpaquePointer
    private let address: BrokerAddress
    /// Whether a message could not be posted. If so, later messages of this connection are not acknowledged either, so
    /// that they stay with the broker.
    private var isRefusing = false
    /// Whether the last connection was ended because a message could not be posted.
    private var wasRefusing = false
    private var isSubscribed = false
    /// The IDs of subscription requests that the broker has not answered.
    private var asked: Set<Int32> = []
    /// Whether the broker has refused a subscription.
    private var isRefused = false
    /// A message that was posted to only some of the apps that it is for. The broker sends it again on the next
    /// connection.
    private var settled: Settled?
    private var isConnected = false
    /// The last logged reason why the broker is not connected to.
    private var refusal: String?
    private var pause = Backoff()
    private var sender: String { "mqtt:\(broker.name)" }

    private struct Settled {
        let subject: String
        let bytes: [UInt8]
        /// The indices of the subscriptions whose apps have the message already.
        var indices: Set<Int>
    }

    /// Keep-alive interval in seconds.
    private static let keepAlive: Int32 = 60
    /// How often the library checks whether a keep-alive is due.
    private static let beat = Duration.seconds(15)
    /// How often to check again whether a connection is needed, if it serves an app that several machines can own.
    private static let glance = Duration.seconds(1)

    /// Starts the thread; the result becomes true when the thread has ended because the program stops. Throws a
    /// sentence that describes the error.
    static func start(_ broker: GatewayBroker, _ surroundings: GatewayContext) throws -> Monitor<Bool> {
        let isFinished = Monitor(false)
        let password = try broker.password.map { try surroundings.secrets.text($0) }
        try WorkerThread.start(named: "mqtt") {
            defer {
                isFinished.withLock { $0 = true }
                isFinished.wake()
            }
            guard let source = MQTTSource(broker, password, surroundings) else {
                surroundings.log.say(.error, "mqtt:\(broker.name): out of memory, or a certificate cannot be used")
                return
            }
            source.run()
        }
        return isFinished
    }

    private init?(_ broker: GatewayBroker, _ password: String?, _ surroundings: GatewayContext) {
        let client = broker.client ?? "torpor-gateway-\(ThisProcess.hostName)-\(broker.name)"
        guard let address = BrokerAddress(broker.url), let handle = mosquitto_new(client, false, nil) else {
            return nil
        }
        self.broker = broker
        self.surroundings = surroundings
        self.address = address
        self.handle = handle
        // Make the library assume several threads: then it sends no acknowledgement before the message was handled.
        mosquitto_threaded_set(handle, true)
        if let user = broker.user { mosquitto_username_pw_set(handle, user, password) }
        if address.isEncrypted, !encrypt() { return nil }
        mosquitto_user_data_set(handle, Unmanaged.passUnretained(self).toOpaque())
        mosquitto_connect_with_flags_callback_set(handle) { _, source, code, flags in
            MQTTSource.from(source).connected(code, isResumed: flags & 1 != 0)
        }
        mosquitto_subscribe_callback_set(handle) { _, source, number, count, granted in
            MQTTSource.from(source).subscribed(number, UnsafeBufferPointer(start: granted, count: Int(count)))
        }
        mosquitto_message_callback_set(handle) { _, source, message in
            guard let message = message?.pointee else { return }
            MQTTSource.from(source).take(message)
        }
    }

    deinit { mosquitto_destroy(handle) }

    private static func from(_ pointer: UnsafeMutableRawPointer?) -> MQTTSource {
        Unmanaged<MQTTSource>.fromOpaque(pointer!).takeUnretainedValue()
    }

    private func encrypt() -> Bool {
        let key = broker.key.map(surroundings.secrets.path)
        let folder = broker.authorities == nil ? "/etc/ssl/certs" : nil
        return mosquitto_tls_set(handle, broker.authorities, folder, broker.certificate, key, nil) == success
    }

    private var success: Int32 { Int32(MOSQ_ERR_SUCCESS.rawValue) }

    // MARK: The connection

    private func run() {
        let log = surroundings.log
        while !surroundings.stop.isRequested {
            guard isWanted else {
                tellMixture()
                if surroundings.stop.wait(Self.glance) { break }
                continue
            }
            wasRefusing = isRefusing
            isRefusing = false
            var code = mosquitto_connect(handle, address.host, address.port, Self.keepAlive)
            if code == success { code = serve() }
            if surroundings.stop.isRequested { break }
            if !isRefusing, isWanted {
                let why = String(terminatedWire: mosquitto_strerror(code))
                // Log this connection only if the loss of the last one was logged: a broker that ends each connection
                // at once would flood the log.
                let isTold = log.sayOften(
                    .warning,
                    "\(sender) \(why)",
                    "\(sender): no connection to \(broker.url): \(why)"
                )
                if isTold { isConnected = false }
            }
            if !isWanted {
                if mixture == nil {
                    surroundings.log.say(.info, "\(sender): left, since none of its apps is owned here")
                }
                mosquitto_disconnect(handle)
                mosquitto_loop_write(handle, 1)
                isConnected = false
                continue
            }
            if surroundings.stop.wait(pause.next()) { break }
        }
        // The library closes its socket right after it has sent DISCONNECT. Keep a duplicate of the socket, so that
        // `leave` can wait until the broker has closed the connection too.
        let socket = mosquitto_socket(handle)
        let kept = socket >= 0 ? try? Descriptor.duplicate(socket) : nil
        mosquitto_disconnect(handle)
        mosquitto_loop_write(handle, 1)
        if let kept { kept.withRaw { leave($0) } }
    }

    /// Waits until the broker has closed the connection too. If this side closed the connection with unread data, the
    /// kernel would reset it. The broker would then not get the last acknowledgements, and would send posted messages
    /// again.
    private func leave(_ socket: Int32) {
        try? Sockets.shutdownWriting(socket)
        let end = Clock.monotonic() + .seconds(2)
        while (try? Descriptor.wait(socket, timeout: max(.zero, end - Clock.monotonic()))) ?? false {
            guard let bytes = try? Descriptor.read(socket, maximum: 64 << 10), !bytes.isEmpty else { return }
        }
    }

    /// An app that several machines can own and that shares the broker's table with other apps; nil if there is none.
    /// This is a mistake in the configuration, for two reasons. The messages of all apps in a table come in one order,
    /// so those of an app that another machine owns would hold back all later ones. And all machines would need the
    /// same `client_id` for this app, but different ones for the others.
    private var mixture: String? {
        let apps = Set(broker.subscriptions.map(\.app.description))
        guard apps.count > 1 else { return nil }
        return apps.sorted().first { surroundings.owners.isOfSeveralMachines($0) }
    }

    private func tellMixture() {
        let app = mixture
        defer { refusal = app }
        guard let app, app != refusal else { return }
        surroundings.log.say(
            .error,
            "\(sender): takes no messages, since \(app) has owner = \"external\" and shares [[gateway.mqtt]] with other "
                + "apps: give \(app) a [[gateway.mqtt]] of its own, with a client_id that is the same on all machines"
        )
    }

    /// Whether the connection is needed: this machine may own an app that gets messages of this broker. The broker
    /// keeps the messages of other apps for the machines that own them, if all machines have the same `client_id`.
    private var isWanted: Bool {
        guard mixture == nil else { return false }
        return broker.subscriptions.contains { subscription in
            let app = subscription.app.description
            guard subscription.app.isConstant, surroundings.owners.isOfSeveralMachines(app) else { return true }
            return surroundings.owners.standing(of: app) == .here
        }
    }

    private var isShared: Bool {
        broker.subscriptions.contains { surroundings.owners.isOfSeveralMachines($0.app.description) }
    }

    /// Serves a connection until it ends; returns the library's code of the reason.
    private func serve() -> Int32 {
        let socket = mosquitto_socket(handle)
        do throws(Errno) {
            let poller = try Poller()
            try poller.add(surroundings.stop.counter.raw, .readable, tag: 1)
            try poller.add(socket, .readable, tag: 0)
            var wantsWrite = false
            while !surroundings.stop.isRequested {
                if mosquitto_want_write(handle) != wantsWrite {
                    wantsWrite.toggle()
                    try poller.modify(socket, wantsWrite ? [.readable, .writable] : .readable, tag: 0)
                }
                _ = try Descriptor.wait(poller.descriptor.raw, timeout: isShared ? Self.glance : Self.beat)
                if !isWanted { return success }
                var events: IOEvents = []
                try poller.drain { tag, found in if tag == 0 { events = found } }
                // Handle only one message in each turn, so that it is acknowledged before the next message is read.
                var code = events.subtracting(.writable).isEmpty ? success : mosquitto_loop_read(handle, 1)
                if code == success, !isRefusing, mosquitto_want_write(handle) { code = mosquitto_loop_write(handle, 1) }
                if code == success { code = mosquitto_loop_misc(handle) }
                if code != success { return code }
                if isRefusing { break }
            }
        } catch {
            surroundings.log.sayOften(.error, "\(sender) poll", "\(sender): \(error)")
        }
        return success
    }

    private func connected(_ code: Int32, isResumed: Bool) {
        guard code == 0 else {
            let why = String(terminatedWire: mosquitto_connack_string(code))
            surroundings.log.sayOften(
                .error,
                "\(sender) \(code)",
                "\(sender): \(broker.url) refuses the connection: \(why)"
            )
            return
        }
        if !isConnected { surroundings.log.say(.info, "\(sender): connected to \(broker.url)") }
        isConnected = true
        // The connection was not ended because of a message, so the broker works: retry soon.
        if !wasRefusing { pause.reset() }
        // The broker still has the subscriptions. Subscribing again would make it send retained messages each time.
        if isResumed, isSubscribed { return }
        isSubscribed = false
        isRefused = false
        asked = []
        var patterns: Set<String> = []
        for subscription in broker.subscriptions where patterns.insert(subscription.pattern.description).inserted {
            let same = broker.subscriptions.filter { $0.pattern == subscription.pattern }
            var number: Int32 = 0
            mosquitto_subscribe(handle, &number, subscription.pattern.description, same.map(\.quality).max() ?? 1)
            asked.insert(number)
        }
    }

    private func subscribed(_ number: Int32, _ granted: UnsafeBufferPointer<Int32>) {
        asked.remove(number)
        if granted.contains(where: { $0 > 2 }) { isRefused = true }
        // Refused subscriptions are requested again on the next connection.
        if asked.isEmpty { isSubscribed = !isRefused }
        guard granted.contains(where: { $0 > 2 }) else { return }
        surroundings.log.say(.error, "\(sender): \(broker.url) refuses some of the subscriptions of this user")
    }

    // MARK: Messages

    private func take(_ message: mosquitto_message) {
        guard !isRefusing, let topic = message.topic else { return }
        let subject = String(terminatedWire: topic)
        // Read only the first bytes of a message that is too large: they are enough to refuse it.
        let size = min(Int(message.payloadlen), surroundings.maxPayload + 1)
        let bytes = Array(UnsafeRawBufferPointer(start: message.payload, count: size))
        var done: Set<Int> = []
        if let settled, settled.subject.utf8.elementsEqual(subject.utf8), settled.bytes == bytes {
            done = settled.indices
        }
        settled = nil
        for (index, subscription) in broker.subscriptions.enumerated() where !done.contains(index) {
            do throws(NoMessage) {
                let push = try subscription.push(
                    subject: subject,
                    bytes: bytes,
                    maxPayload: surroundings.maxPayload,
                    sender: sender
                )
                guard let push else { continue }
                settle(surroundings.queue.post(push), push, subscription, canWait: message.qos > 0)
            } catch {
                surroundings.log.sayOften(.warning, "\(sender) \(subject)", "\(sender): \(subject): \(error)")
            }
            if isRefusing {
                if !done.isEmpty { settled = Settled(subject: subject, bytes: bytes, indices: done) }
                return
            }
            done.insert(index)
        }
    }

    private func settle(_ outcome: PostOutcome, _ push: Push, _ subscription: GatewaySubscription, canWait: Bool) {
        let log = surroundings.log
        let what = "\(push.sender): \(push.app) \(push.topic): \(outcome.text)"
        switch outcome {
        case .taken:
            pause.reset()
            log.say(.debug, what)
        case .unknownApp, .refused: log.sayOften(.warning, "\(sender) \(push.app)", what)
        case .elsewhere where !canWait: log.say(.debug, what)
        case .elsewhere where !subscription.app.isConstant:
            // Do not wait: this message would hold back the messages of all other apps. The gateway on the owner's
            // machine has a session of its own.
            log.sayOften(.info, "\(sender) \(push.app)", "\(what); it is left to the gateway beside its owner")
        case .full where !canWait || subscription.onFull == .drop, .unavailable where !canWait:
            log.sayOften(.warning, "\(sender) \(push.app)", "\(what); it is lost")
        case .full, .elsewhere, .unavailable:
            log.sayOften(.warning, "\(sender) \(push.app)", "\(what); it waits at the broker")
            isRefusing = true
            let socket = mosquitto_socket(handle)
            // Close the connection without DISCONNECT and before the acknowledgement, so that the broker keeps the
            // message.
            try? Sockets.shutdownReading(socket)
            try? Sockets.shutdownWriting(socket)
        }
    }
}
