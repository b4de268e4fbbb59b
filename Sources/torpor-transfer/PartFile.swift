// SPDX-License-Identifier: Apache-2.0

import Linux
import TransferProtocol

/// The part (partial file) of a download, and its SHA-256. It is Sendable, because only one owner uses it at a time:
/// the event loop, or a job that the event loop waits for. Only the digest has an owner of its own: jobs on other
/// threads (``digest(to:)``) read the written bytes from the page cache.
final class PartFile: @unchecked Sendable {
    private let descriptor: Descriptor
    private let sum: Digest
    /// The length of the part in bytes.
    private(set) var length: Int64
    /// The offset up to which writeback was started.
    private var begun: Int64 = 0
    /// Start writeback after each further stretch of this many bytes.
    private static let stretch: Int64 = 16 << 20
    /// How many bytes, from the start of the file, the digest covers.
    private var digested: Int64 = 0
    /// Whether a job owns the digest. Accessed only by the event loop.
    var isBeingDigested = false
    /// The fewest bytes for which a job of the digest is started, and the most bytes that one job handles.
    private static let leastDigested: Int64 = 4 << 20
    private static let mostDigested: Int64 = 64 << 20

    init(_ descriptor: Descriptor, _ sum: Digest, length: Int64) {
        self.descriptor = descriptor
        self.sum = sum
        self.length = length
    }

    /// The offset up to which a job should update the digest now; nil if a job is running or too few bytes are new.
    var nextDigest: Int64? {
        guard !isBeingDigested, length - digested >= Self.leastDigested else { return nil }
        return min(length, digested + Self.mostDigested)
    }

    /// Updates the digest up to `end`. Blocks, so call it in a job.
    func digest(to end: Int64) throws(Errno) {
        guard digested < end else { return }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 8)
        defer { buffer.deallocate() }
        while digested < end {
            let wanted = Int(min(Int64(buffer.count), end - digested))
            let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])
            let offset = UInt64(digested)
            let read = try descriptor.withRaw { raw throws(Errno) in try File.read(raw, at: offset, into: piece) }
            // Another process has truncated the file.
            guard read > 0 else { throw .ioError }
            sum.update(UnsafeRawBufferPointer(rebasing: piece[..<read]))
            digested += Int64(read)
        }
    }

    /// Prepares to write at an offset: truncates the file for offset 0, otherwise seeks to its end. Blocks, so call
    /// it in a job.
    func begin(at offset: Int64) throws(Errno) {
        if offset == 0 {
            try descriptor.withRaw { raw throws(Errno) in try File.truncate(raw, to: 0) }
            length = 0
            restartDigest()
        }
        _ = try descriptor.withRaw { raw throws(Errno) in try File.seek(raw, to: length) }
        begun = length
    }

    private func restartDigest() {
        sum.reset()
        digested = 0
    }

    /// Appends bytes to the file.
    func write(_ bytes: UnsafeRawBufferPointer) throws(Errno) {
        let (written, failure) = descriptor.withRaw { raw in Descriptor.writeAll(raw, bytes) }
        length += Int64(written)
        if let failure { throw failure }
        guard length - begun >= Self.stretch else { return }
        // Start writeback early, so that the final fsync has little left to write.
        descriptor.withRaw { raw in File.beginWriting(raw, from: begun, count: length - begun) }
        begun = length
    }

    /// The free bytes on the part's filesystem.
    func free() throws(Errno) -> Int64 {
        try descriptor.withRaw { raw throws(Errno) in Int64(clamping: try FilesystemSpace(of: raw).free) }
    }

    /// Returns the SHA-256 of the whole file. Blocks, so call it in a job.
    func finish() throws(Errno) -> String {
        try digest(to: length)
        defer { restartDigest() }
        return sum.finish()
    }

    /// Blocks until the file is on the disk (fsync), so call it in a job.
    func synchronise() throws(Errno) {
        try descriptor.withRaw { raw throws(Errno) in try File.synchronise(raw) }
    }

    /// Copies the whole file. Blocks, so call it in a job.
    func copy(to target: Descriptor) throws(Errno) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 8)
        defer { buffer.deallocate() }
        _ = try descriptor.withRaw { raw throws(Errno) in try File.seek(raw, to: 0) }
        while true {
            let read = try descriptor.withRaw { raw throws(Errno) in try Descriptor.read(raw, into: buffer) ?? 0 }
            if read == 0 { return }
            let result = target.withRaw { raw in
                Descriptor.writeAll(raw, UnsafeRawBufferPointer(rebasing: buffer[..<read]))
            }
            if let failure = result.failure { throw failure }
        }
    }
}

/// The file of an upload. It is Sendable for the same reason as ``PartFile``.
final class SourceFile: @unchecked Sendable {
    private let descriptor: Descriptor
    /// The file's size and modification time when it was opened.
    let source: TransferSource

    init(_ descriptor: Descriptor, _ source: TransferSource) {
        self.descriptor = descriptor
        self.source = source
    }

    /// Reads bytes at an offset. Returns 0 at the end of the file.
    func read(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
        try descriptor.withRaw { raw throws(Errno) in try File.read(raw, at: UInt64(offset), into: buffer) }
    }

    /// Whether the file's size and modification time are still the same.
    var isUnchanged: Bool {
        guard let status = try? descriptor.withRaw({ raw throws(Errno) in try File.status(descriptor: raw) }) else {
            return false
        }
        return TransferSource(status) == source
    }
}

extension TransferSource {
    init(_ status: FileStatus) {
        self.init(size: Int64(clamping: status.size), modified: status.modifiedNanoseconds)
    }
}
