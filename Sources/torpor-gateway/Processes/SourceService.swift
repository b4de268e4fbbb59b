// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import Configuration
import Gateway
import GatewayConfiguration
import HTTPServing
import Linux
import WireText

/// What the process of one source does: all that concerns a broker, or the stream of states.
///
/// Libraries in C parse there what the broker sends. A broker that crashes them, blocks them, uses up memory or executes
/// code in them reaches neither the endpoint for HTTP nor other brokers.
struct SourceService {
    /// Why the process cannot serve its source, as a sentence.
    struct Problem: Error, CustomStringConvertible {
        let description: String
    }

    private let source: GatewaySource
    private let broker: GatewayBroker
    private let gateway: GatewaySpecification
    private let secrets: Secrets

    /// Memory besides the stacks of threads: a state of 16 MiB takes several times its size.
    private static let memory: UInt64 = 256 << 20
    /// What a thread of libnats may take for its stack: 8 MiB, the usual limit, and what surrounds it.
    private static let stack: UInt64 = 9 << 20
    /// Threads besides those that libnats has for each subscription.
    private static let threads = 16

    /// What the process that starts this one gives as standard input, a memfd: the configuration as it was then, since
    /// the file may have changed.
    static func configuration() throws(Errno) -> [UInt8] {
        try File.read(0, at: 0, maximum: ConfigurationSystem.fileLimit)
    }

    init(_ source: GatewaySource, _ gateway: GatewaySpecification, _ secrets: Secrets) throws(Problem) {
        guard let broker = gateway.broker(of: source) else {
            throw Problem(description: "the configuration has no \(source)")
        }
        (self.source, self.broker, self.gateway, self.secrets) = (source, broker, gateway, secrets)
    }

    /// Serves the source until the process is asked to end. Must be called before any thread is started, since
    /// Landlock restricts only threads that start later.
    func run() throws {
        // The process was executed as /proc/self/exe.
        ThisProcess.rename("torpor-gateway")
        try Signal.ignore(Signal.pipe)
        try confine()
        let stop = try Stop()
        let log = GatewayLog(level: gateway.logLevel)
        let owners = OwnerWatch(socket: gateway.socket, log: log)
        let context = GatewayContext(
            queue: try PostQueue(
                socket: gateway.socket,
                limit: gateway.queue,
                connections: connections,
                owners: owners
            ),
            log: log,
            owners: owners,
            secrets: secrets,
            maxPayload: gateway.maxPayload,
            stop: stop
        )
        let finish = try start(context)
        _ = stop.wait(nil)
        // Posts what was accepted; streams and brokers send the rest again at the next start.
        let deadline = Clock.monotonic() + .seconds(5)
        finish(deadline)
        _ = context.queue.waitUntilEmpty(until: deadline)
    }

    /// Starts the source; returns what ends it, until a deadline (CLOCK_MONOTONIC).
    private func start(_ context: GatewayContext) throws -> (Duration) -> Void {
        if case .state = source {
            guard let states = gateway.state else { return { _ in } }
            let pusher = try StatePusher.start(states, socket: gateway.socket, context) { sentence in
                // The process that started this one reads lines, and passes them on to systemd.
                try? ThisProcess.write(sentence.onOneLine + "\n", to: 1)
            }
            try context.owners.start()
            return { _ = pusher.finish(until: $0) }
        }
        try context.owners.start()
        // What comes for an app of several machines is not posted where another machine owns it.
        context.owners.waitUntilLearnt(until: Clock.monotonic() + .seconds(1))
        if case .nats = source {
            let nats = try NATSSource.start(broker, context)
            return { _ = nats.finish(until: $0) }
        }
        mosquitto_lib_init()
        let isFinished = try MQTTSource.start(broker, context)
        return { deadline in let _: Bool? = isFinished.wait(until: deadline) { state, _ in state ? true : nil } }
    }

    /// How many messages this source posts at a time.
    private var connections: Int {
        switch source {
        case .nats: min(gateway.connections, max(1, broker.subscriptions.count))
        case .mqtt: 1
        case .state: 0
        }
    }

    // MARK: Confinement

    /// Gives up what the source does not need. A broker that has taken over this process can still post as the gateway,
    /// but can read neither the secrets of others nor the memory of the other processes, and can signal only itself.
    private func confine() throws {
        let threads = Self.threads + broker.subscriptions.count
        try Confinement.limitMemory(to: Self.memory + Self.stack * UInt64(threads))
        var writable: [String] = []
        if case .state = source, let tokens = gateway.state?.tokens {
            // A boot removes the folder, and Landlock allows nothing in one that is made later.
            try? File.makeDirectories(tokens)
            guard File.exists(tokens) else { return }
            writable = [tokens]
        }
        let readable = Confinement.networkFiles + Self.files(of: broker, secrets)
        _ = try Confinement.confine(readable: readable, writable: writable)
    }

    /// What a connection to the broker reads, besides ``Confinement/networkFiles``.
    static func files(of broker: GatewayBroker, _ secrets: Secrets) -> [String] {
        let certificate = [broker.authorities, broker.certificate, broker.credentials, broker.key.map(secrets.path)]
        return certificate.compactMap(\.self).map { path in
            // A file that is renewed is another one, in the same folder; systemd's copies of secrets stay as they are.
            secrets.isCredential(path) ? path : File.parent(of: path) ?? path
        } + [broker.password, broker.token].compactMap { $0.map(secrets.path) }
    }
}
