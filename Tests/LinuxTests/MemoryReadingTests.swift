// SPDX-License-Identifier: Apache-2.0

import Foundation
import KernelFiles
import Linux
import Testing

@Suite("What the kernel says of memory") struct MemoryReadingTests {
    @Test("how long work has waited is read in microseconds, and an old kernel's line without it is 0")
    func totals() throws {
        let files = try KernelFiles()
        #expect(try #require(Pressure(on: .memory, root: files.root)).someTotal == 0)
        files.averages = (12.5, 0.25)
        files.stall(some: .milliseconds(150), full: .milliseconds(20))
        files.stall(some: .milliseconds(50))
        let memory = try #require(Pressure(on: .memory, root: files.root))
        #expect(memory.some == 1250 && memory.full == 25)
        #expect(memory.someTotal == 200_000 && memory.fullTotal == 20_000)
        try files.write("/proc/pressure/io", "some avg10=1.00\n")
        let io = try #require(Pressure(on: .io, root: files.root))
        #expect(io.someTotal == 0 && io.full == nil && io.fullTotal == nil)
        files.removePressure()
        #expect(Pressure(on: .memory, root: files.root) == nil)
    }

    @Test("what was done for want of memory is counted, the zones' stalls together, and differences never go below 0")
    func activity() throws {
        let files = try KernelFiles()
        files.counters = ["pgscan_kswapd": 100, "pgscan_direct": 7, "pswpin": 5, "oom_kill": 1]
        let before = try #require(MemoryActivity(root: files.root))
        files.counters = [
            "pgscan_kswapd": 150, "pgscan_khugepaged": 3, "pgscan_direct": 9, "allocstall_normal": 2,
            "allocstall_movable": 4, "workingset_refault_anon": 11, "workingset_refault_file": 12, "pswpin": 5,
            "pswpout": 80, "oom_kill": 0, "pgscan_direct_throttle": 1000,
        ]
        let since = try #require(MemoryActivity(root: files.root)).since(before)
        #expect(since.scannedInBackground == 53 && since.scannedDirectly == 2 && since.allocationStalls == 6)
        #expect(since.refaultsOfSwap == 11 && since.refaultsOfFiles == 12)
        #expect(since.swappedIn == 0 && since.swappedOut == 80 && since.kills == 0)
        #expect(MemoryActivity(root: "/nonexistent") == nil)
        try files.write("/proc/vmstat", "")
        #expect(MemoryActivity(root: files.root) == nil)
        let here = try #require(MemoryActivity())
        #expect(try #require(MemoryActivity()).since(here).scannedInBackground < 1 << 40)
    }

    @Test("swap is a list of areas, of which those in memory say how they compress")
    func swap() throws {
        let files = try KernelFiles()
        #expect(SwapSpace(root: files.root) == SwapSpace(root: "/nonexistent"))
        try files.write(
            "/proc/swaps",
            """
            Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority
            /dev/zram0                              partition\t262140\t\t1024\t\t100
            /var/swap\\040file                        file\t\t1048572\t\t0\t\t-2
            /dev/zramp                              partition\t4\t\t0\t\t-3
            nonsense

            """
        )
        try files.write("/sys/block/zram0/mm_stat", "  1048576   262144   300000        0   400000      12        0\n")
        try files.write("/sys/block/zram0/comp_algorithm", "lzo lzo-rle lz4 [zstd] \n")
        try files.write("/sys/module/zswap/parameters/enabled", "Y\n")
        let swap = SwapSpace(root: files.root)
        #expect(swap.areas.map(\.path) == ["/dev/zram0", "/var/swap file", "/dev/zramp"])
        let first = try #require(swap.areas.first)
        #expect(first.size == 262_140 << 10 && first.used == 1 << 20 && first.priority == 100)
        let zram = try #require(first.zram)
        #expect(zram.algorithm == "zstd" && zram.original == 1 << 20 && zram.compressed == 262_144)
        #expect(zram.memory == 300_000)
        #expect(swap.areas[1].zram == nil && swap.areas[1].priority == -2 && swap.areas[2].zram == nil)
        #expect(swap.isCompressedBefore && swap.used == 1 << 20 && swap.free == swap.size - 1 << 20)
    }

    @Test("a process's memory, whole and by its part")
    func process() throws {
        let files = try KernelFiles()
        try files.write("/proc/7/status", "Name:\tx\nVmHWM:\t  999 kB\nVmRSS:\t    1200 kB\nVmSwap:\t     34 kB\n")
        try files.write(
            "/proc/7/smaps_rollup",
            "0-1 ---p 0 00:00 0 [rollup]\nPss:  100 kB\nPss_Anon: 7 kB\nSwapPss: 8 kB\n"
        )
        #expect(try ProcFS.memory(7, root: files.root) == ProcessMemory(resident: 1200 << 10, swapped: 34 << 10))
        #expect(
            try ProcFS.proportionalMemory(7, root: files.root) == ProcessMemory(resident: 100 << 10, swapped: 8 << 10)
        )
        #expect(throws: Errno.noSuchFileOrDirectory) { try ProcFS.memory(8, root: files.root) }
        let own = try ProcFS.memory(ThisProcess.pid)
        let part = try ProcFS.proportionalMemory(ThisProcess.pid)
        #expect(part.resident > 1 << 20 && part.resident < own.resident + 1 << 20)
    }

    @Test("what can be paged out is private, and nothing that is special or in a file")
    func ranges() throws {
        let files = try KernelFiles()
        try files.write(
            "/proc/7/maps",
            """
            00400000-00500000 r-xp 00000000 08:01 77                                 /usr/bin/x
            00600000-00601000 rw-p 00100000 08:01 77                                 /usr/bin/x
            01a00000-01b00000 rw-p 00000000 00:00 0                                  [heap]
            7f0000000000-7f4000000000 ---p 00000000 00:00 0
            7f4000000000-7f4000001000 r--p 00000000 00:00 0
            7f4000002000-7f4000003000 rw-s 00000000 00:01 9                          /dev/shm/x
            7f4000004000-7f4000005000 rw-p 00000000 00:05 10                         /dev/dri/card0
            7f4000006000-7f4000007000 rw-p 00000000 00:05 3                          /dev/zero
            7f4000008000-7f4000009000 rw-p 00000000 00:00 0                          [anon:stack and such]
            7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]
            7ffd00030000-7ffd00034000 r--p 00000000 00:00 0                          [vvar]
            7ffd00034000-7ffd00036000 r-xp 00000000 00:00 0                          [vdso]
            ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
            broken

            """
        )
        let ranges = try ProcFS.privateRanges(7, root: files.root)
        #expect(
            ranges.map(\.start) == [
                0x60_0000, 0x1a0_0000, 0x7f40_0000_0000, 0x7f40_0000_6000, 0x7f40_0000_8000, 0x7ffd_0000_0000,
            ]
        )
        #expect(ranges[1].count == 1 << 20 && ranges.last?.count == 0x21000)
        let own = try ProcFS.privateRanges(ThisProcess.pid)
        let here = withUnsafePointer(to: ranges) { UInt(bitPattern: $0) }
        #expect(own.contains { $0.start <= here && here < $0.start + UInt($0.count) }, "this thread's stack")
    }
}
