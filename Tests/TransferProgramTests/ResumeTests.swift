// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing
import TransferProtocol

@Suite struct ResumeTests {
    @Test func `a file is fetched whole into folders that were missing`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        let bytes = try bench.serve("a", bytes: 300_000)
        try bench.say(.hello)
        #expect(try bench.hear() == .here(ids: []))
        let end = try bench.run(bench.download(1, server + "/a", to: "x/y/a"))
        #expect(end.outcome == .done && end.bytes == 300_000 && end.status == 200, "\(end)")
        #expect(try File.read(bench.root + "/x/y/a") == bytes)
        let head = try #require(bench.head(of: 1))
        #expect(head.offset == 0 && head.validator.total == 300_000 && head.validator.condition?.first == "\"")
        try bench.eventually("an empty folder of parts") { (try? File.list(bench.parts)) == [] }
    }

    @Test func `an empty file, and one of chunks`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        try bench.serve("none", bytes: 0)
        let bytes = try bench.serve("some", bytes: 25_500)
        let none = try bench.run(bench.download(1, server + "/none"))
        #expect(none.outcome == .done && none.bytes == 0)
        #expect(none.sha256 == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        #expect(try File.read(bench.root + "/file-1") == [])
        let some = try bench.run(bench.download(2, server + "/some?mode=chunked"))
        #expect(some.outcome == .done && some.bytes == 25_500)
        #expect(try File.read(bench.root + "/file-2") == bytes)
        #expect(bench.head(of: 2)?.validator.total == nil)
        let cut = try bench.run(bench.download(3, server + "/some?mode=chunked&cut"))
        #expect(cut.outcome == .retry, "\(cut)")
    }

    @Test func `what was cut goes on where it was`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        let bytes = try bench.serve("a", bytes: 100_000)
        var order = bench.download(1, server + "/a?mode=once&at=40000")
        let first = try bench.run(order)
        #expect(first.outcome == .retry && first.bytes == 40_000 && first.hasGained && first.reason == "connection")
        order.validator = bench.head(of: 1)?.validator
        let second = try bench.run(order)
        #expect(second.outcome == .done && second.status == 206)
        #expect(try File.read(bench.root + "/file-1") == bytes)
        let fields = try #require(try bench.requests().last?.fields)
        #expect(fields["range"] == "bytes=40000-")
        #expect(fields["if-range"] == order.validator?.condition)
        #expect(fields["accept-encoding"] == "identity")
        #expect(bench.head(of: 1)?.offset == 40_000)
    }

    @Test(arguments: ["once", "norange", "offset", "total", "othertag"])
    func `servers that do not keep to ranges do no harm`(mode: String) throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        let old = try bench.serve("a", bytes: 100_000)
        let new = try bench.serve("a.new", bytes: 90_000)
        let end = try bench.runToTheEnd(bench.download(1, server + "/a?mode=\(mode)&at=30000"))
        #expect(end.outcome == .done, "\(end)")
        #expect(try File.read(bench.root + "/file-1") == (mode == "othertag" ? new : old))
    }

    @Test func `a file that was replaced is fetched from its beginning`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        try bench.serve("a", bytes: 100_000)
        let new = try bench.serve("a.new", bytes: 70_000)
        var order = bench.download(1, server + "/a?mode=changed&at=80000")
        #expect(try bench.run(order).bytes == 80_000)
        order.validator = bench.head(of: 1)?.validator
        #expect(try bench.run(order).outcome == .done)
        #expect(try File.read(bench.root + "/file-1") == new)
        #expect(bench.head(of: 1)?.offset == 0)
    }

    @Test func `without a validator it begins anew`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        let bytes = try bench.serve("a", bytes: 50_000)
        var order = bench.download(1, server + "/a?mode=once&at=20000&notag")
        #expect(try bench.run(order).outcome == .retry)
        order.validator = bench.head(of: 1)?.validator
        #expect(order.validator == TransferValidator(condition: nil, total: 50_000))
        #expect(try bench.run(order).status == 200)
        #expect(try File.read(bench.root + "/file-1") == bytes)
    }

    @Test func `416 is the end only where the length is right`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        let bytes = try bench.serve("a", bytes: 50_000)
        for (id, total) in [(Int64(1), 20_000), (2, 50_000)] {
            var order = bench.download(id, server + "/a?mode=beyond&at=20000&total=\(total)")
            #expect(try bench.run(order).bytes == 20_000)
            order.validator = TransferValidator(condition: bench.head(of: id)?.validator.condition, total: nil)
            let end = try bench.run(order)
            #expect(end.outcome == .done && end.bytes == (total == 20_000 ? 20_000 : 50_000), "\(end)")
            let wanted = total == 20_000 ? Array(bytes[..<20_000]) : bytes
            #expect(try File.read(bench.root + "/file-\(id)") == wanted)
        }
    }

    @Test func `more than was said is no part of the file`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        var order = bench.download(1, server + "/a?mode=long")
        #expect(try bench.run(order).bytes == 50)
        order.validator = bench.head(of: 1)?.validator
        let end = try bench.run(order)
        #expect(end.outcome == .retry && end.reason == "length" && end.bytes <= 100, "\(end)")
        #expect(!File.exists(bench.root + "/file-1"))
    }

    @Test func `a wrong digest is final, unless pieces were put together`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        let bytes = try bench.serve("a", bytes: 50_000)
        var order = bench.download(1, server + "/a")
        order.sha256 = String(repeating: "0", count: 64)
        let end = try bench.run(order)
        #expect(end.outcome == .failed && end.reason == "digest")
        #expect(!File.exists(bench.root + "/file-1"))
        // What is in the part is not what the server sent.
        order = bench.download(2, server + "/a?mode=once&at=20000")
        #expect(try bench.run(order).outcome == .retry)
        try File.write(bench.parts + "/2.part", Bench.noise(20_000))
        order.validator = bench.head(of: 2)?.validator
        let whole = try bench.run(bench.download(3, server + "/a"))
        order.sha256 = whole.sha256
        let mixed = try bench.run(order)
        #expect(mixed.outcome == .retry && mixed.reason == "digest", "\(mixed)")
        let again = try bench.run(order)
        #expect(again.outcome == .done && again.sha256 == whole.sha256)
        #expect(try File.read(bench.root + "/file-2") == bytes)
    }

    /// 200 in the suite; TRANSFERS=1000 for more.
    @Test func `many transfers that are cut at random come whole, and little comes twice`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        let count = ProcessInfo.processInfo.environment["TRANSFERS"].flatMap { Int($0) } ?? 200
        let names = (0..<10).map { "f\($0)" }
        var files: [String: [UInt8]] = [:]
        for name in names { files[name] = try bench.serve(name, bytes: Int.random(in: 5_000..<40_000)) }
        var total = 0
        var orders: [Int64: TransferOrder] = [:]
        var waiting = (1...Int64(count)).map { id -> TransferOrder in
            let name = names.randomElement()!
            total += files[name]!.count
            return bench.download(id, server + "/\(name)?mode=random&n=\(id)", to: "\(id)-\(name)")
        }
        func begin() throws {
            guard let order = waiting.popLast() else { return }
            orders[order.id] = order
            try bench.say(.start(order))
        }
        for _ in 0..<8 { try begin() }
        var cuts = 0
        while !orders.isEmpty {
            let (id, end) = try bench.hear { report -> (Int64, TransferEnd)? in
                if case .head(let id, let validator, _) = report { orders[id]?.validator = validator }
                if case .ended(let id, let end) = report { return (id, end) }
                return nil
            }
            try bench.say(.acknowledge(id: id))
            if end.outcome == .retry, let order = orders[id] {
                cuts += 1
                try bench.say(.start(order))
                continue
            }
            let known = orders.removeValue(forKey: id)
            let order = try #require(known)
            #expect(end.outcome == .done, "\(end)")
            let name = String(order.file.split(separator: "-").last!)
            #expect(try File.read(bench.root + "/" + order.file) == files[name]!, "\(order.file)")
            try begin()
        }
        #expect(cuts > count / 2)
        try File.write(bench.root + "/empty", "")
        #expect(
            try bench.run(bench.upload(99_999, "empty", to: server + "/x?mode=count", method: "POST")).outcome == .done
        )
        let sent = try #require(Int(try File.readString(bench.served + "/bytes")))
        #expect(Double(sent) <= 1.1 * Double(total), "\(sent) bytes for \(total)")
    }
}
