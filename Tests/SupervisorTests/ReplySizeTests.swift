// SPDX-License-Identifier: Apache-2.0

import Engine
import EngineHarness
import EventLoop
import Foundation
import Linux
import Output
import Testing
import TorporAPI
import Varlink
import VarlinkServer

@testable import ControlService

@Suite("Replies with what apps have written") struct ReplySizeTests {
    @Test("A log in one reply has its newest lines, as many as fit, whatever they contain") func log() throws {
        let path = FileManager.default.temporaryDirectory.path + "/torpor-log-\(UUID().uuidString)"
        defer { try? File.remove(path) }
        let line = String(repeating: "\u{1}", count: 15_000)
        try File.write(path, (0..<400).map { "\($0) \(line)\n" }.joined())
        let shell = try FakeShell("web")
        func lines(_ count: Int) throws -> [String] {
            var replies: [JSON] = []
            let reply = Reply(more: false) { replies.append($0.parameters) }
            let follower = LogFollower(
                LogReader(path: path),
                LogQuery(count: count),
                from: nil,
                follows: false,
                reply,
                shell.engine.loop
            )
            follower.step()
            try shell.engine.loop.settle()
            try #require(replies.count == 1)
            #expect(replies[0].serialised().count < ReplySize.mostBytes + 1_000)
            #expect(replies[0]["cursor"]?.stringValue?.isEmpty == false)
            return replies[0]["lines"]?.arrayValue?.compactMap { $0["text"]?.stringValue } ?? []
        }
        let few = try lines(3)
        #expect(few.map { $0.split(separator: " ").first } == ["397", "398", "399"])
        let many = try lines(400)
        #expect(many.count > 40 && many.count < 50)
        #expect(many.last?.hasPrefix("399 ") == true && many.first?.hasPrefix("\(400 - many.count) ") == true)
    }

    @Test("The command lines of very many processes are short") func commands() throws {
        let (read, write) = try Descriptor.pipe()
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", "echo up; read x", String(repeating: "\u{1}", count: 60_000)]
        process.standardOutput = FileHandle(fileDescriptor: write.raw, closeOnDealloc: false)
        let input = Pipe()
        process.standardInput = input
        try process.run()
        defer {
            process.terminate()
            process.waitUntilExit()
        }
        try #require(try Descriptor.wait(read.raw, timeout: .seconds(30)))
        let pid = process.processIdentifier
        let one = try #require(ControlService.processInfos([pid]).first)
        #expect(one.command.utf8.count > 4_000 && one.command.utf8.count <= 4_096)
        let many = ControlService.processInfos(Array(repeating: pid, count: ControlService.mostProcesses))
        #expect(many.count == ControlService.mostProcesses)
        #expect(many.reduce(0) { $0 + ReplySize.of($1.command) } <= ReplySize.mostBytes)
    }
}
