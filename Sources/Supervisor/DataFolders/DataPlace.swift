// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
package import Linux
import TorporAPI
import Varlink

/// The data folders of one app on disk: `STATE/data/APP`, which belongs to the app's user.
///
/// `STATE/data` belongs to the supervisor, which records first launches there, in folders whose names no app can have.
/// In an app's folder everything is done with the rights of its owner, and without following links, so that an app can
/// only harm itself. All functions may wait for the disk, so call them on a background thread.
package struct DataPlace: Sendable {
    /// The folders that an app gets.
    package enum Part: String, CaseIterable, Sendable {
        case documents, library, caches, tmp

        var name: FileName { FileName(rawValue) }
    }

    /// The folder with the data folders of all apps, `STATE/data`.
    let root: String
    package let app: String

    package init(root: String, app: String) { (self.root, self.app) = (root, app) }

    /// The folder that contains all data folders of the app.
    package var path: String { root + "/" + app }
    package func path(_ part: Part) -> String { path + "/" + part.rawValue }

    /// The variables that tell an app where its data folders are.
    package var variables: [String: String] {
        [
            "TORPOR_DOCUMENTS": path(.documents), "TORPOR_LIBRARY": path(.library), "TORPOR_CACHES": path(.caches),
            "TMPDIR": path(.tmp),
        ]
    }

    // MARK: What is known of first launches

    private var mark: String { root + "/.launches/" + app }
    private var pending: String { root + "/.pending/" + app }

    /// The app's version at the last launch that succeeded, and whether any launch has succeeded.
    var known: (version: String?, isThere: Bool) {
        guard let bytes = try? File.read(mark, limit: 4096) else { return (nil, false) }
        return ((try? JSON.parse(bytes))?["version"]?.stringValue, true)
    }

    /// What an earlier torpord passed to the launch of this incarnation about its data; nil if unknown.
    func pendingLaunch(_ incarnation: UInt32) -> DataLaunch? {
        guard let bytes = try? File.read(pending, limit: 4096), let json = try? JSON.parse(bytes),
            json["incarnation"]?.intValue == Int64(incarnation)
        else { return nil }
        return DataLaunch(
            incarnation: incarnation,
            isFirst: json["first_launch"]?.boolValue ?? false,
            updatedFrom: json["updated_from"]?.stringValue,
            version: json["version"]?.stringValue
        )
    }

    private func note(_ launch: DataLaunch) throws(Errno) {
        guard launch.isNews else {
            if File.exists(pending) { try File.remove(pending) }
            return
        }
        let json: JSON = [
            "incarnation": .int(Int64(launch.incarnation)), "first_launch": .bool(launch.isFirst),
            "updated_from": .optional(launch.updatedFrom), "version": .optional(launch.version),
        ]
        try Self.makeOwnFolder(root + "/.pending")
        try File.replace(pending, json.serialised(), mode: 0o600)
    }

    /// Records that a launch has succeeded, so that the next one does not count as the first. The record is durable
    /// when this function returns.
    func keep(_ launch: DataLaunch) throws(Errno) {
        guard launch.isNews else { return }
        try Self.makeOwnFolder(root + "/.launches")
        let json: JSON = ["version": .optional(launch.version)]
        try File.replace(mark, json.serialised(), mode: 0o600, sync: true)
        try Folder(root + "/.launches").synchronise()
        try? File.remove(pending)
    }

    func forgetLaunches() throws(Errno) {
        for path in [mark, pending] where File.exists(path) { try File.remove(path) }
        if File.exists(root + "/.launches") { try Folder(root + "/.launches").synchronise() }
    }

    private static func makeOwnFolder(_ path: String) throws(Errno) {
        if try File.kind(path) != .directory { try File.makeDirectories(path, mode: 0o700) }
    }

    // MARK: What is there

    /// The rights of the folder's owner; nil if torpord has these rights already or cannot take them (``FileRights``).
    var rights: FileRights? {
        get throws(Errno) {
            let status = try File.status(path, followLinks: false)
            guard status.kind == .directory else { throw .notDirectory }
            return FileRights(name: "user \(status.uid)", uid: status.uid, gid: status.gid, groups: [status.gid])
        }
    }

    /// Calls `body`, which works in the folder with the rights of the folder's owner.
    func acting<T>(_ body: (Folder) throws(Errno) -> T) throws(Errno) -> T {
        guard let rights = try rights else { return try body(try Folder(path)) }
        return try rights.acting { () throws(Errno) in try body(try Folder(path)) }
    }

    /// How much space the app's data folders take.
    func usage(isConfigured: Bool, _ work: TreeWork) -> DataFoldersInfo {
        var info = DataFoldersInfo(app: app, path: path, isConfigured: isConfigured)
        info.version = known.version
        let sizes = try? acting { folder throws(Errno) in
            Part.allCases.map { part -> Folder.Size? in
                guard let part = try? folder.folder(part.name) else { return nil }
                return try? part.measure(work)
            }
        }
        let bytes = (sizes ?? []).map { Int64(clamping: $0?.bytes ?? 0) }
        if bytes.count == 4 {
            (info.documents, info.library, info.caches, info.temporary) = (bytes[0], bytes[1], bytes[2], bytes[3])
        }
        info.isWhole = sizes?.allSatisfy { $0?.isWhole ?? false } ?? !File.exists(path)
        return info
    }

    /// The apps that have a folder in `root`, sorted by name.
    static func apps(in root: String) -> [String] {
        ((try? File.list(root)) ?? []).filter { !$0.hasPrefix(".") }.sorted()
    }

    // MARK: Removing

    /// Empties the given folders. If none is given, removes all of them, and the record of launches.
    func purge(_ parts: [Part], _ work: TreeWork) throws(Errno) -> Removal {
        let isAll = parts.isEmpty
        // Remove the record of launches first: if the removal of the data is interrupted, the app then counts as never
        // launched.
        if isAll { try forgetLaunches() }
        var emptied = try acting { folder throws(Errno) in
            var emptied = Removal()
            do throws(TreeError) {
                if isAll { return Removal(try folder.empty(work)) }
                for part in parts {
                    guard let place = try? folder.folder(part.name) else { continue }
                    emptied.add(Removal(try place.empty(work)))
                }
            } catch {
                throw error.errno
            }
            return emptied
        }
        guard isAll, emptied.left == 0 else { return emptied }
        try File.removeDirectory(path)
        emptied.removed += 1
        return emptied
    }

    /// Removes all data of the app. Returns nil, or a sentence about what could not be removed.
    func erase() -> String? {
        guard File.exists(path) else { return nil }
        do throws(Errno) {
            let removal = try purge([], TreeWork())
            guard removal.left > 0 else { return nil }
            return "\(Readable.count(removal.left, "file")) in \(path)" + (removal.first.map { " (\($0))" } ?? "")
        } catch {
            return "\(path) (\(error))"
        }
    }

    /// Removes the least recently used files of the app's caches until `bytes` bytes are freed.
    func evict(bytes: UInt64, _ work: TreeWork) -> (files: Int, bytes: UInt64) {
        let freed = try? acting { folder throws(Errno) in
            try folder.folder(Part.caches.name).removeOldest(bytes: bytes, work)
        }
        return (freed?.files ?? 0, freed?.bytes ?? 0)
    }
}

