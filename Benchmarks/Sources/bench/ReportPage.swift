// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The page on which workers report that they run (Programs/report.h), in a file that all share.
final class ReportPage {
    /// The value of BENCH_REPORT.
    let path: String
    private let base: UnsafeMutableRawPointer

    static let slots = 16384
    private static let header = 64
    private static let slotSize = 16
    private static let size = header + slots * slotSize

    init(path: String) throws {
        self.path = path
        let file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard file >= 0, ftruncate(file, off_t(Self.size)) == 0,
            let memory = mmap(nil, Self.size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), memory != MAP_FAILED
        else { throw Trouble("the report page \(path) cannot be made: \(String(cString: strerror(errno)))") }
        close(file)
        base = memory
    }

    deinit {
        munmap(base, Self.size)
        unlink(path)
    }

    /// The number of reports so far.
    var count: Int { Int(base.load(as: UInt32.self)) }
    /// The number of heartbeats of all workers together; it wraps around.
    var beats: UInt32 { base.load(fromByteOffset: 8, as: UInt32.self) }
    /// The last process that reported in this slot; 0 before the first.
    func pid(_ slot: Int) -> pid_t { base.load(fromByteOffset: Self.header + slot * Self.slotSize + 8, as: pid_t.self) }
    /// The number of processes that have reported in this slot.
    func starts(_ slot: Int) -> Int {
        Int(base.load(fromByteOffset: Self.header + slot * Self.slotSize + 12, as: UInt32.self))
    }
    /// When the last of them started, in the time of `now()`.
    func started(_ slot: Int) -> Double {
        Double(base.load(fromByteOffset: Self.header + slot * Self.slotSize, as: UInt64.self)) / 1e9
    }
    /// When the last of the first `count` slots started.
    func last(_ count: Int) -> Double { (0..<count).map(started).max() ?? 0 }

    /// Waits for `target` reports. Polling does not affect results, since the workers write the times that count.
    func wait(_ target: Int, seconds: Double, isRunning: () -> Bool) throws {
        let reached = try waitUntil(seconds, step: 0.005) {
            if count >= target { return true }
            guard isRunning() else { throw Trouble("the supervisor ended after \(count) of \(target) reports") }
            return false
        }
        guard reached else { throw Trouble("only \(count) of \(target) apps reported within \(Int(seconds)) s") }
    }
}
