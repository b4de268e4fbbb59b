// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing

/// A Python that carries out the statements that it is given, one after the other.
final class Statements {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private var line: [UInt8] = []

    var pid: Int32 { process.processIdentifier }

    private static let program = """
        import fcntl, os, signal, struct, sys
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        OFD_SETLK, OFD_SETLKW = 37, 38
        def ofd(file, command, kind=fcntl.F_WRLCK, start=0, length=0):
            fcntl.fcntl(file, command, struct.pack("hhqqi4x", kind, 0, start, length, 0))
        print("ok", flush=True)
        for line in sys.stdin:
            exec(line)
            print("ok", flush=True)
        """

    init() throws {
        process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        process.arguments = ["-c", Self.program]
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        try waitUntilDone()
    }

    deinit { end() }

    func end() {
        guard process.isRunning else { return }
        kill(pid, SIGKILL)
        process.waitUntilExit()
    }

    /// Carries one out.
    func run(_ statement: String) throws {
        try begin(statement)
        try waitUntilDone()
    }

    /// Has one begun that does not come back soon.
    func begin(_ statement: String) throws {
        try input.fileHandleForWriting.write(contentsOf: Data((statement + "\n").utf8))
    }

    func waitUntilDone() throws {
        let descriptor = output.fileHandleForReading.fileDescriptor
        while line.last != UInt8(ascii: "\n") {
            try #require(try Descriptor.wait(descriptor, timeout: .seconds(20)), "Python answers")
            let bytes = try #require(try Descriptor.read(descriptor, maximum: 1))
            try #require(!bytes.isEmpty, "Python lives")
            line += bytes
        }
        line = []
    }
}

/// A folder that goes with the test.
final class LockFolder {
    let path: String

    init() throws {
        var template = Array((NSTemporaryDirectory() + "tp-locks-XXXXXX").utf8CString)
        try #require(mkdtemp(&template) != nil)
        path = try Linux.File.realPath(
            String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        )
    }

    deinit { try? Linux.File.removeTree(path) }

    /// An empty file in it.
    func file(_ name: String) throws -> String {
        try Linux.File.write(path + "/" + name, "")
        return path + "/" + name
    }
}

@Suite("File locks") struct FileLockTests {
    /// How each sort of lock is taken, and waited for, on the file PATH.
    enum Sort: String, CaseIterable {
        case flock, posix, ofd, lease

        var take: String {
            switch self {
            case .flock: #"f = open(PATH, "r+"); fcntl.flock(f, fcntl.LOCK_EX)"#
            case .posix: #"f = open(PATH, "r+"); fcntl.lockf(f, fcntl.LOCK_EX)"#
            case .ofd: #"f = open(PATH, "r+"); ofd(f, OFD_SETLK)"#
            case .lease: #"f = open(PATH); fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_RDLCK)"#
            }
        }

        var wait: String {
            switch self {
            case .flock: take
            case .posix: take
            case .ofd: #"f = open(PATH, "r+"); ofd(f, OFD_SETLKW)"#
            case .lease: #"f = open(PATH, "r+")"#
            }
        }

        func statement(_ text: String, _ path: String) -> String {
            text.replacingOccurrences(of: "PATH", with: "'\(path)'")
        }
    }

    func held(by pids: [Int32]) -> [HeldLock] {
        let reading = HeldLockReading(pids)
        #expect(reading.read())
        return reading.locks
    }

    /// Reads the table until somebody waits for a lock on the file.
    func waiter(for lock: HeldLock, ofTable path: String = "/proc/locks") throws -> FileLock {
        let file = try #require(lock.lock.file)
        let end = Clock.monotonic() + .seconds(60)
        while Clock.monotonic() < end {
            let table = try LockTable.read(LockTable.Question(files: [file]), path: path)
            if let waiter = table.waiters.first(where: { $0.file == file && $0.request.pid != nil }) {
                return waiter.request
            }
            usleep(1_000)
        }
        throw Errno.timedOut
    }

