// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
package import Linux
import SystemPackage

/// The directories of one supervisor, and the lock that shows which torpord is in charge of them.
package final class RuntimeDirectory {
    package let path: String
    package let apps: String
    package let socket: String
    package let logs: String
    package let state: String
    /// The path that the log of an app with this name has, or had.
    package func logPath(of name: String) -> String { logs + "/" + name + ".log" }
    /// The folder of an app's sockets and FIFOs.
    package func directory(of app: AppRuntime) -> String { apps + "/" + app.name }
    /// The path of the recovery file, which contains the records of the apps. The properties below are the paths of
    /// other files for the next torpord: the apps' output that is not in their logs yet, the store's journal, and the
    /// configuration in force.
    package var recovery: String { path + "/recovery" }
    var batch: String { path + "/output-batch" }
    /// What is still to be removed of the folders of apps that are gone.
    var removed: RemovedFolders { RemovedFolders(path: path + "/removed") }
    package var journal: String { path + "/journal" }
    package var configuration: String { path + "/configuration" }
    /// torpor-keeper holds the lock too, so that no other supervisor can take the lock while torpord is being
    /// replaced.
    private(set) var lock: Descriptor
    /// Whether torpor-keeper has returned the lock of an earlier torpord.
    let isLockInherited: Bool

    /// A name that identifies this supervisor on the machine, and stays the same after a restart.
    package var instance: String {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in path.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return String(hash, radix: 36)
    }

    /// Makes the directories, and takes the lock or uses the one that torpor-keeper held. If no app logs to files, the
    /// log directory may be missing, because a container's filesystem may be read-only.
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
        // The state directory is not made here but later by the store, because the supervisor can run without it.
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

    /// Writes torpor-keeper's pid into the lock file. The error that a second supervisor gets names this pid, because
    /// the user has started torpor-keeper and so can recognize the process.
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

    /// Refuses a directory that belongs to another user, because that user could put files into it and the next torpord
    /// would trust them. Without `XDG_RUNTIME_DIR` the directory is in `/tmp`, where another user may have made it
    /// first.
    private static func checkOwner(of directory: String) throws(StartError) {
        guard let owner = (try? File.status(directory))?.uid, owner != 0, owner != Users.effectiveUID else { return }
        throw StartError(
            "the directory \(directory) belongs to user \(owner), who could take over what runs here: remove it, "
                + "or choose another one with runtime_directory under [supervisor] or with XDG_RUNTIME_DIR"
        )
    }

    /// Whether the path leads to the same file as the open descriptor.
    static func isAt(_ path: String, _ descriptor: Descriptor) -> Bool {
        guard let there = try? File.status(path), let ours = try? File.status(descriptor: descriptor.raw) else {
            return false
        }
        return (there.device, there.inode) == (ours.device, ours.inode)
    }

    /// Takes the lock. Returns false if another process has it. If that process has died, waits up to 5 s for its last
    /// thread, because a thread that waits for a disk keeps its files open until the disk answers.
    private static func isTaken(_ lock: Descriptor, _ path: String) throws(Errno) -> Bool {
        let end = Clock.monotonic() + .seconds(5)
        while try !Locks.tryLock(lock.raw) {
            guard !isHolderAlive(path), Clock.monotonic() < end else { return false }
            ThisProcess.sleep(.milliseconds(10))
        }
        return true
    }

    /// Returns the lock of an earlier torpord. If other users can open that lock, returns a new one instead.
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
            // Replace the lock file of an earlier version, which any user can open: such a user could take the lock and
            // so prevent a start.
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

    /// Whether other users can open the file of the lock.
    private static func isLoose(_ lock: Descriptor) throws(Errno) -> Bool {
        try File.status(descriptor: lock.raw).mode & 0o077 != 0
    }

    /// Replaces a lock file that any user can open by one that only its owner can open. If several processes do this at
    /// the same time, one of them gets the new lock and the others are refused at once. torpor-keeper's pid is written
    /// before the new file replaces the old one, so that readers always find a pid.
    private static func replaced(_ path: String, _ held: Descriptor?) throws(Errno) -> Descriptor {
        let freshPath = path + ".new"
        let fresh = try File.open(freshPath, [.readWrite, .create, .noFollow], mode: 0o600)
        guard try Locks.tryLock(fresh.raw), isAt(freshPath, fresh), try !isLoose(fresh) else {
            throw .resourceTemporarilyUnavailable
        }
        // Refuse this process if another process has replaced the lock file in between.
        let there = try File.status(path)
        guard there.mode & 0o077 != 0, held.map({ isAt(path, $0) }) ?? !isHolderAlive(path) else {
            try? File.remove(freshPath)
            throw .resourceTemporarilyUnavailable
        }
        sign(fresh)
        try File.rename(freshPath, path)
        return fresh
    }

    /// The paths that must exist while the supervisor runs.
    var essentials: [String] { [path, apps, path + "/lock", recovery, batch, configuration, socket] }

    /// Makes removed directories again. If the lock file was removed, also makes a new one, and locks it. Returns
    /// whether the lock file was removed.
    func repair() throws(StartError) -> Bool {
        for directory in [path, apps] { try Self.make(directory) }
        let isGone = !Self.isAt(path + "/lock", lock)
        if isGone { lock = try Self.takeLock(of: path) }
        Self.sign(lock)
        return isGone
    }

    /// The file that names the policy that is running in torpord's own process. If torpord crashes, this policy counts
    /// as the cause.
    var policyMarks: String { path + "/policy-marks" }

    /// Removes the files of this supervisor. Logs and saved state are kept.
    package func remove(apps directories: [String]) {
        // Most of them are empty by now: whether one is, rmdir(2) tells with one system call.
        for directory in directories where (try? File.removeDirectory(directory)) == nil {
            _ = try? removed.take(directory)
        }
        // What users have put there must not delay the end. The next torpord continues.
        if removed.isThere { removed.clear(until: Clock.monotonic() + .seconds(2)) }
        try? File.removeDirectory(apps)
        let files = [
            recovery, batch, journal, configuration, policyMarks, path + "/lock", path + "/lock.new",
            path + "/regions.json",
        ]
        for file in files { try? File.remove(file) }
        // Remove unfinished files of a torpord that was killed while it wrote them.
        for name in (try? File.list(path)) ?? [] where name == "recovery.new" || name.hasPrefix("configuration.tmp") {
            try? File.remove(path + "/" + name)
        }
    }
}
