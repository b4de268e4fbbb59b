// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import Varlink

@Suite("torpor-gateway's endpoint for HTTP") struct HTTPTests {
    let fixture: GatewayFixture
    let port: UInt16
    let pid: Int32
    var url: String { "http://127.0.0.1:\(port)" }

    init() throws {
        fixture = try GatewayFixture()
        port = try TestAddress.port()
        pid = try fixture.gateway(Self.configuration(port))
    }

    static func configuration(_ port: UInt16) -> String {
        """
        max_payload = "10KiB"
        [gateway.http]
        listen = "127.0.0.1:\(port)"
        [[gateway.http.tokens]]
        name = "ci"
        secret = "ci"
        """
    }

    @Test("posts what it is sent with a token, and says what became of it")
    func post() throws {
        let plain = try fixture.curl(["-d", "{\"a\": 1}", url + "/apps/web/news"])
        #expect(plain.status == 202)
        #expect(try JSON.parse(plain.body)["change"] == "added")
        let post = try #require(fixture.supervisor.posts("web").first)
        #expect(post["topic"] == "news" && post["payload"] == ["a": 1] && post["sender"] == "http:ci")
        #expect(post["remote"] == true && post["urgent"] == false)
        let wake = "{\"aps\": {\"content-available\": 1}}"
        #expect(try fixture.curl(["-d", wake, url + "/apps/aps/news"]).status == 202)
        #expect(fixture.supervisor.posts("aps").first?["urgent"] == true)
        let headers = ["-H", "Content-Available: 1", "-H", "Torpor-Coalesce: latest", "-H", "Torpor-Key: k"]
        #expect(try fixture.curl(headers + ["-d", "", url + "/apps/headers/a/b"]).status == 202)
        let other = try #require(fixture.supervisor.posts("headers").first)
        #expect(other["urgent"] == true && other["coalesce"] == "latest" && other["key"] == "k")
        #expect(other["topic"] == "a/b" && other["payload"] == nil)
    }

    @Test("turns away who has no token, and what is no message, before it reads it")
    func refusals() throws {
        let target = url + "/apps/web/news"
        #expect(try fixture.curl(["-d", "x", target], token: nil).status == 401)
        #expect(try fixture.curl(["-d", "x", target], token: GatewayFixture.token + "0").status == 401)
        #expect(try fixture.curl([target]).status == 405)
        #expect(try fixture.curl(["-d", "x", url + "/apps/web"]).status == 404)
        #expect(try fixture.curl(["-H", "Content-Type: application/json", "-d", "{", target]).status == 400)
        #expect(try fixture.curl(["-H", "Torpor-Coalesce: some", "-d", "x", target]).status == 400)
        let large = fixture.directory + "/large"
        try File.write(large, [UInt8](repeating: 65, count: 10 << 10 + 1))
        #expect(try fixture.curl(["--data-binary", "@" + large, target]).status == 413)
        let chunked = ["-H", "Transfer-Encoding: chunked", "--data-binary", "@" + large, target]
        #expect(try fixture.curl(chunked).status == 413)
        #expect(fixture.supervisor.posts("web").isEmpty)
        #expect(try fixture.curl([url + "/health"], token: nil).status == 200)
    }

