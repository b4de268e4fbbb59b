// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux
import Testing

@testable import PolicyHost

@Suite("What a policy's process writes to standard error") struct HostOutputTests {
    private let loop: EventLoop
    private let output: HostOutput
    private let pipe: Descriptor
    private let said = Said()

    private final class Said { var lines: [String] = [] }

    init() throws {
        loop = try EventLoop(ManualTime())
        let ends = try Descriptor.pipe(nonBlocking: true)
        pipe = ends.write
        output = try HostOutput(ends.read, loop)
        let said = said
        output.onLine = { said.lines.append($0) }
    }

    /// Fills the pipe, and returns how many bytes it took.
    private func fill(_ byte: UInt8) throws -> Int {
        let bytes = [UInt8](repeating: byte, count: HostOutput.piece)
        var count = 0
        while let written = try Descriptor.write(pipe.raw, bytes) { count += written }
        return count
    }

    /// Fills the pipe each time that it was read, and returns how many bytes were read.
    private func flood(_ byte: UInt8) throws -> Int {
        var count = 0
        for _ in 0..<200 {
            try loop.settle()
            count += try fill(byte)
        }
        return count
    }

    @Test("is read at most so fast, also if it has no line to report", arguments: Array("\nx".utf8))
    func flooded(byte: UInt8) throws {
        let most = HostOutput.mostPieces * HostOutput.piece
        #expect(try fill(byte) > 0)
        #expect((1...most).contains(try flood(byte)))
        try loop.pass(HostOutput.interval)
        #expect((1...most).contains(try flood(byte)), "in the next interval it is read again")
        #expect(said.lines.isEmpty)
    }

    @Test("is reported by lines, and so is the last one without an end")
    func lines() throws {
        _ = try Descriptor.write(pipe.raw, Array("one\n\n  two\nthree".utf8))
        try loop.settle()
        #expect(said.lines == ["one", "two"])
        #expect(output.finish() == "three" && said.lines == ["one", "two", "three"])
    }
}
