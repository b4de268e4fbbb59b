// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import Varlink

@Suite("torpor-gateway with a broker of MQTT") struct MQTTTests {
    let fixture: GatewayFixture
    let port: UInt16

    init() throws {
        fixture = try GatewayFixture()
        port = try TestAddress.port()
    }

    private var program: String? {
        guard GatewayFixture.program("mosquitto_pub", package: "mosquitto-clients") != nil else { return nil }
        return GatewayFixture.program("mosquitto", package: "mosquitto")
    }

    private func configuration(_ more: String = "") -> String {
        """
        [[gateway.mqtt]]
        name = "home"
        url = "mqtt://127.0.0.1:\(port)"
        client_id = "torpor-test"
        [[gateway.mqtt.subscriptions]]
        filter = "home/+/state"
        app = "{1}"
        topic = "state"
        \(more)
        """
    }

    private func publish(_ topic: String, _ text: String, quality: Int = 1) throws {
        let (code, output) = try Spawn.run([
            "/usr/bin/mosquitto_pub", "-h", "127.0.0.1", "-p", "\(port)", "-q", "\(quality)", "-t", topic, "-m", text,
        ])
        guard code == 0 else { throw Trouble("mosquitto_pub: \(output)") }
    }

    /// What was posted, without what came again since its connection was lost: a supervisor knows it by its token.
    private func payloads(_ app: String) -> [JSON?] {
        var tokens: Set<JSON> = []
        return fixture.supervisor.posts(app).filter { tokens.insert($0["token"] ?? .null).inserted }.map {
            $0["payload"]
        }
    }

    /// Waits until the broker has what it is asked for: it takes messages of clients that it knows only.
    private func waitUntilSubscribed() throws {
        try fixture.eventually("the subscription") {
            try publish("home/probe/state", "1")
            return !fixture.supervisor.posts("probe").isEmpty
        }
    }

    @Test("posts what is published")
    func publishes() throws {
        guard let program else { return }
        _ = try fixture.mosquitto(program, port: port)
        _ = try fixture.gateway(configuration(), until: "connected to mqtt")
        try waitUntilSubscribed()
        try publish("home/lamp/state", "ON")
        try publish("home/lamp/other", "ON")
        try publish("home/lamp/state", "{\"aps\": {\"content-available\": 1}}", quality: 0)
        try fixture.eventually("both") { fixture.supervisor.posts("lamp").count == 2 }
        let posts = fixture.supervisor.posts("lamp")
        #expect(posts[0]["payload"] == "ON" && posts[0]["topic"] == "state" && posts[0]["sender"] == "mqtt:home")
        #expect(posts[0]["urgent"] == false && posts[1]["urgent"] == true && posts[1]["remote"] == true)
    }

    @Test("gets what was published while it was away or had been killed in the middle of a message")
    func away() throws {
        guard let program else { return }
        _ = try fixture.mosquitto(program, port: port)
        let first = try fixture.gateway(configuration(), until: "connected to mqtt")
        try waitUntilSubscribed()
        fixture.supervisor.answer("lamp", .held)
        try publish("home/lamp/state", "1")
        try fixture.eventually("the first") { fixture.supervisor.posts("lamp").count == 1 }
        try fixture.end(first, SIGKILL)
        fixture.supervisor.answer("lamp", .taken)
        try publish("home/lamp/state", "2")
        try publish("home/lamp/state", "3")
        let second = try fixture.gateway(configuration())
        try fixture.eventually("all") { payloads("lamp").dropFirst() == [1, 2, 3] }
        // A stop is no loss either.
        #expect(try fixture.end(second) == 0)
        try publish("home/lamp/state", "4")
        _ = try fixture.gateway(configuration())
        try fixture.eventually("the last") { payloads("lamp").last == 4 }
        #expect(payloads("lamp").dropFirst() == [1, 2, 3, 4])
    }

    @Test("leaves at the broker what a full mailbox or a lost supervisor does not take, and gets it again, in order")
    func waits() throws {
        guard let program else { return }
        _ = try fixture.mosquitto(program, port: port)
        _ = try fixture.gateway(configuration(), until: "connected to mqtt")
        try waitUntilSubscribed()
        fixture.supervisor.answer("lamp", .error("MailboxFull"))
        try publish("home/lamp/state", "1")
        try publish("home/door/state", "2")
        try fixture.eventually("another try") { fixture.supervisor.posts("lamp").count >= 2 }
        #expect(fixture.supervisor.posts("door").isEmpty)
        fixture.supervisor.answer("lamp", .taken)
        // With an answer that the gateway has not heard it would come again.
        try fixture.eventually("the next") { payloads("door") == [2] && fixture.log.contains("door state: waits") }
        fixture.supervisor.end()
        try publish("home/door/state", "3")
        try fixture.eventually("the supervisor to be missed") {
            fixture.log.split(separator: "\n").contains { $0.contains("door") && $0.contains("it waits at the broker") }
        }
        try fixture.supervisor.listen()
        try fixture.eventually("what waited") { payloads("door") == [2, 3] }
    }

    @Test("drops what a full mailbox does not take where it shall")
    func drops() throws {
        guard let program else { return }
        _ = try fixture.mosquitto(program, port: port)
        _ = try fixture.gateway(configuration("on_full = \"drop\"\nwake = \"always\""), until: "connected to mqtt")
        try waitUntilSubscribed()
        fixture.supervisor.answer("lamp", .error("MailboxFull"))
        try publish("home/lamp/state", "1")
        try publish("home/door/state", "2")
        try fixture.eventually("the next") { payloads("door") == [2] }
        #expect(fixture.supervisor.posts("lamp").count == 1 && fixture.supervisor.posts("door")[0]["urgent"] == true)
        #expect(fixture.log.contains("it is lost"))
    }

    @Test("finds a broker again that was away, and says who is turned away")
    func reconnects() throws {
        guard let program else { return }
        let first = try fixture.mosquitto(program, port: port)
        _ = try fixture.gateway(configuration(), until: "connected to mqtt")
        try fixture.end(first)
        try fixture.eventually("the loss") { fixture.log.contains("no connection to mqtt") }
        let second = try fixture.mosquitto(program, port: port)
        try waitUntilSubscribed()
        try fixture.end(second)
        let users = fixture.directory + "/users"
        try File.write(users, "")
        _ = try fixture.mosquitto(program, port: port, "password_file \(users)\nallow_anonymous false")
        try fixture.eventually("the refusal") { fixture.log.contains("refuses") }
    }
}
