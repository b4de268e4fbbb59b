// SPDX-License-Identifier: Apache-2.0

import DataProtection
import Linux
import SystemPackage
import Varlink
import WireText

/// The folder that contains all protected folders. It is locked, so that only one torpor-protect works in it at a time.
final class DoorRoot {
    let path: String
    let folder: Folder
    private let lock: Descriptor

    /// How long a torpor-protect that a previous torpord started may continue before it is killed.
    private static let patience = Duration.seconds(5)
    /// How long to wait for the end of such a torpor-protect after it was killed.
    private static let grace = Duration.seconds(2)

    /// - Parameters:
    ///   - mayGoOn: whether to work although another torpor-protect, which was killed, is held in the kernel.
    ///   - mayKill: whether to kill another torpor-protect that takes too long.
    init(_ path: String, mayGoOn: Bool, mayKill: Bool = true) throws(Errno) {
        if try File.kind(path) == nil {
            try File.makeDirectories(path, mode: 0o711)
            try File.setMode(path, 0o711)
        }
        self.path = path
        folder = try Folder(path)
        lock = try File.open(path + "/" + ProtectedPlace.lock, [.readWrite, .create, .noFollow], mode: 0o600)
        if try !takes(within: Self.patience) {
            guard mayKill else { throw .resourceBusy }
            killHolder()
            // A killed process finishes only the system call that holds it, so it is safe to continue. Otherwise a disk
            // that hangs could keep folders open.
            if try !takes(within: Self.grace), !mayGoOn { throw .resourceBusy }
        }
        try? File.truncate(lock.raw, to: 0)
        _ = try? File.write(lock.raw, at: 0, Array("\(ThisProcess.pid)\n".utf8))
    }

    private func takes(within time: Duration) throws(Errno) -> Bool {
        let end = Clock.monotonic() + time
        while !(try Locks.tryLock(lock.raw)) {
            guard Clock.monotonic() < end else { return false }
            ThisProcess.sleep(.milliseconds(5))
        }
        return true
    }

    private func killHolder() {
        let text = String(wire: (try? File.read(lock.raw, at: 0, maximum: 16)) ?? [])
        guard let pid = Int32(text.prefix { $0 != "\n" }), pid > 1, pid != ThisProcess.pid,
            let process = try? Pidfd.open(pid), (try? ProcFS.stat(pid))?.comm == "torpor-protect"
        else { return }
        try? Pidfd.sendSignal(process.raw, Signal.kill)
    }

    /// Releases the lock, so that the next torpor-protect can work. Call this when no more changes follow.
    func letGo() { try? Locks.unlock(lock.raw) }

    /// The apps that have a door here, except those in `kept`.
    func others(than kept: Set<String>) -> [String] {
        let names = (try? folder.names(atMost: Self.mostDoors)) ?? []
        return names.map(\.text).filter { !$0.hasPrefix(".") && !kept.contains($0) }
    }

    private static let mostDoors = 100_000

    /// The identifier of an app's key, in the first line of its sealed key; nil if it has none.
    func key(of app: String) -> Encryption.Identifier? {
        guard let text = try? File.readString("\(path)/\(ProtectedPlace.keys)/\(app)", limit: 4096) else { return nil }
        let word = text.prefix { $0 != "\n" }
        let digits = Array(word.utf8)
        guard digits.count == 2 * Encryption.identifierLength else { return nil }
        var bytes: [UInt8] = []
        for at in stride(from: 0, to: digits.count, by: 2) {
            guard let byte = UInt8(String(wire: Array(digits[at...(at + 1)])), radix: 16) else { return nil }
            bytes.append(byte)
        }
        return bytes
    }

    /// Whether `torpor protect init` has made keys here.
    var hasKeys: Bool { File.exists("\(path)/\(ProtectedPlace.keys)/ring") }
}

/// A protected folder, and its door: the folder around it, whose mode decides whether the app can get in.
struct Door {
    let order: ProtectedFolder
    let root: DoorRoot
    let path: String
    var files: String { path + "/" + ProtectedPlace.files }
    var draft: String { path + "/" + ProtectedPlace.draft }

    /// The mode of an open door. A door belongs to torpord's user, so that the app cannot open it itself.
    private static let openMode: UInt32 = Users.isRoot ? 0o711 : 0o700
    static let closedMode: UInt32 = Users.isRoot ? 0o700 : 0

    init(_ order: ProtectedFolder, _ root: DoorRoot) {
        (self.order, self.root) = (order, root)
        path = root.path + "/" + order.app
    }

    struct Refusal: Error {
        let state: FolderStanding.State
        let sentence: String
    }

    // MARK: Opening

