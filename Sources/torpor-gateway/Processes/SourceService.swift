// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import Configuration
import Gateway
import GatewayConfiguration
import HTTPServing
import Linux
import WireText

/// The work of a process for one source: everything that concerns a broker, or the stream of states.
///
/// In that process, libraries in C parse the data that the broker sends. A broker that crashes or blocks them, uses up
/// memory, or executes code in them affects neither the HTTP endpoint nor other brokers.
struct SourceService {
    /// Why the process cannot serve its source, as a sentence.
    struct Problem: Error, CustomStringConvertible {
        let description: String
    }

    private let source: GatewaySource
    private let broker: GatewayBroker
    private let gateway: GatewaySpecification
    private let secrets: Secrets

    /// The limit of memory besides the stacks of threads. A state of 16 MiB takes several times its size.
    private static let memory: UInt64 = 256 << 20
    /// The most memory for the stack of a thread of libnats: 8 MiB, the usual limit, and 1 MiB for everything around
    /// it.
    private static let stack: UInt64 = 9 << 20
    /// The most threads, besides those that libnats has for each subscription.
    private static let threads = 16

    /// Reads the configuration from standard input, a memfd that the parent process has filled. The file itself may
    /// have changed since the parent read it.
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
        // Set the process's name, which is "exe" after an exec of /proc/self/exe.
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
        // Post the messages that were accepted. Streams and brokers send the rest again at the next start.
        let deadline = Clock.monotonic() + .seconds(5)
        finish(deadline)
        _ = context.queue.waitUntilEmpty(until: deadline)
    }

    /// Starts the source. Returns a function that ends the source by a deadline (CLOCK_MONOTONIC).
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
        // Wait until the owners are known: a message for an app that another machine owns must not be posted here.
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
    /// but can read neither the secrets for other brokers nor the memory of the other processes, and can signal only
    /// itself.
    private func confine() throws {
        let threads = Self.threads + broker.subscriptions.count
        try Confinement.limitMemory(to: Self.memory + Self.stack * UInt64(threads))
        var writable: [String] = []
        if case .state = source, let tokens = gateway.state?.tokens {
            // Create the folder now, since a boot removes it, and Landlock allows nothing in a folder that is created
            // later.
            try? File.makeDirectories(tokens)
            guard File.exists(tokens) else { return }
            writable = [tokens]
        }
        let readable = Confinement.networkFiles + Self.files(of: broker, secrets)
        _ = try Confinement.confine(readable: readable, writable: writable)
    }

    /// The files that a connection to the broker reads, besides ``Confinement/networkFiles``.
    static func files(of broker: GatewayBroker, _ secrets: Secrets) -> [String] {
        let certificate = [broker.authorities, broker.certificate, broker.credentials, broker.key.map(secrets.path)]
        return certificate.compactMap(\.self).map { path in
            // Allow the file's folder, since renewing a file puts a new file there. systemd's copies of secrets are
            // never renewed.
            secrets.isCredential(path) ? path : File.parent(of: path) ?? path
        } + [broker.password, broker.token].compactMap { $0.map(secrets.path) }
    }
}
