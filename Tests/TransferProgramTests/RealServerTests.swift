// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing
import TransferProtocol

@Suite struct RealServerTests {
    @Test func `nginx gives the rest of a file`() throws {
        let bench = try Bench(["--stall", "2"])
        // Old enough for Last-Modified, though nginx has strong tags.
        let bytes = try bench.serve("a", bytes: 1_500_000)
        let nginx = try bench.nginx(rate: "400k")
        try bench.say(.start(bench.download(1, nginx.plain + "/a")))
        try bench.hear { report in
            if case .progress(1, let bytes, _) = report, bytes > 0 { return true } else { return nil }
        }
        try bench.say(.stop(id: 1))
        try bench.say(.hello)
        try bench.hear { report in if case .here(let ids, _) = report { ids.isEmpty ? true : nil } else { nil } }
        let size = Int64(try File.status(bench.parts + "/1.part").size)
        #expect(size > 0 && size < 1_500_000)
        var order = bench.download(1, nginx.plain + "/a")
        order.validator = bench.head(of: 1)?.validator
        let end = try bench.run(order)
        #expect(end.outcome == .done && end.status == 206, "\(end)")
        #expect(bench.head(of: 1)?.offset == size)
        #expect(try File.read(bench.root + "/file-1", limit: 1 << 23) == bytes)
    }

    @Test func `what nginx still has is not fetched again`() throws {
        let bench = try Bench()
        let bytes = try bench.serve("a", bytes: 5000)
        let nginx = try bench.nginx()
        var order = bench.download(1, nginx.plain + "/a")
        #expect(try bench.run(order).status == 200)
        let version = try #require(bench.head(of: 1)?.validator.version)
        // As nginx has it in Last-Modified.
        let modified = try FileManager.default.attributesOfItem(atPath: bench.served + "/a")[.modificationDate] as? Date
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(secondsFromGMT: 0)
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        let date = format.string(from: try #require(modified))
        for known in [version, date] {
            order.id += 1
            order.unless = known
            let end = try bench.run(order)
            #expect(end.outcome == .done && end.status == 304 && end.bytes == 0 && end.sha256 == nil, "\(end)")
        }
        #expect(try File.read(bench.root + "/file-1") == bytes)
        let other = try bench.serve("a", bytes: 6000)
        order.id += 1
        order.unless = version
        let end = try bench.run(order)
        #expect(
            end.outcome == .done && end.status == 200 && end.bytes == 6000 && end.sha256?.utf8.count == 64,
            "\(end)"
        )
        #expect(try File.read(bench.root + "/file-1") == other)
    }

    @Test func `a server that is stopped is left after a while`() throws {
        let bench = try Bench(["--stall", "1"])
        try bench.serve("a", bytes: 1_500_000)
        let nginx = try bench.nginx(rate: "400k")
        try bench.say(.start(bench.download(1, nginx.plain + "/a")))
        try bench.hear { report in
            if case .progress(1, let bytes, _) = report, bytes > 0 { return true } else { return nil }
        }
        // nginx is a master and a worker, which has the connection.
        let workers = try ProcFS.children(nginx.server.pid)
        for worker in workers { kill(worker, SIGSTOP) }
        defer { for worker in workers { kill(worker, SIGCONT) } }
        let end = try bench.end(of: 1)
        #expect(end.outcome == .retry && end.reason == "stalled" && end.hasGained, "\(end)")
    }

    @Test func `nginx takes a file, and lets those in who may`() throws {
        let bench = try Bench()
        let bytes = try bench.serve("vault-file", bytes: 5000)
        let nginx = try bench.nginx()
        try File.write(bench.served + "/vault/a", bytes)
        try File.write(bench.root + "/up", bytes)
        let sent = try bench.run(bench.upload(1, "up", to: nginx.plain + "/dav/x/y"))
        #expect(sent.outcome == .done && sent.status == 201, "\(sent)")
        #expect(try File.read(bench.served + "/dav/x/y") == bytes)
        var order = bench.download(2, nginx.plain + "/vault/a")
        let unknown = try bench.run(order)
        #expect(unknown.outcome == .login && unknown.realm == "the vault" && unknown.scheme == "basic", "\(unknown)")
        order.credentials = TransferCredentials(user: "me", password: "secret")
        #expect(try bench.run(order).outcome == .done)
        #expect(try File.read(bench.root + "/file-2") == bytes)
    }

