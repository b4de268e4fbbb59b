// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel
import Varlink

/// A client of the control socket with one call.
final class ClientModel {
    let what: String
    private let connection: Connection
    /// How many torpords had ended when it asked.
    let deaths: Int
    /// The last reply; there is none while more are to come.
    private(set) var reply: JSON?
    private(set) var problem: String?
    /// Called with the reply; with nil when the connection ended before it.
    var onReply: ((JSON?) -> Void)?
    private var hasReported = false
    private var hasHungUp = false
    private let refusalsBefore: UInt64

    init?(_ path: String, _ method: String, _ parameters: JSON, more: Bool = false, deaths: Int) {
        guard let connection = Connection(path, as: Int32(SIM_STRANGER)) else { return nil }
        self.connection = connection
        self.deaths = deaths
        refusalsBefore = ClientModel.refusals
        what = "\(method) \(parameters)"
        var call: JSONObject = ["method": .string("io.torpor.Manager." + method), "parameters": parameters]
        if more { call["more"] = true }
        connection.send(.object(call))
    }

    /// How many calls have failed without which a connection cannot be had.
    private static var refusals: UInt64 {
        withUnsafeBytes(of: sim_state().pointee.faults) {
            let all = $0.bindMemory(to: UInt64.self)
            return all[Int(SIM_FAULT_MEMORY.rawValue)] + all[Int(SIM_FAULT_DESCRIPTORS.rawValue)]
        }
    }

    var isOver: Bool { connection.hasEnded || reply != nil }
    var hasEnded: Bool { connection.hasEnded }

    func poll(deaths now: Int) {
        for value in connection.receive() {
            if reply != nil { problem = "is answered twice: \(value)" }
            if value["continues"]?.boolValue == true { continue }
            reply = value
        }
        if connection.isGarbled { problem = "is answered in no JSON" }
        if connection.hasEnded, reply == nil, !hasHungUp, now == deaths, refusalsBefore == ClientModel.refusals {
            problem = "is not answered, and its connection ends"
        }
        guard isOver, !hasReported else { return }
        hasReported = true
        onReply?(reply)
    }

    /// It does not wait for an answer any longer.
    func hangUp() {
        hasHungUp = true
        if !hasReported { onReply?(nil) }
        hasReported = true
        connection.close()
    }
}
