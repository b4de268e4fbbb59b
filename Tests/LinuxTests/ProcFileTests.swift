// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import Linux

@Suite struct ProcFileTests {
    private func number(_ text: String) -> Int128? {
        Array(text.utf8).withUnsafeBytes { ProcFS.number(atEndOf: $0) }
    }

    @Test("the number of a file is the last word of its first line")
    func numbers() {
        #expect(number("/autogroup-4711 nice 5\n") == 5)
        #expect(number("/autogroup-4711 nice -12\n7\n") == -12)
        #expect(number("-1000\n") == -1000)
        #expect(number("18446744073709551615") == 18_446_744_073_709_551_615)
        for text in ["", "\n", "x", "5x", "x5\n", "-", "--5", "1-", "4 y", "4 "] { #expect(number(text) == nil) }
    }

    @Test("the path of a process or thread has its number and ends with NUL")
    func paths() throws {
        func path(_ pid: Int32, _ task: Int32? = nil, _ file: StaticString = "/stat") throws -> String {
            try ProcPath.with(pid, task: task, file) { path throws(Errno) in String(cString: path) }
        }
        #expect(try path(1) == "/proc/1/stat")
        #expect(try path(10) == "/proc/10/stat")
        #expect(try path(.max, 909) == "/proc/2147483647/task/909/stat")
        #expect(try path(0, .min, "/timerslack_ns") == "/proc/0/task/-2147483648/timerslack_ns")
    }

    @Test("the name of a kernel thread may fill the kernel's buffer")
    func longName() throws {
        let name = String(repeating: "k) ", count: 21)
        let line = "2 (\(name)) I 0 0 0 0 -1 1 2 3 4 5 6 7 8 9 20 0 1 0 98765 0 77"
        let stat = try #require(Array(line.utf8).withUnsafeBytes { ProcessStat(parsing: $0) })
        #expect(stat.comm == name && stat.state == "I" && stat.startTime == 98765 && stat.residentPages == 77)
        let cut = line.dropLast(3)
        #expect(Array(cut.utf8).withUnsafeBytes { ProcessStat(parsing: $0) } == nil)
    }

    @Test("a kernel's file is read whole, whatever the size of the buffer", arguments: [1024, 64, 4096])
    func sizes(buffer: Int) throws {
        let whole = try File.read("/proc/filesystems")
        #expect(whole.count > 64)
        let content = try "/proc/filesystems".withCString { path in
            try File.withKernelFile(at: path, buffer: buffer) { [UInt8]($0) }
        }
        #expect(content == whole)
        #expect(try ProcFS.stat(ThisProcess.pid).pid == ThisProcess.pid)
    }

    @Test("a stat file that stays open tells the state of each moment, and that its process was reaped")
    func openStat() throws {
        let child = try Statements()
        let file = try ProcFS.StatFile(child.pid)
        #expect(try file.read().startTime == ProcFS.stat(child.pid).startTime)
        kill(child.pid, SIGSTOP)
        let end = Clock.monotonic() + .seconds(60)
        while try file.read().state != "T", Clock.monotonic() < end { usleep(1_000) }
        #expect(try file.read().state == "T")
        child.end()
        #expect(throws: Errno.noSuchProcess) { try file.read() }
        #expect(throws: Errno.noSuchFileOrDirectory) { try ProcFS.StatFile(.max) }
    }

    @Test("autogroups have no effect below the cpu controller")
    func autogroups() throws {
        let kernel = ["/proc/sys/kernel/sched_autogroup_enabled": "1\n"]
        func obstacle(_ files: [String: String]) throws -> String? {
            try reading(files) { root in
                ProcFS.autogroupObstacle(7, root: root, mount: root + "/cgroup")?.replacing(root, with: "")
            }
        }
        #expect(try obstacle([:]) == "the kernel has no autogroups")
        let off = ["/proc/sys/kernel/sched_autogroup_enabled": "0\n"]
        #expect(try obstacle(off) == "kernel.sched_autogroup_enabled is 0")
        let first = ["/proc/7/cgroup": "5:cpuset:/a\n4:cpu,cpuacct:/b/c\n0::/d\n"].merging(kernel) { $1 }
        #expect(try obstacle(first) == "the cpu controller has put it in /b/c")
        let root = ["/proc/7/cgroup": "4:cpu,cpuacct:/\n0::/\n", "/cgroup/cpu.weight": "100\n"].merging(kernel) { $1 }
        #expect(try obstacle(root) == nil)
        let second = ["/proc/7/cgroup": "0::/a/b", "/cgroup/a/cpu.weight": "100\n"].merging(kernel) { $1 }
        #expect(try obstacle(second) == "the cpu controller has put it in /cgroup/a")
        let none = ["/proc/7/cgroup": "0::/a/b\n", "/cgroup/a/b/cpu.stat": ""].merging(kernel) { $1 }
        #expect(try obstacle(none) == nil)
    }

    @Test("a path of two parts is one text")
    func sharedPath() {
        #expect(SharedPath("/run", "a").text == "/run/a")
        #expect(SharedPath("/run/torpor-é", "worker@1", ".sock").text == "/run/torpor-é/worker@1.sock")
        #expect(SharedPath("", "a", "b").text == "/ab")
        #expect(SharedPath("/run/x").text == "/run/x")
    }
}
