// SPDX-License-Identifier: Apache-2.0

package import Linux

/// Folders that users own in folders of torpord, such as that of a container's process, and that are to be removed. The
/// user may fill such a folder without end, and replace a folder in it by a link while it is being removed. So it is
/// moved here, where only torpord's user has access, and then emptied outside of the event loop and with its owner's
/// rights.
package struct RemovedFolders: Sendable {
    /// The path of the folder that they are moved to.
    package let path: String

    /// Creates the place with this path.
    package init(path: String) { self.path = path }

    /// Whether folders wait there.
    package var isThere: Bool { File.exists(path) }

    /// Removes a directory of torpord's. What is a folder in it is moved here instead: returns whether there was one, so
    /// that ``clear(until:)`` is needed. It is no error if the directory does not exist.
    package func take(_ directory: String) throws(Errno) -> Bool {
        var isAny = false
        do throws(Errno) {
            for name in try File.list(directory) {
                let place = directory + "/" + name
                let status = try File.status(place, followLinks: false)
                guard status.kind == .directory else {
                    try File.remove(place)
                    continue
                }
                try File.makeDirectories(path, mode: 0o700)
                // No other folder of this filesystem has that number as long as this one exists.
                try File.rename(place, "\(path)/\(status.inode)")
                isAny = true
            }
            try File.removeDirectory(directory)
        } catch {
            if error != .noSuchFileOrDirectory { throw error }
        }
        return isAny
    }

    /// How long one of them may take: a process that still has it open could fill it for ever.
    private static let patience = Duration.seconds(60)

    /// Removes the folders that wait there. What their owners could not remove stays, until the machine boots. May block:
    /// do not call it on the event loop.
    ///
    /// - Parameter end: when to stop (CLOCK_MONOTONIC), although some are left; nil for never.
    package func clear(until end: Duration? = nil) {
        for name in (try? File.list(path)) ?? [] {
            let place = path + "/" + name
            let longest = Clock.monotonic() + Self.patience
            let work = TreeWork(until: end.map { min($0, longest) } ?? longest)
            if let folder = try? Folder(place), let owner = try? folder.status() {
                let rights = FileRights(name: "", uid: owner.uid, gid: owner.gid, groups: [owner.gid])
                if let rights {
                    try? rights.acting { () throws(Errno) in _ = try? folder.empty(work) }
                } else {
                    _ = try? folder.empty(work)
                }
            }
            try? File.removeDirectory(place)
        }
        try? File.removeDirectory(path)
    }
}
