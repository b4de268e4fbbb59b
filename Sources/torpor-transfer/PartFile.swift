// SPDX-License-Identifier: Apache-2.0

import Linux
import TransferProtocol

/// The partial file of a download, and its SHA-256. Sendable, since it has one owner at a time: the loop, or a job
/// that the loop waits for. The digest has its own owner: jobs on other threads (``digest(to:)``) read the
/// written bytes from the page cache.
final class PartFile: @unchecked Sendable {
    private let descriptor: Descriptor
    private let sum: Digest
    /// In bytes.
    private(set) var length: Int64
    /// The offset up to which the kernel was asked to start writeback.
    private var begun: Int64 = 0
    /// Bytes per request for writeback.
    private static let stretch: Int64 = 16 << 20
    /// The digest covers this many bytes from the start.
    private var digested: Int64 = 0
    /// Whether a job owns the digest. Only the loop reads and writes this.
    var isBeingDigested = false
    /// The least bytes worth a job of the digest, and the most for one job.
    private static let leastDigested: Int64 = 4 << 20
    private static let mostDigested: Int64 = 64 << 20

    init(_ descriptor: Descriptor, _ sum: Digest, length: Int64) {
        self.descriptor = descriptor
        self.sum = sum
        self.length = length
    }

    /// The offset up to which a job should update the digest now; nil if one is running or there is too little to do.
    var nextDigest: Int64? {
        guard !isBeingDigested, length - digested >= Self.leastDigested else { return nil }
        return min(length, digested + Self.mostDigested)
    }

    /// Updates the digest. Blocks: for a job.
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

    /// Truncates the file for offset 0, else seeks to its end. Blocks: for a job.
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

    /// Appends to the file.
    func write(_ bytes: UnsafeRawBufferPointer) throws(Errno) {
        let (written, failure) = descriptor.withRaw { raw in Descriptor.writeAll(raw, bytes) }
        length += Int64(written)
        if let failure { throw failure }
        guard length - begun >= Self.stretch else { return }
        // Start writeback early, so that the final fsync has little left to do.
        descriptor.withRaw { raw in File.beginWriting(raw, from: begun, count: length - begun) }
        begun = length
    }

    /// Free bytes on its filesystem.
    func free() throws(Errno) -> Int64 {
        try descriptor.withRaw { raw throws(Errno) in Int64(clamping: try FilesystemSpace(of: raw).free) }
    }

    /// The SHA-256 of the whole file. Blocks: for a job.
    func finish() throws(Errno) -> String {
        try digest(to: length)
        defer { restartDigest() }
        return sum.finish()
    }

    /// Waits until the file is on the disk (fsync): for a job.
    func synchronise() throws(Errno) {
        try descriptor.withRaw { raw throws(Errno) in try File.synchronise(raw) }
    }

    /// Copies the whole file. Blocks: for a job.
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

/// The file of an upload. Sendable for the same reason as ``PartFile``.
final class SourceFile: @unchecked Sendable {
    private let descriptor: Descriptor
    /// The file's size and time when it was opened.
    let source: TransferSource

    init(_ descriptor: Descriptor, _ source: TransferSource) {
        self.descriptor = descriptor
        self.source = source
    }

    /// Reads at an offset; 0 at the end of the file.
    func read(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
        try descriptor.withRaw { raw throws(Errno) in try File.read(raw, at: UInt64(offset), into: buffer) }
    }

    /// Whether size and time are still the same.
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
