// SPDX-License-Identifier: Apache-2.0

import Linux
import WireText

/// A folder of desktop entries, in which other programs have theirs.
package struct DesktopFolder {
    /// What a sync did, or would do.
    package struct Changes: Hashable, Sendable {
        /// The names of files that are new or have another content.
        package var written: [String] = []
        /// The names of files that are as they should be.
        package var unchanged: [String] = []
        /// The names of files of apps that are gone.
        package var removed: [String] = []
        /// What was left alone, and why.
        package var refused: [Refusal] = []
    }

    /// A file that a sync leaves alone although an app needs its name.
    package struct Refusal: Hashable, Sendable {
        /// The app's name.
        package var app: String
        /// The file's name.
        package var file: String
        /// Why, in half a sentence about the file.
        package var reason: String
    }

    /// Why a folder cannot be used, or a file not be written: a sentence.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// The most names in a folder.
    private static let mostNames = 50_000
    /// The largest entry that is read; one of Torpor is far smaller.
    private static let mostBytes = 1 << 20
    private static let temporary = ".torpor-entry-"

    private let path: String

    /// The folder at that path, which a sync makes if it does not exist.
    package init(_ path: String) { self.path = path }

    /// Makes the files of this supervisor's apps what they should be: writes new and changed ones, removes those of apps
    /// that are gone, and touches no other file. Blocks on the disk.
    ///
    /// - Parameter isTrial: change nothing.
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

    /// The folder; nil if there is none and it is not to be made.
    private func open(makes: Bool) throws(Failure) -> Folder? {
        do {
            if makes { try File.makeDirectories(path) }
            // A user's own folder may be a symlink to another of theirs. Root follows none.
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
        /// It is not a regular file, too large, or cannot be read.
        case other
        case entry(String)
    }

    /// What is there, without following a symlink or waiting for a FIFO.
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

    /// Whether an entry is to be written: what is there is another content, and of the same supervisor.
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
                return refuse("is of another supervisor, that with the socket \(owner.socket)")
            }
            return true
        }
    }

    /// Writes files beside them and renames these, so that readers see the old content or the new one. All are written
    /// before the first is synchronised: the filesystem then has to write its journal only once.
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

    /// Whether it is the draft of a process that was killed.
    private func isLeftOver(_ name: String) -> Bool {
        guard name.utf8.starts(with: Self.temporary.utf8) else { return false }
        guard let pid = Int32(name.dropFirst(Self.temporary.count).prefix { $0 != "-" }) else { return false }
        return pid != ThisProcess.pid && !File.exists("/proc/\(pid)")
    }
}
