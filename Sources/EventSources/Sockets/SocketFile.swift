// SPDX-License-Identifier: Apache-2.0

import Linux

/// The file of a Unix socket that torpord has bound. Other programs may remove or replace it.
package struct SocketFile: Hashable, Sendable {
    let path: String
    /// The device and the inode number; nil if they are unknown.
    private let device: UInt64?
    private let inode: UInt64?
    /// Whether an earlier torpord bound the socket. Then the numbers are those of the kernel's socket diagnostics,
    /// because a lookup of the path may block, and may find the file of another program.
    let isInherited: Bool

    /// The file of a socket that was just bound to the path; nil if there is none any more.
    init?(boundTo path: String) {
        guard let status = try? File.status(path, followLinks: false), status.kind == .socket else { return nil }
        self.path = path
        device = status.device
        inode = status.inode
        isInherited = false
    }

    /// The file of a socket that an earlier torpord has bound to the path. Does not block.
    init(of socket: Descriptor, at path: String) {
        let file = try? Sockets.file(of: socket.raw)
        self.path = path
        device = file?.device
        inode = file.map { UInt64($0.inode) }
        isInherited = true
    }

    /// Whether this is the file with that status; nil if that is unknown. The numbers of the kernel's socket
    /// diagnostics say nothing on filesystems that show another device than the kernel uses itself, such as btrfs.
    private func isSame(_ status: FileStatus) -> Bool? {
        guard status.kind == .socket else { return false }
        guard isInherited else { return status.device == device && status.inode == inode }
        guard let inode, status.device == device else { return nil }
        return UInt64(UInt32(truncatingIfNeeded: status.inode)) == inode
    }

    /// Whether torpord may remove or change the file with that status. Where the filesystem shows another device, the
    /// inode number alone must do; a file of which that is unknown may be another program's.
    func isOwn(_ status: FileStatus) -> Bool {
        if let isKnown = isSame(status) { return isKnown }
        guard let inode else { return false }
        return UInt64(UInt32(truncatingIfNeeded: status.inode)) == inode
    }

    /// Whether nothing is at the path. Like ``isGone``, may block.
    var isMissing: Bool {
        do throws(Errno) {
            _ = try File.status(path, followLinks: false)
            return false
        } catch {
            return error == .noSuchFileOrDirectory
        }
    }

    /// Whether the file was removed or replaced, so that no client reaches the socket. Looks the path up, which may
    /// block: never call this on the event loop.
    package var isGone: Bool {
        do throws(Errno) {
            let status = try File.status(path, followLinks: false)
            return isSame(status) == false
        } catch {
            return error == .noSuchFileOrDirectory
        }
    }
}
