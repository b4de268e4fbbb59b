// SPDX-License-Identifier: Apache-2.0

import Configuration
import Foundation
import GatewayConfiguration
import Linux
import Testing
import Varlink

@testable import Gateway

@Suite("What comes from outside") struct RuleTests {
    @Test("is JSON, or text, or bytes, as it says or looks")
    func payloads() throws {
        #expect(try Payload.read(Array("{\"a\": 1}".utf8), as: .unknown) == ["a": 1])
        #expect(try Payload.read(Array("21.5".utf8), as: .unknown) == 21.5)
        #expect(try Payload.read(Array("ON".utf8), as: .unknown) == "ON")
        #expect(try Payload.read([0xff, 0], as: .unknown) == ["base64": "/wA="])
        #expect(try Payload.read(Array("1".utf8), as: .text) == "1")
        #expect(try Payload.read(Array("1".utf8), as: .binary) == ["base64": "MQ=="])
        #expect(try Payload.read([], as: .json) == .null)
        #expect(throws: JSONError.self) { try Payload.read(Array("{".utf8), as: .json) }
        #expect(Payload.Kind(contentType: "application/json; charset=utf-8") == .json)
        #expect(Payload.Kind(contentType: "application/cloudevents+json") == .json)
        #expect(Payload.Kind(contentType: "text/plain") == .text)
        #expect(Payload.Kind(contentType: "image/png") == .binary)
        #expect(Payload.Kind(contentType: nil) == .unknown)
    }

    @Test("wakes where its content is available")
    func contentAvailable() {
        #expect(Payload.saysContentAvailable(["aps": ["content-available": 1]]))
        #expect(Payload.saysContentAvailable(["aps": ["content-available": true]]))
        #expect(!Payload.saysContentAvailable(["aps": ["content-available": 0]]))
        #expect(!Payload.saysContentAvailable(["aps": ["alert": "x"]]))
        #expect(!Payload.saysContentAvailable(["content-available": 1]))
        #expect(!Payload.saysContentAvailable("content-available"))
        #expect(Payload.saysContentAvailable(header: "1") == true)
        #expect(Payload.saysContentAvailable(header: "0") == false)
        #expect(Payload.saysContentAvailable(header: nil) == nil)
    }

    /// Two tokens in a folder of their own.
    private func rules(maxPayload: Int = 100) throws -> HTTPRules {
        let folder = NSTemporaryDirectory() + "gateway-rules-\(UUID().uuidString)"
        try File.makeDirectory(folder)
        defer { try? File.removeTree(folder) }
        try File.write(folder + "/one", "0123456789abcdef\n")
        try File.write(folder + "/two", "fedcba9876543210")
        var all = GatewayToken()
        (all.name, all.secret) = ("all", "one")
        var some = GatewayToken()
        (some.name, some.secret, some.apps, some.topics) = ("some", "two", ["web", "web@*"], ["news*"])
        some.scenes = ["co*"]
        let secrets = Secrets(folder: folder, credentials: nil)
        return HTTPRules(tokens: try TokenTable([all, some], secrets), maxPayload: maxPayload)
    }

