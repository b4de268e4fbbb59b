// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI
import Varlink

@Suite("States in a stream of NATS, for apps of several machines") struct StateTests {
    @Test("are pushed when they are saved; who claims one gets it, and what the former owner pushes is refused")
    func takenOver() throws {
        try StateScene.with { scene in
            let (north, south) = (scene.north, scene.south)
            for node in [north, south] { try scene.gateway(node) }
            try scene.takeOver(north)
            #expect(north.daemon.records("shop") == ["got nothing"])
            for text in ["one", "two", "three"] { try scene.save(north, text) }
            try scene.waitUntilPushed(north)
            // North is cut off, and does not know it.
            try scene.takeOver(south)
            #expect(south.daemon.records("shop").first == "got three")
            try scene.save(north, "stale")
            try scene.fixture.eventually("the refusal") {
                north.log.contains("the state of shop was claimed since by south: it is not pushed any more")
            }
            try scene.save(north, "staler")
            let (code, output) = try scene.state(north, "push", "shop")
            #expect(code == 1 && output.contains("was claimed since by south"), "\(output)")
            // Nor may it claim while it believes that it owns the app.
            let again = try scene.state(north, "claim", "shop")
            #expect(again.code == 1 && again.output.contains("south has claimed its state since"), "\(again)")
            try scene.save(south, "four")
            try scene.waitUntilPushed(south)
            #expect(scene.occurrences(north, "was claimed since by south") == 1)
            // Back again: what was saved there meanwhile is lost, and what the owner saved is there.
            try south.daemon.done(.disown, "shop") { $0.stop = true }
            #expect(try scene.state(south, "release", "shop", "--json").output.contains("\"released\":true"))
            try north.daemon.done(.disown, "shop") { $0.stop = true }
            try scene.takeOver(north)
            #expect(north.daemon.records("shop").last == "got four")
            try scene.save(north, "five")
            try scene.waitUntilPushed(north)
        }
    }

    @Test("what an app saves at its end goes along, also without a gateway that runs")
    func planned() throws {
        try StateScene.with { scene in
            let (north, south) = (scene.north, scene.south)
            try scene.takeOver(north)
            try File.write(north.daemon.directory + "/last", "the end")
            try north.daemon.done(.disown, "shop") { $0.stop = true }
            #expect(try scene.state(north, "release", "shop").code == 0)
            // It holds no token any more.
            let push = try scene.state(north, "push", "shop")
            #expect(push.code == 1 && push.output.contains("holds no token"), "\(push)")
            try scene.takeOver(south)
            #expect(south.daemon.records("shop").first == "got the end")
            let claimed = try scene.state(south, "claim", "shop", "--json")
            let json = try JSON.parse(Array(claimed.output.utf8)[...])
            #expect(json["imported"] == false && json["from"] == "south" && json["bytes"] == 7, "\(claimed)")
        }
    }

    @Test("a server that was away gets the newest; what did not reach it is not lost on the same machine")
    func away() throws {
        try StateScene.with { scene in
            let north = scene.north
            let gateway = try scene.gateway(north)
            try scene.takeOver(north)
            try scene.save(north, "one")
            try scene.waitUntilPushed(north)
            try scene.stopServer()
            try scene.save(north, "two")
            try scene.fixture.eventually("that it is tried again") { north.log.contains("it is tried again") }
            try scene.save(north, "three")
            let (code, output) = try scene.state(north, "release", "shop", "--timeout", "1")
            #expect(code == 1 && output.contains("no connection to nats"), "\(output)")
            try scene.startServer()
            try scene.waitUntilPushed(north)
            // The machine goes down with a state that was not pushed: a boot holds no token.
            try scene.fixture.end(gateway)
            try scene.save(north, "four")
            try File.removeTree(north.tokens)
            try north.daemon.done(.disown, "shop") { $0.stop = true }
            try scene.gateway(north)
            #expect(try scene.row(north)["ours"] == false)
            try north.daemon.done(.own, "shop")
            try north.daemon.waitFor("shop", "active")
            try scene.fixture.eventually("a word about it") { north.log.contains("holds no token of its state") }
            try north.daemon.done(.disown, "shop") { $0.stop = true }
            try scene.takeOver(north)
            #expect(north.daemon.records("shop").last == "got four")
            #expect(try scene.row(north)["current"] == true)
        }
    }

