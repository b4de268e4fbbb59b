// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import TestAddresses
import Testing
import TransferProtocol

@Suite struct AnswerTests {
    @Test(arguments: [
        ("status&status=404", TransferEnd.Outcome.failed, "http-status"),
        ("status&status=500", .retry, "http-status"), ("status&status=204", .failed, "http-status"),
        ("status&status=304", .failed, "http-status"), ("loop", .failed, "redirects"),
        ("refuse", .failed, "http-status"),
        ("to&url=file:///etc/passwd", .failed, "scheme"), ("to&url=ftp://127.0.0.1/", .failed, "scheme"),
        ("to&url=http://me@127.0.0.1/", .failed, "redirects"), ("to&url=gopher://x/", .failed, "scheme"),
        ("gzip", .failed, "encoding"), ("garbage", .failed, "scheme"), ("reset", .retry, "connection"),
        ("endlesshead", .retry, "connection"),
    ])
    func `how a try ends`(mode: String, outcome: TransferEnd.Outcome, reason: String) throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        let end = try bench.run(bench.download(1, server + "/a?mode=" + mode))
        #expect(end.outcome == outcome && end.reason == reason, "\(end)")
        #expect(end.message?.isEmpty == false)
        #expect(!File.exists(bench.root + "/file-1"))
        if mode == "loop" { #expect(try bench.requests().count == 11) }
    }

