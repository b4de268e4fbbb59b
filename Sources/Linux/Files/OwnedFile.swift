// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import WireText

/// Files that a configuration names and that may lie where somebody else than root can write, such as in an app's own
/// folder. It may wait for a disk or a server: not for the loop's thread.
///
/// As long as only root and this process's user can have made a step of the way, it is gone as any other. From the first
/// step on that somebody else can have made it is gone with the rights of whom it is read for, no link is followed, and
/// what stands at its end must belong to root, to this process's user, to the owner of its folder or to that user, and have
/// no other name. Whose it is proves nothing by itself: the owner of a folder can move root's file to another name.
public enum OwnedFile {
    /// Why a file is not read.
    public enum Failure: Error, Hashable, Sendable, CustomStringConvertible {
        /// What the kernel said.
        case errno(Errno)
        /// It is a folder, a FIFO or a device.
        case notRegular
        /// Somebody else could have put another file there, for this reason.
        case notTrusted(String)
        /// That user may not read it, and somebody else could have put it there.
        case notAllowed(user: String)

        /// The end of a sentence that begins with the path.
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

    /// The whole content of a regular file; EFBIG when it is larger than `limit` bytes.
    ///
    /// - Parameters:
    ///   - path: absolute.
    ///   - reader: whom it is read for; nil for this process's own user.
    public static func read(_ path: String, for reader: FileRights?, limit: Int) throws(Failure) -> [UInt8] {
        let file = try open(path, for: reader)
        return try errno { () throws(Errno) in try File.read(descriptor: file.raw, limit: limit) }
    }

    private static func errno<T>(_ body: () throws(Errno) -> T) throws(Failure) -> T {
        do throws(Errno) { return try body() } catch { throw .errno(error) }
    }

    /// Opens what has that name in a folder, with these rights.
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
                // Once more, as whom it is for: this step may be another's already.
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

    /// The names of a path, the last one first.
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
        // In a sticky folder everybody has what is their own, but whoever has a file or a link of root's in a folder of
        // their own can move it here; a folder they cannot (rename(2)).
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
        // Non-blocking: had a FIFO come there meanwhile, this would wait.
        let file = try open(name, in: folder, [.read, .noFollow, .nonBlocking], as: reader)
        let opened = try status(file)
        guard opened.device == seen.device, opened.inode == seen.inode else { throw .errno(.noSuchFileOrDirectory) }
        return file
    }
}
