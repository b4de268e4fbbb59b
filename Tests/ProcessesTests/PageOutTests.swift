// SPDX-License-Identifier: Apache-2.0

import Foundation
import KernelFiles
import Linux
import Testing

@testable import Processes

/// A program with 48 MiB of its own, 4 of them locked, that says whether they are as it has written them.
private let holder = """
    import ctypes, hashlib
    libc = ctypes.CDLL(None, use_errno=True)
    page = os.urandom(2048) + bytes(2048)
    data = bytearray(page * (48 * 256))
    for i in range(0, len(data), 4096): data[i:i+8] = i.to_bytes(8, 'little')
    start = ctypes.addressof((ctypes.c_char * len(data)).from_buffer(data))
    locked = libc.mlock(ctypes.c_void_p((start + (16 << 20)) & ~4095), ctypes.c_size_t(4 << 20)) == 0
    before = hashlib.sha1(data).hexdigest()
    say('ready' if locked else 'unlocked')
    while True:
        time.sleep(0.05)
        say('same' if hashlib.sha1(data).hexdigest() == before else 'other')
    """

@Suite("Paging an app out", .serialized) struct PageOutTests {
    /// Swap, or nil with the reason printed.
    private func swap(_ size: UInt64 = 128 << 20) -> ZramSwap? {
        guard MemoryAdvice.support == .available else {
            print("skipped: memory of others cannot be advised on: \(MemoryAdvice.support)")
            return nil
        }
        do { return try ZramSwap(size: size) } catch {
            print("skipped: \(error)")
            return nil
        }
    }