/// The result of removing files from data folders, or of changing their owner: for how many files this succeeded and
/// for how many it failed.
package struct Removal: Hashable, Sendable {
    package var removed = 0
    package var left = 0
    /// The first failure.
    package var first: TreeError?

    init() {}

    init(_ emptied: Folder.Emptied) { (removed, left, first) = (emptied.removed, emptied.left, emptied.first) }

    mutating func add(_ other: Removal) {
        removed += other.removed
        left += other.left
        if first == nil { first = other.first }
    }
}

/// What torpord tells an app about its data at a launch.
package struct DataLaunch: Hashable, Sendable {
    let incarnation: UInt32
    /// Whether no launch of the app has succeeded before.
    package let isFirst: Bool
    /// If the version has changed since the last launch that succeeded, the version at that launch; otherwise nil.
    /// Empty if that launch had no version.
    package let updatedFrom: String?
    let version: String?

    /// Whether torpord must record this launch once it has succeeded.
    var isNews: Bool { isFirst || updatedFrom != nil }
}

extension DataPlace {
    /// The result of preparing a launch.
    struct Prepared: Sendable {
        let launch: DataLaunch
        var copied: Folder.Copied?
        /// Sentences about failures that do not prevent the launch. Their subject is the app.
        var problems: [String] = []
    }

