// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// Folders that the kernel encrypts (fscrypt, version 2 of its policies). An encrypted folder stores the identifier of
/// its key. The kernel must be given the key separately for each filesystem.
public enum Encryption {
    /// The kernel's identifier of a key: a hash from which the key cannot be computed.
    public typealias Identifier = [UInt8]

    /// The length of an identifier, in bytes.
    public static let identifierLength = 16
    /// The length of a key, in bytes.
    public static let keyLength = 64

    /// Whether a folder is encrypted, and whether it could be.
    public enum Standing: Hashable, Sendable {
        /// The folder is encrypted. The kernel needs the key with this identifier to read its content.
        case encrypted(Identifier)
        /// The folder is not encrypted, but its filesystem supports encryption.
        case plain
        /// The folder's filesystem does not support encryption.
        case unsupported
    }

    /// Whether the kernel has a key for a filesystem.
    public enum KeyStatus: Int32, Sendable {
        case absent = 1
        case present
        /// The key was removed, but files that were opened before the removal are still in use, and stay readable until
        /// they are closed.
        case incompletelyRemoved
    }

    /// Asks the kernel whether an open folder is encrypted, and whether it could be.
    public static func standing(of folder: Folder) throws(Errno) -> Standing {
        var identifier = Identifier(repeating: 0, count: identifierLength)
        do throws(Errno) {
            _ = try call { tlx_fscrypt_policy(folder.raw, &identifier) }
            return .encrypted(identifier)
        } catch {
            switch error.rawValue {
            case ENODATA: return .plain
            case EOPNOTSUPP, ENOTTY, ENOSYS: return .unsupported
            default: throw error
            }
        }
    }

    /// Encrypts an empty folder: all files created in it from now on are encrypted. The kernel must have the key.
    public static func protect(_ folder: Folder, with key: Identifier) throws(Errno) {
        _ = try call { tlx_fscrypt_protect(folder.raw, key) }
    }

    /// Gives the kernel a key for the filesystem that contains the folder. Returns the key's identifier. Throws EINVAL
    /// if the key does not have ``keyLength`` bytes.
    public static func add(_ key: UnsafeRawBufferPointer, to folder: Folder) throws(Errno) -> Identifier {
        guard key.count == keyLength, let start = key.bindMemory(to: UInt8.self).baseAddress else {
            throw .invalidArgument
        }
        var identifier = Identifier(repeating: 0, count: identifierLength)
        _ = try call { tlx_fscrypt_add(folder.raw, start, &identifier) }
        return identifier
    }

    /// The result of removing a key from the kernel.
    public enum Removal: Hashable, Sendable {
        /// The kernel no longer has the key.
        case whole
        /// The kernel no longer has the key, but files that were opened with it are still in use, and stay readable.
        case busy
        /// Another user has also given the key to the kernel: all files stay readable.
        case othersHaveIt
    }

    /// Removes a key from the kernel. If this process runs as root, the key is removed for all users; otherwise only
    /// for the user of this process.
    @discardableResult
    public static func remove(_ key: Identifier, from folder: Folder) throws(Errno) -> Removal {
        do throws(Errno) {
            let flags = try call { tlx_fscrypt_remove(folder.raw, key, Users.isRoot ? 1 : 0) }
            return flags & 2 != 0 ? .othersHaveIt : flags & 1 != 0 ? .busy : .whole
        } catch {
            // ENOKEY: the kernel does not have the key, so there is nothing to remove.
            if error.rawValue == ENOKEY { return .whole }
            throw error
        }
    }

    /// Asks whether the kernel has a key for the filesystem that contains the folder.
    public static func status(of key: Identifier, on folder: Folder) throws(Errno) -> KeyStatus {
        KeyStatus(rawValue: try call { tlx_fscrypt_status(folder.raw, key) }) ?? .absent
    }
}

/// The device and the inode of a file.
public struct FileIdentity: Hashable, Sendable {
    /// The device number of the filesystem.
    public let device: UInt64
    /// The inode number of the file, unique on the filesystem.
    public let inode: UInt64

    /// Creates an identity from its parts.
    public init(device: UInt64, inode: UInt64) { (self.device, self.inode) = (device, inode) }

    /// Reads the identity of the file at a path, following symlinks. On a network filesystem, the call uses cached
    /// values and does not ask the server (AT_STATX_DONT_SYNC).
    public init(of path: String) throws(Errno) {
        var (device, inode): (UInt64, UInt64) = (0, 0)
        _ = try call { tlx_identity(AT_FDCWD, path, &device, &inode) }
        self.init(device: device, inode: inode)
    }
}

extension Folder {
    /// The identities of the folder and of everything below it on the same filesystem. The search stops after `limit`
    /// identities, or at the time `end` (CLOCK_MONOTONIC).
    public func identities(atMost limit: Int, until end: Duration) -> Set<FileIdentity> {
        var found: Set<FileIdentity> = []
        guard let status = try? status() else { return found }
        found.insert(FileIdentity(device: status.device, inode: status.inode))
        collect(&found, status.device, limit, end, depth: 0)
        return found
    }

    private func collect(
        _ found: inout Set<FileIdentity>,
        _ device: UInt64,
        _ limit: Int,
        _ end: Duration,
        depth: Int
    ) {
        guard depth < Self.deepest, Clock.monotonic() < end,
            let names = try? names(atMost: max(0, limit - found.count))
        else { return }
        for name in names {
            guard Clock.monotonic() < end else { return }
            guard let status = try? status(name), status.device == device else { continue }
            found.insert(FileIdentity(device: device, inode: status.inode))
            guard status.kind == .directory, let below = try? folder(name) else { continue }
            below.collect(&found, device, limit, end, depth: depth + 1)
        }
    }
}

extension FileIdentity {
    /// A device number made from its major and minor number, as by glibc's makedev(3).
    public static func device(_ major: UInt64, _ minor: UInt64) -> UInt64 {
        (major & 0xfff) << 8 | (major & ~0xfff) << 32 | minor & 0xff | (minor & ~0xff) << 12
    }
}

/// Tells whether two threads share a table of the kernel (kcmp(2)).
public enum TaskComparison {
    /// A table of the kernel that several threads may share.
    public enum Table: Int32, Sendable {
        /// The open descriptors of threads (KCMP_FILES).
        case descriptors = 2
        /// The working and root directories of threads (KCMP_FS).
        case folders
    }

    /// Whether two threads share a table. Nil if the kernel cannot tell, because a thread has ended or this process may
    /// not inspect it.
    public static func shares(_ table: Table, _ first: Int32, _ second: Int32) -> Bool? {
        let order = tlx_compare_tasks(first, second, table.rawValue)
        return order < 0 ? nil : order == 0
    }
}

extension File {
    /// The number that identifies the type of the filesystem at a path (statfs(2), f_type), such as 0xef53 for ext4.
    public static func filesystem(of path: String) throws(Errno) -> Int { try call { tlx_filesystem(path) } }
}
