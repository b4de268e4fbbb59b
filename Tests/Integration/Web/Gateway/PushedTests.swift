// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI
import Varlink

@Suite("Messages from outside, from a client of HTTP to an app that sleeps") struct PushedTests {
    private static let app = """
        import signal, tp
        signal.signal(signal.SIGUSR1, lambda *_: tp.record("told"))
        tp.record("up")
        while True:
            signal.pause()
        """

    private static func configuration(_ more: String = "") -> String {
        """
        [defaults]
        exec = ["/usr/bin/python3", "@D/app.py"]
        signals = { didReceiveRemoteNotification = "SIGUSR1" }
        event_time = "200ms"
        mailbox_limit = 3
        [apps.shop]
        background_modes = ["remote-notification"]
        [apps.shop.topics]
        orders = { coalesce = "all" }
        prices = { coalesce = "latest" }
        [apps.plain]
        [apps.plain.topics]
        "*" = {}
        """
    }

    private func post(_ fixture: GatewayFixture, _ port: UInt16, _ path: String, _ words: [String]) throws -> JSON {
        let answer = try fixture.curl(["-d"] + words + ["http://127.0.0.1:\(port)/apps/" + path])
        var reply = try #require(try JSON.parse(answer.body).objectValue)
        reply["status"] = .int(Int64(answer.status))
        return .object(reply)
    }

    @Test("wait there, wake it when their content is available, and are turned away when too many wait")
    func pushed() throws {
        let fixture = try GatewayFixture()
        let port = try TestAddress.port()
        try withDaemon(Self.configuration(), files: ["app.py": Self.app]) { daemon in
            _ = try fixture.gateway(HTTPTests.configuration(port), socket: daemon.socket)
            for app in ["shop", "plain"] {
                try daemon.waitForRecord(app, "up")
                _ = try daemon.verb(.suspend, app)
                try daemon.waitFor(app, "suspended")
            }
            for (topic, change) in [("orders", "added"), ("prices", "added"), ("prices", "changed")] {
                let reply = try post(fixture, port, "shop/" + topic, ["{\"n\": 1}"])
                #expect(reply["status"] == 202 && reply["change"] == .string(change) && reply["outcome"] == "waits")
            }
            #expect(try post(fixture, port, "shop/other", ["x"])["status"] == 422)
            #expect(try post(fixture, port, "nobody/other", ["x"])["status"] == 404)
            #expect(try post(fixture, port, "shop/orders", ["x"])["status"] == 202)
            #expect(try post(fixture, port, "shop/orders", ["x"])["status"] == 429)
            #expect(try daemon.summary("shop").state == "suspended")
            // Nobody has asked for it to be woken by such.
            let urgent = ["x", "-H", "Content-Available: 1"]
            #expect(try post(fixture, port, "plain/news", urgent)["outcome"] == "waits")
            #expect(try post(fixture, port, "shop/prices", urgent)["outcome"] == "woken")
            try daemon.waitForRecord("shop", "told")
            try daemon.waitForEvent("shop", "woken by prices from http:ci")
            try daemon.waitFor("shop", "suspended")
            #expect(try daemon.summary("plain").state == "suspended" && daemon.records("plain") == ["up"])
            // There is room again.
            #expect(try post(fixture, port, "shop/orders", ["x"])["status"] == 202)
        }
    }

    @Test("are each there once, although torpord is killed meanwhile")
    func killed() throws {
        let fixture = try GatewayFixture()
        let port = try TestAddress.port()
        let toml = Self.configuration().replacingOccurrences(of: "mailbox_limit = 3", with: "mailbox_limit = 1000")
        try withDaemon(toml, files: ["app.py": Self.app]) { daemon in
            _ = try fixture.gateway(HTTPTests.configuration(port), socket: daemon.socket)
            try daemon.waitForRecord("shop", "up")
            _ = try daemon.verb(.suspend, "shop")
            try daemon.waitFor("shop", "suspended")
            var taken = 0
            var killed = 0
            for number in 0..<60 {
                if number % 20 == 10 {
                    kill(try daemon.torpord(), SIGKILL)
                    killed += 1
                }
                let status = try post(fixture, port, "shop/orders", ["\(number)"])["status"]
                // The moment in which nobody knows is told too.
                if status == 202 { taken += 1 } else { #expect(status == 503) }
            }
            #expect(killed == 3 && taken >= 57)
            try daemon.waitUntilItAnswers()
            let mail = try daemon.connect().call(
                VarlinkCall(method: "io.torpor.Manager.Mailbox", parameters: ["app": "shop"]),
                timeoutMilliseconds: 10_000
            )["mail"]?.arrayValue
            let payloads = (mail ?? []).compactMap { $0["payload"]?.intValue }
            #expect(payloads.count == Set(payloads).count && payloads.count >= taken)
        }
    }
}