    @Test("refuses a request whose end is not certain, and closes the connection")
    func uncertainEnds() throws {
        let chunked = "Transfer-Encoding: chunked"
        let (head, end) = ("Host: x\r\nAuthorization: Bearer \(GatewayFixture.token)", "1\r\n1\r\n0\r\n\r\n")
        /// The codes of all answers until the connection ends.
        func codes(_ headers: [String], _ body: String, version: String = "1.1") throws -> [Substring] {
            let peer = try Peer(port: port)
            let next = "POST /apps/smuggled/t HTTP/1.1\r\n\(head)\r\nConnection: close\r\nContent-Length: 1\r\n\r\n2"
            let lines = ["POST /apps/web/t HTTP/\(version)", head] + headers + ["", body]
            try peer.send(lines.joined(separator: "\r\n") + next)
            let answers = try peer.receive(until: "no end but that of the connection")
            return answers.matches(of: /HTTP\/1\.[01] (\d{3})/).map(\.1)
        }
        #expect(try codes(["Content-Length: 1"], "1") == ["202", "202"])
        #expect(try codes([chunked], end) == ["202", "202"])
        #expect(try codes(["transfer-encoding: Chunked"], end) == ["202", "202"])
        let long = (0..<90).map { "X-\($0): " + String(repeating: "v", count: $0) }
        let odd = ["Content-Length: 1", "Empty:", "Cookie: a=b; c=\"d\"", "End: \ty \t"]
        #expect(try codes(odd + long, "1") == ["202", "202"])
        let before = fixture.supervisor.posts("web").count
        let smuggled = fixture.supervisor.posts("smuggled").count
        for headers in [
            ["Content-Length: 1", "Content-Length: 40"], ["Content-Length: 40", "content-length: 1"],
            ["Content-Length: 1", "Content-Length: 1"], ["Content-Length: 1, 1"], ["Content-Length: +1"],
            ["Content-Length: 0x1"], ["Content-Length: -1"], ["Content-Length:"],
            ["Content-Length : 1"], ["Content-Length\t: 1"], ["X: y\rContent-Length: 1"],
            ["X: y\u{7f}", "Content-Length: 1"], ["X: y\u{0}", "Content-Length: 1"],
            ["X: y\nContent-Length: 1"], ["Content-Length: 1", "X: y\n"],
            // A line without a name ends the head for libmicrohttpd, and a continuation becomes a part of the name.
            [": y", "Content-Length: 1"], [":", "Content-Length: 1"], ["Content-Length: 1", ": y"],
            ["Content-Length: 1", ":"], ["X: y", ": y", "Content-Length: 1"], ["Content-Length: 1", " : y"],
            ["Content-Length: 1", "X: y", " z"], ["Content-Length: 1", "X: y", "\tz", "Y: z"],
            ["Content-Length: 1", "Origin: http://a", "Origin: http://b"],
            ["Content-Length: 1", "Sec-Fetch-Site: same-origin", "sec-fetch-site: cross-site"],
            ["X: y", " Content-Length: 1"], ["Content-Length:", " 1"], ["Transfer-Encoding:", " chunked"],
        ] {
            // libmicrohttpd itself may say it twice before it closes the connection.
            #expect(try Set(codes(headers, "1")) == ["400"], "\(headers)")
        }
        for headers in [
            ["Content-Length: 1", chunked], [chunked, "Content-Length: 11"], [chunked, chunked],
            ["Transfer-Encoding: xchunked"], ["Transfer-Encoding: gzip, chunked"], ["Transfer-Encoding: identity"],
            ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"], ["Transfer-Encoding:"],
        ] {
            #expect(try codes(headers, end) == ["400"], "\(headers)")
        }
        #expect(try codes([chunked], end, version: "1.0") == ["400"])
        #expect(fixture.supervisor.posts("web").count == before)
        #expect(fixture.supervisor.posts("smuggled").count == smuggled)
    }

    @Test("says whether it is worth to try again")
    func outcomes() throws {
        fixture.supervisor.answer("full", .error("MailboxFull"))
        fixture.supervisor.answer("nobody", .error("UnknownApp"))
        fixture.supervisor.answer("deaf", .error("NotSubscribed"))
        fixture.supervisor.answer("ill", .error("Failed"))
        for (app, status) in [("full", 429), ("nobody", 404), ("deaf", 422), ("ill", 503)] {
            let answer = try fixture.curl(["-i", "-d", "x", url + "/apps/\(app)/t"])
            #expect(answer.status == status)
            #expect(answer.body.contains("Retry-After: ") == (status == 429 || status == 503), "\(answer.body)")
        }
        fixture.supervisor.end()
        #expect(try fixture.curl(["-d", "x", url + "/apps/web/t"]).status == 503)
        try fixture.supervisor.listen()
        #expect(try fixture.curl(["-d", "x", url + "/apps/web/t"]).status == 202)
    }

