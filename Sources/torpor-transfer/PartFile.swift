// SPDX-License-Identifier: Apache-2.0

import Linux
import TransferProtocol

/// The file of a download that is not whole yet, with the SHA-256 of what is in it. Sendable, since it has one owner at a
/// time: the loop, or a job that the loop waits for.
final class PartFile: @unchecked Sendable {
    private let descriptor: Descriptor
    private let digest: Digest
    /// Bytes in it.
    private(set) var length: Int64
    /// Up to there the kernel was told to write it to the disk.
    private var begun: Int64 = 0
    /// Bytes of which it is told at once.
    private static let stretch: Int64 = 16 << 20
    /// Whether the digest is that of what is in it.
    private var isDigested: Bool

    init(_ descriptor: Descriptor, _ digest: Digest, length: Int64) {
        self.descriptor = descriptor
        self.digest = digest
        self.length = length
        isDigested = length == 0
    }

    /// Calculates the SHA-256 of what is there already: for a job.
    func digestAll() throws(Errno) {
        digest.reset()
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 8)
        defer { buffer.deallocate() }
        var count: Int64 = 0
        _ = try descriptor.withRaw { raw throws(Errno) in try File.seek(raw, to: 0) }
        while count < length {
            let read = try descriptor.withRaw { raw throws(Errno) in try Descriptor.read(raw, into: buffer) ?? 0 }
            if read == 0 { break }
            digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<read]))
            count += Int64(read)
        }
        length = count
        isDigested = true
    }

    /// Empties it, or goes on at its end: for a job.
    func begin(at offset: Int64) throws(Errno) {
        if offset == 0 {
            try descriptor.withRaw { raw throws(Errno) in try File.truncate(raw, to: 0) }
            digest.reset()
            length = 0
            isDigested = true
        } else if !isDigested {
            try digestAll()
        }
        _ = try descriptor.withRaw { raw throws(Errno) in try File.seek(raw, to: length) }
        begun = length
    }

    /// Writes behind what is in it.
    func write(_ bytes: UnsafeRawBufferPointer) throws(Errno) {
        let (written, failure) = descriptor.withRaw { raw in Descriptor.writeAll(raw, bytes) }
        digest.update(UnsafeRawBufferPointer(rebasing: bytes[..<written]))
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

    /// The SHA-256 of all of it, once: for a job.
    func finish() throws(Errno) -> String {
        if !isDigested { try digestAll() }
        isDigested = false
        return digest.finish()
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
