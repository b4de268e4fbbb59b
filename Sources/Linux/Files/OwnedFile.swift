// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import WireText

/// Reads files that a configuration names and that may be in folders where users other than root can write, such as an
/// app's own folder. Reading may block on a disk or a server: do not call it on the event loop.
///
/// A path is followed normally up to the first component that a user other than root and this process's user could have
/// created. From this component on, symlinks are refused, and the rights of the reader (the user for whom the file is
/// read) apply. The file must then have only one hard link, and must belong to root, to this process's user, to its
/// folder's owner or to the reader. The file's owner alone would not prove that the file is trusted: the owner of a
/// folder can rename any file in it, even a file of root.
public enum OwnedFile {
    /// Why a file was not read.
    public enum Failure: Error, Hashable, Sendable, CustomStringConvertible {
        /// An error of the kernel.
        case errno(Errno)
        /// The path is a directory, a FIFO or a device.
        case notRegular
        /// Another user could have put a different file at the path; the text gives the reason.
        case notTrusted(String)
        /// The reader may not read the file, and another user could have put the file there.
        case notAllowed(user: String)

        /// The reason, as the rest of a sentence that begins with the path.
        public var description: String {
            switch self {
            case .errno(let errno): "it cannot be read: \(errno)"
            case .notRegular: "it is not a regular file"
            case .notTrusted(let why): "it is not read, since \(why)"
            case .notAllowed(let user):
                "user \(user) may not read it, and non-root users may write to a folder on its path: give it to that "
                    + "user (chown, chmod), or put it into a folder that only root may write to"
            }
        }
    }

    private static let mostLinks = 40

    /// Returns the whole content of a regular file. Throws EFBIG if it has more than `limit` bytes.
    ///
    /// - Parameters:
    ///   - path: an absolute path.
    ///   - reader: the user on whose behalf the file is read; nil for this process's own user.
    public static func read(_ path: String, for reader: FileRights?, limit: Int) throws(Failure) -> [UInt8] {
        let file = try open(path, for: reader)
        return try errno { () throws(Errno) in try File.read(descriptor: file.raw, limit: limit) }
    }

    private static func errno<T>(_ body: () throws(Errno) -> T) throws(Failure) -> T {
        do throws(Errno) { return try body() } catch { throw .errno(error) }
    }

    /// Opens a name in a folder, with the rights of `reader`; nil means the process's own rights.
    private static func open(
        _ name: Substring,
        in folder: Descriptor,
        _ flags: OpenFlags,
        as reader: FileRights?
    ) throws(Failure) -> Descriptor {
        guard let reader else {
            return try errno { () throws(Errno) in try File.open(String(name), in: folder.raw, flags) }
        }
        do throws(Errno) {
            return try reader.acting { () throws(Errno) in try File.open(String(name), in: folder.raw, flags) }
        } catch {
            if error == .permissionDenied { throw .notAllowed(user: reader.name) }
            throw .errno(error)
        }
    }

    private static func open(_ path: String, for reader: FileRights?) throws(Failure) -> Descriptor {
        var folder = try errno { () throws(Errno) in try File.open("/", [.path, .directory]) }
        var rest = names(path)
        var links = 0
        var isOthers = false
        while let name = rest.popLast() {
            let around = try status(folder)
            var next = try open(name, in: folder, [.path, .noFollow], as: isOthers ? reader : nil)
            var found = try status(next)
            if !isOthers, !isTrusted(around, with: found) || tlx_is_made_up(folder.raw) != 0 {
                isOthers = true
                // Open the component again with the reader's rights: another user may have created it.
                next = try open(name, in: folder, [.path, .noFollow], as: reader)
                found = try status(next)
            }
            switch found.kind {
            case .link:
                guard !isOthers, isOurs(found.uid) else {
                    throw .notTrusted(
                        "\(name) is a symlink in a folder that non-root users may write to: name the file itself"
                    )
                }
                links += 1
                guard links <= mostLinks else { throw .errno(.tooManySymbolicLinkLevels) }
                let target = try errno { () throws(Errno) in try File.readLink(descriptor: next.raw) }
                if target.hasPrefix("/") {
                    folder = try errno { () throws(Errno) in try File.open("/", [.path, .directory]) }
                }
                rest += names(target)
            case .directory:
                if name == "..", isOthers {
                    throw .notTrusted("it leads back by \"..\" from a folder that non-root users may write to")
                }
                folder = next
            case .regular where rest.isEmpty:
                if isOthers { try judge(found, around, reader) }
                return try finish(name, in: folder, found, as: isOthers ? reader : nil)
            case .regular, .fifo, .socket, .character, .block, .other:
                throw rest.isEmpty ? .notRegular : .errno(.notDirectory)
            }
        }
        throw .notRegular
    }

    /// The components of a path, last one first.
    private static func names(_ path: String) -> [Substring] {
        path.split(separator: "/").filter { $0 != "." }.reversed()
    }

    private static func status(_ descriptor: Descriptor) throws(Failure) -> FileStatus {
        try errno { () throws(Errno) in try File.status(descriptor: descriptor.raw) }
    }

    private static func isOurs(_ uid: UInt32) -> Bool { uid == 0 || uid == Users.effectiveUID }

    private static func isTrusted(_ folder: FileStatus, with found: FileStatus) -> Bool {
        guard isOurs(folder.uid) else { return false }
        if folder.mode & 0o022 == 0 { return true }
        // In a sticky folder, a user can replace only its own entries. But a user can move a file or symlink of root
        // from a folder of its own into the sticky folder; the kernel prevents this only for directories (rename(2)).
        // So trust only directories.
        return folder.mode & 0o1000 != 0 && isOurs(found.uid) && found.kind == .directory
    }

    private static func judge(_ file: FileStatus, _ folder: FileStatus, _ reader: FileRights?) throws(Failure) {
        guard isOurs(file.uid) || file.uid == reader?.uid || file.uid == folder.uid else {
            throw .notTrusted("it belongs to user \(file.uid), not to root, the app's user or its folder's owner")
        }
        guard file.links == 1 else {
            throw .notTrusted("it has \(file.links) names, and non-root users may write to its folder: copy it there")
        }
    }

    private static func finish(
        _ name: Substring,
        in folder: Descriptor,
        _ seen: FileStatus,
        as reader: FileRights?
    ) throws(Failure) -> Descriptor {
        // Open the file with O_NONBLOCK, because another process may have replaced it with a FIFO.
        let file = try open(name, in: folder, [.read, .noFollow, .nonBlocking], as: reader)
        let opened = try status(file)
        guard opened.device == seen.device, opened.inode == seen.inode else { throw .errno(.noSuchFileOrDirectory) }
        return file
    }
}