    @Test func `a server says when it wants to be asked again`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        let end = try bench.run(bench.download(1, server + "/a?mode=status&status=503&after=120"))
        #expect(end.outcome == .retry && end.retryAfter == 120 && end.status == 503)
    }

    @Test func `nobody listens, and nobody has that name`() throws {
        let bench = try Bench()
        let port = try TestAddress.port()
        let none = try bench.run(bench.download(1, "http://\(TestAddress.host):\(port)/"))
        #expect(none.outcome == .retry && none.reason == "connection", "\(none)")
        let name = try bench.run(bench.download(2, "http://nobody.invalid/"))
        #expect(name.outcome == .retry && name.reason == "resolve", "\(name)")
    }

    @Test func `redirects are followed, and secrets stay where they were`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        let bytes = try bench.serve("a", bytes: 10_000)
        var order = bench.download(1, server + "/x?mode=to&url=/y%3Fmode%3Dto%26url%3Dhttp://@OTHER/a")
        order.headers = [
            TransferHeader(name: "Authorization", value: "Bearer x"), TransferHeader(name: "cookie", value: "c=1"),
            TransferHeader(name: "X-Mine", value: "m"), TransferHeader(name: "X-None", value: ""),
        ]
        #expect(try bench.run(order).outcome == .done)
        #expect(try File.read(bench.root + "/file-1") == bytes)
        let asked = try bench.requests()
        #expect(asked.count == 3)
        #expect(asked[0].fields["authorization"] == "Bearer x" && asked[1].fields["authorization"] == "Bearer x")
        #expect(asked[1].fields["cookie"] == "c=1")
        #expect(asked[2].fields["authorization"] == nil && asked[2].fields["cookie"] == nil)
        #expect(asked.allSatisfy { $0.fields["x-mine"] == "m" && $0.fields["x-none"] == "" })
    }

    @Test func `a redirect leads only where the app may go`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        try bench.serve("a", bytes: 10)
        var order = bench.download(1, server + "/x?mode=to&url=http://@OTHER/a")
        order.allow = [server + "/*"]
        let end = try bench.run(order)
        #expect(end.outcome == .failed && end.reason == "not-allowed" && end.message?.contains("127.0.0.1") == true)
        #expect(try bench.requests().count == 1)
        order.id = 2
        order.allow.append(server.replacing(TestAddress.host, with: "127.0.0.1"))
        #expect(try bench.run(order).outcome == .done)
    }

    @Test(arguments: ["basic", "digest"])
    func `a login is used once, and its refusal is told`(mode: String) throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        let bytes = try bench.serve("a", bytes: 10_000)
        var order = bench.download(1, server + "/a?mode=\(mode)&login=me:secret")
        let unknown = try bench.run(order)
        #expect(unknown.outcome == .login && unknown.scheme == mode && unknown.status == 401)
        #expect(unknown.realm == (mode == "basic" ? "files of mine" : "vault"))
        order.credentials = TransferCredentials(user: "me", password: "wrong")
        #expect(try bench.run(order).outcome == .login)
        order.credentials = TransferCredentials(user: "me", password: "secret")
        let end = try bench.run(order)
        #expect(end.outcome == .done, "\(end)")
        #expect(try File.read(bench.root + "/file-1") == bytes)
        if mode == "basic" {
            order.id = 2
            order.credentials = TransferCredentials(header: "Basic bWU6c2VjcmV0")
            #expect(try bench.run(order).outcome == .done)
        }
        #expect(!bench.log.contains("secret"))
    }

    @Test func `a login is not for the server that was redirected to`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        try bench.serve("a", bytes: 10)
        var order = bench.download(1, server + "/x?mode=to&url=http://@OTHER/a%3Fmode%3Dbasic%26login%3Dme:secret")
        order.credentials = TransferCredentials(user: "me", password: "secret")
        #expect(try bench.run(order).outcome == .login)
        #expect(try bench.requests().allSatisfy { $0.fields["authorization"] == nil })
    }

    @Test func `what is too large is not fetched`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        try bench.serve("a", bytes: 10_001)
        var order = bench.download(1, server + "/a")
        order.sizeLimit = 10_000
        let known = try bench.run(order)
        #expect(known.outcome == .failed && known.reason == "too-large" && known.bytes == 0)
        #expect(bench.head(of: 1) == nil)
        order = bench.download(2, server + "/a?mode=endless")
        order.sizeLimit = 1_000_000
        let endless = try bench.run(order)
        #expect(endless.outcome == .failed && endless.reason == "too-large" && endless.bytes <= 1_000_000)
    }

    @Test func `a connection without a byte ends`() throws {
        let bench = try Bench(["--stall", "1"])
        let server = try bench.lyingServer()
        let end = try bench.run(bench.download(1, server + "/a?mode=stall&at=5000"))
        #expect(end.outcome == .retry && end.reason == "stalled" && end.bytes == 5000 && end.hasGained, "\(end)")
    }

    @Test(arguments: [
        ("ftp://127.0.0.1/", "GET", "a", "scheme"), ("http://127.0.0.1/", "PUT", "a", "method"),
        ("http://127.0.0.1/", "GET", "../a", "file"), ("http://127.0.0.1/\r\nX: y", "GET", "a", "url"),
    ])
    func `what torpord should have refused is refused once more`(
        url: String,
        method: String,
        file: String,
        reason: String
    )
        throws
    {
        let bench = try Bench()
        var order = bench.download(1, url, to: file)
        order.method = method
        let end = try bench.run(order)
        #expect(end.outcome == .failed && end.reason == reason)
    }

    @Test func `slow transfers do not hold others up`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        try bench.serve("a", bytes: 200_000)
        try bench.say(.start(bench.download(1, server + "/a?mode=gate")))
        try bench.say(.start(bench.download(2, server + "/a")))
        #expect(try bench.end(of: 2).outcome == .done)
        // Half of it is there: that is told within a second or two.
        try bench.hear { report in
            if case .progress(1, let bytes, let total) = report, bytes == 100_000 {
                return total == 200_000
            } else {
                return nil
            }
        }
        try File.write(bench.served + "/gate", "")
        #expect(try bench.end(of: 1).outcome == .done)
    }

    @Test func `a rate is kept`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        try bench.serve("a", bytes: 200_000)
        try bench.say(.rate(80_000))
        #expect(try bench.run(bench.download(1, server + "/a")).outcome == .done)
        // Two seconds' worth: there was time for a report on the way.
        let isBetween = bench.reports.contains { report in
            if case .progress(1, let bytes, _) = report { return bytes > 0 && bytes < 200_000 }
            return false
        }
        #expect(isBetween)
        try bench.say(.rate(nil))
        #expect(try bench.run(bench.download(2, server + "/a")).outcome == .done)
    }

    @Test func `what can wait is sent with less effort than all else`() throws {
        guard Users.isRoot else {
            print("skipped: only root sees the sockets of a process that cannot be dumped")
            return
        }
        let bench = try Bench()
        let server = try bench.lyingServer()
        try bench.serve("a", bytes: 1000)
        for (id, isDiscretionary) in [(Int64(1), true), (2, false)] {
            var order = bench.download(id, server + "/a?mode=gate&n=\(id)")
            order.isDiscretionary = isDiscretionary
            try bench.say(.start(order))
            try bench.hear { report in if case .head(id, _, _) = report { true } else { nil } }
            let program = try #require(bench.program)
            // Of the connection to the server: what is left of all descriptors that have a class of traffic.
            let classes = try File.list("/proc/\(program.pid)/fd").compactMap { Int32($0) }.compactMap { fd -> Int32? in
                guard let copy = try? Pidfd.copy(program.pidfd.raw, fd),
                    (try? SocketFacts(copy.raw))?.family == .internet
                else { return nil }
                var value: Int32 = -1
                var size = socklen_t(MemoryLayout<Int32>.size)
                return getsockopt(copy.raw, Int32(IPPROTO_IP), IP_TOS, &value, &size) == 0 ? value : nil
            }
            #expect(classes == [isDiscretionary ? 4 : 0])
            try bench.say(.discard(id: id))
            try bench.say(.hello)
            try bench.hear { report in if case .here(let ids, _) = report { ids.isEmpty ? true : nil } else { nil } }
        }
    }
}