    @Test("posts once what was lost with a supervisor that is replaced")
    func replaced() throws {
        #expect(try fixture.curl(["-d", "1", url + "/apps/web/t"]).status == 202)
        fixture.supervisor.answer("lost", .silence)
        let supervisor = fixture.supervisor
        Thread.detachNewThread {
            while supervisor.posts("lost").isEmpty { usleep(1_000) }
            supervisor.answer("lost", .taken)
        }
        #expect(try fixture.curl(["-d", "2", url + "/apps/lost/t"]).status == 202)
        let tokens = Set(fixture.supervisor.posts("lost").map { $0["token"] })
        #expect(fixture.supervisor.posts("lost").count >= 2 && tokens.count == 1)
    }

    @Test("takes hundreds at once, each of them once")
    func many() throws {
        fixture.supervisor.take(.milliseconds(2))
        let (code, output) = try Spawn.run([
            "/usr/bin/curl", "--no-progress-meter", "-Z", "--parallel-max", "100", "-o", "/dev/null", "-w",
            "%{http_code}\n",
            "-H", "Authorization: Bearer \(GatewayFixture.token)", "-d", "x", url + "/apps/web/[1-400]",
        ])
        let codes = output.split(separator: "\n")
        #expect(code == 0 && codes.count == 400 && Set(codes) == ["202"], "\(output.suffix(300))")
        let topics = fixture.supervisor.posts("web").compactMap { $0["topic"]?.stringValue }
        #expect(topics.count == 400 && Set(topics).count == 400)
    }

    @Test("half requests keep nobody out, and end no message that is under way")
    func halfRequests() throws {
        try fixture.end(pid)
        let text = Self.configuration(port)
            .replacingOccurrences(of: "[[gateway", with: "max_connections = 16\n[[gateway")
        _ = try fixture.gateway(text)
        fixture.supervisor.answer("held", .held)
        let held = try Peer(port: port)
        let bearer = "Authorization: Bearer \(GatewayFixture.token)"
        try held.send("POST /apps/held/t HTTP/1.1\r\nHost: x\r\n\(bearer)\r\nContent-Length: 1\r\n\r\nx")
        try fixture.eventually("the message is under way") { !fixture.supervisor.posts("held").isEmpty }
        // Heads and bodies that do not end, and no byte at all.
        let halves = try (0..<60).map { number in
            let peer = try Peer(port: port)
            if number % 3 == 1 { try peer.send("POST /apps/web/t HTTP/1.1\r\nHost: x\r\nX: ") }
            if number % 3 == 2 {
                try peer.send("POST /apps/web/t HTTP/1.1\r\nHost: x\r\n\(bearer)\r\nContent-Length: 9\r\n\r\nx")
            }
            return peer
        }
        #expect(try fixture.curl(["-d", "x", url + "/apps/web/t"]).status == 202)
        fixture.supervisor.answer("held", .taken)
        #expect(try held.receive(until: "\r\n").contains("202"))
        withExtendedLifetime(halves) {}
    }

    @Test("answers what it has begun before it ends")
    func ends() throws {
        fixture.supervisor.answer("web", .held)
        let supervisor = fixture.supervisor
        let pid = pid
        Thread.detachNewThread {
            while supervisor.posts("web").isEmpty { usleep(1_000) }
            kill(pid, SIGTERM)
            // It has taken the signal before it hears what became of the message.
            while let pending = try? ProcFS.pendingSignals(pid), pending & (1 << (SIGTERM - 1)) != 0 { usleep(1_000) }
            supervisor.answer("web", .taken)
        }
        #expect(try fixture.curl(["-d", "x", url + "/apps/web/t"]).status == 202)
        #expect(try fixture.end(pid) == 0)
    }

    @Test("listens at a Unix socket")
    func unix() throws {
        try fixture.end(pid)
        let path = fixture.directory + "/http"
        let text = Self.configuration(port).replacingOccurrences(of: "127.0.0.1:\(port)", with: path)
        _ = try fixture.gateway(text)
        #expect(try fixture.curl(["--unix-socket", path, "-d", "x", "http://x/apps/web/t"]).status == 202)
    }
}
