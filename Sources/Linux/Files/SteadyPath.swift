// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import WireText

/// Opens files to which a user will get rights. So that user must not be able to redirect the paths of the files.
///
/// A symlink is followed only if root owns it and its folder, and no other user can write to the folder. Opening may
/// block on a disk or a server: do not call it on the event loop.
public struct SteadyPath {
    /// Why a path was not opened.
    public enum Failure: Error, Hashable, Sendable, CustomStringConvertible {
        /// An error of the kernel.
        case errno(Errno)
        /// The path contains a symlink that a user other than root could have put there. The text is the symlink's
        /// name.
        case link(String)
        /// A pattern has too many matches.
        case tooMany(limit: Int)

        /// The reason, as the rest of a sentence that begins with the path.
        public var description: String {
            switch self {
            case .errno(let errno): "cannot be opened: \(errno)"
            case .link(let name):
                "is not opened: \(name) is a symlink in a folder that users may write to; name the path that it leads to"
            case .tooMany(let limit): "has more than \(limit) matches"
            }
        }
    }

    /// A file that was found. It is open with O_PATH.
    public struct Found {
        /// The names on the way to the file. If a symlink was followed, its name comes before the names of its target.
        public let path: String
        /// The open file.
        public let descriptor: Descriptor
        /// Whether the file is a folder.
        public let isFolder: Bool
    }

    /// Limits the search for patterns, because a pattern with wildcards on many levels could otherwise search all
    /// folders of a disk.
    public struct Budget: Hashable, Sendable {
        /// How many more folders may be searched.
        public var folders: Int
        /// How many more names in folders may be compared with the pattern.
        public var names: Int

        /// Creates a budget for the patterns of one app.
        public init(folders: Int = 4096, names: Int = 65_536) { (self.folders, self.names) = (folders, names) }
    }

    /// The files that were found for a path or pattern.
    public struct Matches {
        /// The files, in the order of their paths.
        public var files: [Found] = []
        /// The first folder that was not searched completely because the budget was used up; nil if all folders were.
        public var unsearched: String?
    }

    private static let mostLinks = 40

    private let limit: Int
    private var budget: Budget
    private var links = 0
    private var found = Matches()

    /// Opens the file at an absolute path; with `isPattern`, all files that match (glob(7)). Empty if there is none.
    public static func open(
        _ path: String,
        isPattern: Bool = false,
        atMost limit: Int = 256,
        _ budget: inout Budget
    ) throws(Failure) -> Matches {
        var walk = SteadyPath(limit: limit, budget: budget)
        defer { budget = walk.budget }
        let root = try walk.step { () throws(Errno) in try File.open("/", [.path, .directory]) }
        try walk.go(root, "", names(path)[...], isPattern: isPattern)
        return walk.found
    }

    private init(limit: Int, budget: Budget) { (self.limit, self.budget) = (limit, budget) }

    private static func names(_ path: String) -> [Substring] {
        path.split(separator: "/").filter { $0 != "." }
    }

    private func step<T>(_ body: () throws(Errno) -> T) throws(Failure) -> T {
        do throws(Errno) { return try body() } catch { throw .errno(error) }
    }

    private mutating func go(
        _ start: Descriptor,
        _ base: String,
        _ names: ArraySlice<Substring>,
        isPattern: Bool
    ) throws(Failure) {
        var (folder, rest, path) = (start, names, base)
        while let name = rest.popFirst() {
            if name == ".." {
                let here = try step { () throws(Errno) in try File.status(descriptor: folder.raw) }
                guard Self.isSteady(here) else { throw .link(String(name)) }
            }
            guard let next = try find(name, in: folder) else {
                guard isPattern, NamePattern.isPattern(String(name)) else { return }
                for match in try matches(String(name), in: folder, path) {
                    try go(folder, path, [match[...]] + rest, isPattern: true)
                }
                return
            }
            path += "/" + name
            let status = try step { () throws(Errno) in try File.status(descriptor: next.raw) }
            guard status.kind == .link else {
                folder = next
                continue
            }
            let around = try step { () throws(Errno) in try File.status(descriptor: folder.raw) }
            guard Self.isSteady(around), status.uid == 0, tlx_is_made_up(folder.raw) == 0 else {
                throw .link(String(name))
            }
            links += 1
            guard links <= Self.mostLinks else { throw .errno(.tooManySymbolicLinkLevels) }
            let target = try step { () throws(Errno) in try File.readLink(descriptor: next.raw) }
            if target.hasPrefix("/") {
                folder = try step { () throws(Errno) in try File.open("/", [.path, .directory]) }
            }
            rest = Self.names(target) + rest
        }
        guard found.files.count < limit else { throw .tooMany(limit: limit) }
        let status = try step { () throws(Errno) in try File.status(descriptor: folder.raw) }
        found.files.append(
            Found(path: path.isEmpty ? "/" : path, descriptor: folder, isFolder: status.kind == .directory)
        )
    }

    /// Whether only root can change the folder's entries.
    private static func isSteady(_ folder: FileStatus) -> Bool { folder.uid == 0 && folder.mode & 0o022 == 0 }

    /// Opens a name in a folder; nil if the folder has no such name.
    private func find(_ name: Substring, in folder: Descriptor) throws(Failure) -> Descriptor? {
        do throws(Errno) {
            return try File.open(String(name), in: folder.raw, [.path, .noFollow])
        } catch {
            if error == .noSuchFileOrDirectory || error == .notDirectory { return nil }
            throw .errno(error)
        }
    }

    private mutating func matches(_ pattern: String, in folder: Descriptor, _ path: String) throws(Failure) -> [String]
    {
        var names: [String] = []
        var (left, isCut) = (budget.names, budget.folders <= 0)
        guard !isCut else {
            found.unsearched = found.unsearched ?? (path.isEmpty ? "/" : path)
            return []
        }
        budget.folders -= 1
        defer {
            budget.names = left
            if isCut { found.unsearched = found.unsearched ?? (path.isEmpty ? "/" : path) }
        }
        do throws(Errno) {
            try File.eachName(in: "/proc/self/fd/\(folder.raw)") { name in
                guard left > 0 else {
                    isCut = true
                    return false
                }
                left -= 1
                if NamePattern.fits(name, path: pattern) { names.append(String(terminatedWire: name)) }
                return true
            }
        } catch {
            if error == .notDirectory { return [] }
            throw .errno(error)
        }
        return names.sorted()
    }
}
