// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing

@Suite struct ThreadTests {
    @Test("a thread of its own has a name, takes no signals, and what it did is seen through a monitor")
    func worker() throws {
        let result = Monitor<(name: String, blocked: String)?>(nil)
        try WorkerThread.start(named: "worker") {
            let name = (try? File.readString("/proc/thread-self/comm")) ?? ""
            let status = (try? File.readString("/proc/thread-self/status")) ?? ""
            let blocked = status.split(separator: "\n").first { $0.hasPrefix("SigBlk:") } ?? ""
            result.withLock { $0 = (name, String(blocked)) }
            result.wake()
        }
        let seen = try #require(result.wait(until: Clock.monotonic() + .seconds(60)) { (state, _) in state })
        #expect(seen.name == "worker\n")
        let mask = try #require(UInt64(seen.blocked.split(separator: "\t").last ?? "", radix: 16))
        for signal in [Signal.terminate, Signal.hangup, Signal.child] {
            #expect(mask & 1 << (UInt64(signal) - 1) != 0, "\(signal)")
        }
        // Whoever starts it takes them as before.
        let own = try #require(try ProcFS.statusField(ThisProcess.pid, "SigBlk"))
        #expect(UInt64(own, radix: 16)! & 1 << (UInt64(Signal.hangup) - 1) == 0)
    }

    @Test("a monitor is entered by one thread at a time")
    func exclusion() throws {
        let counter = Monitor((value: 0, finished: 0))
        for _ in 0..<4 {
            try WorkerThread.start(named: "counter") {
                for _ in 0..<10_000 { counter.withLock { $0.value += 1 } }
                counter.withLock { $0.finished += 1 }
                counter.wake()
            }
        }
        let value = counter.wait(until: Clock.monotonic() + .seconds(20)) { (state, _) in
            state.finished == 4 ? state.value : nil
        }
        #expect(value == 40_000)
    }

    @Test("a wait ends at its deadline and not before, and may move it")
    func deadlines() {
        let monitor = Monitor(0)
        let start = Clock.monotonic()
        let nothing = monitor.wait(until: start + .milliseconds(20)) { (_, _) -> Int? in nil }
        #expect(nothing == nil && Clock.monotonic() - start >= .milliseconds(20))
        let soon = monitor.wait(until: nil) { (_, deadline) -> Int? in
            deadline = start + .milliseconds(40)
            return nil
        }
        #expect(soon == nil && Clock.monotonic() - start >= .milliseconds(40))
    }

    @Test("a counter is readable after a signal from another thread, until it is drained")
    func counter() throws {
        let counter = try EventCounter()
        #expect(!counter.drain())
        try WorkerThread.start(named: "signal") {
            counter.signal()
            counter.signal()
        }
        #expect(try Descriptor.wait(counter.raw, timeout: .seconds(60)))
        let end = Clock.monotonic() + .seconds(60)
        var drained = 0
        while Clock.monotonic() < end, drained == 0 { if counter.drain() { drained += 1 } }
        #expect(drained == 1)
    }
}
