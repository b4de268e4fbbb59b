// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import WireText

/// A file name in a folder, as bytes of any encoding.
public struct FileName: Hashable, Sendable {
    /// The name's bytes, with a NUL at the end.
    let bytes: [CChar]

    /// Creates a file name from text that this program chose.
    public init(_ text: String) { bytes = Array(text.utf8CString) }

    /// Creates a file name from bytes, up to the first NUL.
    public init(bytes: some Sequence<UInt8>) { self.bytes = bytes.map { CChar(bitPattern: $0) } + [0] }

    /// The bytes without the NUL.
    public var content: [UInt8] { bytes.dropLast().map { UInt8(bitPattern: $0) } }

    init(_ pointer: UnsafePointer<CChar>) {
        bytes = Array(UnsafeBufferPointer(start: pointer, count: strlen(pointer) + 1))
    }

    /// The name as text, for messages.
    public var text: String { String(terminatedWire: bytes) }
}

/// An error that occurred in a file tree, with the path of the file or folder.
public struct TreeError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The path relative to the folder that was processed; empty for that folder itself.
    public let path: String
    /// The error number.
    public let errno: Errno

    /// Creates an error for a path relative to the processed folder.
    public init(_ path: String, _ errno: Errno) { (self.path, self.errno) = (path, errno) }

    /// The path and the reason, such as `a/b: Permission denied`.
    public var description: String { path.isEmpty ? "\(errno)" : "\(path): \(errno)" }
}

/// The progress of a task on a file tree, such as copying or removing. Another thread may read the progress or cancel
/// the task.
public final class TreeWork: Sendable {
    private struct State {
        var isCancelled = false
        var entries = 0
        var bytes: UInt64 = 0
    }

    private let state = Monitor(State())
    private let end: Duration?

    /// Creates the progress of work that has not started.
    ///
    /// - Parameter end: when the work stops with ECANCELED (CLOCK_MONOTONIC); nil for never.
    public init(until end: Duration? = nil) { self.end = end }

    /// Makes the work stop at the next file with ECANCELED.
    public func cancel() { state.withLock { $0.isCancelled = true } }

    /// The number of files and folders visited so far.
    public var entries: Int { state.withLock { $0.entries } }

    /// The number of bytes copied so far.
    public var bytes: UInt64 { state.withLock { $0.bytes } }

    func step(_ path: @autoclosure () -> String, entries: Int = 0, bytes: UInt64 = 0) throws(TreeError) {
        let goesOn = state.withLock { state in
            state.entries += entries
            state.bytes &+= bytes
            return !state.isCancelled
        }
        let isInTime = end.map { Clock.monotonic() < $0 } ?? true
        if !goesOn || !isInTime { throw TreeError(path(), .canceled) }
    }
}

/// An open folder. Its entries are accessed by name, so that all work stays in this folder even if the folder is
/// renamed. Symlinks are not followed. Mount points are not entered, because a mounted filesystem could block.
///
/// The functions may block on the disk: do not call them on the event loop.
public final class Folder {
    let descriptor: Descriptor
    /// Whether mount points below the folder may be entered. By default they are not, since a mounted filesystem
    /// could block.
    let entersMounts: Bool
    /// The folder's path relative to the folder where the work started, for messages.
    let path: String

    /// Opens a folder by its path.
    ///
    /// - Parameters:
    ///   - followLinks: whether the path itself may be a symlink.
    ///   - entersMounts: whether mount points may be entered; only for paths that come from the configuration.
    public init(_ path: String, followLinks: Bool = false, entersMounts: Bool = false) throws(Errno) {
        descriptor = try File.open(path, followLinks ? [.read, .directory] : [.read, .directory, .noFollow])
        self.entersMounts = entersMounts
        self.path = ""
    }

    private init(_ descriptor: Descriptor, _ path: String, _ entersMounts: Bool) {
        (self.descriptor, self.path, self.entersMounts) = (descriptor, path, entersMounts)
    }

    var raw: Int32 { descriptor.raw }

    /// The path of a name in this folder, relative to the folder where the work started; for messages.
    func place(_ name: FileName) -> String { path.isEmpty ? name.text : path + "/" + name.text }

    /// The status of the folder itself.
    public func status() throws(Errno) -> FileStatus {
        try descriptor.withRaw { raw throws(Errno) in try File.status(descriptor: raw) }
    }

    /// Opens a subfolder. Throws ENOTDIR or ELOOP if the name is no folder, EXDEV if it is a mount point.
    public func folder(_ name: FileName) throws(Errno) -> Folder {
        Folder(try open(name, [.read, .directory]), place(name), entersMounts)
    }

    /// The status of an entry of the folder; a symlink is not followed. Nil if there is no such entry.
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

    /// Makes a subfolder.
    public func makeFolder(_ name: FileName, mode: UInt32) throws(Errno) {
        _ = try descriptor.withRaw { raw throws(Errno) in try call { mkdirat(raw, name.bytes, mode_t(mode)) } }
    }

    /// Removes a file (not a folder).
    public func remove(_ name: FileName) throws(Errno) {
        _ = try descriptor.withRaw { raw throws(Errno) in try call { unlinkat(raw, name.bytes, 0) } }
    }

    /// Removes an empty folder.
    public func removeFolder(_ name: FileName) throws(Errno) {
        _ = try descriptor.withRaw { raw throws(Errno) in try call { unlinkat(raw, name.bytes, AT_REMOVEDIR) } }
    }

    /// Blocks until the folder's entries are on the disk.
    public func synchronise() throws(Errno) {
        _ = try descriptor.withRaw { raw throws(Errno) in try call { fsync(raw) } }
    }

    /// At most `count` of the names in the folder, in no order.
    ///
    /// - Parameter hidden: names to leave out.
    public func names(atMost count: Int, except hidden: Set<FileName> = []) throws(Errno) -> [FileName] {
        // Open the folder again, because the read position of `descriptor` is where the last listing ended.
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

    /// All names in the folder. Throws ENFILE if there are more than `count`; no other call here throws ENFILE.
    func allNames(atMost count: Int) throws(Errno) -> [FileName] {
        let names = try names(atMost: count + 1)
        if names.count > count { throw .tooManyOpenFilesInSystem }
        return names
    }
}
