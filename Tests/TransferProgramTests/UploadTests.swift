// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing
import TransferProtocol

@Suite struct UploadTests {
    @Test(arguments: ["PUT", "POST"])
    func `a file is sent`(method: String) throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        let bytes = Bench.noise(3_000_000)
        try File.makeDirectory(bench.root + "/x")
        try File.write(bench.root + "/x/a", bytes)
        var order = bench.upload(1, "x/a", to: server + "/b?mode=put", method: method)
        order.headers = [TransferHeader(name: "Content-Type", value: "text/x-mine")]
        let end = try bench.run(order)
        #expect(end.outcome == .done && end.bytes == 3_000_000 && end.status == 201, "\(end)")
        #expect(try File.read(bench.served + "/b", limit: 1 << 23) == bytes)
        let asked = try #require(try bench.requests().last)
        #expect(asked.method == method && asked.fields["content-type"] == "text/x-mine")
        #expect(asked.fields["content-length"] == "3000000")
        let source = bench.reports.contains { report in
            if case .source(1, let source) = report { return source.size == 3_000_000 } else { return false }
        }
        #expect(source)
    }

    @Test func `an empty file, and one whose type nobody said`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        try File.write(bench.root + "/a", "")
        #expect(try bench.run(bench.upload(1, "a", to: server + "/b?mode=put", method: "POST")).outcome == .done)
        #expect(try File.read(bench.served + "/b") == [])
        #expect(try bench.requests().last?.fields["content-type"] == nil)
    }

    @Test func `a file is sent again where it was redirected to, and with a login`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        let bytes = Bench.noise(50_000)
        try File.write(bench.root + "/a", bytes)
        let elsewhere = "/x?mode=to&status=307&url=/b%3Fmode%3Dput"
        #expect(try bench.run(bench.upload(1, "a", to: server + elsewhere, method: "POST")).outcome == .done)
        #expect(try File.read(bench.served + "/b") == bytes)
        for (id, mode) in [(Int64(2), "basic"), (3, "digest")] {
            var order = bench.upload(id, "a", to: server + "/b\(id)?mode=\(mode)&login=me:secret")
            order.credentials = TransferCredentials(user: "me", password: "secret")
            let end = try bench.run(order)
            #expect(end.outcome == .done, "\(end)")
            #expect(try File.read(bench.served + "/b\(id)") == bytes)
        }
        // A page about what became of it is not the file's place.
        try bench.serve("page", bytes: 100)
        let page = try bench.run(bench.upload(4, "a", to: server + "/x?mode=to&status=303&url=/page", method: "POST"))
        #expect(page.outcome == .done && page.status == 200)
        #expect(try bench.requests().last?.method == "GET")
    }

    @Test func `a server that does not want it`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        try File.write(bench.root + "/a", Bench.noise(5_000_000))
        let early = try bench.run(bench.upload(1, "a", to: server + "/b?mode=early"))
        #expect(early.outcome == .failed && early.status == 413, "\(early)")
        let busy = try bench.run(bench.upload(2, "a", to: server + "/b?mode=status&status=503"))
        #expect(busy.outcome == .retry && busy.status == 503, "\(busy)")
    }

    @Test func `only a regular file that is below its folder is sent`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        try File.write(bench.directory + "/outside", "secret")
        try File.link(bench.root + "/link", to: "../outside")
        try File.makeDirectory(bench.root + "/folder")
        try File.link(bench.root + "/away", to: "..")
        try File.makeFIFO(bench.root + "/fifo")
        for (id, name) in ["link", "folder", "away/outside", "fifo", "none", "none/a"].enumerated() {
            let end = try bench.run(bench.upload(Int64(id), name, to: server + "/b?mode=put"))
            #expect(end.outcome == .failed && end.reason == "source", "\(name): \(end)")
        }
        #expect(!File.exists(bench.served + "/requests"))
    }

    @Test func `a file that is another one now is not sent`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        try File.write(bench.root + "/a", "one")
        var order = bench.upload(1, "a", to: server + "/b?mode=put")
        order.source = TransferSource(size: 3, modified: 5)
        let end = try bench.run(order)
        #expect(end.outcome == .failed && end.reason == "file-changed")
        let real = try File.status(bench.root + "/a")
        order.id = 2
        order.source = TransferSource(size: 3, modified: real.modifiedNanoseconds)
        #expect(try bench.run(order).outcome == .done)
    }

    @Test func `a file that changes while it is sent is not taken for whole`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        try File.write(bench.root + "/a", Bench.noise(20_000_000))
        try bench.say(.start(bench.upload(1, "a", to: server + "/b?mode=slowput")))
        try bench.hear { report in if case .source = report { true } else { nil } }
        try bench.eventually("the first bytes") { File.exists(bench.served + "/begun") }
        try File.append(bench.root + "/a", [0])
        try File.write(bench.served + "/gate", "")
        let end = try bench.end(of: 1)
        #expect(end.outcome == .failed && end.reason == "file-changed", "\(end)")
    }

    @Test func `what was sent is not sent again after the program was lost`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        try File.write(bench.root + "/a", "one")
        let order = bench.upload(1, "a", to: server + "/b?mode=put", method: "POST")
        try bench.say(.start(order))
        let end = try bench.end(of: 1)
        bench.program?.kill()
        bench.program?.reap()
        try bench.start()
        #expect(try bench.run(order) == end)
        #expect(try bench.requests().count == 1)
        try bench.eventually("an empty folder of parts") { (try? File.list(bench.parts)) == [] }
    }
}
