// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import TransferProtocol
import TransferRules

@Suite struct DecisionTests {
    let known = TransferValidator(condition: "\"a\"", total: 10)

    @Test func `an answer with the rest is appended where it fits`() {
        #expect(
            BodyUse.of(head("HTTP/1.1 206", "Content-Range: bytes 5-9/10"), offset: 5, validator: known)
                == .append(total: 10)
        )
        #expect(
            BodyUse.of(head("HTTP/1.1 206", "Content-Range: bytes 5-9/*"), offset: 5, validator: known)
                == .append(total: 10)
        )
        let same = head("HTTP/1.1 206", "Content-Range: bytes 5-7/10", "ETag: \"a\"")
        #expect(BodyUse.of(same, offset: 5, validator: known) == .append(total: 10))
    }

    @Test(arguments: [
        ["Content-Range: bytes 4-9/10"], ["Content-Range: bytes 6-9/10"], ["Content-Range: bytes 5-10/11"], [],
        ["Content-Type: multipart/byteranges"], ["Content-Range: bytes */10"],
        ["Content-Range: bytes 5-9/10", "ETag: \"b\""],
    ])
    func `an answer with another rest is not used`(lines: [String]) {
        var answer = head("HTTP/1.1 206")
        for line in lines { answer.take(Array(line.utf8)) }
        #expect(BodyUse.of(answer, offset: 5, validator: known) == .askForAll)
    }

    @Test func `an answer with all of it begins anew`() {
        #expect(
            BodyUse.of(head("HTTP/1.1 200", "Content-Length: 7"), offset: 5, validator: known) == .restart(total: 7)
        )
        #expect(BodyUse.of(head("HTTP/1.1 200"), offset: 0, validator: nil) == .restart(total: nil))
    }

    @Test func `nothing is missing only where the lengths are the same`() {
        let end = head("HTTP/1.1 416", "Content-Range: bytes */10")
        #expect(BodyUse.of(end, offset: 10, validator: known) == .complete)
        #expect(BodyUse.of(end, offset: 12, validator: known) == .askForAll)
        #expect(BodyUse.of(head("HTTP/1.1 416"), offset: 10, validator: known) == .askForAll)
        #expect(BodyUse.of(end, offset: 0, validator: known) == .status)
    }

    @Test func `a part that nobody asked for is no file`() {
        #expect(BodyUse.of(head("HTTP/1.1 206", "Content-Range: bytes 0-4/10"), offset: 0, validator: nil) == .status)
        #expect(
            BodyUse.of(head("HTTP/1.1 206", "Content-Range: bytes 0-9/10"), offset: 0, validator: nil)
                == .restart(total: 10)
        )
        for status in [204, 201, 304, 404, 500, 0] {
            #expect(BodyUse.of(head("HTTP/1.1 \(status)"), offset: 5, validator: known) == .status, "\(status)")
        }
    }

    @Test(arguments: [
        ("https://example.org/a", "url", true), ("HTTP://EXAMPLE.org:80", "url", true),
        ("ftp://example.org/", "scheme", false),
        ("file:///etc/passwd", "scheme", false), ("example.org/a", "scheme", false), ("", "scheme", false),
        ("http://me@example.org/", "url", false), ("http://me:x@example.org/", "url", false), ("http://", "url", false),
        ("http://example.org:0/", "url", false), ("http://example.org:66000/", "url", false),
        ("http://example.org/a b", "url", false), ("http://example.org/a\r\nHost: b", "url", false),
        ("http://example.org/\u{0}", "url", false), ("http://exam\u{e4}ple.org/", "url", false),
        ("http://[::1]:8080/", "url", true), ("http://a\\@b/", "url", false),
    ])
    func `which URLs are refused`(url: String, reason: String, isFine: Bool) {
        do throws(TransferRefusal) {
            _ = try TransferRefusal.address(url)
            #expect(isFine)
        } catch {
            #expect(!isFine && error.reason == reason, "\(error)")
        }
    }

    @Test func `long URLs are refused`() throws {
        let room = TransferRefusal.longestURL - "http://a/".utf8.count
        _ = try TransferRefusal.address("http://a/" + String(repeating: "x", count: room))
        #expect(throws: TransferRefusal.self) {
            try TransferRefusal.address("http://a/" + String(repeating: "x", count: room + 1))
        }
    }

    @Test func `which header fields are refused`() throws {
        func check(_ name: String, _ value: String = "x") throws(TransferRefusal) {
            try TransferRefusal.check(headers: [TransferHeader(name: name, value: value)])
        }
        try check("X-A", "a\tb \u{e4}")
        try check("X-A", "")
        for name in [
            "Host", "RANGE", "if-range", "Content-Length", "Transfer-Encoding", "Accept-Encoding", "", "a b", "a:",
        ] {
            #expect(throws: TransferRefusal.self, "\(name)") { try check(name) }
        }
        for value in ["a\rb", "a\nb", "a\u{0}b", "a\u{7f}"] {
            #expect(throws: TransferRefusal.self) { try check("X-A", value) }
        }
        let many = (0..<33).map { TransferHeader(name: "X-\($0)", value: "") }
        try TransferRefusal.check(headers: Array(many.dropLast()))
        #expect(throws: TransferRefusal.self) { try TransferRefusal.check(headers: many) }
        #expect(throws: TransferRefusal.self) { try check("X", String(repeating: "a", count: 16 << 10)) }
        do throws(TransferRefusal) {
            try check("X-Secret", "hidden\n")
        } catch {
            #expect(!error.description.contains("hidden"))
        }
    }

    @Test func `methods, names and digests`() throws {
        try TransferRefusal.check(method: "GET", of: .download)
        try TransferRefusal.check(method: "PUT", of: .upload)
        try TransferRefusal.check(method: "POST", of: .upload)
        for (method, direction) in [
            ("POST", TransferDirection.download), ("GET", .upload), ("DELETE", .upload), ("put", .upload),
        ] {
            #expect(throws: TransferRefusal.self) { try TransferRefusal.check(method: method, of: direction) }
        }
        for file in ["a", "a/b", "..a/b.."] { try TransferRefusal.check(file: file) }
        for file in [
            "", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", "a\u{0}b", String(repeating: "x", count: 256),
        ] {
            #expect(throws: TransferRefusal.self, "\(file)") { try TransferRefusal.check(file: file) }
        }
        try TransferRefusal.check(sha256: String(repeating: "0a", count: 32))
        for digest in ["", String(repeating: "0A", count: 32), String(repeating: "0a", count: 31)] {
            #expect(throws: TransferRefusal.self) { try TransferRefusal.check(sha256: digest) }
        }
    }

    @Test func `redirects`() throws {
        let plain = WebAddress("http://a/")!
        let secure = WebAddress("https://a/")!
        func follow(
            _ status: Int,
            _ target: String,
            from: WebAddress,
            method: String = "GET",
            count: Int = 0,
            allow: [String] = [],
            ports: [UInt16] = []
        ) throws(TransferRefusal) -> Redirect {
            try Redirect.follow(
                status,
                from: from,
                to: target,
                method: method,
                sendsFile: method != "GET",
                count: count,
                allow: allow.compactMap(WebPattern.init),
                ports: ports
            )
        }
        #expect(try follow(302, "http://b.a/c", from: plain, allow: ["http://x", "http://*.a/c"]).address.path == "/c")
        for target in ["http://b/", "http://b.a/d", "https://b.a/c"] {
            #expect(throws: TransferRefusal.self) { try follow(302, target, from: plain, allow: ["http://*.a/c"]) }
        }
        #expect(try follow(302, "https://b/c", from: plain).address == WebAddress("https://b/c"))
        #expect(try follow(302, "https://b:8443/", from: secure, ports: [443, 8443]).address.port == 8443)
        #expect(throws: TransferRefusal.self) { try follow(302, "https://b:8443/", from: secure, ports: [443]) }
        var order = TransferOrder(id: 1, direction: .download, url: "http://a/b", root: 0, file: "f", method: "GET")
        for (ports, isFit) in [([], true), ([80], true), ([443], false)] as [([UInt16], Bool)] {
            order.ports = ports
            #expect(((try? TransferRefusal.check(order)) != nil) == isFit)
            #expect(try TransferOrder(json: order.json) == order)
        }
        #expect(try follow(302, "http://b/", from: plain, count: 9).method == "GET")
        for (status, target, from, count, reason) in [
            (302, "http://a/", plain, 10, "redirects"), (302, "http://a/", secure, 0, "scheme"),
            (302, "file:///etc/passwd", plain, 0, "scheme"), (302, "ftp://a/", plain, 0, "scheme"),
            (302, "http://x@a/", plain, 0, "redirects"),
        ] {
            do throws(TransferRefusal) {
                _ = try follow(status, target, from: from, count: count)
                Issue.record("\(target)")
            } catch {
                #expect(error.reason == reason, "\(target)")
            }
        }
        for status in [301, 302, 307, 308] {
            let next = try follow(status, "http://a/b", from: plain, method: "POST")
            #expect(next.method == "POST" && next.sendsFile, "\(status)")
        }
        let page = try follow(303, "http://a/b", from: plain, method: "POST")
        #expect(page.method == "GET" && !page.sendsFile)
        #expect(!Redirect.isRedirect(304) && !Redirect.isRedirect(300) && Redirect.isRedirect(308))
    }

    @Test func `what is secret is told to one server only`() {
        let fields = [
            TransferHeader(name: "authorization", value: "x"), TransferHeader(name: "Cookie", value: "y"),
            TransferHeader(name: "Accept", value: "z"),
        ]
        let origin = WebAddress("https://a/")!
        for other in ["https://a:444/", "https://b/", "http://a:443/", "https://a.b/"] {
            #expect(
                TransferHeader.fields(fields, for: WebAddress(other)!, origin: origin).map(\.name) == ["Accept"],
                "\(other)"
            )
        }
        #expect(TransferHeader.fields(fields, for: WebAddress("https://A:443/x")!, origin: origin) == fields)
    }

    @Test func `what statuses mean`() {
        for status in [408, 425, 429, 500, 502, 503, 504] {
            #expect(TransferEnd.of(head("HTTP/1.1 \(status)"), bytes: 3, now: 0).outcome == .retry, "\(status)")
        }
        for status in [400, 403, 404, 410, 501, 505, 304, 204, 0] {
            let end = TransferEnd.of(head("HTTP/1.1 \(status)"), bytes: 3, now: 0)
            #expect(
                end.outcome == .failed && end.reason == "http-status" && end.status == Int64(status) && end.bytes == 3
            )
        }
        let login = TransferEnd.of(head("HTTP/1.1 401", "WWW-Authenticate: Negotiate, Basic realm=r"), bytes: 0, now: 0)
        #expect(login.outcome == .login && login.scheme == "basic" && login.realm == "r")
        let busy = TransferEnd.of(head("HTTP/1.1 503", "Retry-After: 7"), bytes: 0, now: 0)
        #expect(busy.retryAfter == 7)
    }

    @Test(arguments: [
        (6, TransferEnd.Outcome.retry, "resolve"), (7, .retry, "connection"), (18, .retry, "connection"),
        (28, .retry, "timeout"), (35, .retry, "connection"), (52, .retry, "connection"), (56, .retry, "connection"),
        (60, .failed, "certificate"), (77, .failed, "certificate"), (3, .failed, "url"), (1, .failed, "scheme"),
        (9999, .retry, "connection"),
    ])
    func `what errors of libcurl mean`(code: Int, outcome: TransferEnd.Outcome, reason: String) {
        let end = TransferEnd.of(curl: code, "text", errno: 0, hasConnected: false, bytes: 1)
        #expect(end.outcome == outcome && end.reason == reason && end.message == "text")
        let stalled = TransferEnd.of(curl: 28, "", errno: 0, hasConnected: true, bytes: 1)
        #expect(stalled.reason == "stalled" && !stalled.isWithoutWay)
    }

    @Test func `without a way to the server is what cannot be resolved, reached or heard`() {
        func end(_ code: Int, _ errno: Int = 0) -> TransferEnd {
            TransferEnd.of(curl: code, "", errno: errno, hasConnected: false, bytes: 0)
        }
        for (code, errno) in [(6, 0), (28, 0), (7, Int(ENETUNREACH)), (7, Int(EHOSTUNREACH)), (7, Int(EADDRNOTAVAIL))] {
            #expect(end(code, errno).isWithoutWay, "\(code), \(errno)")
        }
        // There is one that says no.
        #expect(!end(7, Int(ECONNREFUSED)).isWithoutWay)
        #expect(!end(56, Int(ENETUNREACH)).isWithoutWay)
        var cut = end(28)
        cut.hasGained = true
        #expect(!cut.isWithoutWay)
    }
}
