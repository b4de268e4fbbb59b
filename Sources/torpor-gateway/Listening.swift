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

    /// Serves the configured address, or the socket that this program was passed (`LISTEN_FDS`).
    static func serve(
        _ endpoint: GatewayEndpoint,
        _ tokens: TokenTable,
        _ surroundings: GatewayContext
    ) throws -> HTTPServer {
        let socket: Descriptor
        if let passed = PassedSocket.first() {
            socket = passed
            surroundings.log.say(.info, "http: listening on the socket that was passed")
        } else {
            socket = try listen(endpoint.address)
            surroundings.log.say(.info, "http: listening on \(endpoint.address)")
        }
        return try HTTPServer(
            socket,
            connections: endpoint.maxConnections,
            timeout: endpoint.timeout,
            PushService(HTTPRules(tokens: tokens, maxPayload: surroundings.maxPayload), surroundings)
        )
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
