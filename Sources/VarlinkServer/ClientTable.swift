// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Varlink

/// The clients of a server, and the handlers that serve them. It is separate from the server because an app's own
/// socket has a server of its own, and most apps never connect to it.
final class ClientTable {
    /// See ``VarlinkServer/handler``.
    var handler: (VarlinkCall, Peer, Reply) -> Void = { call, _, reply in
        reply.fail(VarlinkErrorName.methodNotImplemented, ["method": .string(call.method)])
    }
    /// See ``VarlinkServer/onDisconnect``.
    var onDisconnect: ((UInt64) -> Void)?
    /// See ``VarlinkServer/strayCall``.
    var strayCall: ((_ connection: UInt64, _ method: String?) -> VarlinkServer.Refusal)?
    /// See ``VarlinkServer/unterminated``.
    var unterminated: ((Peer) -> Void)?
    /// See ``VarlinkServer/foreign``.
    var foreign: ((Peer) -> Void)?
    /// See ``VarlinkServer/refusal``.
    var refusal: ((Peer) -> VarlinkServer.Refusal?)?
    /// See ``VarlinkServer/secondDecision``.
    var secondDecision: ((Peer, @escaping (VarlinkServer.Refusal?) -> Void) -> Void)?

    var connections: [UInt64: Connection] = [:]
    var connectionsOfUser: [UInt32: Int] = [:]
    /// The account of all clients, if they share one.
    var share: UserShare?
    /// The number of refused clients, which have their own limit and so cannot lock out others.
    var refusedConnections = 0
    var lastConnection: UInt64 = 0
    /// Runs while no client is accepted because accept(2) has failed.
    var pause: TimerSource?
}
