// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel
import Linux
import Varlink

/// What clients of the control socket ask.
extension Simulation {
    private var anyApp: AppModel { apps[random(apps.count)] }

    func askAnything() {
        if happens(behavior.hangUps, of: 30), let client = clients.first(where: { !$0.isOver }) {
            note("a client of \(client.what) hangs up")
            return client.hangUp()
        }
        if happens(behavior.upgrades, of: 100) {
            ask("Upgrade", .emptyObject)
            return
        }
        let (method, parameters) = happens(3, of: 4) ? anyVerb() : anyQuestion()
        ask(method, parameters, more: happens(1, of: 3))
    }

    private func anyVerb() -> (String, JSON) {
        let some: JSON = happens(1, of: 6) ? .strings(apps.map(\.name)) : .strings([anyApp.name])
        let verb: JSON = [
            "apps": some, "wait": .bool(happens(1, of: 2)), "timeout_ms": .int(Int64(1 + random(20_000))),
        ]
        switch random(18) {
        case 0, 1: return ("Start", verb)
        case 2, 3: return ("Stop", verb)
        case 4: return ("Restart", verb)
        case 5, 6: return ("Foreground", verb)
        case 7, 8: return ("Background", verb)
        case 9, 10, 11: return ("Suspend", verb)
        case 12, 13: return ("Resume", verb)
        case 14: return ("Interrupt", ["apps": some, "end": .bool(happens(1, of: 2))])
        case 15: return ("Kill", verb)
        case 16: return ("Reset", ["apps": some])
        default: return ("Hold", ["apps": some, "for_ms": 3000, "reason": "a test"])
        }
    }

    private func anyQuestion() -> (String, JSON) {
        let app = JSON.string(anyApp.name)
        switch random(16) {
        case 0, 1: return ("List", .emptyObject)
        case 2, 3: return ("Status", ["app": app])
        case 4, 5: return ("Logs", ["app": app, "lines": 20])
        case 6, 7: return ("Events", ["limit": 10])
        case 8: return ("Mailbox", ["app": app])
        case 9: return ("Unhandled", .emptyObject)
        case 10: return ("Reports", ["app": app])
        case 11: return ("Metrics", .emptyObject)
        case 12: return ("Memory", .emptyObject)
        case 13: return ("Timers", .emptyObject)
        case 14: return ("Graph", .emptyObject)
        default: return ("Wait", ["apps": [app], "state": "suspended", "timeout_ms": .int(Int64(1 + random(9000)))])
        }
    }

    func postAnything() {
        guard let app = apps.filter({ $0.kind == .delegate }).randomElement(by: self) else { return askAnything() }
        let number = ledger.post(to: app)
        let parameters: JSON = [
            "app": .string(app.name), "topic": .string("topic\(random(3))"), "payload": ["n": .int(Int64(number))],
            "coalesce": "all", "urgent": .bool(happens(1, of: 2)),
        ]
        let client = ask("Post", parameters)
        guard let client else { return ledger.resolve(number, .unknown) }
        client.onReply = { [ledger] reply in
            guard let reply else { return ledger.resolve(number, .unknown) }
            ledger.resolve(number, reply["error"] == nil ? .accepted : .refused)
        }
    }

    /// Writes another configuration, and has it applied.
    func reconfigure() throws {
        let app = anyApp
        if apps.filter(\.isConfigured).count > 1 || !app.isConfigured, happens(1, of: 2) {
            app.isConfigured.toggle()
        }
        if !app.isConfigured {
            app.wasRemoved = true
            ledger.forget(app)
        }
        app.settings = anySettings(of: app)
        try writeConfiguration()
        ask("Apply", ["wait": .bool(happens(1, of: 2)), "restart": .bool(happens(1, of: 4))])
    }

    @discardableResult func ask(_ method: String, _ parameters: JSON, more: Bool = false) -> ClientModel? {
        guard clients.count < 12 else { return nil }
        let path = root + "/run/io.torpor"
        guard let client = ClientModel(path, method, parameters, more: more, deaths: deaths) else { return nil }
        note("a client asks \(client.what)")
        clients.append(client)
        return client
    }

    func pollClients() throws {
        for client in clients {
            client.poll(deaths: deaths)
            if let problem = client.problem { throw Violation("a client of \(client.what) \(problem)") }
        }
        clients.removeAll { client in
            // It stays for a while, should there be a second answer.
            guard client.isOver, client.hasEnded || happens(1, of: 8) else { return false }
            client.hangUp()
            return true
        }
    }

    /// Asks torpord, and gives it time to answer.
    func asked(_ method: String, _ parameters: JSON) throws -> JSON {
        guard let client = ClientModel(root + "/run/io.torpor", method, parameters, deaths: deaths) else {
            throw Violation("nothing listens at the control socket, and torpord runs")
        }
        defer { client.hangUp() }
        for _ in 0..<3000 {
            try turn()
            client.poll(deaths: deaths)
            if let problem = client.problem { throw Violation("a client of \(client.what) \(problem)") }
            if let reply = client.reply { return reply }
        }
        throw Violation("a client of \(client.what) is not answered")
    }
}

extension Array {
    func randomElement(by simulation: Simulation) -> Element? { isEmpty ? nil : self[simulation.random(count)] }
}
