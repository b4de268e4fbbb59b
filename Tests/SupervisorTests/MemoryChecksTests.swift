// SPDX-License-Identifier: Apache-2.0

import KernelFiles
import Linux
import Testing

@testable import TorporAPI

/// What `torpor doctor` says of memory, on machines of every sort.
@Suite("What doctor says of memory") struct MemoryChecksTests {
    private func check(
        _ name: String,
        _ files: KernelFiles,
        support: MemoryAdvice.Support = .available
    ) throws -> DoctorCheck {
        let all = MemoryChecks(root: files.root, support: support).all
        return try #require(all.first { $0.name == name })
    }

    private func swaps(_ files: KernelFiles, _ lines: String...) throws {
        try files.write("/proc/swaps", "Filename Type Size Used Priority\n" + lines.map { $0 + "\n" }.joined())
    }

    /// A disk with a partition, as the kernel shows them.
    private func disk(_ files: KernelFiles, rotational: Bool) throws {
        try files.write("/sys/devices/sda/queue/rotational", rotational ? "1\n" : "0\n")
        try files.write("/sys/devices/sda/sda2/size", "1\n")
        try File.makeDirectories(files.root + "/sys/class/block")
        try File.link(files.root + "/sys/class/block/sda2", to: "../../devices/sda/sda2")
    }

    private func zram(_ files: KernelFiles, algorithm: String = "lz4 [zstd]", _ counts: String = "0 0 0") throws {
        try files.write("/sys/block/zram0/mm_stat", counts + " 0 0 0 0 0 0\n")
        try files.write("/sys/block/zram0/comp_algorithm", algorithm + "\n")
    }

