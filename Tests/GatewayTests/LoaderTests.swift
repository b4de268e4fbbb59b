// SPDX-License-Identifier: Apache-2.0

import Configuration
import Foundation
import GatewayConfiguration
import Linux
import Testing

@Suite("The gateway's configuration") struct LoaderTests {
    private func load(_ toml: String) throws -> Result<GatewaySpecification, DiagnosticList> {
        let path = NSTemporaryDirectory() + "gateway-\(UUID().uuidString).toml"
        try File.write(path, toml)
        defer { try? File.remove(path) }
        return GatewayLoader.load(path: path, environment: [:])
    }

    @Test("has every key, with its default")
    func whole() throws {
        let gateway = try load(
            """
            [gateway]
            socket = "/run/x"
            max_payload = "4KiB"

            [gateway.http]
            listen = "[::1]:80"
            timeout = "5s"
            [[gateway.http.tokens]]
            name = "ci"
            secret = "ci"
            apps = ["web*"]

            [[gateway.nats]]
            url = "nats://localhost:4222"
            user = "u"
            password = "p"
            [[gateway.nats.subscriptions]]
            subject = "orders.*"
            app = "shop"
            topic = "orders/{1}"
            durable = "torpor"

            [[gateway.mqtt]]
            name = "home"
            url = "mqtts://broker"
            [[gateway.mqtt.subscriptions]]
            filter = "home/+"
            app = "{1}"
            coalesce = "latest"
            qos = 0
            on_full = "drop"

            [gateway.state]
            url = "tls://nats.example"
            stream = "S"
            subject = "a.b"
            create = true
            replicas = 3
            apps = ["shop*"]
            node = "north"
            tokens = "/run/t"
            user = "u"
            password = "p"
            """
        ).get()
        let state = try #require(gateway.state)
        #expect(state.broker.url == "tls://nats.example" && state.stream == "S" && state.subject == "a.b")
        #expect(state.create && state.replicas == 3 && state.node == "north" && state.tokens == "/run/t")
        #expect(state.keeps("shop2") && !state.keeps("web"))
        #expect(gateway.socket == "/run/x" && gateway.maxPayload == 4096 && gateway.queue == 256)
        #expect(gateway.secrets.hasSuffix("/gateway-secrets"))
        #expect(gateway.http?.address == .tcp(address: "::1", port: 80) && gateway.http?.tokens[0].topics == ["*"])
        #expect(gateway.nats[0].name == "nats" && gateway.nats[0].subscriptions[0].durable == "torpor")
        #expect(gateway.mqtt[0].subscriptions[0].quality == 0 && gateway.mqtt[0].subscriptions[0].coalesce == .latest)
        #expect(BrokerAddress(gateway.mqtt[0].url)?.port == 8883)
        #expect(gateway.warnings.isEmpty)
    }

    @Test(
        "that is wrong is refused with a sentence at its place",
        arguments: [
            ("", "no messages would arrive"),
            ("[gatewy]", "did you mean \"gateway\"?"),
            ("[gateway.http]", "has no tokens"),
            (
                "[gateway.http]\nlisten = \"nowhere\"\n[[gateway.http.tokens]]\nname=\"a\"\nsecret=\"a\"",
                "is not an address"
            ),
            ("[[gateway.http.tokens]]\nname = \"a\"", "secret is missing"),
            ("[[gateway.nats]]\nurl = \"nats://h\"", "no messages would arrive"),
            ("[gateway.state]\nstream = \"S\"", "url is missing"),
            ("[gateway.state]\nurl = \"nats://h\"\nsubject = \"a.>\"", "is no subject"),
            ("[gateway.state]\nurl = \"nats://h\"\nstream = \"a.b\"", "must not contain"),
            ("[gateway.state]\nurl = \"nats://h\"\npassword = \"p\"", "password needs user"),
            ("[[gateway.nats]]\nurl = \"mqtt://h\"", "write \"nats://HOST:PORT\""),
            ("[[gateway.nats]]\nurl = \"nats://user:pass@h\"", "must not contain a login"),
            ("[[gateway.mqtt]]\nurl = \"mqtt://h:x\"", "a port that is not a number"),
            (
                "[[gateway.nats]]\nurl=\"nats://h\"\n[[gateway.nats.subscriptions]]\nsubject=\"a..b\"\napp=\"x\"",
                "has an empty part"
            ),
            (
                "[[gateway.nats]]\nurl=\"nats://h\"\n[[gateway.nats.subscriptions]]\nsubject=\"a\"\napp=\"{1}\"",
                "neither {subject} nor a wildcard"
            ),
            (
                "[[gateway.nats]]\nurl=\"nats://h\"\n[[gateway.nats.subscriptions]]\nsubject=\"a\"\napp=\"x\"\nstream=\"S\"",
                "needs durable"
            ),
            (
                "[[gateway.mqtt]]\nurl=\"mqtt://h\"\n[[gateway.mqtt.subscriptions]]\nfilter=\"a\"",
                "app is missing"
            ),
            (
                "[[gateway.mqtt]]\nurl=\"mqtt://h\"\n[[gateway.mqtt.subscriptions]]\nfilter=\"a\"\napp=\"x\"\nsubject=\"b\"",
                "there is no such key"
            ),
        ]
    )
    func wrong(toml: String, sentence: String) throws {
        guard case .failure(let problems) = try load(toml) else {
            Issue.record("it was taken: \(toml)")
            return
        }
        #expect(problems.description.contains(sentence), "\(problems)")
    }
    @Test("A topic that the supervisor would refuse is refused by the gateway")
    func longTopics() {
        func problem(_ count: Int) -> Bool { GatewayNames.problem(topic: String(repeating: "t", count: count)) != nil }
        #expect(!problem(TopicRule.longestName) && problem(TopicRule.longestName + 1))
        #expect(TopicRule.problem(String(repeating: "t", count: TopicRule.longestName)) == nil)
    }
}