    @Test("one that is too large for the server is told once, and the next one is pushed")
    func tooLarge() throws {
        try StateScene.with(maxPayload: 64 << 10) { scene in
            let north = scene.north
            try scene.gateway(north)
            try scene.takeOver(north)
            try scene.save(north, String(repeating: "a", count: 100_000))
            let told = "and the server takes messages of"
            try scene.fixture.eventually("the sentence") { north.log.contains(told) }
            try scene.save(north, String(repeating: "b", count: 200_000))
            #expect(try scene.row(north)["current"] == false)
            try scene.save(north, "small")
            try scene.waitUntilPushed(north)
            #expect(scene.occurrences(north, told) == 1, "\(north.log)")
        }
    }

    @Test("what is no state is refused with a sentence, and nothing is lost")
    func wrong() throws {
        try StateScene.with { scene in
            let (north, south) = (scene.north, scene.south)
            try scene.takeOver(north)
            try scene.save(north, "good")
            #expect(try scene.state(north, "release", "shop").code == 0)
            try north.daemon.done(.disown, "shop") { $0.stop = true }
            let client = try scene.client()
            let document = try Spawn.run([
                Built.path("torpor"), "state", "export", "shop", "--no-mail", "--socket", north.daemon.socket,
            ]).output
            for wrong in [
                "nonsense", "", String(document.dropLast(9)), document.replacingOccurrences(of: "good", with: "evil"),
            ] {
                try client.publish("torpor.state.shop", wrong)
                let (code, output) = try scene.state(south, "claim", "shop")
                #expect(code == 1 && output.contains("about shop is not taken"), "\(output)")
                #expect(try scene.row(south)["problem"] == "no state of this app")
            }
            // This machine has a state, and keeps it.
            let again = try scene.state(north, "claim", "shop")
            #expect(again.code == 1 && again.output.contains("or claim with --local"), "\(again)")
            #expect(try scene.state(north, "claim", "shop", "--local").code == 0)
            try scene.takeOver(south)
            #expect(south.daemon.records("shop").first == "got good")
            // The message of a person, in the form that torpor writes, is a state.
            try south.daemon.done(.disown, "shop") { $0.stop = true }
            try client.publish("torpor.state.shop", document)
            try scene.takeOver(south)
            #expect(south.daemon.records("shop").last == "got good")
        }
    }

    @Test("a person's stop discards the state, and no machine gets it back")
    func discarded() throws {
        try StateScene.with { scene in
            let (north, south) = (scene.north, scene.south)
            try scene.gateway(north)
            try scene.takeOver(north)
            try scene.save(north, "old")
            try scene.waitUntilPushed(north)
            try north.daemon.done(.stop, "shop")
            try scene.waitUntilPushed(north)
            try north.daemon.done(.disown, "shop")
            try scene.takeOver(south)
            #expect(south.daemon.records("shop") == ["got nothing"])
        }
    }

    private static let hasShell: Bool = {
        let isThere = File.exists("/usr/lib/ocf/lib/heartbeat/ocf-shellfuncs")
        if !isThere { print("the agent for Pacemaker is not called: there is no ocf-shellfuncs (resource-agents)") }
        return isThere
    }()

