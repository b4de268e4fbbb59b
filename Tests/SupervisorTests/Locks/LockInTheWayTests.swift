// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Processes
import Testing

@testable import Supervisor

@Suite("Which locks are in the way") struct LockInTheWayTests {
    private static let file = FileLock.File(device: 1 << 32 | 2, inode: 7)

    private static func lock(
        _ kind: FileLock.Kind = .posix,
        _ isExclusive: Bool = true,
        _ range: ClosedRange<UInt64> = 0...UInt64.max,
        pid: Int32? = nil
    ) -> FileLock {
        FileLock(kind: kind, isExclusive: isExclusive, file: file, range: range, pid: pid)
    }

    private func inTheWay(_ held: FileLock, _ wanted: FileLock) throws -> [LockInTheWay] {
        var table = LockTable()
        table.waiters = [try waiter(wanted)]
        let tree = ProcessTree(
            tag: AppTag(app: "web", incarnation: 1),
            main: try Identity(of: ThisProcess.pid),
            pidfd: nil,
            cgroupPath: "/nonexistent"
        )
        return LockWatch.inTheWay([HeldLock(held, path: "/data", holder: 5)], table, tree, [])
    }

    private func waiter(_ request: FileLock) throws -> LockTable.Waiter {
        // As the kernel has it: a table of one lock, and who waits for it.
        let text = "1: POSIX ADVISORY WRITE 5 01:02:7 0 EOF\n1: -> POSIX ADVISORY WRITE 9 01:02:7 0 EOF\n"
        let path = FileManager.default.temporaryDirectory.path + "/torpor-table-\(UUID().uuidString)"
        try File.write(path, text)
        defer { try? File.remove(path) }
        var waiter = try #require(try LockTable.read(LockTable.Question(files: nil), path: path).waiters.first)
        waiter.request = request
        return waiter
    }

    @Test("Who waits for another part of the file, or reads where the app reads, is not kept waiting by it")
    func parts()
        throws
    {
        let (low, high) = (UInt64(0)...99, UInt64(100)...199)
        #expect(try inTheWay(Self.lock(.posix, true, low), Self.lock(.posix, true, high, pid: 9)).isEmpty)
        #expect(try inTheWay(Self.lock(.posix, true, low), Self.lock(.posix, true, 99...120, pid: 9)).count == 1)
        #expect(try inTheWay(Self.lock(.posix, false, low), Self.lock(.ofd, false, low)).isEmpty)
        #expect(try inTheWay(Self.lock(.posix, false, low), Self.lock(.ofd, true, low)).count == 1)
        #expect(try inTheWay(Self.lock(.flock, true), Self.lock(.posix, true, pid: 9)).isEmpty)
    }

    @Test("Whoever cannot be told is taken for another's") func unknown() throws {
        let found = try inTheWay(Self.lock(.ofd, true), Self.lock(.ofd, true, pid: nil))
        #expect(found.map(\.isAwaited) == [true] && found.first?.waiter == nil)
        #expect(found.first?.sentence.hasSuffix("(ofd), for which another process waits") == true)
    }

    @Test(
        "A shared resource is a file, or a folder with all below it, byte for byte",
        arguments: [
            ("/srv/a", "/srv/a", true), ("/srv/a/b", "/srv/a", true), ("/srv/ab", "/srv/a", false),
            ("/srv/a/b", "/srv/a/", true), ("/srv/a", "/srv/a/b", false), ("/srv/a", "/", true),
            ("/srv/a (deleted)", "/srv", false),
            // Two names for the eye alike, and not for the kernel; and one that begins with a mark that joins.
            ("/srv/\u{e9}", "/srv/e\u{301}", false), ("/srv/e\u{301}/x", "/srv/\u{e9}", false),
            ("/srv/a/\u{301}x", "/srv/a/", true), ("/srv/a/\u{301}x", "/srv/a", true),
            ("/srv/e\u{301}", "/srv/e", false),
        ]
    )
    func resources(path: String, resource: String, isOne: Bool) {
        let held = HeldLock(Self.lock(), path: path, holder: 5)
        #expect(held.isOn([resource], others: []) == isOne)
        #expect(!held.isOn([], others: []))
    }

    @Test("A path of the configuration may lead there by a link") func links() throws {
        let folder = FileManager.default.temporaryDirectory.path + "/torpor-shared-\(UUID().uuidString)"
        try File.makeDirectories(folder + "/real")
        defer { try? File.removeTree(folder) }
        try File.link(folder + "/link", to: "real")
        let real = try #require(SharedPaths.resolved(folder))
        let held = HeldLock(Self.lock(), path: real + "/real/data", holder: 5)
        #expect(held.isOn([folder + "/link"], others: []))
        #expect(!held.isOn([folder + "/gone"], others: []))
    }
}
