// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Foundation
import KernelFiles
import Linux
import MeasuredProgram
import Processes
import Testing

@testable import MemoryPressure

@Suite("What waits for the kernel on behalf of memory", .serialized) struct MemoryWorkerTests {
    private let loop: EventLoop
    private let worker: MemoryWorker

    init() throws {
        loop = try EventLoop()
        worker = MemoryWorker(loop, named: "memory-tested")
    }

    /// Runs the loop until it is so, at most 20 s.
    private func turn(until isDone: () throws -> Bool) throws {
        let deadline = Clock.monotonic() + .seconds(20)
        while try !isDone() {
            try #require(Clock.monotonic() < deadline, "not within 20 s")
            try loop.runOnce(timeout: .milliseconds(10))
        }
    }

    private func program(_ megabytes: Int) throws -> MeasuredProgram {
        let program = try MeasuredProgram()
        try program.run("data = bytearray((os.urandom(2048) + bytes(2048)) * (\(megabytes) * 256))")
        return program
    }

    private func stop(_ program: MeasuredProgram) throws {
        try turn { program.tree.stopPass() == .stopped }
    }

    private var threads: Int { ((try? ProcFS.tasks(ThisProcess.pid)) ?? []).filter(isWorker).count }

    private func isWorker(_ task: Int32) -> Bool {
        (try? File.readString("/proc/self/task/\(task)/comm")) == "memory-tested\n"
    }

    @Test("what apps have comes later, in their order, and the thread goes")
    func footprints() throws {
        let (large, small) = (try program(40), try program(1))
        var answer: [Footprint]?
        worker.footprints(of: [large.tree, small.tree, large.tree]) { answer = $0 }
        #expect(answer == nil && !worker.isIdle)
        try turn { answer != nil }
        let footprints = try #require(answer)
        #expect(footprints.count == 3 && footprints[0].resident > 40 << 20 && footprints[1].resident < 40 << 20)
        #expect(footprints[2].resident > 40 << 20)
        try turn { worker.isIdle }
        try turn { threads == 0 }
        var nothing: [Footprint]?
        worker.footprints(of: []) { nothing = $0 }
        try turn { nothing?.isEmpty == true }
    }

    @Test("an app that has ended has nothing")
    func ended() throws {
        let program = try program(8)
        kill(program.pid, SIGKILL)
        try turn { program.tree.mainHasEnded }
        var answers = 0
        worker.footprints(of: [program.tree]) {
            #expect($0 == [Footprint()])
            answers += 1
        }
        worker.pageOut(program.tree) {
            #expect($0.after == Footprint() && $0.failure == nil)
            answers += 1
        }
        try turn { answers == 2 }
    }

    @Test("a suspended app is paged out, once at a time, and is whole when it goes on")
    func pageOut() throws {
        guard MemoryAdvice.support == .available, let swap = try? ZramSwap() else { return print("skipped: no swap") }
        let program = try program(32)
        let before = try program.ask("hash(bytes(data))")
        try stop(program)
        var results: [PageOutResult] = []
        worker.pageOut(program.tree) { results.append($0) }
        worker.pageOut(program.tree) { results.append($0) }
        #expect(results.isEmpty)
        try turn { results.count == 2 }
        #expect(results.contains { $0.failure == .resourceBusy })
        let result = try #require(results.first { $0.failure == nil })
        #expect(result.after.swapped > 28 << 20 && result.after.resident < 12 << 20, "\(result)")
        // Once more: there is nothing left of it, and nothing bad comes of that.
        worker.pageOut(program.tree) { results.append($0) }
        try turn { results.count == 3 }
        #expect(try #require(results.last).freed < 4 << 20)
        try program.tree.continue()
        #expect(try program.ask("hash(bytes(data))") == before)
        withExtendedLifetime(swap) {}
    }

    @Test("an app that is to go on is left alone at once, and what takes moments does not wait for what takes long")
    func cancel() throws {
        guard MemoryAdvice.support == .available, let swap = try? ZramSwap(size: 512 << 20) else {
            return print("skipped: no swap")
        }
        let (large, small) = (try program(320), try program(1))
        try stop(large)
        var order: [String] = []
        var result: PageOutResult?
        worker.pageOut(large.tree) {
            result = $0
            order.append("paged out")
        }
        // As soon as it has begun.
        try turn { (try? ProcFS.memory(large.pid).swapped) ?? 0 > 4 << 20 || result != nil }
        worker.footprints(of: [small.tree]) { _ in
            order.append("measured")
            self.worker.cancel(large.tree)
        }
        try turn { result != nil }
        #expect(order == ["measured", "paged out"])
        #expect(result?.isCancelled == true && result?.failure == nil)
        #expect(result.map { $0.after.swapped < 300 << 20 } == true, "\(String(describing: result))")
        // The next wish is a new one.
        worker.pageOut(large.tree) { result = $0 }
        worker.cancel(large.tree)
        result = nil
        worker.pageOut(large.tree) { result = $0 }
        try turn { result != nil && worker.isIdle }
        withExtendedLifetime(swap) {}
    }

    @Test("what a killed app had is taken, and what was marked cold is as it was")
    func release() throws {
        let (one, other) = (try program(64), try program(8))
        worker.markCold(other.tree)
        let members = one.tree.pinned()
        kill(one.pid, SIGKILL)
        worker.release(members)
        #expect(!worker.isIdle)
        try turn { worker.isIdle && one.tree.mainHasEnded }
        #expect(members.footprint() == Footprint())
        #expect(try other.ask("len(data)") == "\(8 << 20)")
    }

    @Test("a thread that is to stay ready stays, is used again, and goes when it need not any more")
    func ready() throws {
        worker.staysReady = true
        #expect(!worker.isIdle)
        try turn { threads == 1 }
        var answers = 0
        for _ in 0..<3 {
            worker.footprints(of: []) { _ in answers += 1 }
            let expected = answers + 1
            try turn { answers == expected }
            #expect(threads == 1)
        }
        worker.staysReady = false
        try turn { worker.isIdle && threads == 0 }
    }
}
