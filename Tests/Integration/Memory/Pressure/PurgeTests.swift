// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import KernelFiles
import Linux
import Testing
import TorporAPI

@Suite("Short memory: what apps can do without") struct MemoryPurgeTests {
    /// A folder in memory, removed with the last reference.
    private final class Folder {
        let path: String

        init() throws {
            var template = Array("/dev/shm/tp-XXXXXX".utf8CString)
            guard mkdtemp(&template) != nil else { throw Trouble("mkdtemp: \(errno)") }
            path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }

        deinit { try? File.removeTree(path) }

        func write(_ name: String, megabytes: Int) throws {
            try File.write(path + "/" + name, [UInt8](repeating: 7, count: megabytes << 20))
        }
    }

    private static let isThere = (try? File.isInMemory("/dev/shm")) ?? false

    @Test("Files in a purgeable folder go, folders and links stay; on a disk nothing does", .enabled(if: isThere))
    func folders() throws {
        let (cache, other) = (try Folder(), try Folder())
        try File.makeDirectory(cache.path + "/below")
        try cache.write("a", megabytes: 3)
        try cache.write("below/b", megabytes: 2)
        try other.write("kept", megabytes: 1)
        try File.link(cache.path + "/link", to: other.path)
        let keys = "purgeable = [\"\(cache.path)\", \"@D/disk\"]\nevict = \"never\""
        try ShortMemory.with(ShortMemory.app("web", 4, keys)) { daemon, kernel throws in
            try File.makeDirectory(daemon.directory + "/disk")
            try File.write(daemon.directory + "/disk/kept", "kept")
            try daemon.bring(["web": "active"])
            kernel.setAvailable(ShortMemory.warning)
            let event = try daemon.waitForStep("purge", "web")
            #expect(event.text.contains("drops 5120 KiB of purgeable memory"), "\(event.text)")
            #expect(try File.list(cache.path).sorted() == ["below", "link"])
            #expect(try File.list(cache.path + "/below").isEmpty)
            #expect(File.exists(other.path + "/kept"))
            if try !File.isInMemory(daemon.directory) { #expect(File.exists(daemon.directory + "/disk/kept")) }
            // Once is enough, whatever it writes then.
            try cache.write("again", megabytes: 1)
            // Three settling times.
            try kernel.readings().wait(for: 15)
            #expect(File.exists(cache.path + "/again"))
            #expect(try daemon.steps() == ["purge web"])
        }
    }

    @Test("A folder that belongs to another user is not touched", .enabled(if: isThere && geteuid() == 0))
    func foreign() throws {
        let cache = try Folder()
        try cache.write("a", megabytes: 1)
        let keys = "purgeable = [\"\(cache.path)\"]\nevict = \"never\"\nuser = \"nobody\""
        let daemonApp = "[apps.web]\nexec = [\"/bin/sleep\", \"1000\"]\n\(keys)\n"
        try ShortMemory.with(daemonApp) { daemon, kernel throws in
            try daemon.done(.start, "web")
            kernel.setAvailable(ShortMemory.warning)
            let event = try daemon.waitForStep("purge", "web")
            #expect(event.text.contains("had nothing left to purge"), "\(event.text)")
            #expect(File.exists(cache.path + "/a"))
        }
    }

    @Test("Kept memory files named purgeable… are emptied and let go, others stay") func descriptors() throws {
        let head = NotifyApps.head.replacingOccurrences(of: "restart = ", with: "evict = \"never\"\nrestart = ")
        try ShortMemory.with(ShortMemory.head + head, files: ["app.py": NotifyApps.obedient]) { daemon, kernel throws in
            try daemon.launch()
            try daemon.tell(
                "1",
                """
                keep = []
                for label in ["purgeable-tiles", "results"]:
                    fd = os.memfd_create(label)
                    os.write(fd, bytes(range(256)) * (4 << 12))
                    tp.notify("FDSTORE=1\\nFDNAME=" + label, [fd])
                    keep.append(fd)
                tp.notify("READY=1")
                """
            )
            try daemon.waitFor("web", "active")
            kernel.setAvailable(ShortMemory.warning)
            let event = try daemon.waitForStep("purge", "web")
            #expect(event.text.contains("drops 4096 KiB of purgeable memory"), "\(event.text)")
            try daemon.tell(
                "2",
                """
                for fd in keep:
                    status = os.fstat(fd)
                    tp.record("has %d of %d" % (status.st_blocks * 512, status.st_size))
                """
            )
            let size = 4 << 20
            #expect(daemon.records("web").suffix(3).prefix(2) == ["has 0 of \(size)", "has \(size) of \(size)"])
            // The next incarnation gets the other one alone.
            try daemon.done(.kill, "web")
            try daemon.launch()
            try daemon.tell("3", #"tp.record("gets " + os.environ["LISTEN_FDNAMES"])"#)
            #expect(daemon.records("web").contains("gets results"))
        }
    }
}