    @Test func `a certificate has to verify, and an authority may be added`() throws {
        let bench = try Bench(starts: false)
        let bytes = try bench.serve("a", bytes: 500_000)
        let nginx = try bench.nginx()
        try bench.start(["--read", nginx.authority])
        var order = bench.download(1, nginx.secure + "/a")
        let unknown = try bench.run(order)
        #expect(unknown.outcome == .failed && unknown.reason == "certificate", "\(unknown)")
        order.id = 2
        order.file = "file-2"
        order.authority = nginx.authority
        let end = try bench.run(order)
        #expect(end.outcome == .done, "\(end)")
        #expect(try File.read(bench.root + "/file-2") == bytes)
        // The right authority, and another name.
        order.id = 3
        order.url = nginx.secure.replacing("localhost", with: "127.0.0.1") + "/a"
        let name = try bench.run(order)
        #expect(name.outcome == .failed && name.reason == "certificate", "\(name)")
        // An authority that it may not read.
        order.id = 4
        order.url = nginx.secure + "/a"
        order.authority = bench.directory + "/none.crt"
        #expect(try bench.run(order).outcome == .failed)
        try File.write(bench.root + "/up", bytes)
        var upload = bench.upload(5, "up", to: nginx.secure + "/dav/b")
        upload.authority = nginx.authority
        #expect(try bench.run(upload).outcome == .done)
        #expect(try File.read(bench.served + "/dav/b") == bytes)
    }

    @Test(arguments: [true, false])
    func `a proxy is told who asks, and no password of a server`(isSecure: Bool) throws {
        let bench = try Bench(starts: false)
        let bytes = try bench.serve("a", bytes: 5000)
        try File.makeDirectory(bench.served + "/vault", mode: 0o755)
        try File.write(bench.served + "/vault/a", bytes)
        let nginx = try bench.nginx()
        let server = isSecure ? nginx.secure : nginx.plain
        let proxy = try bench.proxy("out:side")
        // Not what the program's own variables say.
        bench.environment = ["http_proxy=http://nobody.invalid", "https_proxy=http://nobody.invalid", "no_proxy=*"]
        try bench.start(["--read", nginx.authority])
        var order = bench.download(1, server + "/vault/a")
        order.authority = nginx.authority
        order.credentials = TransferCredentials(user: "me", password: "secret")
        let other = TransferProxy(
            url: "http://nobody.invalid",
            credentials: TransferCredentials(user: "x", password: "y")
        )
        func go(by login: TransferCredentials? = nil) {
            let proxy = TransferProxy(url: proxy, credentials: login)
            (order.proxy, order.secureProxy) = isSecure ? (other, proxy) : (proxy, other)
        }
        go()
        let unknown = try bench.run(order)
        #expect(unknown.outcome == .retry && unknown.status == 407 && unknown.reason == "proxy-login", "\(unknown)")
        order.id = 2
        go(by: TransferCredentials(user: "in", password: "side"))
        #expect(try bench.run(order).status == 407)
        order.id = 3
        go(by: TransferCredentials(user: "out", password: "side"))
        let end = try bench.run(order)
        #expect(end.outcome == .done, "\(end)")
        #expect(try File.read(bench.root + "/file-1") == bytes)
        let said = Set(bench.asked.compactMap { $0.split(separator: " ").last.map(String.init) })
        #expect(said == ["-", "in:side", "out:side"], "\(bench.asked)")
        #expect(bench.asked.allSatisfy { $0.hasPrefix(isSecure ? "CONNECT localhost:" : "GET \(server)/vault/a ") })
    }

    @Test func `https does not lead to http`() throws {
        let bench = try Bench(starts: false)
        try bench.serve("a", bytes: 10)
        let nginx = try bench.nginx()
        try bench.start(["--read", nginx.authority])
        var order = bench.download(1, nginx.secure + "/down")
        order.authority = nginx.authority
        let end = try bench.run(order)
        #expect(end.outcome == .failed && end.reason == "scheme", "\(end)")
    }

    @Test func `lighttpd gives files, and their rest`() throws {
        let bench = try Bench()
        let bytes = try bench.serve("a", bytes: 2_000_000)
        let server = try bench.lighttpd()
        #expect(try bench.run(bench.download(1, server + "/a")).outcome == .done)
        #expect(try File.read(bench.root + "/file-1", limit: 1 << 23) == bytes)
        try File.write(bench.parts + "/2.part", Array(bytes[..<500_000]))
        var order = bench.download(2, server + "/a")
        order.validator = bench.head(of: 1)?.validator
        let end = try bench.run(order)
        #expect(end.outcome == .done && end.status == 206, "\(end)")
        #expect(try File.read(bench.root + "/file-2", limit: 1 << 23) == bytes)
        try File.write(bench.parts + "/3.part", bytes)
        order = bench.download(3, server + "/a")
        order.validator = bench.head(of: 1)?.validator
        let whole = try bench.run(order)
        // Its 416 does not say how long the file is.
        #expect(whole.outcome == .done && whole.status == 200, "\(whole)")
    }
}
