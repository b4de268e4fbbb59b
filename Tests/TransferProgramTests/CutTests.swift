// SPDX-License-Identifier: Apache-2.0

import Linux
import Testing
import TransferProtocol

@Suite struct CutTests {
    /// Bytes of the answer of `mode=every` without its body: head, and with `informed` the one before.
    static let head = "HTTP/1.1 200 OK\r\nETag: \"one\"\r\nContent-Length: 20\r\n\r\n".utf8.count
    static let informed = "HTTP/1.1 103 Early Hints\r\n\r\n".utf8.count

    /// libcurl has an answer whose head is cut for one without a body.
    @Test(arguments: [false, true])
    func `a download whose answer is cut at any byte is not done`(isInformed: Bool) throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        let bytes = try bench.serve("a", bytes: 20)
        let length = Self.head + 20 + (isInformed ? Self.informed : 0)
        for cut in 0...length {
            let url = server + "/a?mode=every&at=\(cut)" + (isInformed ? "&informed" : "")
            let end = try bench.run(bench.download(Int64(cut + 1), url))
            #expect(end.outcome == (cut == length ? .done : .retry), "after \(cut) bytes: \(end)")
        }
        #expect(try File.list(bench.root) == ["file-\(length + 1)"])
        #expect(try File.read(bench.root + "/file-\(length + 1)") == bytes)
    }

    @Test func `an upload whose answer is cut at any byte is not done`() throws {
        let bench = try Bench()
        let server = try bench.lyingServer()
        try File.write(bench.root + "/up", Bench.noise(100))
        let length = Self.head - 1
        for cut in 0...length {
            let end = try bench.run(bench.upload(Int64(cut + 1), "up", to: server + "/a?mode=every&at=\(cut)"))
            #expect(end.outcome == (cut == length ? .done : .retry), "after \(cut) bytes: \(end)")
        }
    }

    /// libcurl says of bytes that it held back only where it is told to go on that they could not be written.
    @Test func `a body that is too large ends when it is let go, though its server waits`() throws {
        let bench = try Bench(["--stall", "3600"])
        let server = try bench.lyingServer()
        try bench.serve("a", bytes: 5000)
        var order = bench.download(1, server + "/a?mode=held")
        order.sizeLimit = 10
        let end = try bench.run(order)
        #expect(end.outcome == .failed && end.reason == "too-large", "\(end)")
    }
}
