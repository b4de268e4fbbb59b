// SPDX-License-Identifier: Apache-2.0

import KernelFiles
import Linux
import Testing

@Suite("A bound around everything") struct MemoryBoundTests {
    private func files() throws -> KernelFiles {
        let files = try KernelFiles()
        try files.write(
            "/proc/meminfo",
            "MemTotal: 8388608 kB\nMemAvailable: 6291456 kB\nSwapTotal: 4194304 kB\nSwapFree: 3145728 kB\n"
        )
        return files
    }

    @Test("the lowest one counts, and one above the machine's memory is none")
    func lowest() throws {
        let files = try files()
        try files.write("/proc/self/cgroup", "0::/box/inner\n")
        try files.write("/sys/fs/cgroup/box/inner/memory.max", "max\n")
        try files.write("/sys/fs/cgroup/box/memory.max", "\(16 << 30)\n")
        #expect(MemoryBound(root: files.root) == nil)
        try files.write("/sys/fs/cgroup/memory.max", "\(2 << 30)\n")
        #expect(MemoryBound(root: files.root)?.limit == 2 << 30)
        try files.write("/sys/fs/cgroup/box/memory.max", "\(1 << 30)\n")
        let bound = try #require(MemoryBound(root: files.root))
        #expect(bound.limit == 1 << 30 && bound.file == "/sys/fs/cgroup/box/memory.max")
    }

    @Test("where apps are elsewhere, what is around them counts")
    func apps() throws {
        let files = try files()
        try files.write("/proc/self/cgroup", "0::/system.slice/torpord.service\n")
        try files.write("/sys/fs/cgroup/system.slice/torpord.service/memory.max", "\(64 << 20)\n")
        try files.write("/sys/fs/cgroup/apps.slice/memory.max", "\(1 << 30)\n")
        let bound = MemoryBound(around: files.root + "/sys/fs/cgroup/apps.slice/scope", root: files.root)
        #expect(bound?.limit == 1 << 30)
    }

    @Test("what is left below it is what is available, files that were read but for half of those in use")
    func left() throws {
        let files = try files()
        let machine = try #require(MachineMemory(root: files.root))
        try files.write("/proc/self/cgroup", "0::/box\n")
        try files.write("/sys/fs/cgroup/box/memory.max", "\(1000 << 20)\n")
        try files.write("/sys/fs/cgroup/box/memory.current", "\(900 << 20)\n")
        try files.write(
            "/sys/fs/cgroup/box/memory.stat",
            "inactive_file \(100 << 20)\nactive_file \(40 << 20)\npgscan_direct 7\n"
        )
        try files.write("/sys/fs/cgroup/box/memory.swap.max", "\(512 << 20)\n")
        try files.write("/sys/fs/cgroup/box/memory.swap.current", "\(500 << 20)\n")
        let bound = try #require(MemoryBound(root: files.root))
        let memory = try #require(bound.memory(of: machine))
        #expect(memory.total == 1000 << 20 && memory.available == 220 << 20)
        #expect(memory.swapTotal == 512 << 20 && memory.swapFree == 12 << 20)
        #expect(bound.activity?.scannedDirectly == 7)
    }

    @Test("that of cgroup v1 too, which tells of no pressure")
    func first() throws {
        let files = try files()
        let machine = try #require(MachineMemory(root: files.root))
        try files.write("/proc/self/cgroup", "4:memory:/a\n0::/\n")
        let folder = "/sys/fs/cgroup/memory/a/"
        try files.write(folder + "memory.limit_in_bytes", "\(600 << 20)\n")
        try files.write(folder + "memory.usage_in_bytes", "\(500 << 20)\n")
        try files.write(folder + "memory.stat", "total_inactive_file \(50 << 20)\ntotal_active_file 0\n")
        try files.write(folder + "memory.memsw.limit_in_bytes", "\(700 << 20)\n")
        try files.write(folder + "memory.memsw.usage_in_bytes", "\(540 << 20)\n")
        let bound = try #require(MemoryBound(root: files.root))
        let memory = try #require(bound.memory(of: machine))
        #expect(memory.available == 150 << 20 && memory.swapTotal == 100 << 20 && memory.swapFree == 60 << 20)
        #expect(bound.pressure == nil && bound.activity == nil)
    }
}