    /// The user and the group that must own an app's folders.
    struct Owner: Hashable, Sendable {
        let uid: UInt32
        let gid: UInt32
        let rights: FileRights?
        /// The user's name, for sentences.
        let name: String

        init(_ account: Account?) {
            uid = account?.user?.uid ?? Users.effectiveUID
            gid = account?.gid ?? Users.effectiveGID
            rights = account?.fileRights
            name = account?.user?.name ?? "torpord's own user"
        }
    }

    /// Prepares the folders for a launch: creates them, makes the user their owner, and empties `tmp`. Before the
    /// first launch of the app, and of each version, copies the files of `first_launch`.
    func prepare(
        _ data: DataFolderSpecification,
        for owner: Owner,
        incarnation: UInt32,
        _ work: TreeWork
    ) throws(LaunchError) -> Prepared {
        let before = known
        let isUpdate = before.isThere && data.version != nil && data.version != before.version
        var prepared = Prepared(
            launch: DataLaunch(
                incarnation: incarnation,
                isFirst: !before.isThere,
                updatedFrom: isUpdate ? before.version ?? "" : nil,
                version: data.version ?? before.version
            )
        )
        do throws(Errno) {
            if let problem = try makeFolder(for: owner, work) { prepared.problems.append(problem) }
        } catch {
            throw LaunchError("cannot make the data folder \(path) for \(owner.name): \(error)")
        }
        let ready: Result<Prepared, LaunchError>
        do throws(Errno) {
            ready = try acting { folder throws(Errno) in
                do throws(LaunchError) {
                    var prepared = prepared
                    try fill(folder, data, owner, &prepared, work)
                    return .success(prepared)
                } catch {
                    return .failure(error)
                }
            }
        } catch {
            throw LaunchError("cannot open the data folder \(path) as \(owner.name): \(error)")
        }
        prepared = try ready.get()
        // Ignore a failure: a full disk must not keep the app from running. But if torpord is replaced during the
        // launch, the next torpord does not know what the app was told about its data.
        try? note(prepared.launch)
        return prepared
    }

    /// Makes the app's folder, or gives it to another user. Returns nil, or a sentence about files that kept their
    /// owner.
    func makeFolder(for owner: Owner, _ work: TreeWork) throws(Errno) -> String? {
        if try File.kind(root) != .directory {
            try File.makeDirectories(root, mode: 0o711)
            // Apps must be able to traverse the folder, whatever torpord's umask is.
            try File.setMode(root, 0o711)
        }
        guard let kind = try File.kind(path) else {
            try File.makeDirectory(path, mode: 0o700)
            if Users.isRoot { try File.setOwner(path, uid: owner.uid, gid: owner.gid) }
            return nil
        }
        guard kind == .directory else { throw .notDirectory }
        let status = try File.status(path, followLinks: false)
        if status.mode & 0o700 != 0o700 { try File.setMode(path, status.mode | 0o700, followLinks: false) }
        guard status.uid != owner.uid else { return nil }
        guard Users.isRoot else { throw .notPermitted }
        return try Self.give(path, from: status.uid, to: owner, work)
    }

    /// Gives a folder to another user, with the files in it that belong to the user `old`. Returns nil, or a sentence
    /// about files that kept their owner. Its subject is the app.
    static func give(_ path: String, from old: UInt32, to owner: Owner, _ work: TreeWork) throws(Errno) -> String? {
        let folder = try Folder(path)
        let given: Removal
        do throws(TreeError) {
            given = Removal(try folder.give(from: old, to: (owner.uid, owner.gid), work))
        } catch {
            throw error.errno
        }
        guard given.left > 0 else { return nil }
        return "has \(Readable.count(given.left, "file")) in \(path) that still belong to user \(old)"
            + first(given) + ": give them to \(owner.name) by hand"
    }

