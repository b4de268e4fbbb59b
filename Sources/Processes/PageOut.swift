// SPDX-License-Identifier: Apache-2.0

public import Linux

/// The result of paging an app out: moving its memory to swap.
public struct PageOutResult: Hashable, Sendable {
    /// The app's memory before paging out.
    public var before: Footprint
    /// The app's memory after paging out.
    public var after: Footprint
    /// The first error that kept a part of the app's memory from being paged out; nil if there was no error.
    public var failure: Errno?
    /// Whether paging out was cancelled, because the app is about to be continued or has ended.
    public var isCancelled: Bool

    /// Creates a result from its parts.
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

    /// How many bytes of resident memory were freed.
    public var freed: UInt64 { before.resident > after.resident ? before.resident - after.resident : 0 }
}

extension MembersMemory {
    /// How many bytes to page out per call. The kernel needs about 10 ms to compress this many.
    private static let pageOutStep = 8 << 20
    private static let coldStep = 256 << 20
    /// Steps end at the boundary of a huge page, so that the kernel need not split huge pages.
    private static let hugePage: UInt = 2 << 20

    /// Pages out the private memory of the processes, one after another. If that is not permitted, uses
    /// `memory.reclaim` of their cgroup. May block for seconds per gigabyte.
    ///
    /// - Parameter goesOn: called before each step of some milliseconds. If it returns false, the remaining steps are
    ///   skipped.
    public func pageOut(while goesOn: () -> Bool = { true }) -> PageOutResult {
        pageOut(while: goesOn) { pidfd, ranges throws(Errno) in try MemoryAdvice.pageOut.give(to: pidfd, ranges) }
    }

    /// Like ``pageOut(while:)``, but advises the kernel through `give`, which tests replace (see
    /// ``MemoryAdvice/give(to:_:)``).
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

    /// Whether much memory is still resident although some was paged out, so that a second try is worthwhile. The
    /// kernel skips pages that it cannot lock at that moment, mostly huge pages; at the second try it can lock most of
    /// them.
    private func leavesMuch(_ result: PageOutResult) -> Bool {
        let now = footprint()
        return now.swapped > result.before.swapped && now.resident > result.before.resident / 4
    }

    /// Marks the memory of the processes as unused, so that the kernel reclaims it first when memory is short.
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
                // The kernel lacks this system call, so the call would fail for the other processes too.
                if error == .noFunction { return }
            }
        }
    }

    /// Advises the kernel on all these ranges, and skips ranges for which the kernel rejects the advice.
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
                // The range is locked, special or no longer mapped: skip it.
                guard error == .invalidArgument || error == .noMemory || error == .badAddress else { throw error }
                rest = rest.dropFirst()
            }
        }
    }

    /// Removes the next ranges from the list, at most `step` bytes in total, and returns them.
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
            // The rest of this step is smaller than a huge page. Leave the range to the next step.
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
    /// Pages the app out and blocks until that is done: do not call this on the event loop (use
    /// ``MembersMemory/pageOut(while:)``).
    public func pageOut() -> PageOutResult { pinned().pageOut() }
}
