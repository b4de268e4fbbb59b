// SPDX-License-Identifier: Apache-2.0

import Linux
import TransferProtocol
import Varlink

/// The result of a disk job.
enum DiskResult: Sendable {
    case ended(TransferEnd)
    /// The part (partial file) is open, so the download's request may be sent.
    case part(PartFile)
    /// The file is open, so the upload may be sent.
    case source(SourceFile)
    /// The part is ready to receive the response's body.
    case begun
    /// The job has no result.
    case nothing
}

/// The file operations of one transfer. Each of them blocks, so it runs as a job on a thread of its own, not on the
/// event loop.
struct DiskWork: Sendable {
    let places: Places
    let order: TransferOrder

    private func result(_ body: () throws(DiskError) -> DiskResult) -> DiskResult {
        do throws(DiskError) {
            return try body()
        } catch {
            return .ended(error.end)
        }
    }

    /// Prepares the files of a transfer before its first request.
    func prepare() -> DiskResult {
        result { () throws(DiskError) in
            let parts = try places.partsFolder()
            let earlier = writtenEnd(in: parts)
            switch order.direction {
            case .upload:
                if let earlier { return .ended(earlier) }
                if order.isDoubtful {
                    throw DiskError(
                        .failed,
                        "doubt",
                        "the upload was under way when torpor-transfer died: the server may have the file"
                    )
                }
                return .source(try openSource())
            case .download:
                let isThere = try? parts.status(Places.part(order.id))
                if let earlier {
                    // An earlier process recorded the end of this transfer. If the part still exists, that process
                    // died before the rename, so rename it now.
                    return .ended(isThere == nil ? earlier : try move(try openPart(parts), parts, earlier))
                }
                try checkDestination()
                return .part(try openPart(parts))
            }
        }
    }

    /// The end of this transfer that an earlier process recorded, but that torpord has not acknowledged; nil if there
    /// is none.
    private func writtenEnd(in parts: Folder) -> TransferEnd? {
        guard let descriptor = try? parts.openFile(Places.end(order.id)),
            let bytes = try? descriptor.withRaw({ raw throws(Errno) in try File.read(descriptor: raw, limit: 64 << 10) }
            ),
            let json = try? JSON.parse(bytes), let end = try? TransferEnd(json: json), end.outcome == .done
        else { return nil }
        return end
    }

    private func openSource() throws(DiskError) -> SourceFile {
        guard let (folder, name) = try places.folder(of: order, make: false, reason: "source") else {
            throw DiskError(.failed, "source", "\(order.file) is not there")
        }
        let descriptor: Descriptor
        let status: FileStatus
        do throws(Errno) {
            descriptor = try folder.openFile(name)
            status = try descriptor.withRaw { raw throws(Errno) in try File.status(descriptor: raw) }
        } catch {
            throw DiskError(error, order.file, reason: "source")
        }
        guard status.kind == .regular else {
            throw DiskError(.failed, "source", "\(order.file) is not a regular file")
        }
        let source = TransferSource(status)
        if let earlier = order.source, earlier != source {
            throw DiskError(.failed, "file-changed", "\(order.file) has changed since the transfer began")
        }
        return SourceFile(descriptor, source)
    }

    private func openPart(_ parts: Folder) throws(DiskError) -> PartFile {
        guard let digest = Digest() else { throw DiskError(.retry, "memory", "out of memory") }
        do throws(Errno) {
            let descriptor = try parts.openOrMakeFile(Places.part(order.id), mode: 0o666)
            let status = try descriptor.withRaw { raw throws(Errno) in try File.status(descriptor: raw) }
            guard status.kind == .regular else { throw Errno.notSupported }
            return PartFile(descriptor, digest, length: Int64(clamping: status.size))
        } catch {
            throw DiskError(error, "the partial file", reason: "destination")
        }
    }

    /// Checks the destination before the first byte is downloaded, and throws if a file cannot be put there.
    private func checkDestination() throws(DiskError) {
        guard let (folder, name) = try places.folder(of: order, make: false, reason: "destination") else { return }
        let status: FileStatus?
        do throws(Errno) {
            status = try folder.status(name)
        } catch  where error == .tooManySymbolicLinkLevels {
            status = nil
        } catch {
            throw DiskError(error, order.file, reason: "destination")
        }
        if status?.kind == .directory { throw DiskError(.failed, "destination", "\(order.file) is a folder") }
    }