    /// A field of smaps_rollup, bytes.
    private func rollup(_ app: TestApp, _ name: String) throws -> UInt64 {
        let text = try File.readString("/proc/\(app.pid)/smaps_rollup")
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix(name + ":") })
        return try #require(UInt64(line.split(separator: " ")[1])) << 10
    }

    private func stoppedHolder() throws -> TestApp {
        let app = try TestApp(holder)
        try #require(app.line() == "ready")
        try #require(app.stop() == .stopped)
        return app
    }

    @Test("what an app has written goes to swap, what it has locked stays, and all is there when it goes on")
    func pageOut() throws {
        guard let swap = swap() else { return }
        let app = try stoppedHolder()
        let result = app.tree.pageOut()
        #expect(result.failure == nil && !result.isCancelled)
        #expect(result.before.resident > 48 << 20)
        #expect(result.after.swapped > 40 << 20 && result.freed > 40 << 20, "\(result)")
        #expect(try rollup(app, "Locked") == 4 << 20)
        let area = try #require(swap.area)
        let zram = try #require(area.zram)
        #expect(area.used > 40 << 20 && zram.original > 40 << 20 && zram.compressed < zram.original * 3 / 4)
        try app.tree.continue()
        #expect(try app.line() == "same")
        let footprint = app.tree.footprint()
        // The kernel may have paged a part out again by itself.
        #expect(footprint.total > 48 << 20 && footprint.total < result.before.total + 8 << 20)
        withExtendedLifetime(swap) {}
    }

    @Test("what the kernel passes over the first time is asked for once more, and no more often")
    func passedOver() throws {
        guard let swap = swap() else { return }
        let app = try stoppedHolder()
        var asked: [MemoryAdvice.Range: Int] = [:]
        let result = app.tree.pinned().pageOut(while: { true }) { pidfd, ranges throws(Errno) in
            let first = ranges.first.map { asked[$0, default: 0] == 0 } ?? false
            for range in ranges { asked[range, default: 0] += 1 }
            // Of what is large every second step is said to be done, and is not.
            if first, asked.count.isMultiple(of: 2) { return ranges.reduce(0) { $0 + $1.count } }
            return try MemoryAdvice.pageOut.give(to: pidfd, ranges)
        }
        #expect(result.failure == nil && result.freed > 40 << 20, "\(result)")
        // A smaller one may stand beside what is locked, and is asked for again since that is refused.
        let large = asked.filter { $0.key.count > 6 << 20 }.values
        #expect(large.count >= 4 && large.allSatisfy { $0 == 2 }, "\(asked)")
        withExtendedLifetime(swap) {}
    }

    @Test("it ends within a step when the app is to go on")
    func cancel() throws {
        guard let swap = swap() else { return }
        let app = try stoppedHolder()
        var steps = 0
        let result = app.tree.pinned().pageOut {
            steps += 1
            return steps < 3
        }
        #expect(result.isCancelled && steps == 3)
        #expect(result.after.swapped <= 17 << 20, "two steps of 8 MiB: \(result)")
        withExtendedLifetime(swap) {}
    }

    @Test("without swap it stays where it is, and that is no error")
    func noSwap() throws {
        let app = try stoppedHolder()
        let hadSwap = !SwapSpace().areas.isEmpty
        let result = app.tree.pageOut()
        guard !hadSwap, SwapSpace().areas.isEmpty, MemoryAdvice.support == .available else {
            return print("skipped: there is swap, or no advice")
        }
        #expect(
            result.failure == nil && result.after.swapped == 0 && result.after.resident > 48 << 20,
            "\(result)"
        )
    }

    @Test("swap that is too small takes what it can, and nothing is lost")
    func smallSwap() throws {
        guard let swap = swap(16 << 20) else { return }
        let app = try stoppedHolder()
        guard SwapSpace().areas.count == 1 else { return print("skipped: there is other swap") }
        let result = app.tree.pageOut()
        #expect(
            result.failure == nil && result.after.resident > 30 << 20 && result.after.swapped > 8 << 20,
            "\(result)"
        )
        try app.tree.continue()
        #expect(try app.line() == "same")
        withExtendedLifetime(swap) {}
    }

    @Test("each process of an app goes, and one that has ended meanwhile is no trouble")
    func several() throws {
        guard let swap = swap() else { return }
        let app = try TestApp(
            """
            for i in range(3):
                if os.fork() == 0:
                    mine = bytearray(os.urandom(8 << 20))
                    say(os.getpid())
                    time.sleep(1000)
            time.sleep(1000)
            """
        )
        let pids = try (0..<3).map { _ in try #require(Int32(app.line())) }
        try #require(app.stop() == .stopped)
        let members = app.tree.pinned()
        #expect(members.count == 4)
        kill(pids[1], SIGKILL)
        try #require(
            repeated {
                try ProcFS.stat(pids[1]).hasEnded
            } until: {
                $0
            }
        )
        let result = members.pageOut()
        #expect(result.failure == nil, "\(result)")
        for pid in [pids[0], pids[2]] { #expect(try ProcFS.memory(pid).swapped > 7 << 20) }
        withExtendedLifetime(swap) {}
    }

    @Test("memory marked cold counts as not used, and is as it was")
    func cold() throws {
        guard MemoryAdvice.support == .available else { return print("skipped: \(MemoryAdvice.support)") }
        let app = try stoppedHolder()
        func referenced() throws -> UInt64 { try rollup(app, "Referenced") }
        #expect(try referenced() > 48 << 20)
        app.tree.pinned().markCold()
        #expect(try referenced() < 16 << 20)
        #expect(app.tree.footprint().resident > 48 << 20)
        try app.tree.continue()
        #expect(try app.line() == "same")
    }
}

@Suite("Ways of paging out") struct PageOutWayTests {
    private let app: TestApp
    private let folder = NSTemporaryDirectory() + "torpor-reclaim-" + UUID().uuidString

    init() throws {
        app = try TestApp("data = bytearray(24 << 20)\nsay('ready')\ntime.sleep(1000)")
        try #require(app.line() == "ready")
    }

    /// As it would be with a cgroup that has these files.
    private func members(_ files: [String: String] = [:]) throws -> MembersMemory {
        try File.makeDirectories(folder)
        for (name, text) in files { try File.write(folder + "/" + name, text) }
        return MembersMemory(app.tree.pinned().members, cgroupPath: files.isEmpty ? nil : folder)
    }