    @Test("are claimed by the agent for Pacemaker at a promotion, and pushed at a demotion", .enabled(if: hasShell))
    func agent() throws {
        try StateScene.with { scene in
            let (north, south) = (scene.north, scene.south)
            func call(_ node: StateScene.Node, _ action: String, kind: String = "cold") throws -> Int32 {
                let folder = node.daemon.directory
                let environment = [
                    "OCF_ROOT": "/usr/lib/ocf", "OCF_RA_VERSION_MAJOR": "1", "OCF_RA_VERSION_MINOR": "1",
                    "OCF_RESOURCE_INSTANCE": "shop:0", "OCF_RESOURCE_TYPE": "app", "HA_RSCTMP": folder + "/ha",
                    "HA_LOGFILE": folder + "/ha.log", "HA_LOGFACILITY": "none", "PATH": "/usr/sbin:/usr/bin:/bin",
                    "OCF_RESKEY_app": "shop", "OCF_RESKEY_kind": kind, "OCF_RESKEY_state": "nats",
                    "OCF_RESKEY_socket": node.daemon.socket, "OCF_RESKEY_binary": Built.path("torpor"),
                    "OCF_RESKEY_gateway": Built.path("torpor-gateway"),
                    "OCF_RESKEY_gateway_config": node.configuration,
                ]
                return try Spawn.run([Sources.root + "/packaging/pacemaker/app", action], environment: environment).code
            }
            #expect(try call(north, "validate-all", kind: "hot") == 6 && call(north, "validate-all") == 0)
            for node in [north, south] { #expect(try call(node, "start") == 0) }
            #expect(try call(north, "promote") == 0 && call(north, "monitor") == 8)
            try File.write(north.daemon.directory + "/last", "the end")
            #expect(try call(north, "demote") == 0)
            #expect(try call(south, "promote") == 0)
            try south.daemon.waitFor("shop", "active")
            #expect(south.daemon.records("shop").first == "got the end")
            // A stop gives the state back, as a demotion does.
            #expect(try call(south, "stop") == 0)
            #expect(try scene.row(south)["released"] == true)
            #expect(try call(south, "start") == 0 && call(south, "promote") == 0)
            // Without the server nothing is promoted, and what stands by ends.
            try scene.stopServer()
            #expect(try call(north, "stop") == 0)
            #expect(try north.daemon.summary("shop").owner == "none")
        }
    }

    @Test("words that make no sense are refused, and so are apps that need no owner")
    func words() throws {
        try StateScene.with { scene in
            for words in [["claim"], ["claim", "nobody"], ["claim", "a/b"], ["list", "nobody"]] {
                let all = [Built.path("torpor-gateway"), "state"] + words + ["--config", scene.north.configuration]
                #expect(try Spawn.run(all).code == 1, "\(words)")
            }
            for words in [
                ["wait"], ["list", "--local"], ["claim", "shop", "more"], ["claim", "shop", "--timeout", "x"],
            ] {
                #expect(try Spawn.run([Built.path("torpor-gateway"), "state"] + words).code == 2, "\(words)")
            }
            let list = try scene.state(scene.north, "list")
            #expect(list.code == 0 && list.output.contains("shop  none   -"), "\(list)")
        }
    }
}

@Suite("Messages for apps of several machines") struct OwnedMessageTests {
    private static let streams = """
        [[gateway.nats]]
        url = "nats://@P"
        [[gateway.nats.subscriptions]]
        subject = "kept.shop"
        app = "shop"
        topic = "kept"
        durable = "torpor"
        stream = "KEPT"
        [[gateway.nats.subscriptions]]
        subject = "live.shop"
        app = "shop"
        topic = "live"

        """

    private func payloads(_ node: StateScene.Node, _ topic: String) throws -> [Int64] {
        try node.daemon.mailbox("shop").mail.filter { $0.topic == topic }.compactMap { $0.payload.intValue }
    }

    @Test("wait in the stream while no machine owns the app, and arrive at the owner only, each once")
    func durable() throws {
        try StateScene.with(sources: Self.streams) { scene in
            let (north, south) = (scene.north, scene.south)
            let client = try scene.client()
            try client.makeStream("KEPT", "kept.*")
            for node in [north, south] { try scene.gateway(node) }
            for number in 1...3 { try client.publish("kept.shop", "\(number)") }
            // What nobody takes is answered by nobody.
            try scene.fixture.eventually("that nobody listens") { try client.request("live.shop", "0").isNull }
            try north.daemon.done(.own, "shop")
            try scene.fixture.eventually("the first three") { try payloads(north, "kept") == [1, 2, 3] }
            try scene.fixture.eventually("a reply") { try client.request("live.shop", "7")["change"] != nil }
            #expect(try payloads(south, "kept").isEmpty && payloads(south, "live").isEmpty)
            try north.daemon.done(.disown, "shop")
            for number in 4...6 { try client.publish("kept.shop", "\(number)") }
            try scene.fixture.eventually("that nobody listens") { try client.request("live.shop", "0").isNull }
            try south.daemon.done(.own, "shop")
            try scene.fixture.eventually("the others") { try Set(payloads(south, "kept")) == [4, 5, 6] }
            #expect(try payloads(south, "kept").count == 3 && payloads(north, "kept") == [1, 2, 3])
            // The supervisor is replaced: nothing is lost.
            try south.daemon.done(.disown, "shop")
            try north.daemon.done(.own, "shop")
            let before = try north.daemon.torpord()
            kill(before, SIGKILL)
            for number in 7...9 { try client.publish("kept.shop", "\(number)") }
            try scene.fixture.eventually("what came meanwhile") {
                (try? Set(payloads(north, "kept"))) == [1, 2, 3, 7, 8, 9]
            }
            #expect(try payloads(south, "kept").count == 3)
        }
    }

    @Test("by HTTP are answered with 503 where the app is not owned")
    func http() throws {
        let endpoint = """
            [gateway.http]
            listen = "@D/@N.http"
            [[gateway.http.tokens]]
            name = "ci"
            secret = "ci"

            """
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try StateScene.with(sources: endpoint.replacingOccurrences(of: "@D", with: folder)) { scene in
            let (north, south) = (scene.north, scene.south)
            for node in [north, south] { try scene.gateway(node) }
            try north.daemon.done(.own, "shop")
            func post(_ node: StateScene.Node) throws -> (status: Int, body: String) {
                let socket = ["--unix-socket", "\(folder)/\(node.name).http"]
                return try scene.fixture.curl(socket + ["-d", "{\"n\": 1}", "http://gateway/apps/shop/orders"])
            }
            #expect(try post(north).status == 202)
            let refused = try post(south)
            #expect(refused.status == 503 && refused.body.contains("shop is not owned by this machine"), "\(refused)")
            #expect(try south.daemon.mailbox("shop").mail.isEmpty)
            try north.daemon.done(.disown, "shop")
            #expect(try post(north).status == 503)
        }
    }

