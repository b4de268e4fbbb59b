// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import WireText

/// A name in a folder: bytes, whatever they are.
public struct FileName: Hashable, Sendable {
    /// With the NUL at its end.
    let bytes: [CChar]

    /// A name of this program's own.
    public init(_ text: String) { bytes = Array(text.utf8CString) }

    init(_ pointer: UnsafePointer<CChar>) {
        bytes = Array(UnsafeBufferPointer(start: pointer, count: strlen(pointer) + 1))
    }

    /// For sentences.
    public var text: String { String(terminatedWire: bytes) }
}

/// What went wrong, and where.
public struct TreeError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The path below the folder that was worked on; empty for that itself.
    public let path: String
    /// Why.
    public let errno: Errno

    /// Makes one of a path below the folder.
    public init(_ path: String, _ errno: Errno) { (self.path, self.errno) = (path, errno) }

    /// `a/b: Permission denied`.
    public var description: String { path.isEmpty ? "\(errno)" : "\(path): \(errno)" }
}

/// Work on a tree of files that another thread may look at, and give up.
public final class TreeWork: Sendable {
    private struct State {
        var isCancelled = false
        var entries = 0
        var bytes: UInt64 = 0
    }

    private let state = Monitor(State())

    /// Work that has not begun.
    public init() {}

    /// Has it end at the next file, with ECANCELED.
    public func cancel() { state.withLock { $0.isCancelled = true } }

    /// How many files and folders it has come by.
    public var entries: Int { state.withLock { $0.entries } }

    /// How many bytes it has copied.
    public var bytes: UInt64 { state.withLock { $0.bytes } }

    func step(_ path: @autoclosure () -> String, entries: Int = 0, bytes: UInt64 = 0) throws(TreeError) {
        let goesOn = state.withLock { state in
            state.entries += entries
            state.bytes &+= bytes
            return !state.isCancelled
        }
        if !goesOn { throw TreeError(path(), .canceled) }
    }
}

/// An open folder, from which what is in it is reached name by name: links are not followed, and what is mounted in it is not
/// entered, since it could wait for whoever made it. What somebody moves meanwhile leads nowhere else.
///
/// It waits for the disk: for threads beside the loop.
public final class Folder {
    let descriptor: Descriptor
    /// Whether what is mounted in it is entered too.
    let entersMounts: Bool
    /// The names on the way from where it began, for sentences.
    let path: String

    /// Opens a folder by its path.
    ///
    /// - Parameters:
    ///   - followLinks: whether the path itself may be a link.
    ///   - entersMounts: for what only a configuration names.
    public init(_ path: String, followLinks: Bool = false, entersMounts: Bool = false) throws(Errno) {
        descriptor = try File.open(path, followLinks ? [.read, .directory] : [.read, .directory, .noFollow])
        self.entersMounts = entersMounts
        self.path = ""
    }

    private init(_ descriptor: Descriptor, _ path: String, _ entersMounts: Bool) {
        (self.descriptor, self.path, self.entersMounts) = (descriptor, path, entersMounts)
    }

    var raw: Int32 { descriptor.raw }

    /// What it is called in sentences, with a name in it.
    func place(_ name: FileName) -> String { path.isEmpty ? name.text : path + "/" + name.text }

    /// What is known of it.
    public func status() throws(Errno) -> FileStatus {
        try descriptor.withRaw { raw throws(Errno) in try File.status(descriptor: raw) }
    }

    /// A folder in it; ENOTDIR or ELOOP for what is none, EXDEV for what is mounted there.
    public func folder(_ name: FileName) throws(Errno) -> Folder {
        Folder(try open(name, [.read, .directory]), place(name), entersMounts)
    }

    /// What is called so in it, as a place; nil where there is nothing.
    public func status(_ name: FileName) throws(Errno) -> FileStatus? {
        do throws(Errno) {
            return try open(name, .path).withRaw { raw throws(Errno) in try File.status(descriptor: raw) }
        } catch {
            if error == .noSuchFileOrDirectory { return nil }
            throw error
        }
    }

    func open(_ name: FileName, _ flags: OpenFlags) throws(Errno) -> Descriptor {
        try descriptor.withRaw { raw throws(Errno) in
            Descriptor(owning: try call { tlx_open_beneath(raw, name.bytes, flags.rawValue, entersMounts ? 0 : 1) })
        }
    }

    /// Makes a folder in it.
    public func makeFolder(_ name: FileName, mode: UInt32) throws(Errno) {
        _ = try descriptor.withRaw { raw throws(Errno) in try call { mkdirat(raw, name.bytes, mode_t(mode)) } }
    }

    /// Removes what is no folder.
    public func remove(_ name: FileName) throws(Errno) {
        _ = try descriptor.withRaw { raw throws(Errno) in try call { unlinkat(raw, name.bytes, 0) } }
    }

    /// Removes an empty folder.
    public func removeFolder(_ name: FileName) throws(Errno) {
        _ = try descriptor.withRaw { raw throws(Errno) in try call { unlinkat(raw, name.bytes, AT_REMOVEDIR) } }
    }

    /// Waits until its names are on the disk.
    public func synchronise() throws(Errno) {
        _ = try descriptor.withRaw { raw throws(Errno) in try call { fsync(raw) } }
    }

    /// Some of the names in it, in no order.
    ///
    /// - Parameter hidden: those that are left out.
    public func names(atMost count: Int, except hidden: Set<FileName> = []) throws(Errno) -> [FileName] {
        // An open file of its own, so that each listing begins at the beginning.
        let copy = try descriptor.withRaw { raw throws(Errno) in
            try call { openat(raw, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        }
        guard let stream = fdopendir(copy) else {
            let failure = Errno(rawValue: errno)
            _ = Glibc.close(copy)
            throw failure
        }
        defer { closedir(stream) }
        var found: [FileName] = []
        while found.count < count, let entry = readdir(stream) {
            withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { name in
                    guard strcmp(name, ".") != 0, strcmp(name, "..") != 0 else { return }
                    let name = FileName(name)
                    if !hidden.contains(name) { found.append(name) }
                }
            }
        }
        return found
    }

    /// Every name in it; ENFILE, which a listing has no other use for, when there are more than that.
    func allNames(atMost count: Int) throws(Errno) -> [FileName] {
        let names = try names(atMost: count + 1)
        if names.count > count { throw .tooManyOpenFilesInSystem }
        return names
    }
}