    private static func first(_ emptied: Removal) -> String { emptied.first.map { " (\($0))" } ?? "" }

    private static let draft = FileName(".first-launch")

    private func fill(
        _ folder: Folder,
        _ data: DataFolderSpecification,
        _ owner: Owner,
        _ prepared: inout Prepared,
        _ work: TreeWork
    ) throws(LaunchError) {
        var place = path
        do throws(Errno) {
            for part in Part.allCases where part != .tmp {
                place = self.path(part)
                switch try Self.kind(part, in: folder) {
                case nil: try folder.makeFolder(part.name, mode: 0o700)
                // A user, or the app, may have put a link or a mount point there: do not touch what is in it.
                case .directory, .link, .other: break
                case .regular, .fifo, .socket, .character, .block: throw .notDirectory
                }
            }
        } catch {
            throw LaunchError("cannot make the data folder \(place) as \(owner.name): \(error)")
        }
        do throws(TreeError) {
            let emptied = try empty(folder, work)
            if emptied.left > 0 {
                prepared.problems.append(
                    "is launched with \(Readable.count(emptied.left, "file")) in \(self.path(.tmp)) that could not be "
                        + "removed" + Self.first(emptied)
                )
            }
        } catch {
            if error.errno == .canceled { throw LaunchError("its launch was cancelled") }
            throw LaunchError("cannot make \(path)/\(error.path) as \(owner.name): \(error.errno)")
        }
        guard let source = data.firstLaunch, prepared.launch.isNews else { return }
        prepared.copied = try copy(source, into: folder, owner, work)
    }

    /// What is at the path of a data folder: `other` for a mount point, nil if nothing is there.
    private static func kind(_ part: Part, in folder: Folder) throws(Errno) -> FileStatus.Kind? {
        do throws(Errno) {
            return try folder.status(part.name)?.kind
        } catch {
            if error == .improperLink { return .other }
            throw error
        }
    }

    /// Empties `tmp`. If the app has removed it, or put a file in its place, makes a new folder.
    private func empty(_ folder: Folder, _ work: TreeWork) throws(TreeError) -> Removal {
        let name = Part.tmp.name
        do throws(Errno) {
            switch try Self.kind(.tmp, in: folder) {
            case .directory: break
            case .other:
                var emptied = Removal()
                (emptied.left, emptied.first) = (1, TreeError(Part.tmp.rawValue, .improperLink))
                return emptied
            case nil, .regular, .link, .fifo, .socket, .character, .block:
                try? folder.remove(name)
                try folder.makeFolder(name, mode: 0o700)
                return Removal()
            }
        } catch {
            throw TreeError(Part.tmp.rawValue, error)
        }
        return Removal(try folder.emptyFolder(name, work))
    }

    private func copy(
        _ source: String,
        into folder: Folder,
        _ owner: Owner,
        _ work: TreeWork
    ) throws(LaunchError) -> Folder.Copied {
        let from: Folder
        do throws(Errno) {
            from = try Folder(source, followLinks: true, entersMounts: true)
        } catch {
            throw LaunchError("cannot read first_launch = \"\(source)\" as \(owner.name): \(error)")
        }
        do throws(TreeError) {
            // Remove the unfinished copy that an earlier torpord may have left when it was killed.
            _ = try folder.removeTree(Self.draft, work)
            let (library, draft): (Folder, Folder)
            do throws(Errno) {
                library = try folder.folder(Part.library.name)
                try folder.makeFolder(Self.draft, mode: 0o700)
                draft = try folder.folder(Self.draft)
            } catch {
                throw TreeError("", error)
            }
            defer { try? folder.removeFolder(Self.draft) }
            return try library.copyMissing(from: from, draft: draft, work)
        } catch {
            switch error.errno {
            case .canceled: throw LaunchError("its launch was cancelled")
            case .fileTooLarge:
                throw LaunchError(
                    "first_launch = \"\(source)\" has more than \(Folder.mostEntries) files, or is too deep at "
                        + "\(error.path)"
                )
            default:
                throw LaunchError(
                    "cannot copy first_launch = \"\(source)\" into \(self.path(.library)) as \(owner.name): \(error)"
                )
            }
        }
    }
}