    @Test("pieces that cannot be had are left out, and the others are all asked for once, in steps")
    func pieces() throws {
        defer { try? File.removeTree(folder) }
        let wanted = try ProcFS.privateRanges(app.pid)
        var had: [MemoryAdvice.Range] = []
        var refused: Set<UInt> = [wanted[2].start]
        var calls = 0
        let result = try members().pageOut(while: { true }) { (_, ranges) throws(Errno) in
            calls += 1
            #expect(ranges.count <= MemoryAdvice.mostRanges && ranges.reduce(0) { $0 + $1.count } <= 8 << 20)
            var done = 0
            for range in ranges {
                if refused.contains(range.start) {
                    if done == 0 {
                        refused.remove(range.start)
                        throw .invalidArgument
                    }
                    return done
                }
                // Every seventh call is told that not all of a piece was done.
                let count = calls % 7 == 0 && range.count > 4096 ? range.count / 8192 * 4096 : range.count
                had.append(.init(start: range.start, count: count))
                done += count
                if count < range.count { return done }
            }
            return done
        }
        #expect(result.failure == nil && calls > 3 && refused.isEmpty)
        let missing = wanted[2].count
        #expect(had.reduce(0) { $0 + $1.count } == wanted.reduce(0) { $0 + $1.count } - missing)
        #expect(!had.contains { $0.start == wanted[2].start })
        #expect(zip(had, had.dropFirst()).allSatisfy { $0.start + UInt($0.count) <= $1.start })
    }

    @Test("where it is not allowed, the cgroup is asked to give back what the app has, in steps")
    func reclaim() throws {
        defer { try? File.removeTree(folder) }
        let files = ["memory.current": "20000000\n", "memory.swap.current": "4096\n", "memory.reclaim": ""]
        for refusal in [Errno.notPermitted, .permissionDenied, .noFunction] {
            let members = try members(files)
            var asked = 0
            let result = members.pageOut {
                asked += 1
                return true
            } _: { (_, _) throws(Errno) in
                throw refusal
            }
            #expect(result.failure == nil && result.before == Footprint(resident: 20_000_000, swapped: 4096))
            #expect(asked >= 4, "of one process, then three steps")
            #expect(try File.readString(folder + "/memory.reclaim").hasPrefix("3222784\n"), "what was left")
        }
        let cancelled = try members(files).pageOut(while: { false }) { (_, _) throws(Errno) in throw .notPermitted }
        #expect(cancelled.isCancelled)
    }

    @Test("where there is no way, that is said", arguments: [Errno.notPermitted, .noFunction])
    func none(refusal: Errno) throws {
        defer { try? File.removeTree(folder) }
        let result = try members().pageOut(while: { true }) { (_, _) throws(Errno) in throw refusal }
        #expect(result.failure == refusal && !result.isCancelled && result.before.resident > 24 << 20)
        let without = try members(["memory.current": "4096\n"]).pageOut(while: { true }) { (_, _) throws(Errno) in
            throw refusal
        }
        #expect(without.failure == refusal)
    }
}

@Suite("Taking what a killed app had", .serialized) struct ReleaseTests {
    @Test("those that live keep what they have, and what has ended has nothing")
    func others() throws {
        let app = try TestApp("data = bytearray(16 << 20)\nsay('ready')\nwhile True: time.sleep(0.05); say(len(data))")
        try #require(app.line() == "ready")
        let members = app.tree.pinned()
        #expect(members.release() == 0)
        #expect(members.footprint().resident > 16 << 20)
        #expect(try app.line() == "\(16 << 20)")
        #expect(try app.kill() == .gone)
        #expect(members.release() == 0)
        #expect(members.footprint() == Footprint())
    }

    @Test(
        "memory is free before a process that was killed has come to its end",
        .enabled(if: Users.isRoot, "only root may give a process more than its share of a processor")
    )
    func release() throws {
        // One that gets no processor as long as another wants it does not come to its end.
        let app = try TestApp(
            """
            os.sched_setaffinity(0, {0})
            data = bytearray(64 << 20)
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            say('ready')
            time.sleep(1000)
            """
        )
        try #require(app.line() == "ready")
        let spinner = try TestApp(
            """
            os.sched_setaffinity(0, {0})
            os.nice(-20)
            say('ready')
            while True: pass
            """
        )
        guard (try? spinner.line()) == "ready" else { return print("skipped: no other processes can be put behind") }
        let members = app.tree.pinned()
        #expect(members.footprint().total > 64 << 20)
        kill(app.pid, SIGKILL)
        members.release()
        // Nothing also of one that got a processor after all, and is giving it back itself.
        let left = try ProcFS.memory(app.pid)
        #expect(left.resident < 8 << 20, "\(left)")
        #expect(try spinner.kill() == .gone)
        #expect(try app.kill() == .gone)
    }
}
