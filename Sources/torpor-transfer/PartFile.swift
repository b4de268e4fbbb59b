// SPDX-License-Identifier: Apache-2.0

import Linux
import TransferProtocol

/// The file of a download that is not whole yet, with the SHA-256 of what is in it. Sendable, since it has one owner at a
/// time: the loop, or a job that the loop waits for. The digest has an owner of its own: it follows what is written, in a job
/// (``digest(to:)``) beside the loop, and reads it from the page cache.
final class PartFile: @unchecked Sendable {
    private let descriptor: Descriptor
    private let sum: Digest
    /// Bytes in it.
    private(set) var length: Int64
    /// Up to there the kernel was told to write it to the disk.
    private var begun: Int64 = 0
    /// Bytes of which it is told at once.
    private static let stretch: Int64 = 16 << 20
    /// Bytes that the digest is of, from the start.
    private var digested: Int64 = 0
    /// A job has the digest; the loop's.
    var isBeingDigested = false
    /// Bytes for which a job is worth its while, and the most that one does.
    private static let leastDigested: Int64 = 4 << 20
    private static let mostDigested: Int64 = 64 << 20

    init(_ descriptor: Descriptor, _ sum: Digest, length: Int64) {
        self.descriptor = descriptor
        self.sum = sum
        self.length = length
    }

    /// Up to where a job should have the digest follow now; nil where there is one, or not much to do.
    var nextDigest: Int64? {
        guard !isBeingDigested, length - digested >= Self.leastDigested else { return nil }
        return min(length, digested + Self.mostDigested)
    }

    /// Has the digest follow: for a job.
    func digest(to end: Int64) throws(Errno) {
        guard digested < end else { return }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 8)
        defer { buffer.deallocate() }
        while digested < end {
            let wanted = Int(min(Int64(buffer.count), end - digested))
            let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])
            let offset = UInt64(digested)
            let read = try descriptor.withRaw { raw throws(Errno) in try File.read(raw, at: offset, into: piece) }
            // Somebody has shortened it.
            guard read > 0 else { throw .ioError }
            sum.update(UnsafeRawBufferPointer(rebasing: piece[..<read]))
            digested += Int64(read)
        }
    }

    /// Empties it, or goes on at its end: for a job.
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

    /// Writes behind what is in it.
    func write(_ bytes: UnsafeRawBufferPointer) throws(Errno) {
        let (written, failure) = descriptor.withRaw { raw in Descriptor.writeAll(raw, bytes) }
        length += Int64(written)
        if let failure { throw failure }
        guard length - begun >= Self.stretch else { return }
        // The last bytes are not to wait for all that came before them.
        descriptor.withRaw { raw in File.beginWriting(raw, from: begun, count: length - begun) }
        begun = length
    }

    /// Room on its filesystem, in bytes.
    func free() throws(Errno) -> Int64 {
        try descriptor.withRaw { raw throws(Errno) in Int64(clamping: try FilesystemSpace(of: raw).free) }
    }

    /// The SHA-256 of all of it: for a job.
    func finish() throws(Errno) -> String {
        try digest(to: length)
        defer { restartDigest() }
        return sum.finish()
    }

    /// Waits until all of it is on the disk: for a job.
    func synchronise() throws(Errno) {
        try descriptor.withRaw { raw throws(Errno) in try File.synchronise(raw) }
    }

    /// Copies all of it to another file: for a job.
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

/// The file of an upload. Sendable as a part is.
final class SourceFile: @unchecked Sendable {
    private let descriptor: Descriptor
    /// What it was when it was opened.
    let source: TransferSource

    init(_ descriptor: Descriptor, _ source: TransferSource) {
        self.descriptor = descriptor
        self.source = source
    }

    /// Reads from a place in it; 0 at its end.
    func read(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
        try descriptor.withRaw { raw throws(Errno) in try File.read(raw, at: UInt64(offset), into: buffer) }
    }

    /// Whether it is still what it was.
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
