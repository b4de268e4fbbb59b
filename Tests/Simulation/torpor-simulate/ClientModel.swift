// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel
import Varlink

/// A client of the control socket with one call.
final class ClientModel {
    let what: String
    private let connection: Connection
    /// How many torpords had died when it asked.
    let deaths: Int
    private(set) var reply: JSON?
    private(set) var problem: String?

    init?(_ path: String, _ method: String, _ parameters: JSON, deaths: Int) {
        guard let connection = Connection(path, as: Int32(SIM_STRANGER)) else { return nil }
        self.connection = connection
        self.deaths = deaths
        what = "\(method) \(parameters)"
        connection.send(["method": .string("io.torpor.Manager." + method), "parameters": parameters])
    }

    var isOver: Bool { connection.hasEnded || reply != nil }
    var hasEnded: Bool { connection.hasEnded }

    func look(deaths now: Int) {
        for value in connection.receive() {
            if reply != nil { problem = "is answered twice: \(value)" }
            reply = value
        }
        if connection.isGarbled { problem = "is answered in no JSON" }
        if connection.hasEnded, reply == nil, now == deaths { problem = "is not answered, and its connection ends" }
    }

    func close() { connection.close() }
}
