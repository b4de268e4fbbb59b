// SPDX-License-Identifier: Apache-2.0

import Linux
import TransferProtocol
import WireText

/// Why work on files ended, as the end of a transfer.
struct DiskError: Error {
    let end: TransferEnd

    init(_ outcome: TransferEnd.Outcome, _ reason: String, _ message: String) {
        var end = TransferEnd(outcome, bytes: 0)
        end.reason = reason
        end.message = message
        self.end = end
    }

    /// What an errno means for a transfer: no room is waited for, what the app has to change is final, and the rest is worth
    /// another try.
    ///
    /// - Parameter reason: what the app got wrong, if it did: `destination` or `source`.
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

/// The folders of an app, and the way to files in them. Everything here may wait for a disk: it is for jobs.
struct Places: Sendable {
    let parts: String
    let roots: [String]

    /// The folder of the parts.
    func partsFolder() throws(DiskError) -> Folder {
        do throws(Errno) {
            return try Folder(parts, followLinks: true, entersMounts: true)
        } catch {
            throw DiskError(.retry, "disk", "the folder of partial files: \(error)")
        }
    }

    /// Where a part is.
    static func part(_ id: Int64) -> FileName { FileName("\(id).part") }
    /// Where the end of a transfer is that was not acknowledged yet.
    static func end(_ id: Int64) -> FileName { FileName("\(id).done") }

    /// The folder that a file is in, below its root, through no link; and its name there.
    ///
    /// - Parameter make: whether folders that are missing are made, durably; otherwise nil comes back for them.
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

    /// Removes what is there of a transfer.
    func remove(_ id: Int64, keepingPart: Bool) {
        guard let folder = try? partsFolder() else { return }
        try? folder.remove(Self.end(id))
        if !keepingPart { try? folder.remove(Self.part(id)) }
    }
}
