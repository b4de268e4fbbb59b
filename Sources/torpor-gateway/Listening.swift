// SPDX-License-Identifier: Apache-2.0

import Configuration
import Gateway
import GatewayConfiguration
import HTTPServing
import Linux

/// Opens the socket of the HTTP endpoint.
enum Listening {
    /// Why the socket cannot be opened, as a sentence.
    struct Problem: Error, CustomStringConvertible {
        let description: String
    }

    /// The endpoint while it is served.
    struct Endpoint {
        let server: HTTPServer
        let queue: PostQueue
    }

    /// Serves the configured address, or the socket that this program was passed (`LISTEN_FDS`).
    static func serve(
        _ endpoint: GatewayEndpoint,
        _ gateway: GatewaySpecification,
        _ tokens: TokenTable,
        _ secrets: Secrets,
        _ log: GatewayLog,
        _ stop: Stop
    ) throws -> Endpoint {
        let owners = OwnerWatch(socket: gateway.socket, log: log)
        let queue = try PostQueue(
            socket: gateway.socket,
            limit: gateway.queue,
            connections: gateway.connections,
            owners: owners
        )
        let context = GatewayContext(
            queue: queue,
            log: log,
            owners: owners,
            secrets: secrets,
            maxPayload: gateway.maxPayload,
            stop: stop
        )
        try owners.start()
        // Wait until the owners are known: a message for an app that another machine owns must not be posted here.
        owners.waitUntilLearnt(until: Clock.monotonic() + .seconds(1))
        let socket: Descriptor
        if let passed = PassedSocket.first() {
            socket = passed
            log.say(.info, "http: listening on the socket that was passed")
        } else {
            socket = try listen(endpoint.address)
            log.say(.info, "http: listening on \(endpoint.address)")
        }
        let server = try HTTPServer(
            socket,
            connections: endpoint.maxConnections,
            timeout: endpoint.timeout,
            PushService(HTTPRules(tokens: tokens, maxPayload: gateway.maxPayload), context)
        )
        return Endpoint(server: server, queue: queue)
    }

    private static func listen(_ address: GatewayEndpoint.Address) throws(Problem) -> Descriptor {
        do throws(Errno) {
            switch address {
            case .tcp(let host, let port): return try Sockets.listenTCP(address: host, port: port, backlog: 1024)
            case .unix(let path): return try Sockets.listen(path: path, backlog: 1024)
            }
        } catch {
            throw Problem(description: "cannot listen on \(address): \(error)")
        }
    }
}
