// SPDX-License-Identifier: Apache-2.0

import Linux
import WireText

/// A folder of desktop entries, which other programs use too.
package struct DesktopFolder {
    /// What a sync did, or would do.
    package struct Changes: Hashable, Sendable {
        /// The names of files that are new or whose content has changed.
        package var written: [String] = []
        /// The names of files that were right already.
        package var unchanged: [String] = []
        /// The names of removed files, whose apps no longer exist.
        package var removed: [String] = []
        /// Files that were left alone, with the reasons.
        package var refused: [Refusal] = []
    }

    /// A file that a sync leaves alone although an app needs its name.
    package struct Refusal: Hashable, Sendable {
        /// The app's name.
        package var app: String
        /// The file's name.
        package var file: String
        /// The reason, as the end of a sentence whose subject is the file.
        package var reason: String
    }

    /// Why the folder cannot be used or a file cannot be written, as a sentence.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// The most files that the folder may contain.
    private static let mostNames = 50_000
    /// The largest entry that is read, in bytes. Torpor's own entries are far smaller.
    private static let mostBytes = 1 << 20
    private static let temporary = ".torpor-entry-"

    private let path: String

    /// The folder at that path, which a sync creates if it does not exist.
    package init(_ path: String) { self.path = path }

    /// Updates the entries of this supervisor's apps: writes new and changed ones, removes those of apps that no
    /// longer exist, and leaves all other files alone. Blocks on the disk.
    ///
    /// - Parameter isTrial: whether to only compute the changes.
    package func sync(_ wanted: DesktopEntries, isTrial: Bool = false) throws(Failure) -> Changes {
        guard let folder = try open(makes: !isTrial) else {
            return Changes(written: wanted.entries.map(\.file))
        }
        var changes = Changes()
        do {
            let names = try folder.names(atMost: Self.mostNames + 1).map(\.text)
            guard names.count <= Self.mostNames else {
                throw Failure(description: "\(path) has more than \(Self.mostNames) files: it is not touched")
            }
            let due = wanted.entries.filter { isToWrite($0, wanted.socket, folder, &changes) }
            if !isTrial { try write(due, folder) }
            changes.written = due.map(\.file)
            let files = Set(wanted.entries.map(\.file))
            for name in names.sorted() where !files.contains(name) {
                if !isTrial, isLeftOver(name) { try? folder.remove(FileName(name)) }
                guard name.utf8.starts(with: DesktopEntryName.prefix.utf8), name.hasSuffix(DesktopEntryName.suffix),
                    case .entry(let text) = content(FileName(name), folder),
                    DesktopEntry.owner(in: text)?.socket.utf8.elementsEqual(wanted.socket.utf8) == true
                else { continue }
                if !isTrial { try folder.remove(FileName(name)) }
                changes.removed.append(name)
            }
        } catch let errno as Errno {
            throw Failure(description: "\(path) cannot be changed: \(errno)")
        } catch {
            throw error as? Failure ?? Failure(description: "\(path) cannot be changed")
        }
        return changes
    }

    /// Opens the folder; nil if it does not exist and `makes` is false.
    private func open(makes: Bool) throws(Failure) -> Folder? {
        do {
            if makes { try File.makeDirectories(path) }
            // A user may have replaced the folder by a symlink. Root does not follow symlinks, which could lead
            // anywhere.
            let folder = try Folder(path, followLinks: !Users.isRoot)
            let status = try folder.status()
            if Users.isRoot, status.uid != 0 || status.mode & 0o002 != 0 {
                throw Failure(description: "\(path) is not a folder of root: run ‘torpor desktop sync’ as its owner")
            }
            return folder
        } catch let errno as Errno {
            if errno == .noSuchFileOrDirectory, !makes { return nil }
            throw Failure(description: "\(path) cannot be opened: \(errno)")
        } catch {
            throw error as? Failure ?? Failure(description: "\(path) cannot be opened")
        }
    }

    private enum Content {
        case nothing
        /// The entry is not a regular file, is too large, or cannot be read.
        case other
        case entry(String)
    }

    /// Reads an entry without following a symlink or blocking on a FIFO.
    private func content(_ name: FileName, _ folder: Folder) -> Content {
        do throws(Errno) {
            guard let status = try folder.status(name) else { return .nothing }
            guard status.kind == .regular else { return .other }
            return try folder.openFile(name).withRaw { raw throws(Errno) in
                .entry(String(wire: try File.read(descriptor: raw, limit: Self.mostBytes)))
            }
        } catch {
            return .other
        }
    }

    /// Whether an entry must be written: it is missing or belongs to this supervisor, and its content differs.
    private func isToWrite(
        _ entry: DesktopEntries.Entry,
        _ socket: String,
        _ folder: Folder,
        _ changes: inout Changes
    ) -> Bool {
        func refuse(_ reason: String) -> Bool {
            changes.refused.append(Refusal(app: entry.app, file: entry.file, reason: reason))
            return false
        }
        switch content(FileName(entry.file), folder) {
        case .nothing: return true
        case .other: return refuse("is not a file that can be read")
        case .entry(let text):
            if text.utf8.elementsEqual(entry.text.utf8) {
                changes.unchanged.append(entry.file)
                return false
            }
            guard let owner = DesktopEntry.owner(in: text) else { return refuse("was not made by Torpor") }
            guard owner.socket.utf8.elementsEqual(socket.utf8) else {
                return refuse("belongs to another supervisor, the one with the socket \(owner.socket)")
            }
            return true
        }
    }

    /// Writes each entry to a temporary file and renames it, so that readers see either the old content or the new
    /// one. All files are written before the first is synchronised, so that the filesystem commits its journal only
    /// once.
    private func write(_ entries: [DesktopEntries.Entry], _ folder: Folder) throws(Errno) {
        let drafts = entries.indices.map { FileName("\(Self.temporary)\(ThisProcess.pid)-\($0)") }
        do throws(Errno) {
            for (entry, draft) in zip(entries, drafts) {
                try? folder.remove(draft)
                try folder.openOrMakeFile(draft, mode: 0o644, isNew: true).withRaw { raw throws(Errno) in
                    try File.setMode(descriptor: raw, 0o644)
                    try Descriptor.writeAll(raw, Array(entry.text.utf8))
                }
            }
            for draft in drafts {
                try folder.openFile(draft).withRaw { raw throws(Errno) in try File.synchronise(raw) }
            }
            for (entry, draft) in zip(entries, drafts) { try folder.rename(draft, to: folder, FileName(entry.file)) }
        } catch {
            for draft in drafts { try? folder.remove(draft) }
            throw error
        }
    }

    /// Whether a name is that of a temporary file that a killed process left.
    private func isLeftOver(_ name: String) -> Bool {
        guard name.utf8.starts(with: Self.temporary.utf8) else { return false }
        guard let pid = Int32(name.dropFirst(Self.temporary.count).prefix { $0 != "-" }) else { return false }
        return pid != ThisProcess.pid && !File.exists("/proc/\(pid)")
    }
}
