// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import WireText

/// Files that a configuration names and that may lie where somebody else than root can write, such as in an app's own
/// folder. It may wait for a disk or a server: not for the loop's thread.
///
/// As long as only root and this process's user can have made a step of the way, it is gone as any other. From the first
/// step on that somebody else can have made no link is followed, and what stands at its end must belong to root, to this
/// process's user, to the owner of its folder or to `user`, and have no other name: so nobody has a file read that they
/// could not have read themselves.
public enum OwnedFile {
    /// Why a file is not read.
    public enum Failure: Error, Hashable, Sendable, CustomStringConvertible {
        /// What the kernel said.
        case errno(Errno)
        /// It is a folder, a FIFO or a device.
        case notRegular
        /// Somebody else could have put another file there, for this reason.
        case notTrusted(String)

        /// The end of a sentence that begins with the path.
        public var description: String {
            switch self {
            case .errno(let errno): "it cannot be read: \(errno)"
            case .notRegular: "it is not a regular file"
            case .notTrusted(let why): "it is not read, since \(why)"
            }
        }
    }

    private static let mostLinks = 40

    /// The whole content of a regular file; EFBIG when it is larger than `limit` bytes.
    ///
    /// - Parameters:
    ///   - path: absolute.
    ///   - user: whom it is read for.
    public static func read(_ path: String, for user: UInt32, limit: Int) throws(Failure) -> [UInt8] {
        let file = try open(path, for: user)
        return try errno { () throws(Errno) in try File.read(descriptor: file.raw, limit: limit) }
    }

    private static func errno<T>(_ body: () throws(Errno) -> T) throws(Failure) -> T {
        do throws(Errno) { return try body() } catch { throw .errno(error) }
    }

    private static func open(_ path: String, for user: UInt32) throws(Failure) -> Descriptor {
        var folder = try errno { () throws(Errno) in try File.open("/", [.path, .directory]) }
        var rest = names(path)
        var links = 0
        var isOthers = false
        while let name = rest.popLast() {
            let around = try status(folder)
            let next = try errno { () throws(Errno) in try File.open(String(name), in: folder.raw, [.path, .noFollow]) }
            let found = try status(next)
            // In a sticky folder everybody has what is their own.
            if !isTrusted(around, with: found) || tlx_is_made_up(folder.raw) != 0 { isOthers = true }
            switch found.kind {
            case .link:
                guard !isOthers, isOurs(found.uid) else {
                    throw .notTrusted(
                        "\(name) is a symbolic link in a folder that others than root may write to: name the file itself"
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
                    throw .notTrusted("it leads back by \"..\" from a folder that others than root may write to")
                }
                folder = next
            case .regular where rest.isEmpty:
                if isOthers { try judge(found, around, user) }
                return try finish(name, in: folder, found)
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
        return folder.mode & 0o1000 != 0 && isOurs(found.uid) && (found.kind != .regular || found.links == 1)
    }

    private static func judge(_ file: FileStatus, _ folder: FileStatus, _ user: UInt32) throws(Failure) {
        guard isOurs(file.uid) || file.uid == user || file.uid == folder.uid else {
            throw .notTrusted("it belongs to user \(file.uid), neither root's nor the app's nor of its folder's owner")
        }
        guard file.links == 1 else {
            throw .notTrusted("it has \(file.links) names, and others than root may write to its folder: copy it there")
        }
    }

    private static func finish(
        _ name: Substring,
        in folder: Descriptor,
        _ seen: FileStatus
    ) throws(Failure) -> Descriptor {
        // Non-blocking: had a FIFO come there meanwhile, this would wait.
        let file = try errno { () throws(Errno) in
            try File.open(String(name), in: folder.raw, [.read, .noFollow, .nonBlocking])
        }
        let opened = try status(file)
        guard opened.device == seen.device, opened.inode == seen.inode else { throw .errno(.noSuchFileOrDirectory) }
        return file
    }
}
