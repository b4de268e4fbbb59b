// SPDX-License-Identifier: Apache-2.0

import Linux

/// Warns about probes of a port on which torpord itself listens for the app (`sockets`). The kernel accepts connections
/// to that port even if the app does not, so a TCP probe always succeeds.
enum HeldPorts {
    static func check(_ app: AppSpecification, _ draft: AppDraft) {
        if case .probe(let probe) = app.ready, let problem = problem(probe.kind, app) {
            draft.warning("ready", problem + ": write ready = \"notify\", and have the program send READY=1")
        }
        if let probe = app.health?.probe, let problem = problem(probe.kind, app) {
            draft.warning("health", problem + ": write http or command")
        }
    }

    private static func problem(_ kind: Probe.Kind, _ app: AppSpecification) -> String? {
        switch kind {
        case .tcp(let host, let port):
            guard let socket = socket(at: host, port, of: app) else { return nil }
            return "torpord itself listens at \(socket.plan.address) (sockets), so tcp succeeds before the program "
                + "listens"
        case .http(let host, let port, _):
            // Only a program can answer an HTTP request, so the listening socket of torpord makes no HTTP probe
            // succeed. But with `reuse_port`, several instances share the port, and another instance may answer.
            guard let socket = socket(at: host, port, of: app), socket.plan.reusePort, app.isOneOfTemplate else {
                return nil
            }
            return "another instance may answer at \(socket.plan.address) (sockets with reuse_port) before this one "
                + "does"
        case .command, .inside, .file: return nil
        }
    }

    private static func socket(at host: String, _ port: UInt16, of app: AppSpecification) -> SocketSpecification? {
        app.sockets.first { socket in
            guard socket.plan.kind == .stream else { return false }
            switch socket.plan.address {
            case .port(let own): return own == port
            case .ipv4(let address, let own):
                return own == port
                    && (address == "0.0.0.0" || address == host || host == "localhost" && address.hasPrefix("127."))
            case .ipv6(let address, let own, _):
                return own == port && (address == "::" || address == host || host == "localhost" && address == "::1")
            case .path, .abstract, .vsock: return false
            }
        }
    }
}
