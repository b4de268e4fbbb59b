// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel
import Linux
import Varlink

/// Nothing fails and nothing is asked any longer, and all that is under way has its time: then everything must fit.
extension Simulation {
    func settle() throws {
        note("settle")
        isSettling = true
        sim_state().pointee.is_calm = 1
        sim_state().pointee.kill_at = 0
        let end = now + 240_000_000_000
        var quiet = 0
        var turns = 0
        while now < end || quiet < 3 {
            let before = now
            try turn()
            turns += 1
            if turns % 4 == 0 { try pollClients() }
            quiet = isRunning && !hasUnfinished ? quiet + 1 : 0
            if quiet > 40, sim_state().pointee.next_deadline == .max { break }
            if now == before, quiet > 0 { passTime() }
            if turns > 40_000 { throw Violation("it does not settle: \(unfinished)") }
        }
        try pollClients()
        if let open = clients.first(where: { !$0.isOver }) {
            throw Violation("a client of \(open.what) was never answered")
        }
        for process in livingProcesses where !process.isStopped {
            if let open = process.delegate?.open {
                throw Violation("process \(process.pid) of \(process.app.name) was never answered: \(open)")
            }
        }
        try checkInvariants()
        isSettling = false
        sim_state().pointee.is_calm = 0
        note("settled")
    }

    private var unfinished: String {
        var all: [String] = []
        if sim_state().pointee.is_ready != 0 { all.append("torpord has something to do") }
        if sim_keeper_has_request() != 0 { all.append("the keeper has messages") }
        for process in processes.values.sorted(by: { $0.pid < $1.pid }) {
            guard let kernel = process.kernel else { continue }
            if kernel.pointee.state == CChar(UInt8(ascii: "Z")) { all.append("\(process.pid) is a zombie") }
            if kernel.pointee.pending != 0, !process.isStopped { all.append("\(process.pid) has signals") }
            if sim_keeper_is_launching(process.pid) != 0 { all.append("\(process.pid) is launching") }
            if process.isHelper { all.append("\(process.pid) is a helper") }
        }
        for client in clients where !client.isOver { all.append("a client of \(client.what) waits") }
        return all.joined(separator: ", ")
    }

    /// Whether ``unfinished`` says anything.
    private var hasUnfinished: Bool {
        if sim_state().pointee.is_ready != 0 || sim_keeper_has_request() != 0 { return true }
        for process in processes.values {
            guard let kernel = process.kernel else { continue }
            if process.isHelper || kernel.pointee.state == CChar(UInt8(ascii: "Z")) { return true }
            if kernel.pointee.pending != 0, kernel.pointee.state != CChar(UInt8(ascii: "T")) { return true }
            if sim_keeper_is_launching(process.pid) != 0 { return true }
        }
        return clients.contains { !$0.isOver }
    }
}
