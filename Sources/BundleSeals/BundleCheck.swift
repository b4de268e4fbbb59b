// SPDX-License-Identifier: Apache-2.0

public import Bundles
import Linux
import WireText

/// Remembers files whose digests were right, so that a file need not be read again while its inode, size and times
/// are the same.
public struct DigestCache: Hashable, Sendable {
    struct Known: Hashable, Sendable {
        let device: UInt64
        let inode: UInt64
        let size: UInt64
        let modified: Int64
        let changed: Int64

        init(_ status: FileStatus) {
            device = status.device
            inode = status.inode
            size = status.size
            modified = status.modifiedNanoseconds
            changed = status.changedNanoseconds
        }

        init?(_ words: [Substring]) {
            guard words.count == 5, let device = UInt64(words[0]), let inode = UInt64(words[1]),
                let size = UInt64(words[2]), let modified = Int64(words[3]), let changed = Int64(words[4])
            else { return nil }
            (self.device, self.inode, self.size, self.modified, self.changed) = (device, inode, size, modified, changed)
        }

        var text: String { "\(device) \(inode) \(size) \(modified) \(changed)" }
    }

    /// For each verified file, by its index in the manifest, the status that it had.
    private(set) var files: [Int: Known] = [:]
    private let manifest: String

    /// Returns the digest of a manifest, which says which manifest a cache belongs to.
    public static func name(of manifest: [UInt8]) -> String {
        String(wire: Hex.text(manifest.withUnsafeBytes { Digest.sha256($0) }))
    }

    /// Creates an empty cache for the manifest with that digest.
    public init(manifest: String) { self.manifest = manifest }

    /// Parses a stored cache. The result is empty if the text is for another manifest or damaged.
    public init(_ text: [UInt8], manifest: String) {
        self.manifest = manifest
        let lines = String(wire: text).split(separator: "\n")
        guard lines.first.map(String.init) == manifest else { return }
        for line in lines.dropFirst().prefix(BundleLimit.entries) {
            let words = line.split(separator: " ")
            guard let number = words.first.flatMap({ Int($0) }), let known = Known(Array(words.dropFirst())) else {
                files = [:]
                return
            }
            files[number] = known
        }
    }

    /// The cache as text, to be stored for the next check.
    public var text: [UInt8] {
        var text = manifest + "\n"
        for (number, known) in files.sorted(by: { $0.key < $1.key }) { text += "\(number) \(known.text)\n" }
        return Array(text.utf8)
    }

    /// The minimum age of a file's timestamp, in nanoseconds, at the time when the reading begins. A file is remembered
    /// only if its timestamp is older. A younger file could change right after it was read and keep its timestamp,
    /// because the kernel's clock advances in ticks.
    static let granularity: Int64 = 2_000_000_000

    mutating func remember(_ number: Int, _ status: FileStatus, before: Int64) {
        if status.changedNanoseconds < before - Self.granularity { files[number] = Known(status) }
    }

    func knows(_ number: Int, _ status: FileStatus) -> Bool { files[number] == Known(status) }
}

/// Compares a bundle on the disk with its signed manifest.
public struct BundleCheck {
    /// The result of a check that found no change.
    public struct Result: Sendable {
        /// The key that signed the bundle.
        public let signer: TrustedKey
        /// The trusted comment of the signature.
        public let comment: String
        /// Whether the kernel verifies each block of every file when it is read (fs-verity).
        public let isByKernel: Bool
        /// The part of the manifest that its author wrote.
        public let text: [UInt8]
        /// The manifest's list of files.
        public let files: FileTable
        /// How many bytes were read to compute digests.
        public let bytesRead: UInt64
        /// The cache to store for the next check.
        public let cache: DigestCache
    }

    private let table: FileTable
    private let owner: UInt32
    private let device: UInt64
    private let began: Int64
    private let known: DigestCache
    private var fresh: DigestCache
    private var isByKernel = true
    private var bytesRead: UInt64 = 0
    private var seen = 0

