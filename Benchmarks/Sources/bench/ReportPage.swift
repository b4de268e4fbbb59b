// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The page on which workers say that they run (Programs/report.h), shared by all through a file.
final class ReportPage {
    /// What BENCH_REPORT says.
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

    /// How many reports have come so far.
    var count: Int { Int(base.load(as: UInt32.self)) }
    /// How many heartbeats all workers have sent together; it wraps.
    var beats: UInt32 { base.load(fromByteOffset: 8, as: UInt32.self) }
    /// The process that reported last in this slot; 0 before the first.
    func pid(_ slot: Int) -> pid_t { base.load(fromByteOffset: Self.header + slot * Self.slotSize + 8, as: pid_t.self) }
    /// How many processes have reported in this slot.
    func starts(_ slot: Int) -> Int {
        Int(base.load(fromByteOffset: Self.header + slot * Self.slotSize + 12, as: UInt32.self))
    }
    /// When the last of them began to run, by `now()`.
    func started(_ slot: Int) -> Double {
        Double(base.load(fromByteOffset: Self.header + slot * Self.slotSize, as: UInt64.self)) / 1e9
    }
    /// When the last of the first `count` slots began to run.
    func last(_ count: Int) -> Double { (0..<count).map(started).max() ?? 0 }

    /// Waits for so many reports. What it measures by are the times that the workers wrote, so that looking seldom
    /// changes nothing.
    func wait(_ target: Int, seconds: Double, isRunning: () -> Bool) throws {
        let reached = try waitUntil(seconds, step: 0.005) {
            if count >= target { return true }
            guard isRunning() else { throw Trouble("the supervisor ended after \(count) of \(target) reports") }
            return false
        }
        guard reached else { throw Trouble("only \(count) of \(target) apps reported within \(Int(seconds)) s") }
    }
}
