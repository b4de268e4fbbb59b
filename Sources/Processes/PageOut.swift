// SPDX-License-Identifier: Apache-2.0

public import Linux

/// What became of paging an app out.
public struct PageOutResult: Hashable, Sendable {
    /// What the app had before.
    public var before: Footprint
    /// What it has now.
    public var after: Footprint
    /// Why some of it could not be asked for; nil when all of it was, whatever could be had.
    public var failure: Errno?
    /// Whether it ended before all was asked for, since the app is no longer to be paged out.
    public var isCancelled: Bool

    /// A result.
    public init(
        before: Footprint = Footprint(),
        after: Footprint = Footprint(),
        failure: Errno?,
        isCancelled: Bool = false
    ) {
        self.before = before
        self.after = after
        self.failure = failure
        self.isCancelled = isCancelled
    }

    /// How many bytes went out of memory.
    public var freed: UInt64 { before.resident > after.resident ? before.resident - after.resident : 0 }
}

extension MembersMemory {
    /// Bytes that are asked for at a time: what takes the kernel some 10 ms to compress.
    private static let pageOutStep = 8 << 20
    private static let coldStep = 256 << 20
    /// Steps end where huge pages do, so that those stay whole.
    private static let hugePage: UInt = 2 << 20

    /// Has what they have written out of memory, process by process; where that is not allowed, by their cgroup's
    /// `memory.reclaim`. Waits for the kernel: up to seconds a gigabyte.
    ///
    /// - Parameter goesOn: asked before each step of some milliseconds.
    public func pageOut(while goesOn: () -> Bool = { true }) -> PageOutResult {
        pageOut(while: goesOn) { pidfd, ranges throws(Errno) in try MemoryAdvice.pageOut.give(to: pidfd, ranges) }
    }

    /// `give`: ``MemoryAdvice/give(to:_:)``.
    func pageOut(while goesOn: () -> Bool, _ give: Give) -> PageOutResult {
        var result = PageOutResult(before: footprint(), failure: nil)
        advise(give, Self.pageOutStep, goesOn, &result)
        if result.failure == nil, !result.isCancelled, leavesMuch(result) {
            advise(give, Self.pageOutStep, goesOn, &result)
        }
        if let failure = result.failure, failure.isRefusal || failure == .noFunction, !result.isCancelled {
            reclaim(goesOn, &result)
        }
        result.after = footprint()
        return result
    }

    /// Whether more stayed than should have, though some went. The kernel passes over what it cannot take hold of at that
    /// moment, huge pages above all: the second time it seldom is the same.
    private func leavesMuch(_ result: PageOutResult) -> Bool {
        let now = footprint()
        return now.swapped > result.before.swapped && now.resident > result.before.resident / 4
    }

    /// Marks what they have as unused, so that it is the first to go when memory is needed.
    public func markCold(while goesOn: () -> Bool = { true }) {
        var result = PageOutResult(failure: nil)
        let give: Give = { pidfd, ranges throws(Errno) in try MemoryAdvice.cold.give(to: pidfd, ranges) }
        advise(give, Self.coldStep, goesOn, &result)
    }

    typealias Give = (_ pidfd: Int32, _ ranges: ArraySlice<MemoryAdvice.Range>) throws(Errno) -> Int

    private func advise(_ give: Give, _ step: Int, _ goesOn: () -> Bool, _ result: inout PageOutResult) {
        for member in members {
            do throws(Errno) {
                var ranges = try ProcFS.privateRanges(member.pid)[...]
                while !ranges.isEmpty {
                    guard goesOn() else {
                        result.isCancelled = true
                        return
                    }
                    try Self.advise(give, member.pidfd.raw, Self.take(step, from: &ranges))
                }
            } catch {
                if error.isGone { continue }
                result.failure = error
                // It is the same for all of them.
                if error == .noFunction { return }
            }
        }
    }

    /// Gives the advice on all of these; those that cannot be advised on are left out.
    private static func advise(_ give: Give, _ pidfd: Int32, _ ranges: [MemoryAdvice.Range]) throws(Errno) {
        var rest = ranges[...]
        while !rest.isEmpty {
            do throws(Errno) {
                var done = try give(pidfd, rest)
                if done == 0 { return }
                while done > 0, let first = rest.first {
                    if first.count > done {
                        rest[rest.startIndex] = .init(start: first.start + UInt(done), count: first.count - done)
                        break
                    }
                    done -= first.count
                    rest = rest.dropFirst()
                }
            } catch {
                // Locked, special, or not mapped any more.
                guard error == .invalidArgument || error == .noMemory || error == .badAddress else { throw error }
                rest = rest.dropFirst()
            }
        }
    }

    /// The next pieces, of `step` bytes in all.
    private static func take(_ step: Int, from ranges: inout ArraySlice<MemoryAdvice.Range>) -> [MemoryAdvice.Range] {
        var result: [MemoryAdvice.Range] = []
        var room = step
        while let first = ranges.first, room > 0, result.count < MemoryAdvice.mostRanges {
            guard first.count > room else {
                result.append(first)
                room -= first.count
                ranges = ranges.dropFirst()
                continue
            }
            let end = (first.start + UInt(room)) & ~(hugePage - 1)
            // What is left would be no whole huge page.
            guard end > first.start else { break }
            let count = Int(end - first.start)
            result.append(.init(start: first.start, count: count))
            ranges[ranges.startIndex] = .init(start: end, count: first.count - count)
            break
        }
        return result
    }

    private func reclaim(_ goesOn: () -> Bool, _ result: inout PageOutResult) {
        guard let cgroupPath, File.exists(cgroupPath + "/memory.reclaim") else { return }
        var left = result.before.resident
        while left > 0 {
            guard goesOn() else {
                result.isCancelled = true
                return
            }
            let step = min(left, UInt64(Self.pageOutStep))
            do throws(Errno) {
                result.failure = nil
                if try !Cgroup.reclaim(cgroupPath, step) { return }
            } catch {
                result.failure = error
                return
            }
            left -= step
        }
    }
}

extension ProcessTree {
    /// Pages the app out, and waits for it: not for the loop (``MembersMemory/pageOut(while:)``).
    public func pageOut() -> PageOutResult { pinned().pageOut() }
}