    /// Compares the folder of a bundle's version with its manifest. Throws a sentence that names the file.
    ///
    /// - Parameters:
    ///   - keys: the keys whose signatures are accepted.
    ///   - owner: the uid that must own all files and folders.
    ///   - cache: the text of the last check's cache; nil to read every file.
    ///   - now: the wall clock in nanoseconds since 1970.
    public static func run(
        _ path: String,
        keys: [TrustedKey],
        owner: UInt32,
        cache: [UInt8]?,
        now: Int64
    ) throws(BundleFault) -> Result {
        let root: Folder
        do throws(Errno) { root = try Folder(path) } catch {
            throw BundleFault("\(path) cannot be opened", error)
        }
        let manifest = try text(.manifest, in: root, atMost: BundleLimit.manifest)
        let signature = try MinisignSignature(text: try text(.signature, in: root, atMost: BundleLimit.signature))
        let signer = try Seal.signer(of: manifest, signature, among: keys)
        let (head, table) = try FileTable.split(manifest)
        let name = DigestCache.name(of: manifest)
        let status: FileStatus
        do throws(Errno) { status = try root.status() } catch { throw BundleFault("\(path) cannot be read", error) }
        var check = BundleCheck(
            table: table,
            owner: owner,
            device: status.device,
            began: now,
            known: cache.map { DigestCache($0, manifest: name) } ?? DigestCache(manifest: name),
            fresh: DigestCache(manifest: name)
        )
        try check.inspect(status, folder: [])
        try check.walk(root, [])
        // Every name found on the disk is in the table, and none occurs twice. So a missing file shows as a lower
        // count.
        if check.seen != table.entries.count {
            for entry in table.entries where !exists(entry.path, in: root) {
                throw BundleFault("\(entry.path) is missing")
            }
            throw BundleFault("a file is missing")
        }
        return Result(
            signer: signer,
            comment: signature.comment,
            isByKernel: check.isByKernel && !table.entries.isEmpty,
            text: head,
            files: table,
            bytesRead: check.bytesRead,
            cache: check.fresh
        )
    }

    private init(
        table: FileTable,
        owner: UInt32,
        device: UInt64,
        began: Int64,
        known: DigestCache,
        fresh: DigestCache
    ) {
        (self.table, self.owner, self.device) = (table, owner, device)
        (self.began, self.known, self.fresh) = (began, known, fresh)
    }

    private static func text(_ path: BundlePath, in root: Folder, atMost most: Int) throws(BundleFault) -> [UInt8] {
        do throws(Errno) {
            let file = try root.openFile(FileName(bytes: path.bytes))
            return try file.withRaw { raw throws(Errno) in
                guard try File.status(descriptor: raw).kind == .regular else { throw .invalidArgument }
                return try File.read(descriptor: raw, limit: most)
            }
        } catch {
            if error == .noSuchFileOrDirectory { throw BundleFault("\(path) is missing") }
            throw BundleFault("\(path) cannot be read", error)
        }
    }

    private static func exists(_ path: BundlePath, in root: Folder) -> Bool {
        var folder = root
        let names = path.names
        for name in names.dropLast() {
            guard let inner = try? folder.folder(FileName(bytes: name)) else { return false }
            folder = inner
        }
        return (try? folder.status(FileName(bytes: names[names.count - 1]))) != nil
    }

    /// Checks that only the owner can change a folder.
    private func inspect(_ status: FileStatus, folder: [UInt8]) throws(BundleFault) {
        let name = folder.isEmpty ? "the bundle's folder" : BundlePath.shown(folder)
        guard status.uid == owner else { throw BundleFault("\(name) belongs to another user (\(status.uid))") }
        guard status.mode == 0o755 else {
            throw BundleFault("\(name) has the mode \(String(status.mode, radix: 8)), and not 755")
        }
        guard status.device == device else { throw BundleFault("\(name) is on another filesystem") }
    }

