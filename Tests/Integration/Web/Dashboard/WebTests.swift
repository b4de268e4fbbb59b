// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("The dashboard's server") struct WebTests {
    static let two = """
        [apps.web]
        exec = ["/bin/sleep", "1000"]
        [apps.other]
        exec = ["/bin/sh", "-c", "while :; do echo line; sleep 0.2; done"]
        requires = ["web"]
        """

    @Test("lets in who has the token, and is found by no other name")
    func access() throws {
        try withDaemon(Self.two) { daemon in
            let web = try WebFixture(daemon)
            #expect(try web.ask("/api/v1/apps", token: .some(nil)).status == 401)
            let wrong = try web.ask("/api/v1/apps", token: "0123456789abcdef")
            #expect(wrong.status == 401 && wrong.header("WWW-Authenticate") != nil)
            #expect(try web.ask("/api/v1/apps").json["apps"]?.arrayValue?.count == 2)
            #expect(web.token.utf8.count == 64 && web.log.contains("/?token=\(web.token)"))
            #expect(try File.status(web.directory + "/web/token").mode == 0o600)
            // Another page whose name means our address now.
            for host in ["evil.example", "evil.example:\(web.port)", "127.0.0.1.evil.example"] {
                #expect(try web.ask("/api/v1/apps", ["-H", "Host: \(host)"]).status == 421)
                #expect(try web.ask("/", ["-H", "Host: \(host)"]).status == 421)
            }
            // The link gives a cookie, and goes from the address.
            let entered = try web.ask("/?token=\(web.token)", token: .some(nil))
            let cookie = try #require(entered.header("Set-Cookie"))
            #expect(entered.status == 303 && entered.header("Location") == "/")
            #expect(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && cookie.contains("Path=/"))
            #expect(!cookie.contains(web.token))
            let pair = try #require(cookie.split(separator: ";").first)
            #expect(try web.ask("/api/v1/apps", ["-H", "Cookie: \(pair)"], token: .some(nil)).status == 200)
            #expect(try web.ask("/?token=x", token: .some(nil)).header("Set-Cookie") == nil)
            #expect(try web.post("/api/v1/session", "{\"token\":\"\(web.token)\"}", token: .some(nil)).status == 200)
            web.end()
        }
    }

    @Test(
        "tells no more than a few wrong tokens a second that they are wrong, and the right one is let in all the time"
    )
    func tries() throws {
        try withDaemon(Self.two) { daemon in
            let web = try WebFixture(daemon)
            let words = (0..<60).flatMap { _ in ["-o", "/dev/null", web.url + "/api/v1/apps"] }
            let authorization = ["-H", "Authorization: Bearer wrongwrongwrongwrong", "-w", "%{http_code}\n"]
            let codes = try Spawn.run(["/usr/bin/curl", "-s"] + authorization + words).output.split(separator: "\n")
            #expect(codes.count == 60 && codes.contains("401") && codes.contains("429"), "\(codes)")
            for _ in 0..<3 { #expect(try web.ask("/api/v1/apps").status == 200) }
            web.end()
        }
    }

    @Test("refuses bodies and numbers that it cannot read, each with a sentence, and does nothing then")
    func wrongInput() throws {
        try withDaemon(Self.two) { daemon in
            let web = try WebFixture(daemon)
            defer { web.end() }
            let wrong = [
                ("{\"for_ms\":\"x\"}", "for_ms must be an integer"), ("{\"for_ms\":1.5}", "for_ms must be an integer"),
                ("{\"for_ms\":-1}", "for_ms must be more than 0"), ("{\"for_sm\":1000}", "for_sm is not known here"),
                ("{\"end\":\"true\"}", "end must be true or false"), ("[]", "the body must be an object"),
                ("7", "the body must be an object"), ("{\"apps\":[\"other\"]}", "apps is not known here"),
            ]
            for (body, sentence) in wrong {
                let answer = try web.post("/api/v1/apps/web/hold", body)
                #expect(answer.status == 400, "\(body)")
                #expect(answer.json["error"]?.stringValue?.hasPrefix(sentence) == true, "\(body): \(answer.json)")
            }
            #expect(try daemon.summary("web").holds.isEmpty)
            for query in ["apps/web/logs?lines=abc", "events?limit=", "events?since=1.5"] {
                let answer = try web.ask("/api/v1/" + query)
                #expect(answer.status == 400, "\(query)")
                #expect(answer.json["error"]?.stringValue?.contains("must be a whole number") == true)
            }
            // Asked again, a hold is one that lasts until the later end.
            for body in ["{\"for_ms\":600000}", "{}", "{\"for_ms\":1}", "{\"reason\":\"looking\"}"] {
                #expect(try web.post("/api/v1/apps/web/hold", body).status == 200)
            }
            #expect(try daemon.summary("web").holds == ["an operator", "an operator (looking)"])
            #expect(try web.post("/api/v1/apps/web/hold", "{\"end\":true}").status == 200)
            #expect(try daemon.summary("web").holds.isEmpty)
        }
    }

    @Test("answers no request with two hosts, or whose end is not certain")
    func ambiguous() throws {
        try withDaemon(Self.two) { daemon in
            let web = try WebFixture(daemon)
            defer { web.end() }
            let token = web.token
            func status(_ headers: String) throws -> String {
                let peer = try Peer(port: web.port)
                try peer.send("GET /api/v1/apps HTTP/1.1\r\n\(headers)\r\nConnection: close\r\n\r\n")
                return String(try peer.receive(until: "\r\n").dropFirst(9).prefix(3))
            }
            let (host, bearer) = ("Host: 127.0.0.1:\(web.port)", "Authorization: Bearer \(token)")
            #expect(try status("\(host)\r\n\(bearer)") == "200")
            #expect(try status("\(host)\r\nHost: evil.example\r\n\(bearer)") == "400")
            #expect(try status("Host: evil.example\r\n\(host)\r\n\(bearer)") == "400")
            let both = "Content-Length: 0\r\nTransfer-Encoding: chunked"
            #expect(try status("\(host)\r\n\(bearer)\r\n\(both)") == "400")
            #expect(try status("\(host)\r\n\(bearer)\r\nContent-Length: 0\r\nContent-Length: 9") == "400")
            for lines in [": y", ":", "X: y\r\n z", "X: y\r\n\tz\r\nY: z", "X: y\nY: z", "X: y\rY: z"] {
                #expect(try status("\(host)\r\n\(bearer)\r\n\(lines)") == "400", "\(lines)")
                #expect(try status("\(host)\r\n\(lines)\r\n\(bearer)") == "400", "\(lines)")
                #expect(try status("\(lines)\r\n\(host)\r\n\(bearer)") == "400", "\(lines)")
            }
        }
    }

    @Test("says to browsers that nothing comes from elsewhere, and has all its files in itself")
    func files() throws {
        try withDaemon(Self.two) { daemon in
            let web = try WebFixture(daemon)
            let page = try web.ask("/", token: .some(nil))
            #expect(page.status == 200 && page.header("Content-Type") == "text/html; charset=utf-8")
            for path in ["/", "/app.js", "/api/v1/apps", "/nothing"] {
                let answer = try web.ask(path)
                let policy = try #require(answer.header("Content-Security-Policy"))
                #expect(policy.hasPrefix("default-src 'none'; script-src 'self'") && !policy.contains("unsafe"))
                #expect(answer.header("X-Content-Type-Options") == "nosniff")
                #expect(answer.header("Referrer-Policy") == "no-referrer")
                #expect(answer.header("Cross-Origin-Opener-Policy") == "same-origin")
                #expect(answer.header("Cache-Control") != nil)
            }
            let tag = try #require(try web.ask("/style.css").header("ETag"))
            #expect(try web.ask("/style.css", ["-H", "If-None-Match: \(tag)"]).status == 304)
            // Nobody gets to what stands before a NUL.
            let cut = ["/api/v1/apps/%00/icon", "/api/v1/apps/web%00/icon", "/api/v1/apps%00x", "/%00api/v1/apps"]
            for path in cut + ["/nothing", "/../etc/passwd", "/%2e%2e/etc/passwd", "/api/v1/nothing"] {
                #expect(try web.ask(path).status == 404, "\(path)")
            }
            #expect(try web.ask("/api/v1/apps", ["-X", "PUT"]).status == 405)
            let names = page.body.matches(of: /(?:src|href)="([a-z.]+)"/).map { String($0.1) }
            #expect(names.contains("app.js") && names.contains("style.css"))
            for name in names { #expect(try web.ask("/" + name).status == 200, "\(name)") }
            web.end()
        }
    }

    @Test("changes something only for its own page, and then really")
    func changes() throws {
        try withDaemon(Self.two) { daemon in
            try daemon.waitFor("web", "active")
            try daemon.waitFor("other", "active")
            let web = try WebFixture(daemon)
            let path = "/api/v1/apps/other/suspend"
            let pid = try #require(try daemon.summary("other").pid)
            #expect(try web.ask(path).status == 405)
            #expect(try web.ask(path, ["-X", "POST"]).status == 403)
            let foreign = ["-H", "Origin: http://evil.example"]
            #expect(try web.post(path, "", foreign).status == 403)
            #expect(try web.post(path, "", ["-H", "Sec-Fetch-Site: cross-site"]).status == 403)
            #expect(try web.post(path, "", ["-H", "Host: evil.example"]).status == 421)
            #expect(try web.post(path, "", token: .some(nil)).status == 401)
            #expect(try web.post(path, "{").status == 400)
            #expect(try web.post(path, String(repeating: " ", count: 20_000)).status == 413)
            #expect(try daemon.summary("other").state == "active")
            let suspended = try web.post(path, "", ["-H", "Origin: \(web.url)"])
            #expect(suspended.status == 200 && suspended.json["results"]?.arrayValue?.count == 1, "\(suspended.body)")
            try web.waitUntilStopped(pid)
            #expect(try web.post("/api/v1/apps/other/resume").status == 200)
            try daemon.waitFor("other", "background")
            #expect(WebFixture.letter(pid) != "T")
            let unknown = try web.post("/api/v1/apps/oter/stop")
            #expect(unknown.status == 404 && unknown.error.contains("did you mean other?"), "\(unknown.error)")
            // A pattern is no app.
            #expect(try web.post("/api/v1/apps/*/stop").status == 404)
            #expect(try web.post("/api/v1/apps/tag:x/stop").status == 404)
            #expect(try daemon.list().allSatisfy { $0.pid != nil })
            #expect(try web.post("/api/v1/apps/other/kill").status == 200)
            try daemon.waitFor("other", "not-running")
            #expect(try web.post("/api/v1/apps/other/suspend").status == 409)
            web.end()
        }
    }

    @Test("gives a snapshot as what it is known to be, and as nothing else")
    func snapshots() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            snapshot = { file = "@D/shown" }
            [apps.none]
            exec = ["/bin/sleep", "1000"]

            """
        try withDaemon(toml) { daemon in
            let web = try WebFixture(daemon)
            let path = "/api/v1/apps/web/snapshot"
            #expect(try web.ask(path).status == 404 && web.ask("/api/v1/apps/nobody/snapshot").status == 404)
            let hostile = "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/><script>alert(1)</script>"
            for (content, type) in [
                (Pictured.png, "image/png"), (Array(hostile.utf8), "text/plain; charset=utf-8"),
                ([UInt8](repeating: 0x61, count: 3 << 20), "text/plain; charset=utf-8"),
            ] {
                try File.replace(daemon.directory + "/shown", content)
                try daemon.waitFor("web", "active")
                try daemon.done(.suspend, "web")
                try daemon.eventually("it is there") { try daemon.snapshot()?.data == content }
                let file = daemon.directory + "/got"
                let head = try Spawn.run(
                    ["/usr/bin/curl", "-s", "-D", "-", "-o", file, "-H", "Authorization: Bearer \(web.token)"] + [
                        web.url + path
                    ]
                ).output.lowercased()
                #expect(try File.read(file, limit: 8 << 20) == content)
                #expect(head.contains("content-type: \(type)\r\n"), "\(head)")
                #expect(head.contains("x-content-type-options: nosniff") && head.contains("default-src 'none'"))
                #expect(head.contains("cache-control: no-store"))
                try daemon.done(.foreground, "web")
            }
            #expect(try web.ask(path, token: .some(nil)).status == 401)
            #expect(try web.ask(path, ["-X", "POST"]).status == 405)
            web.end()
        }
    }

    @Test("gives what pages show")
    func answers() throws {
        try withDaemon(Self.two) { daemon in
            try daemon.waitFor("other", "active")
            let web = try WebFixture(daemon)
            let status = try web.ask("/api/v1/apps/other").json["status"]
            #expect(status?["requires"] == ["web"])
            let logs = try web.ask("/api/v1/apps/other/logs?lines=3").json
            let cursor = try #require(logs["cursor"]?.stringValue)
            #expect(logs["lines"]?.arrayValue?.last?["text"] == "line")
            try web.eventually("more lines") {
                let more = try web.ask("/api/v1/apps/other/logs?cursor=\(cursor)").json["lines"]?.arrayValue
                return more?.isEmpty == false
            }
            let events = try web.ask("/api/v1/events?kinds=state&app=web").json["events"]?.arrayValue ?? []
            #expect(!events.isEmpty && events.allSatisfy { $0["kind"] == "state" && $0["app"] == "web" })
            let graph = try web.ask("/api/v1/graph").json["apps"]?.arrayValue ?? []
            #expect(graph.first { $0["app"] == "other" }?["requires"] == ["web"])
            for path in ["reports", "memory", "describe", "doctor", "samples", "timers"] {
                #expect(try web.ask("/api/v1/\(path)").status == 200, "\(path)")
            }
            try web.eventually("a sample") {
                try web.ask("/api/v1/samples").json["samples"]?.arrayValue?.isEmpty == false
            }
            for path in ["/api/v1/apps/nobody", "/api/v1/apps/nobody/icon"] {
                let answer = try web.ask(path)
                #expect(answer.status == 404 && answer.error.contains("there is no app nobody"), "\(answer.body)")
            }
            #expect(try web.ask("/metrics", token: .some(nil)).status == 401)
            #expect(try web.ask("/healthz", token: .some(nil)).status == 200)
            web.end()
        }
    }
}