    /// Prepares the part (partial file) for the response's body: truncates it if the body begins at 0, and checks for
    /// free space.
    func begin(_ part: PartFile, at offset: Int64, total: Int64?) -> DiskResult {
        result { () throws(DiskError) in
            do throws(Errno) {
                try part.begin(at: offset)
                guard part.length == offset else {
                    return .ended(DiskError(.retry, "disk", "the partial file changed").end)
                }
                let missing = max(0, (total ?? 0) - offset)
                let free = try part.free()
                if free - missing < order.minimumFree {
                    return .ended(
                        DiskError(.space, "space", "\(missing) more bytes are needed, and \(free) are free").end
                    )
                }
                return .begun
            } catch {
                throw DiskError(error, "the partial file", reason: "destination")
            }
        }
    }

    /// Verifies the digest of a complete download, and moves the file to its destination.
    ///
    /// - Parameter wasResumed: whether a part of the file came with an earlier response. In that case, a wrong digest
    ///   makes torpord download the whole file once more.
    func complete(_ part: PartFile, wasResumed: Bool, status: Int) -> DiskResult {
        result { () throws(DiskError) in
            var end = TransferEnd(.done, bytes: part.length)
            end.status = Int64(status)
            do throws(Errno) {
                let sha256 = try part.finish()
                end.sha256 = sha256
                if let wanted = order.sha256, wanted != sha256 {
                    try part.begin(at: 0)
                    return .ended(
                        DiskError(
                            wasResumed ? .retry : .failed,
                            "digest",
                            "the SHA-256 is \(sha256), but should be \(wanted)"
                        ).end
                    )
                }
                try part.synchronise()
            } catch {
                throw DiskError(error, "the partial file", reason: "destination")
            }
            return .ended(try move(part, try places.partsFolder(), end))
        }
    }

    /// Records a finished upload.
    func sent(_ bytes: Int64, status: Int) -> DiskResult {
        result { () throws(DiskError) in
            var end = TransferEnd(.done, bytes: bytes)
            end.status = Int64(status)
            // Without the record, an upload by POST would be sent twice if this process died now. But a full disk
            // must not make a finished upload fail.
            _ = try? write(end, in: try places.partsFolder())
            return .ended(end)
        }
    }

    private func write(_ end: TransferEnd, in parts: Folder) throws(DiskError) {
        do throws(Errno) {
            let descriptor = try parts.openOrMakeFile(Places.end(order.id), mode: 0o600)
            try descriptor.withRaw { raw throws(Errno) in
                try File.truncate(raw, to: 0)
                try Descriptor.writeAll(raw, end.json.serialised())
                try File.synchronise(raw)
            }
            try parts.synchronise()
        } catch {
            throw DiskError(error, "the folder of partial files", reason: "destination")
        }
    }

    /// Writes the record of the end durably, then renames the part to its destination durably.
    private func move(_ part: PartFile, _ parts: Folder, _ end: TransferEnd) throws(DiskError) -> TransferEnd {
        guard let (folder, name) = try places.folder(of: order, make: true, reason: "destination") else { return end }
        try write(end, in: parts)
        do throws(Errno) {
            do throws(Errno) {
                try parts.rename(Places.part(order.id), to: folder, name)
            } catch  where error == .improperLink {
                // EXDEV means another filesystem. Landlock before version 2 returns it too, since it forbids renames
                // between folders.
                try copy(part, to: folder, name)
                try parts.remove(Places.part(order.id))
            }
            try folder.synchronise()
            try parts.synchronise()
            return end
        } catch {
            // The move failed, so remove the record of the end.
            try? parts.remove(Places.end(order.id))
            throw DiskError(error, order.file, reason: "destination")
        }
    }

    private func copy(_ part: PartFile, to folder: Folder, _ name: FileName) throws(Errno) {
        let draft = FileName(".torpor-transfer-\(order.id)")
        try? folder.remove(draft)
        do throws(Errno) {
            let target = try folder.openOrMakeFile(draft, mode: 0o666, isNew: true)
            try part.copy(to: target)
            try target.withRaw { raw throws(Errno) in try File.synchronise(raw) }
            try folder.rename(draft, to: folder, name)
        } catch {
            try? folder.remove(draft)
            throw error
        }
    }
}