    @Test("A process's lock of each sort is found, with its file and who waits", arguments: Sort.allCases)
    func found(sort: Sort) throws {
        let folder = try LockFolder()
        let path = try folder.file("a file")
        let holder = try Statements()
        #expect(held(by: [holder.pid]).isEmpty)
        try holder.run(sort.statement(sort.take, path))
        let locks = held(by: [holder.pid])
        try #require(locks.count == 1)
        #expect(locks[0].path == path)
        #expect(locks[0].holder == holder.pid)
        #expect(locks[0].lock.kind.rawValue == sort.rawValue)
        #expect(locks[0].lock.isExclusive == (sort != .lease))
        #expect(try LockTable.read(.init(files: nil)).waiters.allSatisfy { $0.file != locks[0].lock.file })

        let waiter = try Statements()
        try waiter.begin(sort.statement(sort.wait, path))
        let request = try self.waiter(for: locks[0])
        #expect(request.pid == waiter.pid)
        #expect(locks[0].lock.blocks(request))
        waiter.end()
    }

    @Test("A lock of an open file belongs to the processes that have it open, not to the one that took it and ended")
    func inherited() throws {
        let folder = try LockFolder()
        let path = try folder.file("pidfile")
        let shell = try Statements()
        try shell.run("f = open('\(path)', 'r+')")
        // As a shell does it: flock 9.
        try shell.run("p = os.fork() or (fcntl.flock(f, fcntl.LOCK_EX), os._exit(0)); os.waitpid(p, 0); p = 0")
        let locks = held(by: [shell.pid])
        try #require(locks.count == 1)
        #expect(locks[0].holder == shell.pid)
        #expect(locks[0].lock.pid != shell.pid)
        let waiter = try Statements()
        try waiter.begin("g = open('\(path)', 'r+'); fcntl.flock(g, fcntl.LOCK_SH)")
        if ProcFS.isInFirstPidNamespace { #expect(try self.waiter(for: locks[0]).pid == waiter.pid) }
        waiter.end()
        // Two that share it have one lock.
        try shell.run("p = os.fork() or signal.pause()")
        let child = try #require(try ProcFS.children(shell.pid).first)
        #expect(held(by: [child, shell.pid]).map(\.holder) == [child])
        kill(child, SIGKILL)
    }

    @Test("Only those wait for a lock that it keeps from going on")
    func blocking() {
        let file = FileLock.File(device: 1, inode: 2)
        func lock(_ kind: FileLock.Kind, _ exclusive: Bool, _ range: ClosedRange<UInt64> = 0...UInt64.max) -> FileLock {
            FileLock(kind: kind, isExclusive: exclusive, file: file, range: range)
        }
        #expect(lock(.flock, true).blocks(lock(.flock, false)))
        #expect(lock(.flock, false).blocks(lock(.flock, true)))
        #expect(!lock(.flock, false).blocks(lock(.flock, false)))
        #expect(!lock(.flock, true).blocks(lock(.posix, true)), "two worlds")
        #expect(lock(.posix, true, 0...9).blocks(lock(.ofd, true, 9...20)))
        #expect(!lock(.posix, true, 0...9).blocks(lock(.posix, true, 10...20)))
        #expect(!lock(.ofd, false).blocks(lock(.posix, false)))
        #expect(lock(.lease, false).blocks(lock(.lease, true)))
    }

    @Test("The transaction of an SQLite database is a lock on it")
    func database() throws {
        let folder = try LockFolder()
        let path = folder.path + "/notes.db"
        let holder = try Statements()
        try holder.run("import sqlite3; c = sqlite3.connect('\(path)', isolation_level=None)")
        try holder.run("c.execute('CREATE TABLE notes (text)')")
        #expect(held(by: [holder.pid]).isEmpty, "nothing is under way")
        try holder.run("c.execute('BEGIN IMMEDIATE')")
        let locks = held(by: [holder.pid])
        #expect(!locks.isEmpty)
        #expect(locks.allSatisfy { $0.path == path && $0.lock.kind == .posix })
        #expect(locks.contains { $0.lock.isExclusive })
        try holder.run("c.execute('COMMIT')")
        #expect(held(by: [holder.pid]).isEmpty)
    }

    @Test("All of the many locks on one file are found, also those that do not fit into the first read")
    func manyLocks() throws {
        let folder = try LockFolder()
        let path = try folder.file("many")
        let holder = try Statements()
        try holder.run("f = open('\(path)', 'r+'); [fcntl.lockf(f, fcntl.LOCK_EX, 1, 2 * i) for i in range(60)]")
        let locks = held(by: [holder.pid])
        #expect(locks.map(\.lock.range.lowerBound).sorted() == (0..<60).map { 2 * $0 })
        #expect(locks.allSatisfy { $0.path == path })
    }

    @Test("A process with very many descriptors is read in pieces, and nothing is read twice or left out")
    func pieces() throws {
        let folder = try LockFolder()
        let path = try folder.file("one of many")
        let holder = try Statements()
        try holder.run(
            "pipes = [os.pipe() for _ in range(200)]; f = open('\(path)', 'r+'); fcntl.flock(f, fcntl.LOCK_EX)"
        )
        let reading = HeldLockReading([holder.pid])
        var pieces = 1
        while !reading.read(until: .zero) { pieces += 1 }
        #expect(pieces > 20)
        #expect(try reading.count == Linux.File.list("/proc/\(holder.pid)/fd").count)
        #expect(reading.locks.map(\.path) == [path])
        #expect(reading.unreadable.isEmpty)
    }

    @Test("Who ended is not read, and is no error; a file that was removed is named as such")
    func gone() throws {
        let folder = try LockFolder()
        let path = try folder.file("gone")
        let holder = try Statements()
        try holder.run("f = open('\(path)', 'r+'); fcntl.flock(f, fcntl.LOCK_EX)")
        try Linux.File.remove(path)
        #expect(held(by: [holder.pid]).map(\.path) == [path + " (deleted)"])
        let pid = holder.pid
        holder.end()
        #expect(held(by: [pid]).isEmpty)
    }

    @Test("The table tells the locks of the processes that were asked for")
    func ofProcesses() throws {
        let folder = try LockFolder()
        let path = try folder.file("named")
        let holder = try Statements()
        try holder.run("f = open('\(path)', 'r+'); fcntl.lockf(f, fcntl.LOCK_EX, 10, 5)")
        let table = try LockTable.read(LockTable.Question(holders: [holder.pid]))
        #expect(table.locks == held(by: [holder.pid]).map(\.lock))
        #expect(table.locks.map(\.range) == [5...14])
        #expect(table.waiters.isEmpty)
    }

    // MARK: Text

    func table(_ text: String, _ question: LockTable.Question = .init(files: nil)) throws -> LockTable {
        let folder = try LockFolder()
        try Linux.File.write(folder.path + "/locks", text)
        return try LockTable.read(question, path: folder.path + "/locks")
    }

    @Test("Whoever waits behind another who waits is found too, and whoever waits for a lease by the lease's line")
    func tree() throws {
        let found = try table(
            """
            1: LEASE  BREAKING  READ 8288 fe:00:16237568 0 EOF
            1: -> LEASE  BREAKER   WRITE 8340 <none>:0 0 EOF
            2: OFDLCK ADVISORY  WRITE -1 fe:00:16237567 0 EOF
            2: -> POSIX  ADVISORY  WRITE 8338 fe:00:16237567 0 9
            2:  -> POSIX  ADVISORY  READ  8339 fe:00:16237567 5 EOF
            3: FLOCK  ADVISORY  WRITE 8288 103:0a:1 0 EOF
            4: DELEG  ACTIVE    READ 9 fe:00:4 0 EOF
            4: -> DELEG  BREAKER   WRITE 10 <none>:0 0 EOF

            """
        )
        #expect(found.waiters.map(\.request.pid) == [8340, 8338, 8339])
        #expect(found.waiters.map(\.file.inode) == [16_237_568, 16_237_567, 16_237_567])
        #expect(found.waiters[0].request.file == nil)
        #expect(found.waiters[2].request.range == 5...UInt64.max)
        #expect(found.waiters.allSatisfy { $0.file.device == 0xfe << 32 })
    }

    @Test(
        "What is no lock is passed over",
        arguments: ["", "\n\n", "1:", "1: ->", ": : :", "1: POSIX ADVISORY WRITE x fe:0:1 0 EOF"]
    )
    func nonsense(text: String) throws {
        let found = try table(
            text + "\n7: FLOCK ADVISORY WRITE 5 fe:00:1 0 EOF\n7: -> FLOCK ADVISORY WRITE 6 fe:00:1 0 EOF"
        )
        #expect(found.waiters.map(\.request.pid) == [6])
    }

    @Test("Numbers that are too large, ranges that end before they begin and bytes of any sort do no harm")
    func garbage() throws {
        let lines = [
            "1: FLOCK ADVISORY WRITE 99999999999 fe:00:1 0 EOF", "1: POSIX ADVISORY WRITE 5 fe:00:1 9 3",
            "1: POSIX ADVISORY WRITE 5 fffffffffffffffff:00:1 0 EOF",
            "1: POSIX ADVISORY WRITE 5 fe:00:99999999999999999999 0 1",
            "99999999999999999999: FLOCK ADVISORY WRITE 5 fe:00:1 0 EOF",
        ]
        #expect(try table(lines.joined(separator: "\n"), .init(files: nil, holders: [5])).waiters.isEmpty)
        var random = SystemRandomNumberGenerator()
        let alphabet = Array("0123456789:-> \n\t FLOCKPOSIXEADWRITVYNU\u{0}\u{ff}".utf8)
        for _ in 0..<200 {
            let bytes = (0..<400).map { _ in alphabet.randomElement(using: &random)! }
            let folder = try LockFolder()
            try Linux.File.write(folder.path + "/locks", bytes)
            _ = try LockTable.read(.init(files: nil, holders: [1, 5]), path: folder.path + "/locks")
        }
    }

    @Test("Of a table that takes too long to read, those who wait in its first part are known")
    func partial() throws {
        let folder = try LockFolder()
        let path = folder.path + "/locks"
        let lines = (1...10_000).map {
            "\($0): FLOCK ADVISORY WRITE 5 fe:00:\($0) 0 EOF\n\($0): -> FLOCK ADVISORY WRITE 6 fe:00:\($0) 0 EOF\n"
        }
        try Linux.File.write(path, Array(lines.joined().utf8))
        let whole = try LockTable.read(.init(files: nil), path: path, longest: .seconds(60))
        #expect(whole.waiters.count == 10_000 && !whole.isPartial)
        let part = try LockTable.read(.init(files: nil), path: path, longest: .zero)
        #expect((1..<10_000).contains(part.waiters.count) && part.isPartial)
        try Linux.File.write(path, Array(lines[0].utf8))
        #expect(try !LockTable.read(.init(files: nil), path: path, longest: .zero).isPartial, "it was read to its end")
    }

    @Test("A path is resolved from memory alone: what nobody has made is not there")
    func resolved() throws {
        let folder = try LockFolder()
        let path = try folder.file("real")
        try Linux.File.link(folder.path + "/link", to: "real")
        let found = try? Linux.File.realPathInMemory(folder.path + "/link")
        #expect(found == path, "Linux 5.12 can do that")
        // Links that nobody has followed since they were made.
        try Linux.File.makeDirectory(folder.path + "/folder")
        _ = try folder.file("folder/other")
        try Linux.File.link(folder.path + "/up", to: "folder/../folder/.")
        try Linux.File.link(folder.path + "/loop", to: "loop")
        for name in ["link", "up", "loop"] {
            var times = [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: 1_000_000, tv_nsec: 0)]
            utimensat(AT_FDCWD, "\(folder.path)/\(name)", &times, AT_SYMLINK_NOFOLLOW)
        }
        #expect((try? Linux.File.realPathInMemory(folder.path + "/link")) == path)
        #expect((try? Linux.File.realPathInMemory(folder.path + "/up/other")) == folder.path + "/folder/other")
        #expect((try? Linux.File.realPathInMemory(folder.path + "/loop")) == nil)
        #expect((try? Linux.File.realPathInMemory(folder.path + "/nowhere")) == nil)
    }
}
