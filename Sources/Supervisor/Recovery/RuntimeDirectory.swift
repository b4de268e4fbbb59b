// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
package import Linux
import SystemPackage

/// The directories of one supervisor, and the lock that says who is in charge of them.
package final class RuntimeDirectory {
    package let path: String
    package let apps: String
    package let socket: String
    package let logs: String
    package let state: String
    /// Where an app's sockets and FIFOs are.
    package func directory(of app: AppRuntime) -> String { apps + "/" + app.name }
    /// State, output and configuration for the torpord that comes after this one.
    package var recovery: String { path + "/recovery" }
    var batch: String { path + "/output-batch" }
    package var journal: String { path + "/journal" }
    package var configuration: String { path + "/configuration" }
    /// Held by the keeper too, so that nobody else takes charge while torpord is replaced.
    private(set) var lock: Descriptor
    /// Whether the lock is that of an earlier torpord, as the keeper gave it back.
    let isLockInherited: Bool

    /// Tells supervisors of one machine apart, the same after a restart.
    package var instance: String {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in path.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return String(hash, radix: 36)
    }

    /// Makes the directories and takes the lock, or goes on with the one that the keeper held. Where nothing is logged
    /// there need be no directory for it: a container's file system may be for reading only.
    package init(
        _ specification: SupervisorSpecification,
        lock held: Descriptor? = nil,
        needsLogs: Bool = true
    ) throws(StartError) {
        path = specification.runtimeDirectory
        apps = path + "/apps"
        socket = path + "/io.torpor"
        logs = specification.logDirectory
        state = specification.stateDirectory
        // The state directory is the store's to make: without it the supervisor goes on.
        try Self.make(path)
        try Self.checkOwner(of: path)
        try Self.make(apps)
        do throws(StartError) {
            try Self.make(logs)
        } catch {
            if needsLogs { throw error }
        }
        if let held, Self.isAt(path + "/lock", held) {
            lock = Self.tightened(held, path + "/lock")
            isLockInherited = lock === held
        } else {
            lock = try Self.takeLock(of: path)
            isLockInherited = false
        }
        Self.sign(lock)
    }

    /// Whoever is refused is told the keeper's number: it is what whoever started the supervisor sees.
    private static func sign(_ lock: Descriptor) {
        try? File.truncate(lock.raw, to: 0)
        try? File.write(lock.raw, at: 0, Array("\(ThisProcess.parent)\n".utf8))
    }

    private static func make(_ directory: String) throws(StartError) {
        do throws(Errno) {
            try File.makeDirectories(directory)
        } catch {
            throw StartError(
                "cannot make the directory \(directory) (\(error)): choose another one under [supervisor], "
                    + "or make it writable for this user"
            )
        }
    }

    /// Whoever has the directory can put other files into it, and the next torpord goes by them. In `/tmp`, where a user's is
    /// without `XDG_RUNTIME_DIR`, another user may have made it first.
    private static func checkOwner(of directory: String) throws(StartError) {
        guard let owner = (try? File.status(directory))?.uid, owner != 0, owner != Users.effectiveUID else { return }
        throw StartError(
            "the directory \(directory) belongs to user \(owner), who could take over what runs here: remove it, "
                + "or choose another one with runtime_directory under [supervisor] or with XDG_RUNTIME_DIR"
        )
    }

    /// Whether that file has this name.
    static func isAt(_ path: String, _ descriptor: Descriptor) -> Bool {
        guard let there = try? File.status(path), let ours = try? File.status(descriptor: descriptor.raw) else {
            return false
        }
        return (there.device, there.inode) == (ours.device, ours.inode)
    }

    /// Takes the lock, if need be when the one who had it is dead to the last thread: one that waits for a disk keeps its
    /// files open until the disk answers.
    private static func isTaken(_ lock: Descriptor, _ path: String) throws(Errno) -> Bool {
        let end = Clock.monotonic() + .seconds(5)
        while try !Locks.tryLock(lock.raw) {
            guard !isHolderAlive(path), Clock.monotonic() < end else { return false }
            ThisProcess.sleep(.milliseconds(10))
        }
        return true
    }

    /// The lock of an earlier torpord, or another one in its place where anybody could open that.
    private static func tightened(_ held: Descriptor, _ path: String) -> Descriptor {
        guard (try? isLoose(held)) ?? false else { return held }
        return (try? replaced(path, held)) ?? held
    }

    private static func holder(of path: String) -> Int32? {
        (try? File.readString(path))?.split(separator: "\n").first.flatMap { Int32($0) }
    }

    private static func isHolderAlive(_ path: String) -> Bool {
        holder(of: path).flatMap { try? ProcFS.stat($0) }.map { !$0.hasEnded } ?? false
    }

    private static func takeLock(of path: String) throws(StartError) -> Descriptor {
        let lockPath = path + "/lock"
        do throws(Errno) {
            let lock = try File.open(lockPath, [.readWrite, .create, .noFollow], mode: 0o600)
            let isOurs = try isTaken(lock, lockPath)
            if isOurs, isAt(lockPath, lock), try !isLoose(lock) { return lock }
            // Earlier versions made a lock that anybody could open, and so wait for, and have before the next start.
            guard try isLoose(lock), isOurs || !isHolderAlive(lockPath) else {
                throw .resourceTemporarilyUnavailable
            }
            return try replaced(lockPath, isOurs ? lock : nil)
        } catch {
            if error == .resourceTemporarilyUnavailable {
                let pid = holder(of: lockPath).map(String.init) ?? "unknown"
                throw StartError(
                    "another torpord (process \(pid)) is in charge of \(path): stop it first, or give this one a "
                        + "runtime_directory of its own"
                )
            }
            throw StartError("cannot lock \(lockPath): \(error)")
        }
    }

    /// Whether others than its user can open it.
    private static func isLoose(_ lock: Descriptor) throws(Errno) -> Bool {
        try File.status(descriptor: lock.raw).mode & 0o077 != 0
    }

    /// Puts a lock that only its user can open in the place of one that anybody can. Those who do so at the same time wait
    /// for nobody: one of them has the new lock, which is signed before it is in its place, and the others are refused.
    private static func replaced(_ path: String, _ held: Descriptor?) throws(Errno) -> Descriptor {
        let freshPath = path + ".new"
        let fresh = try File.open(freshPath, [.readWrite, .create, .noFollow], mode: 0o600)
        guard try Locks.tryLock(fresh.raw), isAt(freshPath, fresh), try !isLoose(fresh) else {
            throw .resourceTemporarilyUnavailable
        }
        // Meanwhile somebody else may have done it.
        let there = try File.status(path)
        guard there.mode & 0o077 != 0, held.map({ isAt(path, $0) }) ?? !isHolderAlive(path) else {
            try? File.remove(freshPath)
            throw .resourceTemporarilyUnavailable
        }
        sign(fresh)
        try File.rename(freshPath, path)
        return fresh
    }

    /// What must be there while the supervisor runs.
    var essentials: [String] { [path, apps, path + "/lock", recovery, batch, configuration, socket] }

    /// Makes the directories again, and takes the lock when its file is gone. Returns whether it was.
    func repair() throws(StartError) -> Bool {
        for directory in [path, apps] { try Self.make(directory) }
        let isGone = !Self.isAt(path + "/lock", lock)
        if isGone { lock = try Self.takeLock(of: path) }
        Self.sign(lock)
        return isGone
    }

    /// Which policy in torpord's own process is being asked.
    var policyMarks: String { path + "/policy-marks" }

    /// Removes what belongs to the run; logs and state stay.
    package func remove(apps directories: [String]) {
        for directory in directories { try? File.removeTree(directory) }
        try? File.removeDirectory(apps)
        let files = [
            recovery, batch, journal, configuration, policyMarks, path + "/lock", path + "/lock.new",
            path + "/regions.json",
        ]
        for file in files { try? File.remove(file) }
        // Drafts of a torpord that was killed while it wrote one.
        for name in (try? File.list(path)) ?? [] where name == "recovery.new" || name.hasPrefix("configuration.tmp") {
            try? File.remove(path + "/" + name)
        }
    }
}