    @Test("is posted by whoever has a token, and only where that is for")
    func tokens() throws {
        let rules = try rules()
        func status(
            _ method: String,
            _ path: String,
            _ authorization: String?,
            _ length: String? = nil
        ) -> UInt32 {
            switch rules.judge(method: method, path: path, authorization: authorization, contentLength: length) {
            case .answer(let answer): answer.status
            case .post: 202
            case .open: 200
            }
        }
        for method in ["GET", "HEAD", "POST"] {
            #expect(status(method, "/scenes/code/alice", "Bearer fedcba9876543210") == 200)
        }
        #expect(status("PUT", "/scenes/code/alice", "Bearer fedcba9876543210") == 405)
        #expect(status("GET", "/scenes/code/alice", nil) == 401)
        #expect(status("GET", "/scenes/code/alice", "Bearer 0123456789abcdef") == 403)
        #expect(status("GET", "/scenes/other/alice", "Bearer fedcba9876543210") == 403)
        for (path, answer) in [("code", 404), ("code/a/b", 404), ("../x", 400), ("code/..", 400), ("code/", 400)] {
            #expect(status("GET", "/scenes/" + path, "Bearer fedcba9876543210") == answer, "\(path)")
        }
        #expect(status("POST", "/apps/web/x", "Bearer 0123456789abcdef") == 202)
        #expect(status("POST", "/apps/web/x", "bearer 0123456789abcdef") == 202)
        for wrong in [
            nil, "", "Bearer", "Bearer ", "Bearer 0123456789abcde", "Bearer 0123456789abcdef0",
            "Bearer 0123456789abcdeF",
            "Bearer 0123456789abcdef0123456789abcdef", "Basic 0123456789abcdef",
        ] {
            #expect(status("POST", "/apps/web/x", wrong) == 401, "\(wrong ?? "none")")
            #expect(status("GET", "/anything", wrong) == 401)
        }
        #expect(status("POST", "/apps/web/news", "Bearer fedcba9876543210") == 202)
        #expect(status("POST", "/apps/web@2/news/new", "Bearer fedcba9876543210") == 202)
        #expect(status("POST", "/apps/web/x", "Bearer fedcba9876543210") == 403)
        #expect(status("POST", "/apps/db/news", "Bearer fedcba9876543210") == 403)
        #expect(status("PUT", "/apps/web/x", "Bearer 0123456789abcdef") == 405)
        #expect(status("POST", "/apps/web", "Bearer 0123456789abcdef") == 404)
        #expect(status("POST", "/apps/../x", "Bearer 0123456789abcdef") == 400)
        #expect(status("POST", "/apps/web/a b", "Bearer 0123456789abcdef") == 400)
        #expect(status("POST", "/apps/web/x", "Bearer 0123456789abcdef", "100") == 202)
        #expect(status("POST", "/apps/web/x", "Bearer 0123456789abcdef", "101") == 413)
        #expect(status("GET", "/health", nil) == 200)
    }

    @Test("tokens that can be guessed, are missing or the same are refused")
    func wrongTokens() throws {
        let folder = NSTemporaryDirectory() + "gateway-rules-\(UUID().uuidString)"
        try File.makeDirectory(folder)
        defer { try? File.removeTree(folder) }
        try File.write(folder + "/short", "0123456789")
        try File.write(folder + "/empty", "\n")
        try File.write(folder + "/good", "0123456789abcdef")
        let secrets = Secrets(folder: folder, credentials: nil)
        func token(_ secret: String) -> GatewayToken {
            var token = GatewayToken()
            (token.name, token.secret) = (secret, secret)
            return token
        }
        for name in ["short", "empty", "missing"] {
            #expect(throws: Secrets.Problem.self) { try TokenTable([token(name)], secrets) }
        }
        #expect(throws: Secrets.Problem.self) { try TokenTable([token("good"), token(folder + "/good")], secrets) }
        // Where systemd puts them.
        try File.write(folder + "/secret_good", "credential-of-systemd")
        let given = Secrets(folder: "/nowhere", credentials: folder)
        #expect(try given.text("good") == "credential-of-systemd")
    }

    @Test("a message of a broker is for the app and topic that its subject says")
    func forwarding() throws {
        var rules = GatewaySubscription()
        rules.pattern = try SubjectPattern("apps.*.>", .nats)
        rules.app = try SubjectTemplate("{1}", wildcards: 2)
        func push(_ subject: String, _ text: String, _ headers: [String: String] = [:]) throws -> Push? {
            try rules.push(subject: subject, bytes: Array(text.utf8), maxPayload: 10, sender: "nats:x") { headers[$0] }
        }
        let plain = try #require(try push("apps.web.a.b", "1"))
        #expect(plain.app == "web" && plain.topic == "apps.web.a.b" && plain.payload == 1 && !plain.wakes)
        #expect(try push("other.web.a", "1") == nil)
        #expect(throws: NoMessage.self) { try push("apps.web.a", "12345678901") }
        #expect(throws: NoMessage.self) { try push("apps.-x.a", "1") }
        #expect(try push("apps.web.a", "1", ["Content-Available": "1"])?.wakes == true)
        #expect(try push("apps.web.a", "1", ["Torpor-Coalesce": "count"])?.coalesce == "count")
        rules.wake = .always
        rules.topic = try SubjectTemplate("t", wildcards: 2)
        rules.key = try SubjectTemplate("{2}", wildcards: 2)
        rules.coalesce = .latest
        let other = try #require(try push("apps.web.a.b", "x"))
        #expect(other.wakes && other.topic == "t" && other.key == "a.b" && other.coalesce == "latest")
        rules.wake = .never
        #expect(try push("apps.web.a", "1", ["Content-Available": "1"])?.wakes == false)
    }
}
