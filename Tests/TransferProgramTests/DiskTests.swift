// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing
import TransferProtocol
import Varlink

@Suite struct DiskTests {
    @Test func `the end is said until it is acknowledged, and the file is not fetched twice`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        let bytes = try bench.serve("a", bytes: 5000)
        let order = bench.download(1, server + "/a")
        try bench.say(.start(order))
        let end = try bench.end(of: 1)
        try bench.say(.hello)
        #expect(try bench.hear() == .here(ids: [1]))
        #expect(try bench.hear() == .ended(id: 1, end))
        bench.program?.kill()
        bench.program?.reap()
        try bench.start()
        #expect(try bench.run(order) == end)
        #expect(try File.read(bench.root + "/file-1") == bytes)
        #expect(try bench.requests().count == 1)
        try bench.eventually("an empty folder of parts") { (try? File.list(bench.parts)) == [] }
    }

    @Test func `one whose end was written and that was not moved yet is moved`() throws {
        let bench = try Bench()
        var end = TransferEnd(.done, bytes: 3, hasGained: true)
        end.status = 200
        try File.write(bench.parts + "/1.part", "abc")
        try File.write(bench.parts + "/1.done", end.json.serialised())
        #expect(try bench.run(bench.download(1, "http://127.0.0.1:1/")) == end)
        #expect(try File.readString(bench.root + "/file-1") == "abc")
    }

    @Test func `half of a written end is none`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        try bench.serve("a", bytes: 5000)
        try File.write(bench.parts + "/1.done", "{\"outcome\":\"do")
        #expect(try bench.run(bench.download(1, server + "/a")).bytes == 5000)
    }

    @Test func `what was there is replaced, links are not followed, and folders stay`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        let bytes = try bench.serve("a", bytes: 5000)
        try File.write(bench.root + "/old", "old")
        try File.write(bench.directory + "/outside", "outside")
        try File.link(bench.root + "/link", to: bench.directory + "/outside")
        try File.makeDirectory(bench.root + "/folder")
        try File.link(bench.root + "/away", to: bench.directory)
        try File.write(bench.root + "/file", "")
        for (id, name) in ["old", "link"].enumerated() {
            #expect(try bench.run(bench.download(Int64(id), server + "/a", to: name)).outcome == .done)
            #expect(try File.read(bench.root + "/" + name) == bytes)
        }
        #expect(try File.readString(bench.directory + "/outside") == "outside")
        for (id, name) in ["folder", "away/x", "file/x"].enumerated() {
            let end = try bench.run(bench.download(Int64(10 + id), server + "/a", to: name))
            #expect(end.outcome == .failed && end.reason == "destination", "\(name): \(end)")
        }
        #expect(!File.exists(bench.directory + "/x"))
        #expect(try bench.requests().count == 2)
    }

    @Test func `a folder that appears where the file belongs is found at the end`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        try bench.serve("a", bytes: 5000)
        try bench.say(.start(bench.download(1, server + "/a?mode=gate")))
        try bench.hear { report in if case .head = report { true } else { nil } }
        try File.makeDirectory(bench.root + "/file-1")
        try File.write(bench.served + "/gate", "")
        let end = try bench.end(of: 1)
        #expect(end.outcome == .failed && end.reason == "destination", "\(end)")
    }

    @Test func `Landlock keeps it to its folders`() throws {
        let bench = try Bench(starts: false)
        let server = try bench.lyingServer()
        try bench.serve("a", bytes: 5000)
        // A folder that is none of those that it was started with, by a link that the app made of its own folder's name.
        try File.makeDirectory(bench.directory + "/other")
        try bench.start()
        try bench.say(.hello)
        _ = try bench.hear()
        try File.removeDirectory(bench.root)
        try File.link(bench.root, to: bench.directory + "/other")
        let end = try bench.run(bench.download(1, server + "/a"))
        let isConfined = (try? File.list(bench.directory + "/other")) == []
        if Confinement.isAvailable() {
            #expect(end.outcome == .failed && isConfined, "\(end)")
        } else {
            print("skipped: this kernel has no Landlock")
        }
    }

    @Test func `a part is kept or removed as it is told`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        try bench.serve("a", bytes: 100_000)
        for (id, isKept) in [(Int64(1), true), (2, false)] {
            try bench.say(.start(bench.download(id, server + "/a?mode=gate&n=\(id)")))
            try bench.hear { report in
                if case .progress(id, let bytes, _) = report, bytes > 0 { return true }
                return nil
            }
            try bench.say(isKept ? .stop(id: id) : .discard(id: id))
            try bench.say(.hello)
            let ids = try bench.hear { report in if case .here(let ids, _) = report { ids } else { nil } }
            #expect(ids.isEmpty)
        }
        try bench.eventually("the second part's removal") { (try? File.list(bench.parts)) == ["1.part"] }
        // Of a process that is no more.
        try bench.say(.discard(id: 1))
        try bench.eventually("the first part's removal") { (try? File.list(bench.parts)) == [] }
    }

    @Test func `one that is told to begin while it is stopped begins afterwards`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        let bytes = try bench.serve("a", bytes: 100_000)
        let order = bench.download(1, server + "/a")
        for _ in 0..<20 {
            try bench.say(.start(order))
            try bench.say(.discard(id: 1))
        }
        try bench.say(.start(order))
        #expect(try bench.end(of: 1).outcome == .done)
        #expect(try File.read(bench.root + "/file-1") == bytes)
    }

    @Test func `without the room that is to be kept nothing is written`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        try bench.serve("a", bytes: 100_000)
        var order = bench.download(1, server + "/a")
        order.minimumFree = .max
        let end = try bench.run(order)
        #expect(end.outcome == .space && end.bytes == 0, "\(end)")
        #expect(!File.exists(bench.root + "/file-1"))
    }

    @Test func `a full disk is waited for, and what is there is kept`() throws {
        try PrivateMounts.run {
            let bench = try Bench(starts: false)
            let disk = bench.directory + "/disk"
            try PrivateMounts.mountSmallDisk(disk, kibibytes: 1024)
            for folder in ["/parts", "/root"] { try File.makeDirectory(disk + folder) }
            try bench.start(parts: disk + "/parts", root: disk + "/root")
            let server = try bench.lyingServer()
            let bytes = try bench.serve("a", bytes: 800_000)
            try File.write(disk + "/ballast", [UInt8](repeating: 1, count: 600_000))
            var order = bench.download(1, server + "/a")
            let known = try bench.run(order)
            #expect(known.outcome == .space && known.bytes == 0, "\(known)")
            // A server that does not say how much comes.
            order = bench.download(2, server + "/a?mode=chunked")
            let end = try bench.run(order)
            #expect(end.outcome == .space && end.bytes > 0, "\(end)")
            try bench.say(.discard(id: 2))
            try bench.eventually("the removal") { !File.exists(disk + "/parts/2.part") }
            try File.remove(disk + "/ballast")
            order = bench.download(1, server + "/a")
            #expect(try bench.run(order).outcome == .done)
            #expect(try File.read(disk + "/root/file-1") == bytes)
        }
    }

    @Test func `a file is moved to another filesystem`() throws {
        try PrivateMounts.run {
            let bench = try Bench(starts: false)
            let disk = bench.directory + "/disk"
            try PrivateMounts.mountSmallDisk(disk, kibibytes: 1024)
            try bench.start(root: disk)
            let server = try bench.lyingServer()
            let bytes = try bench.serve("a", bytes: 700_000)
            #expect(try bench.run(bench.download(1, server + "/a", to: "x/a")).outcome == .done)
            #expect(try File.read(disk + "/x/a") == bytes)
            #expect(try File.list(disk + "/x") == ["a"])
            let full = try bench.run(bench.download(2, server + "/a", to: "x/b"))
            #expect(full.outcome == .space, "\(full)")
            #expect(try File.list(disk + "/x") == ["a"])
            // It is all there: nothing comes again.
            try File.remove(disk + "/x/a")
            var order = bench.download(2, server + "/a", to: "x/b")
            order.validator = bench.head(of: 2)?.validator
            let end = try bench.run(order)
            #expect(end.outcome == .done && end.status == 416, "\(end)")
            #expect(try File.read(disk + "/x/b") == bytes)
        }
    }
}