    func open() -> FolderStanding {
        var standing = FolderStanding(app: order.app, .open)
        guard !isBeingMoved else {
            // Do not open the folder: the process that moves its files has closed it.
            standing.state = .closed
            standing.problem = "its files are being moved by ‘torpor protect move’"
            return standing
        }
        do {
            standing.isEncrypted = try makeReady()
            try File.setMode(path, Self.openMode, followLinks: false)
            if try File.kind(draft) != nil {
                standing.problem =
                    "‘torpor protect move’ was interrupted and has left files in \(draft): run it again to remove them"
            }
        } catch {
            let refusal = error as? Refusal
            standing.state = refusal?.state ?? .refused
            standing.problem = refusal?.sentence ?? "the folder \(path) cannot be made ready: \(error)"
            if standing.state == .refused, let folder = try? Folder(files) {
                switch try? Encryption.standing(of: folder) {
                case .plain, .unsupported: standing.isEncrypted = false
                case .encrypted, nil: break
                }
            }
            try? File.setMode(path, Self.closedMode, followLinks: false)
        }
        return standing
    }

    /// Whether a move of the folder's files, which holds the lock of the door, is under way.
    private var isBeingMoved: Bool {
        // If torpor-protect does not run as root, a closed door keeps torpor-protect out too: open the door.
        if !Users.isRoot { try? File.setMode(path, 0o700, followLinks: false) }
        guard let door = try? File.open(path, [.read, .directory, .noFollow]) else { return false }
        return (try? door.withRaw { raw throws(Errno) in try Locks.tryLock(raw, exclusive: false) }) == false
    }

    /// Creates the folder if it is missing. Returns whether the folder is encrypted; if so, the kernel has its key.
    private func makeReady() throws -> Bool {
        if try File.kind(path) == nil { try File.makeDirectory(path, mode: 0o700) }
        // If a supervisor of a user runs torpor-protect, a closed door keeps out that user too: open the door to look
        // behind it. Root can always look behind it. So leave the mode unchanged for root, since the app may be using
        // its folder now.
        if !Users.isRoot { try File.setMode(path, 0o700, followLinks: false) }
        let kind = try File.kind(files)
        guard kind == nil || kind == .directory else { throw Errno.notDirectory }
        if kind == nil { try File.makeDirectory(files, mode: 0o700) }
        let folder = try Folder(files)
        let isEncrypted: Bool
        do {
            isEncrypted = try encrypt(folder)
        } catch {
            if kind == nil { try? File.removeDirectory(files) }
            throw error
        }
        try give(folder)
        return isEncrypted
    }

    private func encrypt(_ folder: Folder) throws -> Bool {
        switch try Encryption.standing(of: folder) {
        case .encrypted(let key):
            try need(key, folder)
            return true
        case .unsupported:
            guard order.mayFallBack else { throw unsupported }
            return false
        case .plain:
            guard try folder.names(atMost: 1).isEmpty else {
                guard order.mayFallBack else {
                    // A lock in progress may have removed the key, which a move of the files needs.
                    if let key = root.key(of: order.app) { try need(key, folder) }
                    throw notEmpty
                }
                return false
            }
            guard let key = root.key(of: order.app) else {
                guard order.mayFallBack, !root.hasKeys else { throw withoutKey }
                return false
            }
            try need(key, folder)
            try Encryption.protect(folder, with: key)
            return true
        }
    }

    func need(_ key: Encryption.Identifier, _ folder: Folder) throws {
        guard try Encryption.status(of: key, on: folder) == .present else { throw withoutKey }
    }

    var withoutKey: Refusal {
        Refusal(
            state: .withoutKey,
            sentence: root.hasKeys
                ? "the passphrase was not given: run ‘torpor protect unlock’"
                : "there are no keys yet: run ‘torpor protect init’, then ‘torpor protect unlock’"
        )
    }

    private var notEmpty: Refusal {
        Refusal(
            state: .refused,
            sentence: "\(files) has files and is not encrypted: run ‘torpor protect move \(order.app)’"
        )
    }

    var unsupported: Refusal {
        let isExt4 = (try? File.filesystem(of: root.path)) == 0xef53
        return Refusal(
            state: .refused,
            sentence: "the filesystem of \(root.path) encrypts no folders: "
                + (isExt4 ? "ext4 needs ‘tune2fs -O encrypt DEVICE’" : "ext4, f2fs and UBIFS can")
                + "; or set protected_fallback = \"permissions\""
        )
    }

    /// Makes the app's user the owner of a folder.
    private func give(_ folder: Folder) throws {
        guard Users.isRoot else { return }
        var (uid, gid) = (Users.effectiveUID, Users.effectiveGID)
        if !order.user.isEmpty {
            guard let user = Users.lookup(order.user) else {
                throw Refusal(state: .refused, sentence: "there is no user \(order.user)")
            }
            (uid, gid) = (user.uid, user.gid)
        }
        if !order.group.isEmpty {
            guard let group = Users.group(order.group) else {
                throw Refusal(state: .refused, sentence: "there is no group \(order.group)")
            }
            gid = group
        }
        let status = try folder.status()
        guard status.uid != uid || status.gid != gid else { return }
        guard try folder.names(atMost: 1).isEmpty || status.uid == uid else {
            throw Refusal(
                state: .refused,
                sentence: "\(files) belongs to user \(status.uid): give it and its files to \(order.user) (chown -R)"
            )
        }
        try File.setOwner(files, uid: uid, gid: gid)
    }

    // MARK: Closing

