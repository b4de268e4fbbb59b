// SPDX-License-Identifier: Apache-2.0

import Linux
import Testing
import TransferProtocol

@Suite struct ProgramTests {
    @Test func `it ends when nobody will ever speak to it again`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        try bench.serve("a", bytes: 1000)
        try bench.say(.start(bench.download(1, server + "/a?mode=gate")))
        try bench.hear { report in if case .head = report { true } else { nil } }
        bench.socket?.close()
        #expect(bench.program?.reap(within: Bench.bound) == 0)
    }

    @Test func `nonsense is left out, and what was begun goes on`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        let bytes = try bench.serve("a", bytes: 1000)
        try bench.say(.start(bench.download(1, server + "/a")))
        for text in ["", "{", "{}", #"{"command":"dance"}"#, #"{"command":"go","id":"x"}"#, "\u{1}\u{2}", "[[[[", "5"] {
            try bench.say(Array(text.utf8) + [0])
        }
        // Of what was never begun.
        for command in [
            TransferCommand.go(id: 5), .stop(id: 5), .acknowledge(id: 5), .discard(id: 5), .rate(-1), .rate(nil),
        ] {
            try bench.say(command)
        }
        // Half a message of a torpord that died, and the first of the next.
        try bench.say(Array(#"{"command":"sta"#.utf8))
        try bench.say([0])
        try bench.say(.hello)
        #expect(try bench.end(of: 1).outcome == .done)
        #expect(try File.read(bench.root + "/file-1") == bytes)
        #expect(bench.log.contains("ignoring a command"))
    }

    @Test func `a message without an end ends it`() throws {
        let bench = try Bench()
        let piece = [UInt8](repeating: 0x20, count: 1 << 16)
        do {
            for _ in 0..<64 { try bench.say(piece) }
        } catch {}
        #expect(bench.program?.reap(within: Bench.bound) == 0)
        #expect(bench.log.contains("longer than"))
    }

    @Test func `what waits for its word is said again to the next torpord`() throws {
        let bench = try Bench()
        bench.goes = false
        let server = try bench.lyingServer()
        let bytes = try bench.serve("a", bytes: 300_000)
        try File.write(bench.root + "/b", "b")
        try bench.say(.start(bench.download(1, server + "/a")))
        try bench.say(.start(bench.upload(2, "b", to: server + "/c?mode=put")))
        var first: [TransferReport] = []
        while first.count < 2 { first.append(try bench.hear()) }
        try bench.say(.hello)
        #expect(try bench.hear() == .here(ids: [1, 2]))
        let second = [try bench.hear(), try bench.hear()]
        #expect(Set(first) == Set(second))
        // Nothing is written before the word came.
        #expect(try File.read(bench.parts + "/1.part") == [])
        #expect(!File.exists(bench.served + "/c"))
        bench.goes = true
        try bench.say(.go(id: 2))
        try bench.say(.go(id: 1))
        try bench.say(.go(id: 1))
        let ends = [try bench.hear(Self.end), try bench.hear(Self.end)]
        #expect(ends.allSatisfy { $0.outcome == .done })
        #expect(try File.read(bench.root + "/file-1") == bytes)
    }

    private static func end(_ report: TransferReport) -> TransferEnd? {
        if case .ended(_, let end) = report { end } else { nil }
    }

    @Test func `nobody reads, and it goes on`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        try bench.serve("a", bytes: 100)
        // More reports than the socket takes: each URL is refused at once.
        let count: Int64 = 3000
        for id in 1...count { try bench.say(.start(bench.download(id, "ftp://x/"))) }
        try bench.say(.start(bench.download(count + 1, server + "/a")))
        #expect(try bench.end(of: count + 1).outcome == .done)
        try bench.say(.hello)
        let ids = try bench.hear { report in if case .here(let ids, _) = report { ids } else { nil } }
        #expect(ids.count == Int(count) + 1)
    }

    @Test func `its memory is nobody else's`() throws {
        let bench = try Bench()
        try bench.say(.hello)
        _ = try bench.hear()
        let pid = try #require(bench.program?.pid)
        // What cannot be dumped belongs to root.
        if !Users.isRoot { #expect(throws: Errno.self) { try File.read("/proc/\(pid)/maps") } }
        if Confinement.isAvailable() { #expect(try ProcFS.statusField(pid, "NoNewPrivs") == "1") }
    }

    @Test(arguments: [
        [], ["--root", "/x"], ["--parts"], ["--parts", "/x", "--root", "/x", "--stall", "0"],
        ["--parts", "/x", "--root", "/x", "--nonsense"],
    ])
    func `wrong arguments are named`(arguments: [String]) throws {
        let log = try Descriptor.pipe()
        let child = try ChildProcess(
            Built.path("torpor-transfer"),
            arguments: ["torpor-transfer"] + arguments,
            environment: [],
            descriptors: [(2, log.write.raw), (3, log.read.raw)]
        )
        log.write.close()
        #expect(child.reap() >> 8 == 2)
        let text = try log.read.withRaw { raw throws(Errno) in try Descriptor.read(raw, maximum: 4096) } ?? []
        #expect(String(decoding: text, as: UTF8.self).hasPrefix("torpor-transfer: "))
    }
}