    @Test("of MQTT stay in the session that all machines share, and go to the owner")
    func mqtt() throws {
        guard let mosquitto = GatewayFixture.program("mosquitto", package: "mosquitto"),
            let publisher = GatewayFixture.program("mosquitto_pub", package: "mosquitto-clients")
        else { return }
        let port = try TestAddress.port()
        let source = """
            [[gateway.mqtt]]
            url = "mqtt://127.0.0.1:\(port)"
            client_id = "shop"
            [[gateway.mqtt.subscriptions]]
            filter = "shop/+"
            app = "shop"
            topic = "{1}"

            """
        try StateScene.with(sources: source) { scene in
            let (north, south) = (scene.north, scene.south)
            _ = try scene.fixture.mosquitto(mosquitto, port: port)
            for node in [north, south] { try scene.gateway(node) }
            func publish(_ number: Int) throws {
                let words = ["-h", "127.0.0.1", "-p", "\(port)", "-q", "1", "-t", "shop/news", "-m", "\(number)"]
                #expect(try Spawn.run([publisher] + words).code == 0)
            }
            try north.daemon.done(.own, "shop")
            try scene.fixture.eventually("the connection") { north.log.contains("connected to mqtt") }
            try scene.fixture.eventually("the first") {
                try publish(1)
                return try payloads(north, "news").contains(1)
            }
            try north.daemon.done(.disown, "shop")
            try scene.fixture.eventually("that it leaves") { north.log.contains("none of its apps is owned here") }
            let before = try payloads(north, "news").count
            for number in 2...4 { try publish(number) }
            try south.daemon.done(.own, "shop")
            try scene.fixture.eventually("the others") { try payloads(south, "news").suffix(3) == [2, 3, 4] }
            #expect(try payloads(north, "news").count == before)
        }
    }

    @Test("of MQTT for an app that shares a table with others are not taken there, with a sentence, and others come")
    func mixed() throws {
        guard let mosquitto = GatewayFixture.program("mosquitto", package: "mosquitto"),
            let publisher = GatewayFixture.program("mosquitto_pub", package: "mosquitto-clients")
        else { return }
        let port = try TestAddress.port()
        func table(_ name: String, _ apps: [String]) -> String {
            let subscriptions = apps.map { app in
                """
                [[gateway.mqtt.subscriptions]]
                filter = "\(name)/+"
                app = "\(app)"
                topic = "{1}"

                """
            }
            return """
                [[gateway.mqtt]]
                name = "\(name)"
                url = "mqtt://127.0.0.1:\(port)"
                client_id = "@N-\(name)"

                """ + subscriptions.joined()
        }
        // A part of the topic names the app.
        let named = table("named", ["{1}"])
        try StateScene.with(sources: table("mixed", ["house", "shop"]) + table("alone", ["shop"]) + named) { scene in
            let north = scene.north
            _ = try scene.fixture.mosquitto(mosquitto, port: port)
            try scene.gateway(north)
            func publish(_ topic: String, _ number: Int) throws {
                let words = ["-h", "127.0.0.1", "-p", "\(port)", "-q", "1", "-t", topic, "-m", "\(number)"]
                #expect(try Spawn.run([publisher] + words).code == 0)
            }
            try scene.fixture.eventually("the connection") { north.log.contains("mqtt:named: connected") }
            try scene.fixture.eventually("the sentence") {
                north.log.contains("mqtt:mixed: takes no messages, since shop has owner = \"external\"")
            }
            // Nothing waits behind what is for an app that is owned elsewhere.
            try publish("named/shop", 1)
            try scene.fixture.eventually("that it is left") {
                north.log.contains("left to the gateway beside its owner")
            }
            try north.daemon.done(.own, "shop")
            try scene.fixture.eventually("the connection") { north.log.contains("mqtt:alone: connected") }
            try publish("alone/news", 2)
            try publish("named/shop", 3)
            try scene.fixture.eventually("both") {
                try payloads(north, "news") == [2] && payloads(north, "shop") == [3]
            }
            #expect(!north.log.contains("mqtt:mixed: connected"))
            #expect(scene.occurrences(north, "takes no messages") == 1)
        }
    }
}
