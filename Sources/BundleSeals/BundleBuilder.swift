// SPDX-License-Identifier: Apache-2.0

public import Bundles
import Linux
import WireText

/// Builds archives of bundles.
public enum BundleBuilder {
    /// What the archive of a folder will contain.
    public struct Plan: Sendable {
        /// The author's part of `manifest.toml`, without a section `[files]`.
        public let text: [UInt8]
        /// The list of the folder's files.
        public let files: FileTable
        /// The whole manifest: the author's part and the section `[files]`.
        public var manifest: [UInt8] { text + (text.isEmpty || text.last == 10 ? [] : [10]) + files.text }
    }

    /// Reads a folder that contains `manifest.toml`. A section `[files]` of an earlier build is replaced.
    public static func plan(_ path: String) throws(BundleFault) -> Plan {
        let root = try open(path)
        var entries: [BundleEntry] = []
        try list(root, [], into: &entries)
        let files = try FileTable(entries)
        let bytes: [UInt8]
        do throws(Errno) {
            guard let read = try File.readRegular(path + "/manifest.toml", limit: BundleLimit.manifest) else {
                throw .invalidArgument
            }
            bytes = read
        } catch {
            throw BundleFault("\(path)/manifest.toml cannot be read: \(error)")
        }
        return Plan(text: FileTable.head(of: bytes), files: files)
    }

    /// Writes the archive of a folder, whose plan was made by ``plan(_:)``.
    public static func write(_ plan: Plan, from path: String, to descriptor: Int32) throws(BundleFault) {
        var writer = writer(to: descriptor)
        let manifest = plan.manifest
        try writer.file(.manifest, mode: 0o644, size: UInt64(manifest.count))
        try writer.content(manifest)
        let root = try open(path)
        for entry in plan.files.entries {
            switch entry.kind {
            case .link(let target): try writer.link(entry.path, to: target)
            case .file(let mode, let size, let digest):
                try writer.file(entry.path, mode: mode, size: size)
                let changed = BundleFault("\(entry.path) was changed while the bundle was built")
                let file = try open(entry.path, in: root)
                var left = size
                let found = try Digest.read(file.raw) { part throws(BundleFault) in
                    guard part.count <= left else { throw changed }
                    left -= UInt64(part.count)
                    try writer.content(Array(part))
                }
                guard found.digest == digest else { throw changed }
            }
        }
        try writer.end()
    }

    /// Copies a bundle's archive, with a different signature.
    public static func copy(
        _ archive: inout BundleArchive,
        signature: MinisignSignature,
        to descriptor: Int32
    ) throws(BundleFault) {
        var writer = writer(to: descriptor)
        let (manifest, text) = (archive.head.manifest, signature.text)
        try writer.file(.manifest, mode: 0o644, size: UInt64(manifest.count))
        try writer.content(manifest)
        try writer.file(.signature, mode: 0o644, size: UInt64(text.count))
        try writer.content(text)
        while let entry = try archive.next() {
            switch entry.kind {
            case .link(let target): try writer.link(entry.path, to: target)
            case .file(let mode, let size, _):
                try writer.file(entry.path, mode: mode, size: size)
                while case let part = try archive.content(atMost: Digest.step), !part.isEmpty {
                    try writer.content(part)
                }
            }
        }
        try writer.end()
    }

    private static let compiled = FileName("__pycache__")

    private static func writer(to descriptor: Int32) -> ArchiveWriter {
        ArchiveWriter { bytes throws(BundleFault) in
            do throws(Errno) { try Descriptor.writeAll(descriptor, bytes) } catch {
                throw BundleFault("the archive cannot be written: \(error)")
            }
        }
    }

    private static func open(_ path: String) throws(BundleFault) -> Folder {
        do throws(Errno) { return try Folder(path, followLinks: true) } catch {
            throw BundleFault("the folder \(path) cannot be opened: \(error)")
        }
    }

    private static func open(_ path: BundlePath, in root: Folder) throws(BundleFault) -> Descriptor {
        do throws(Errno) {
            var folder = root
            let names = path.names
            for name in names.dropLast() { folder = try folder.folder(FileName(bytes: name)) }
            return try folder.openFile(FileName(bytes: names[names.count - 1]))
        } catch {
            throw BundleFault("\(path) cannot be read: \(error)")
        }
    }

    private static func list(
        _ folder: Folder,
        _ path: [UInt8],
        into entries: inout [BundleEntry]
    ) throws(BundleFault) {
        let names = try kernel(path) { () throws(Errno) in try folder.names(atMost: BundleLimit.entries + 3) }
        for name in names {
            let place = try BundlePath((path.isEmpty ? [] : path + [UInt8(ascii: "/")]) + name.content)
            if place == .manifest || place == .signature { continue }
            guard let status = try kernel(place.bytes, { () throws(Errno) in try folder.status(name) }) else {
                continue
            }
            switch status.kind {
            // Skip this folder: Python creates it itself, and its files contain times, which differ on each machine.
            case .directory where name == Self.compiled: continue
            case .directory:
                try list(
                    try kernel(place.bytes) { () throws(Errno) in try folder.folder(name) },
                    place.bytes,
                    into: &entries
                )
            case .link:
                let target = try kernel(place.bytes) { () throws(Errno) in try folder.linkTarget(name) }
                entries.append(BundleEntry(place, .link(target)))
            case .regular:
                guard status.mode & 0o7000 == 0 else {
                    throw BundleFault("\(place) is setuid, setgid or sticky, which bundles may not have: chmod it")
                }
                guard entries.count < BundleLimit.entries else {
                    throw BundleFault("it has more than \(BundleLimit.entries) files")
                }
                let file = try kernel(place.bytes) { () throws(Errno) in try folder.openFile(name) }
                let found: (digest: [UInt8], size: UInt64)
                do throws(BundleFault) { found = try Digest.read(file.raw) } catch {
                    throw BundleFault("\(place): \(error)")
                }
                // Of the mode bits, only whether the file is executable is taken from the disk.
                let mode: UInt32 = status.mode & 0o111 == 0 ? 0o644 : 0o755
                entries.append(BundleEntry(place, .file(mode: mode, size: found.size, digest: found.digest)))
            case .fifo, .socket, .character, .block, .other:
                throw BundleFault("\(place) is neither a file, a folder nor a symlink")
            }
        }
    }

    private static func kernel<T>(_ path: [UInt8], _ body: () throws(Errno) -> T) throws(BundleFault) -> T {
        do throws(Errno) { return try body() } catch {
            throw BundleFault("\(path.isEmpty ? "the folder" : BundlePath.shown(path)) cannot be read: \(error)")
        }
    }
}