    /// Closes doors, removes the keys from the kernel, prints the standings, and searches for processes that still have
    /// files open. Returns whether the search was complete.
    ///
    /// Each step is done for all doors before the next step begins, since each step takes longer than the one before.
    /// So a slow disk, or an app with very many files, does not keep other doors open.
    static func close(_ doors: [Door], _ root: DoorRoot, print: @escaping @Sendable (JSON) -> Void) -> Bool {
        var holders = HolderSearch()
        var shut = doors.map { $0.shut() }
        let end = Clock.monotonic() + longestLook
        for at in shut.indices {
            doors[at].learnKey(&shut[at], root)
            let identities = shut[at].folder?.identities(atMost: HolderSearch.mostFiles, until: end) ?? []
            holders.add(shut[at].standing.app, doors[at].files, identities)
            // Release the descriptor, which would keep the folder in use.
            shut[at].folder = nil
        }
        removeKeys(&shut, doors, root)
        for (door, shut) in zip(doors, shut) {
            var standing = shut.standing
            if standing.state == .closed, let refusal = door.refusal {
                standing.state = .refused
                standing.problem = refusal.sentence
            }
            print(standing.json)
        }
        root.letGo()
        return holders.search(until: Clock.monotonic() + longestSearch, print: print)
    }

    /// Closes the doors of apps that are no longer named by any configuration. Returns why that failed; nil if it
    /// succeeded.
    static func sweep(_ doors: [Door], _ root: DoorRoot) -> String? {
        var shut = doors.map { $0.shut() }
        for at in shut.indices {
            doors[at].learnKey(&shut[at], root)
            shut[at].folder = nil
        }
        removeKeys(&shut, doors, root)
        return shut.lazy.filter { $0.standing.state == .open }.compactMap(\.standing.problem).first
    }

    private static func removeKeys(_ shut: inout [Shut], _ doors: [Door], _ root: DoorRoot) {
        for at in shut.indices {
            guard let key = shut[at].key else {
                // The files are not encrypted. But the kernel may have the app's key all the same, because a move of
                // the files is in progress: remove that key too.
                if let unused = root.key(of: doors[at].order.app) {
                    _ = try? Encryption.remove(unused, from: root.folder)
                }
                continue
            }
            do {
                switch try Encryption.remove(key, from: root.folder) {
                case .whole: break
                case .busy: shut[at].standing.isBusy = true
                case .othersHaveIt:
                    shut[at].standing.isBusy = true
                    shut[at].standing.problem = "another user has given the kernel the key of \(doors[at].path) too"
                }
            } catch {
                shut[at].fail(doors[at], error)
            }
        }
    }

    /// The time limit for listing the files in all folders. If a folder was not listed completely, its files are still
    /// recognised by their path.
    private static let longestLook = Duration.seconds(2)
    /// The time limit for inspecting all processes, on a machine that is busy. torpord kills this process after 20 s.
    private static let longestSearch = Duration.seconds(15)

    /// The result of closing a door, the path through which an app reaches its protected folder.
    private struct Shut {
        var standing: FolderStanding
        /// The identifier of the folder's key; nil if the folder is not encrypted.
        var key: Encryption.Identifier?
        /// The folder behind the door. If torpor-protect does not run as root, it is opened before the door is closed.
        var folder: Folder?

        /// Records a failure: the door may still be open, or the kernel may still have the key.
        mutating func fail(_ door: Door, _ error: any Error) {
            standing.state = .open
            standing.isBusy = true
            standing.problem = "its folder \(door.path) could not be locked: \(error)"
        }
    }

    /// Why no unlock can ever open the folder; nil if an unlock can.
    private var refusal: Refusal? {
        guard !order.mayFallBack else { return nil }
        switch try? Encryption.standing(of: (try? Folder(files)) ?? root.folder) {
        case .unsupported: return unsupported
        case .plain: return (try? Folder(files).names(atMost: 1).isEmpty) == false ? notEmpty : nil
        case .encrypted, nil: return nil
        }
    }

    /// Closes the door, even if nothing can be found out about the folder behind it.
    private func shut() -> Shut {
        var shut = Shut(standing: FolderStanding(app: order.app, .closed))
        do {
            guard try File.kind(path) == .directory else { return shut }
            // Without root's rights, this process cannot pass a closed door either, so open the folder first. If the
            // door is closed already, the folder was handled when the door was closed.
            if !Users.isRoot { shut.folder = try? Folder(files) }
            try File.setMode(path, Self.closedMode, followLinks: false)
        } catch {
            shut.fail(self, error)
        }
        return shut
    }

    private func learnKey(_ shut: inout Shut, _ root: DoorRoot) {
        // Open one folder at a time: there may be more doors than descriptors.
        if Users.isRoot { shut.folder = try? Folder(files) }
        if let folder = shut.folder {
            do {
                if case .encrypted(let identifier) = try Encryption.standing(of: folder) { shut.key = identifier }
            } catch {
                shut.key = root.key(of: order.app)
                shut.fail(self, error)
            }
        } else {
            shut.key = root.key(of: order.app)
        }
        if shut.folder != nil || shut.key != nil { shut.standing.isEncrypted = shut.key != nil }
    }
}
