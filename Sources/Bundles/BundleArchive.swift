// SPDX-License-Identifier: Apache-2.0

/// The first files of a bundle's archive: the manifest, and its signature if there is one.
public struct BundleHead: Sendable {
    /// The bytes of `manifest.toml`.
    public let manifest: [UInt8]
    /// The bytes of `manifest.toml.minisig`; nil for a bundle that is not signed.
    public let signature: [UInt8]?
    /// The part of the manifest that its author wrote: all before the section `[files]`.
    public let text: [UInt8]
    /// The files that the manifest lists.
    public let files: FileTable
}

/// Reads a bundle's archive. Its members must be the entries of the manifest, in the same order.
public struct BundleArchive {
    /// The manifest and its signature.
    public let head: BundleHead
    private var reader: ArchiveReader
    private var index = 0
    /// The member after the manifest, if it is not the signature: ``next()`` returns it first.
    private var early: ArchiveMember?

    /// Reads the manifest and its signature.
    ///
    /// - Parameter check: checks the signature. It is called with the bytes of manifest and signature before anything
    ///   in the manifest is used.
    public init(
        _ source: @escaping ArchiveReader.Source,
        check: (_ manifest: [UInt8], _ signature: [UInt8]?) throws(BundleFault) -> Void = { _, _ in }
    ) throws(BundleFault) {
        var reader = ArchiveReader(source)
        guard let first = try reader.next(), first.path == .manifest, case .file = first.kind else {
            throw BundleFault("this is not a bundle: the first file in it is not manifest.toml")
        }
        let manifest = try reader.all(atMost: BundleLimit.manifest)
        var signature: [UInt8]?
        early = try reader.next()
        if let member = early, member.path == .signature, case .file = member.kind {
            signature = try reader.all(atMost: BundleLimit.signature)
            early = try reader.next()
        }
        try check(manifest, signature)
        let (text, files) = try FileTable.split(manifest)
        head = BundleHead(manifest: manifest, signature: signature, text: text, files: files)
        self.reader = reader
    }

    /// Returns the next entry of the manifest; nil after the last one. Throws if the archive's next member is not that
    /// entry.
    public mutating func next() throws(BundleFault) -> BundleEntry? {
        let member: ArchiveMember?
        if let early {
            member = early
            self.early = nil
        } else {
            member = try reader.next()
        }
        guard let member else {
            guard index == head.files.entries.count else {
                throw BundleFault("\(head.files.entries[index].path) is in the manifest, but not in the archive")
            }
            return nil
        }
        let path = member.path
        guard index < head.files.entries.count, head.files.entries[index].path == path else {
            if let known = head.files.position(of: path.bytes) {
                throw BundleFault(
                    known < index
                        ? "\(path) is there twice"
                        : "\(head.files.entries[index].path) is in the manifest, but not in the archive before \(path)"
                )
            }
            if path == .manifest || path == .signature { throw BundleFault("\(path) is there twice") }
            let folded = BundlePath.folded(path.bytes)
            if let other = head.files.entries.first(where: { BundlePath.folded($0.path.bytes) == folded }) {
                throw BundleFault("\(other.path) and \(path) differ only in case")
            }
            throw BundleFault("\(path) is in the archive, but not in the manifest")
        }
        let entry = head.files.entries[index]
        index += 1
        switch (member.kind, entry.kind) {
        case (.file(let size), .file(let mode, let listed, _)):
            guard size == listed else {
                throw BundleFault("\(path) has \(size) bytes, and not the \(listed) of the manifest")
            }
            guard member.mode == mode else { throw BundleFault("\(path) has another mode than in the manifest") }
        case (.link(let target), .link(let listed)):
            guard target == listed else {
                throw BundleFault("the link \(path) has another target than in the manifest")
            }
        case (.file, .link), (.link, .file): throw BundleFault("\(path) is of another kind than in the manifest")
        }
        return entry
    }

    /// Returns the next bytes of the entry that ``next()`` returned last; an empty array at the entry's end.
    public mutating func content(atMost most: Int) throws(BundleFault) -> [UInt8] {
        try reader.content(atMost: most)
    }
}
