// SPDX-License-Identifier: Apache-2.0

import Linux
import TransferProtocol
import WireText

/// A file error, given as the end of the transfer that it causes.
struct DiskError: Error {
    let end: TransferEnd

    init(_ outcome: TransferEnd.Outcome, _ reason: String, _ message: String) {
        var end = TransferEnd(outcome, bytes: 0)
        end.reason = reason
        end.message = message
        self.end = end
    }

    /// Converts an errno to the end of a transfer. If the disk is full, the transfer waits for space; errors that the
    /// app must correct are final; all others are retried.
    ///
    /// - Parameter reason: the reason for errors that the app must correct: `destination` or `source`.
    init(_ errno: Errno, _ what: String, reason: String) {
        switch errno {
        case .noSpace, Errno(rawValue: 122): self.init(.space, "space", "\(what): \(errno)")
        case .fileTooLarge: self.init(.failed, "too-large", "\(what): \(errno)")
        case .isDirectory, .notDirectory, .tooManySymbolicLinkLevels, .permissionDenied, .notPermitted,
            .readOnlyFileSystem, .improperLink, .fileNameTooLong, .noSuchFileOrDirectory, .noSuchAddressOrDevice:
            self.init(.failed, reason, "\(what): \(errno)")
        default: self.init(.retry, "disk", "\(what): \(errno)")
        }
    }
}

/// An app's folders. All functions here may block on the disk, so call them in jobs.
struct Places: Sendable {
    let parts: String
    let roots: [String]

    /// Opens the folder of partial files.
    func partsFolder() throws(DiskError) -> Folder {
        do throws(Errno) {
            return try Folder(parts, followLinks: true, entersMounts: true)
        } catch {
            throw DiskError(.retry, "disk", "the folder of partial files: \(error)")
        }
    }

    /// The name of the partial file of a transfer.
    static func part(_ id: Int64) -> FileName { FileName("\(id).part") }
    /// The name of the file that records a transfer's end until torpord has acknowledged the end.
    static func end(_ id: Int64) -> FileName { FileName("\(id).done") }

    /// Opens the folder of a transfer's file below its root, without following symlinks. Returns the folder, and the
    /// file's name in it.
    ///
    /// - Parameter make: whether to create missing folders, durably. If not, the result is nil if a folder is
    ///   missing.
    func folder(of order: TransferOrder, make: Bool, reason: String) throws(DiskError) -> (Folder, FileName)? {
        guard roots.indices.contains(order.root) else {
            throw DiskError(.failed, reason, "there is no folder \(order.root) for the file")
        }
        var names = order.file.utf8.split(separator: UInt8(ascii: "/")).map { String(wire: $0) }
        guard let last = names.popLast() else { throw DiskError(.failed, reason, "the file has no name") }
        do throws(Errno) {
            var folder = try Folder(roots[order.root], followLinks: true, entersMounts: true)
            for name in names.map({ FileName($0) }) {
                do throws(Errno) {
                    folder = try folder.folder(name)
                } catch  where error == .noSuchFileOrDirectory {
                    if !make { return nil }
                    do throws(Errno) {
                        try folder.makeFolder(name, mode: 0o700)
                    } catch  where error == .fileExists {}
                    try folder.synchronise()
                    folder = try folder.folder(name)
                }
            }
            return (folder, FileName(last))
        } catch {
            throw DiskError(error, "the folder of \(order.file)", reason: reason)
        }
    }

    /// Removes the files of a transfer. If `keepingPart`, keeps the partial file.
    func remove(_ id: Int64, keepingPart: Bool) {
        guard let folder = try? partsFolder() else { return }
        try? folder.remove(Self.end(id))
        if !keepingPart { try? folder.remove(Self.part(id)) }
    }
}
