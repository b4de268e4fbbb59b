// SPDX-License-Identifier: Apache-2.0

import CSQLite
import Foundation
import Linux

/// A disk that can be made to hang or to fail: SQLite's own VFS with other functions for writing and syncing.
final class FaultyDisk: Sendable {
    enum Mode: Sendable {
        case works
        case hangs
        /// Every write fails with this result.
        case fails(Int32)
    }

    /// The name for `Bench.store(vfs:)`.
    let name: String
    private let mode = Monitor(Mode.works)
    private let blocked = Monitor(0)
    private let failingReads = Monitor(0)
    private let failingSyncs = Monitor(0)
    private let refusedLogs = Monitor(0)

    /// Registered for good: SQLite may use a VFS until the process ends.
    nonisolated(unsafe) private static var disks: [FaultyDisk] = []
    private static let lock = NSLock()
    nonisolated(unsafe) private static let real = sqlite3_vfs_find(nil)!

    init() {
        name = "faulty-\(UUID().uuidString)"
        Self.lock.withLock {
            Self.disks.append(self)
            let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
            vfs.initialize(to: Self.real.pointee)
            vfs.pointee.zName = UnsafePointer(strdup(name))
            vfs.pointee.pNext = nil
            vfs.pointee.pAppData = Unmanaged.passUnretained(self).toOpaque()
            vfs.pointee.xOpen = { vfs, name, file, flags, outFlags in
                let disk = Unmanaged<FaultyDisk>.fromOpaque(vfs!.pointee.pAppData).takeUnretainedValue()
                if flags & SQLITE_OPEN_WAL != 0, FaultyDisk.consume(disk.refusedLogs) {
                    file?.pointee.pMethods = nil
                    return SQLITE_CANTOPEN
                }
                // The real one keeps what it needs behind its own pAppData.
                let code = FaultyDisk.real.pointee.xOpen(FaultyDisk.real, name, file, flags, outFlags)
                guard code == SQLITE_OK, let file, let methods = file.pointee.pMethods else { return code }
                file.pointee.pMethods = disk.wrapped(methods)
                return code
            }
            sqlite3_vfs_register(vfs, 0)
        }
    }

    func set(_ new: Mode) {
        mode.withLock { $0 = new }
        mode.wake()
    }

    /// So many reads fail, then they work.
    func failReads(_ count: Int) { failingReads.withLock { $0 = count } }

    var hasFailedReads: Bool { failingReads.withLock { $0 == 0 } }

    /// What is written stays written, but so many syncs say that they failed.
    func failSyncs(_ count: Int) { failingSyncs.withLock { $0 = count } }

    var hasFailedSyncs: Bool { failingSyncs.withLock { $0 == 0 } }

    /// So many times the write-ahead log cannot be opened, as if the process had no descriptor left.
    func refuseLog(_ count: Int) { refusedLogs.withLock { $0 = count } }

    var hasRefusedLog: Bool { refusedLogs.withLock { $0 == 0 } }

    private static func consume(_ failures: Monitor<Int>) -> Bool {
        failures.withLock { count in
            guard count > 0 else { return false }
            count -= 1
            return true
        }
    }

    /// Whether a write waits now.
    var isBlocking: Bool { blocked.withLock { $0 > 0 } }

    /// Waits while the disk hangs; the result that a write has to have.
    private func pass() -> Int32 {
        blocked.withLock { $0 += 1 }
        defer { blocked.withLock { $0 -= 1 } }
        return mode.wait { (mode, _) -> Int32? in
            switch mode {
            case .works: SQLITE_OK
            case .hangs: nil
            case .fails(let code): code
            }
        } ?? SQLITE_IOERR
    }

    private struct Wrapped {
        var methods: sqlite3_io_methods
        let original: UnsafePointer<sqlite3_io_methods>
        let disk: FaultyDisk
    }

    private func wrapped(_ original: UnsafePointer<sqlite3_io_methods>) -> UnsafePointer<sqlite3_io_methods> {
        // Never freed: a few hundred bytes for each file of a test.
        let place = UnsafeMutablePointer<Wrapped>.allocate(capacity: 1)
        place.initialize(to: Wrapped(methods: original.pointee, original: original, disk: self))
        let methods = UnsafeMutableRawPointer(place).assumingMemoryBound(to: sqlite3_io_methods.self)
        methods.pointee.xWrite = { file, bytes, count, offset in
            let place = FaultyDisk.place(file)
            let code = place.pointee.disk.pass()
            return code == SQLITE_OK ? place.pointee.original.pointee.xWrite(file, bytes, count, offset) : code
        }
        methods.pointee.xRead = { file, bytes, count, offset in
            let place = FaultyDisk.place(file)
            // What SQLite's own makes of EIO (SQLITE_IOERR_CORRUPTFS).
            if FaultyDisk.consume(place.pointee.disk.failingReads) { return SQLITE_IOERR | (33 << 8) }
            return place.pointee.original.pointee.xRead(file, bytes, count, offset)
        }
        methods.pointee.xSync = { file, flags in
            let place = FaultyDisk.place(file)
            if FaultyDisk.consume(place.pointee.disk.failingSyncs) { return SQLITE_IOERR | (4 << 8) }
            let code = place.pointee.disk.pass()
            return code == SQLITE_OK ? place.pointee.original.pointee.xSync(file, flags) : code
        }
        return UnsafePointer(methods)
    }

    private static func place(_ file: UnsafeMutablePointer<sqlite3_file>?) -> UnsafePointer<Wrapped> {
        UnsafeRawPointer(file!.pointee.pMethods!).assumingMemoryBound(to: Wrapped.self)
    }
}

/// A mount namespace of a thread, so that nothing mounted in it is left when the test ends.
enum PrivateMounts {
    /// Runs `body` on a thread that may mount; nil, with the reason printed, where this user may not.
    static func run(_ body: @escaping @Sendable () throws -> Void) throws {
        guard Users.isRoot else {
            print("skipped: only root may mount a small disk; what a full one says is simulated in another test")
            return
        }
        let result = Monitor<Result<Void, any Error>?>(nil)
        try WorkerThread.start(named: "mounts") {
            let outcome = Result {
                // unshare(2) needs _GNU_SOURCE; CLONE_NEWNS.
                typealias Unshare = @convention(c) (Int32) -> Int32
                let unshare = unsafeBitCast(dlsym(nil, "unshare"), to: Unshare.self)
                guard unshare(0x0002_0000) == 0, mount("none", "/", nil, 1 << 18 | 1 << 14, nil) == 0 else {
                    throw Errno(rawValue: errno)
                }
                try body()
            }
            result.withLock { $0 = outcome }
            result.wake()
        }
        try result.wait { (result, _) in result }!.get()
    }

    /// Mounts an empty tmpfs of so many KiB.
    static func mountSmallDisk(_ path: String, kibibytes: Int) throws {
        try File.makeDirectories(path)
        guard mount("tmpfs", path, "tmpfs", 0, "size=\(kibibytes)k") == 0 else { throw Errno(rawValue: errno) }
    }

    /// Makes what is mounted there writable or not.
    static func remount(_ path: String, readOnly: Bool) throws {
        guard mount(nil, path, nil, 32 | (readOnly ? 1 : 0), nil) == 0 else { throw Errno(rawValue: errno) }
    }
}
