// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import Varlink

@Suite("torpor-gateway with a server of NATS") struct NATSTests {
    let fixture: GatewayFixture
    let port: UInt16

    init() throws {
        fixture = try GatewayFixture()
        port = try TestAddress.port()
    }

    private var program: String? { GatewayFixture.program("nats-server", package: "nats-server") }

    private func configuration(_ subscription: String) -> String {
        """
        [[gateway.nats]]
        name = "main"
        url = "nats://127.0.0.1:\(port)"
        [[gateway.nats.subscriptions]]
        \(subscription)
        """
    }

    private let subscription = "subject = \"apps.*.>\"\napp = \"{1}\"\ntopic = \"{2}\""
    private let durable = "subject = \"kept.*\"\napp = \"{1}\"\ntopic = \"t\"\ndurable = \"torpor\"\nstream = \"KEPT\""

    @Test("posts what is published, and answers requests")
    func core() throws {
        guard let program else { return }
        _ = try fixture.nats(program, port: port)
        _ = try fixture.gateway(configuration(subscription), until: "connected to nats")
        let client = try NATSClient(port: port)
        // Answered once the subscription is there.
        var reply = JSON.null
        try fixture.eventually("a reply") {
            reply = try client.request("apps.web.orders.new", "{\"n\": 1}")
            return reply["change"] != nil
        }
        #expect(reply["change"] == "added")
        let post = try #require(fixture.supervisor.posts("web").first)
        #expect(post["topic"] == "orders.new" && post["payload"] == ["n": 1] && post["sender"] == "nats:main")
        #expect(post["urgent"] == false && post["remote"] == true)
        try client.publish("apps.waker.x", "1", headers: ["Content-Available": "1"])
        try fixture.eventually("the message") { fixture.supervisor.posts("waker").count == 1 }
        #expect(fixture.supervisor.posts("waker").first?["urgent"] == true)
        fixture.supervisor.answer("full", .error("MailboxFull"))
        let full = try client.request("apps.full.x", "1")
        #expect(full["temporary"] == true && full["error"]?.stringValue != nil)
    }

    @Test("waits for a server that is not there yet, and finds one again that was away")
    func reconnects() throws {
        guard let program else { return }
        _ = try fixture.gateway(configuration(subscription))
        let first = try fixture.nats(program, port: port)
        try fixture.eventually("the connection") { fixture.occurrences(of: "connected to nats") == 1 }
        try fixture.end(first)
        try fixture.eventually("the loss") { fixture.log.contains("is lost") }
        _ = try fixture.nats(program, port: port)
        try fixture.eventually("the connection") { fixture.occurrences(of: "connected to nats") == 2 }
        let client = try NATSClient(port: port)
        try fixture.eventually("the message") {
            try client.publish("apps.web.x", "1")
            return !fixture.supervisor.posts("web").isEmpty
        }
    }

    @Test("loses nothing that a stream keeps: while it is away, is killed, or a mailbox is full")
    func stream() throws {
        guard let program else { return }
        _ = try fixture.nats(program, port: port)
        let client = try NATSClient(port: port)
        // The stream is made while the gateway waits for it.
        let first = try fixture.gateway(configuration(durable), until: "there is no stream KEPT")
        try client.makeStream("KEPT", "kept.*")
        try client.publish("kept.web", "1")
        try fixture.eventually("the first") { fixture.supervisor.posts("web").count == 1 }
        // Killed before it has heard what became of the second.
        fixture.supervisor.answer("web", .held)
        try client.publish("kept.web", "2")
        try fixture.eventually("the second") { fixture.supervisor.posts("web").count == 2 }
        try fixture.end(first, SIGKILL)
        try client.publish("kept.web", "3")
        fixture.supervisor.answer("web", .taken)
        fixture.supervisor.answer("full", .error("MailboxFull"))
        try client.publish("kept.full", "4")
        _ = try fixture.gateway(configuration(durable))
        try fixture.eventually("all", within: .seconds(60)) {
            let payloads = fixture.supervisor.posts("web").dropFirst(2).compactMap { $0["payload"]?.intValue }
            return Set(payloads).isSuperset(of: [2, 3])
        }
        try fixture.eventually("another try") { fixture.supervisor.posts("full").count >= 2 }
        fixture.supervisor.answer("full", .taken)
        let before = fixture.supervisor.posts("full").count
        try fixture.eventually("the last try") { fixture.supervisor.posts("full").count == before + 1 }
        // The next one is posted, and the last not again.
        try client.publish("kept.full", "5")
        try fixture.eventually("the next") { fixture.supervisor.posts("full").contains { $0["payload"] == 5 } }
        let payloads = fixture.supervisor.posts("full").compactMap { $0["payload"]?.intValue }
        #expect(payloads == Array(repeating: 4, count: before + 1) + [5])
    }

    @Test("what waits for a full mailbox lets pass what comes for others")
    func passing() throws {
        guard let program else { return }
        _ = try fixture.nats(program, port: port)
        let client = try NATSClient(port: port)
        try client.makeStream("KEPT", "kept.*")
        fixture.supervisor.answer("full", .error("MailboxFull"))
        for number in 0..<8 { try client.publish("kept.full", "\(number)") }
        try client.publish("kept.web", "8")
        _ = try fixture.gateway(configuration(durable))
        try fixture.eventually("the one for another app") { fixture.supervisor.posts("web").count == 1 }
        #expect(fixture.supervisor.posts("full").count >= 8)
    }
}