    @Test("all is well on a machine with pressure, zram and the right to page out")
    func well() throws {
        let files = try KernelFiles()
        files.swapTotal = 4 << 30
        files.swapUsed = 1 << 30
        try zram(files, "1073741824 268435456 300000000")
        try files.write("/proc/sys/vm/page-cluster", "0\n")
        try files.write("/proc/1/comm", "systemd\n")
        let all = MemoryChecks(root: files.root, support: .available).all
        #expect(all.map(\.name) == ["pressure (PSI)", "swap", "paging out", "other OOM killers"])
        for check in all { #expect(check.ok && check.message == nil, "\(check)") }
        #expect(all[1].value == "/dev/zram0, 4.0 GiB, 1.0 GiB in use (zstd, 4.0 : 1)")
    }

    @Test("a kernel without pressure is told, with how it is switched on")
    func pressure() throws {
        let files = try KernelFiles()
        files.removePressure()
        var check = try check("pressure (PSI)", files)
        #expect(!check.ok && check.message?.contains("boot with psi=1") == true)
        // With psi=0 the files are there, and cannot be read.
        try files.write("/proc/pressure/memory", "")
        check = try self.check("pressure (PSI)", files)
        #expect(!check.ok)
    }

    @Test("without swap it says what that costs, and how to have zram of a size for this machine")
    func noSwap() throws {
        let files = try KernelFiles()
        for (total, amount, percent, expression) in [
            (UInt64(2) << 30, "2.0 GiB", 100, "ram"), (12 << 30, "8.0 GiB", 67, "8192"),
            (64 << 30, "32.0 GiB", 50, "ram / 2"),
        ] {
            files.total = total
            let check = try check("swap", files)
            #expect(!check.ok && check.value == nil)
            let message = try #require(check.message)
            #expect(message.contains("suspended apps keep all their memory"))
            #expect(message.contains("A zram device of \(amount)"), "\(message)")
            #expect(message.contains("PERCENT=\(percent) ") && message.contains("zram-size = \(expression) "))
        }
    }

    @Test("a spinning disk is told with its cost, unless zram is used before it")
    func spinning() throws {
        let files = try KernelFiles()
        try disk(files, rotational: true)
        try zram(files)
        try swaps(files, "/dev/sda2 partition 1048576 0 -2")
        var check = try check("swap", files)
        #expect(!check.ok && check.value == "/dev/sda2, 1.0 GiB")
        #expect(check.message?.contains("on a spinning disk") == true && check.message?.contains("zram-tools") == true)
        try swaps(files, "/dev/sda2 partition 1048576 0 -2", "/dev/zram0 partition 1048576 0 100")
        check = try self.check("swap", files)
        #expect(check.ok && check.message == nil)
        try swaps(files, "/dev/sda2 partition 1048576 0 5", "/dev/zram0 partition 1048576 0 1")
        check = try self.check("swap", files)
        #expect(!check.ok && check.message?.contains("zram has a lower priority") == true)
    }

    @Test("swap on another disk does, and zram is recommended; what is compressed before it needs none")
    func solid() throws {
        let files = try KernelFiles()
        try disk(files, rotational: false)
        try swaps(files, "/dev/sda2 partition 1048576 0 -2")
        var check = try check("swap", files)
        #expect(check.ok && check.message?.contains("apt install zram-tools") == true)
        try files.write("/sys/module/zswap/parameters/enabled", "Y\n")
        check = try self.check("swap", files)
        #expect(check.ok && check.message == nil)
    }

    @Test("swap that is full, and zram that is read ahead, are told")
    func full() throws {
        let files = try KernelFiles()
        try zram(files)
        files.swapTotal = 1 << 30
        files.swapUsed = (1 << 30) - (20 << 20)
        var check = try check("swap", files)
        #expect(!check.ok && check.message?.hasPrefix("it is full") == true)
        files.swapUsed = 0
        try files.write("/proc/sys/vm/page-cluster", "3\n")
        check = try self.check("swap", files)
        #expect(check.ok && check.message?.hasPrefix("each page that is read back brings 7 neighbours") == true)
    }

    @Test("who may not page out is told why, and what happens instead")
    func right() throws {
        let files = try KernelFiles()
        for (support, words) in [
            (MemoryAdvice.Support.notPermitted, "--cap-add SYS_NICE"), (.missingInKernel, "Linux 5.10"),
        ] {
            let check = try check("paging out", files, support: support)
            #expect(!check.ok && check.message?.contains(words) == true)
            #expect(check.message?.contains("memory controller") == true)
        }
    }

    @Test("a limit of a container, or of a slice around it, is told; one that is no limit is not")
    func bound() throws {
        let files = try KernelFiles()
        try files.write("/proc/self/cgroup", "4:memory:/a\n1:cpu:/\n0::/box/inner\n")
        try files.write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n")
        try files.write("/sys/fs/cgroup/box/inner/memory.max", "max\n")
        try files.write("/sys/fs/cgroup/box/memory.max", "\(16 << 30)\n")
        let names = MemoryChecks(root: files.root, support: .available).all.map(\.name)
        #expect(!names.contains("memory of its own"))
        try files.write("/sys/fs/cgroup/box/memory.max", "\(512 << 20)\n")
        var check = try check("memory of its own", files)
        #expect(check.ok && check.value == "512.0 MiB of 8.0 GiB")
        #expect(check.message?.hasPrefix("/sys/fs/cgroup/box/memory.max is a limit") == true)
        try files.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "\(256 << 20)\n")
        check = try self.check("memory of its own", files)
        #expect(check.value == "256.0 MiB of 8.0 GiB")
    }

    @Test("others that kill are found by name, with what keeps them from the apps")
    func killers() throws {
        let files = try KernelFiles()
        for (pid, name) in [(1, "systemd"), (70, "nohang"), (71, "earlyoom"), (72, "systemd-oomd"), (80, "nohang")] {
            try files.write("/proc/\(pid)/comm", name + "\n")
        }
        let check = try check("other OOM killers", files)
        #expect(!check.ok)
        #expect(check.value == "nohang, process 70; earlyoom, process 71; systemd-oomd, process 72")
        for word in ["EARLYOOM_ARGS", "/etc/nohang/nohang.conf", "ManagedOOMSwap=auto"] {
            #expect(check.message?.contains(word) == true)
        }
    }

    @Test("a supervisor that may not be locked in memory is told how it can be")
    func locked() {
        #expect(MemoryChecks.ownMemory(lockedBytes: 1 << 20, isAllowed: false).value == "locked")
        #expect(MemoryChecks.ownMemory(lockedBytes: 0, isAllowed: true).ok)
        let check = MemoryChecks.ownMemory(lockedBytes: 0, isAllowed: false)
        #expect(!check.ok && check.message?.contains("CAP_IPC_LOCK") == true)
    }
}
