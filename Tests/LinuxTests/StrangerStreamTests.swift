// SPDX-License-Identifier: Apache-2.0

import Glibc
import Linux
import Testing

/// Reading what a peer sends that is not trusted, on a kernel that cannot refuse descriptors.
@Suite("Streams of strangers") struct StrangerStreamTests {
    private let peer: Descriptor
    private let stream: StrangerStream
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 8)

    init() throws {
        let (one, other) = try Sockets.pair(.stream, nonBlocking: true)
        (peer, stream) = (one, StrangerStream(other, isRefusing: false))
    }

    /// Sends a pipe's writing end, which only the socket's queue has afterwards. Returns the other end, which is at its
    /// end as soon as that is closed.
    private func sendPipe(_ text: String) throws -> Descriptor {
        let (read, write) = try Descriptor.pipe(nonBlocking: true)
        try Sockets.send(peer.raw, Array(text.utf8), descriptors: [write.raw])
        write.close()
        return read
    }

    private func isOpen(_ pipe: Descriptor) throws -> Bool { try Descriptor.read(pipe.raw, maximum: 1) == nil }

    private func read() throws -> StrangerStream.Found { try stream.read(into: buffer) }

    @Test("Data without descriptors is read, as far as none come with it")
    func plain() throws {
        defer { buffer.deallocate() }
        #expect(try read() == .nothing)
        for text in ["one", "two"] { try Sockets.send(peer.raw, Array(text.utf8)) }
        #expect(try read() == .bytes(6))
        #expect(Array(buffer[..<6]) == Array("onetwo".utf8))
        #expect(try read() == .nothing)
        peer.close()
        #expect(try read() == .bytes(0))
        stream.close(using: buffer) { _ in Issue.record("nothing was sent") }
    }

    @Test("Descriptors stay in the queue, and another closes them", arguments: [0, 4096, 20_000])
    func descriptors(before: Int) throws {
        defer { buffer.deallocate() }
        if before > 0 { try Sockets.send(peer.raw, [UInt8](repeating: 1, count: before)) }
        let pipe = try sendPipe("x")
        var found = try read()
        while case .bytes(1...) = found { found = try read() }
        #expect(found == .descriptors)
        #expect(try isOpen(pipe))
        var discarded: Descriptor?
        stream.close(using: buffer) { discarded = try? $0.duplicate() }
        #expect(try isOpen(pipe) && discarded != nil)
        // The peer can send no more, and is at its end.
        #expect(throws: Errno.brokenPipe) { try Sockets.send(peer.raw, [1]) }
        #expect(try Descriptor.read(peer.raw, maximum: 1) == [])
        discarded = nil
        #expect(try !isOpen(pipe))
    }

    @Test("What was never read is looked through before the close", arguments: [0, 10_000])
    func unread(before: Int) throws {
        defer { buffer.deallocate() }
        if before > 0 { try Sockets.send(peer.raw, [UInt8](repeating: 1, count: before)) }
        let pipe = try sendPipe("x")
        var discarded: Descriptor?
        stream.close(using: buffer) { discarded = try? $0.duplicate() }
        #expect(try isOpen(pipe) && discarded != nil)
    }

    @Test("What comes out of band is read in its order, and not dropped with its descriptors")
    func urgent() throws {
        defer { buffer.deallocate() }
        #expect(send(peer.raw, "ab", 2, Int32(MSG_OOB)) == 2)
        try Sockets.send(peer.raw, Array("c".utf8))
        var all: [UInt8] = []
        while case .bytes(let count) = try read(), count > 0 { all += buffer[..<count] }
        #expect(all == Array("abc".utf8))
    }
}
