// SPDX-License-Identifier: Apache-2.0

import DataProtection
import Linux
import SystemPackage
import WireText

/// The folder of all protected folders, locked so that no other torpor-protect works in it.
final class DoorRoot {
    let path: String
    let folder: Folder
    private let lock: Descriptor

    init(_ path: String) throws(Errno) {
        if try File.kind(path) == nil {
            try File.makeDirectories(path, mode: 0o711)
            try File.setMode(path, 0o711)
        }
        self.path = path
        folder = try Folder(path)
        lock = try File.open(path + "/" + ProtectedPlace.lock, [.readWrite, .create, .noFollow], mode: 0o600)
        // An earlier torpor-protect, of a torpord that is gone, ends in at most some seconds.
        while !(try Locks.tryLock(lock.raw)) { ThisProcess.sleep(.milliseconds(5)) }
    }

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

/// A protected folder and the door before it.
struct Door {
    let order: ProtectedFolder
    let root: DoorRoot
    let path: String
    var files: String { path + "/" + ProtectedPlace.files }

    /// Of torpord's user alone, so that the app cannot open it again.
    private static let openMode: UInt32 = Users.isRoot ? 0o711 : 0o700
    private static let closedMode: UInt32 = Users.isRoot ? 0o700 : 0

    init(_ order: ProtectedFolder, _ root: DoorRoot) {
        (self.order, self.root) = (order, root)
        path = root.path + "/" + order.app
    }

    private struct Refusal: Error {
        let state: FolderStanding.State
        let sentence: String
    }

    // MARK: Opening

    func open() -> FolderStanding {
        var standing = FolderStanding(app: order.app, .open)
        do {
            standing.isEncrypted = try makeReady()
            try File.setMode(path, Self.openMode, followLinks: false)
        } catch {
            let refusal = error as? Refusal
            standing.state = refusal?.state ?? .refused
            standing.problem = refusal?.sentence ?? "the folder \(path) cannot be made ready: \(error)"
            try? File.setMode(path, Self.closedMode, followLinks: false)
        }
        return standing
    }

    /// Makes the folder where it is missing. Returns whether it is encrypted; then its key is there.
    private func makeReady() throws -> Bool {
        if try File.kind(path) == nil { try File.makeDirectory(path, mode: 0o700) }
        // While the door of a user's supervisor is closed, not even that user can look behind it.
        try File.setMode(path, 0o700, followLinks: false)
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
                guard order.mayFallBack else { throw notEmpty }
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

    private func need(_ key: Encryption.Identifier, _ folder: Folder) throws {
        guard try Encryption.status(of: key, on: folder) == .present else { throw withoutKey }
    }

    private var withoutKey: Refusal {
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
            sentence: "\(files) has files and is not encrypted: move them away, launch the app, and copy them back"
        )
    }

    private var unsupported: Refusal {
        let isExt4 = (try? File.filesystem(of: root.path)) == 0xef53
        return Refusal(
            state: .refused,
            sentence: "the filesystem of \(root.path) encrypts no folders: "
                + (isExt4 ? "ext4 needs ‘tune2fs -O encrypt DEVICE’" : "ext4, f2fs and UBIFS can")
                + "; or set protected_fallback = \"permissions\""
        )
    }

    /// Gives a folder to the app's user.
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

    /// Closes doors, takes the keys away, and looks for processes that still have files open.
    ///
    /// Each step is done for all doors before the next one, since each takes longer than the one before: a slow disk, or
    /// an app with very many files, must not keep the doors of others open.
    static func close(_ doors: [Door], _ root: DoorRoot) -> [FolderStanding] {
        var holders = HolderSearch()
        var shut = doors.map { $0.shut(root) }
        let end = Clock.monotonic() + longestLook
        for at in shut.indices {
            let identities =
                Clock.monotonic() < end ? shut[at].folder?.identities(atMost: HolderSearch.mostFiles) ?? [] : []
            holders.add(shut[at].standing.app, doors[at].files, identities)
            // An open descriptor would keep the folder in use.
            shut[at].folder = nil
        }
        for at in shut.indices {
            guard let key = shut[at].key else { continue }
            do {
                let isBusy = try Encryption.remove(key, from: root.folder)
                shut[at].standing.isBusy = shut[at].standing.isBusy || isBusy
            } catch {
                shut[at].fail(doors[at], error)
            }
        }
        let found = holders.search()
        return zip(doors, shut).map { door, shut in
            var standing = shut.standing
            if let refusal = door.refusal {
                standing.state = .refused
                standing.problem = refusal.sentence
            }
            if let list = found[standing.app], !list.isEmpty {
                standing.holders = Array(list.prefix(FileHolder.most))
                standing.isBusy = true
            }
            return standing
        }
    }

    /// How long the folders of all doors may be searched for their files. A folder that is left out is still compared by
    /// its path.
    private static let longestLook = Duration.seconds(2)

    /// A door that was closed.
    private struct Shut {
        var standing: FolderStanding
        /// The key of an encrypted folder.
        var key: Encryption.Identifier?
        /// The folder behind the door, opened before it was closed.
        var folder: Folder?

        mutating func fail(_ door: Door, _ error: any Error) {
            standing.isBusy = true
            standing.problem = "its folder \(door.path) could not be locked: \(error)"
        }
    }

    /// Why no unlock would open the folder.
    private var refusal: Refusal? {
        guard !order.mayFallBack else { return nil }
        switch try? Encryption.standing(of: (try? Folder(files)) ?? root.folder) {
        case .unsupported: return unsupported
        case .plain: return (try? Folder(files).names(atMost: 1).isEmpty) == false ? notEmpty : nil
        case .encrypted, nil: return nil
        }
    }

    /// Closes the door, whatever cannot be learned of the folder behind it.
    private func shut(_ root: DoorRoot) -> Shut {
        var shut = Shut(standing: FolderStanding(app: order.app, .closed))
        do {
            guard try File.kind(path) == .directory else { return shut }
        } catch {
            shut.fail(self, error)
        }
        // A user's closed door keeps this process out too; what is behind it was looked at when it was closed.
        let isThere = File.exists(files)
        shut.folder = try? Folder(files)
        do {
            try File.setMode(path, Self.closedMode, followLinks: false)
        } catch {
            shut.fail(self, error)
        }
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
        if isThere || shut.key != nil { shut.standing.isEncrypted = shut.key != nil }
        return shut
    }
}
