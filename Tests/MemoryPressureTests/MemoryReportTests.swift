// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import KernelFiles
import Lifecycle
import Testing
import TorporAPI

@testable import MemoryPressure

@Suite("What is told of who has how much memory") struct MemoryReportTests {
    private func report(_ memory: FakeMemory) throws -> MemoryStatus {
        var status: MemoryStatus?
        memory.watch.report { status = $0 }
        try memory.pass(.zero)
        return try #require(status)
    }

    @Test("Who would go first comes first, with what would be done and why others are left alone") func order() throws {
        let memory = try FakeMemory(
            ["active": "", "back": "priority = -5", "kept": "evict = \"never\"", "sleeper": "", "tiny": "", "web": ""]
        )
        try memory.has("active", 900 << 20)
        try memory.shell.start("active")
        try memory.inBackground("back")
        try memory.asleep("kept", bytes: 400 << 20)
        try memory.asleep("sleeper", bytes: 200 << 20)
        try memory.asleep("tiny", bytes: 100 << 10)
        memory.watch.configure()
        let status = try report(memory)
        #expect(status.apps.map(\.app) == ["kept", "sleeper", "tiny", "back", "active"])
        #expect(
            status.apps.map(\.protection) == [
                "evict = \"never\"", nil, "it has too little memory for its end to help", nil, "it is in use",
            ]
        )
        #expect(status.steps.map(\.rung) == ["evict", "end-background"])
        #expect(status.steps.map(\.apps) == [["sleeper"], ["back"]])
        #expect(status.steps.first?.why.contains("passed over: kept (evict = \"never\")") == true)
        let kibis: [Int64] = [400 << 10, 200 << 10, 100, 100 << 10, 900 << 10]
        #expect(status.apps.map { $0.residentBytes >> 10 } == kibis)
        #expect(memory.alive.count == 5, "nothing of it is done")
    }

    @Test("It is what there is now, though it was measured a moment ago") func now() throws {
        let memory = try FakeMemory(["a": ""])
        memory.watch.configure()
        try memory.has("a", 5 << 20)
        try memory.shell.start("a")
        #expect(try report(memory).apps.first?.residentBytes == 5 << 20)
        try memory.has("a", 6 << 20, swapped: 1 << 20)
        try memory.pass(.milliseconds(1))
        let status = try report(memory)
        #expect(status.apps.first?.residentBytes == 6 << 20 && status.apps.first?.swappedBytes == 1 << 20)
        #expect(status.level == "none" && status.totalBytes == 8 << 30)
    }

    @Test("Several that ask at once are all answered, each once") func several() throws {
        let memory = try FakeMemory(["a": ""])
        memory.watch.configure()
        try memory.has("a", 5 << 20)
        try memory.shell.start("a")
        memory.host.evictionPolicy = "Jetsam"
        var answers: [Int] = []
        for number in 0..<5 { memory.watch.report { _ in answers.append(number) } }
        #expect(answers.isEmpty)
        try memory.pass(.seconds(1))
        #expect(answers.sorted() == [0, 1, 2, 3, 4])
    }
}