    private mutating func walk(_ folder: Folder, _ path: [UInt8]) throws(BundleFault) {
        let names: [FileName]
        do throws(Errno) { names = try folder.names(atMost: BundleLimit.entries + 3) } catch {
            throw BundleFault("\(path.isEmpty ? "the bundle's folder" : BundlePath.shown(path)) cannot be read", error)
        }
        for name in names {
            let place = (path.isEmpty ? [] : path + [UInt8(ascii: "/")]) + name.content
            if place == BundlePath.manifest.bytes || place == BundlePath.signature.bytes {
                try plain(name, place, in: folder, mode: 0o644)
                continue
            }
            let shown = BundlePath.shown(place)
            guard let status = try Self.kernel(shown, { () throws(Errno) in try folder.status(name) }) else {
                throw BundleFault("\(shown) disappeared while it was checked")
            }
            if status.kind == .directory, table.folders.contains(place) {
                try inspect(status, folder: place)
                try walk(try Self.kernel(shown) { () throws(Errno) in try folder.folder(name) }, place)
                continue
            }
            guard let number = table.position(of: place) else {
                throw BundleFault("\(shown) is not in the manifest")
            }
            seen += 1
            try compare(table.entries[number], number, status, name, in: folder)
        }
    }

    private static func kernel<T>(_ shown: String, _ body: () throws(Errno) -> T) throws(BundleFault) -> T {
        do throws(Errno) { return try body() } catch { throw BundleFault("\(shown) cannot be read", error) }
    }

    /// Checks only the mode and the owner of a file, because its content is checked elsewhere.
    private func plain(_ name: FileName, _ path: [UInt8], in folder: Folder, mode: UInt32) throws(BundleFault) {
        let shown = BundlePath.shown(path)
        guard let status = try Self.kernel(shown, { () throws(Errno) in try folder.status(name) }) else { return }
        try own(status, shown, mode: mode)
    }

    private func own(_ status: FileStatus, _ shown: String, mode: UInt32?) throws(BundleFault) {
        guard status.uid == owner else { throw BundleFault("\(shown) belongs to another user (\(status.uid))") }
        if let mode, status.mode != mode {
            throw BundleFault(
                "\(shown) has the mode \(String(status.mode, radix: 8)), and not \(String(mode, radix: 8))"
            )
        }
        guard status.links == 1 else { throw BundleFault("\(shown) has another hard link") }
    }

    private mutating func compare(
        _ entry: BundleEntry,
        _ number: Int,
        _ status: FileStatus,
        _ name: FileName,
        in folder: Folder
    ) throws(BundleFault) {
        let shown = entry.path.description
        let changed = BundleFault("\(shown) is not what was signed")
        switch (entry.kind, status.kind) {
        case (.link(let target), .link):
            try own(status, shown, mode: nil)
            guard try Self.kernel(shown, { () throws(Errno) in try folder.linkTarget(name) }) == target else {
                throw changed
            }
        case (.file(let mode, let size, let digest), .regular):
            try own(status, shown, mode: mode)
            guard status.size == size else { throw changed }
            let file = try Self.kernel(shown) { () throws(Errno) in try folder.openFile(name) }
            // Check the open file: another process may have replaced the file of that name since.
            let opened = try Self.kernel(shown) { () throws(Errno) in try File.status(descriptor: file.raw) }
            guard opened.inode == status.inode, opened.device == status.device else { throw changed }
            if let measured = Verity.digest(file.raw) {
                guard measured == digest else { throw changed }
                return
            }
            isByKernel = false
            if !known.knows(number, opened) {
                do throws(BundleFault) {
                    let found = try Digest.read(file.raw)
                    bytesRead += found.size
                    guard found.digest == digest, found.size == size else { throw changed }
                } catch {
                    throw error == changed ? error : BundleFault("\(shown): \(error)", isPassing: error.isPassing)
                }
                let after = try Self.kernel(shown) { () throws(Errno) in try File.status(descriptor: file.raw) }
                guard after.changedNanoseconds == opened.changedNanoseconds else { throw changed }
            }
            fresh.remember(number, opened, before: began)
        default: throw BundleFault("\(shown) is of another kind than what was signed")
        }
    }
}

extension BundleFault {
    /// Creates a fault for an error of the kernel. A lack of memory, descriptors or the like is no fault of the
    /// bundle.
    init(_ what: String, _ errno: Errno) {
        self.init("\(what): \(errno)", isPassing: errno.isPassing)
    }
}
