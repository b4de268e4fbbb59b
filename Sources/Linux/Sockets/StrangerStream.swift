// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// A connected Unix stream socket whose peer is not trusted. Neither a read nor the close of it closes descriptors that
/// the peer has sent: to let go of the last reference to something can take long, even if it was never opened here. It
/// may free gigabytes of memory, or wait for the server of a filesystem (of FUSE with a write-back cache, since Linux
/// 6.16).
///
/// Since Linux 6.16 the kernel refuses such descriptors. Before that, each read looks at the data first.
public final class StrangerStream {
    /// What a read has found.
    public enum Found: Equatable, Sendable {
        /// Nothing to read now.
        case nothing
        /// So many bytes; 0 at the end of the connection.
        case bytes(Int)
        /// Descriptors come with the next data, which stays unread. Call ``close(using:discarding:)`` next.
        case descriptors
    }

    /// The socket's number; −1 after ``close(using:discarding:)``.
    public var raw: Int32 { descriptor.raw }
    private let descriptor: Descriptor
    /// Whether the kernel refuses descriptors.
    private let isRefusing: Bool
    /// Whether the end of the connection was read, so that nothing can be in its queue.
    private var isAtEnd = false

    /// - Parameter isRefusing: whether the kernel refuses descriptors (``Sockets/refuseDescriptors(_:)``), from the
    ///   first moment on.
    public init(_ descriptor: Descriptor, isRefusing: Bool) {
        self.descriptor = descriptor
        self.isRefusing = isRefusing
        guard !isRefusing else { return }
        descriptor.closesPromptly = true
        // Fails only on kernels before 5.15, which know no urgent data on Unix sockets.
        _ = tlx_read_urgent_inline(descriptor.raw)
    }

    /// Reads once. Never blocks.
    public func read(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Found {
        var hasDescriptors: Int32 = 0
        let count =
            try isRefusing
            ? Descriptor.read(raw, into: buffer)
            : callUnlessBlocked { tlx_read_plain(raw, buffer.baseAddress, buffer.count, &hasDescriptors) }
        guard let count else { return .nothing }
        if hasDescriptors != 0 { return .descriptors }
        if count == 0 { isAtEnd = true }
        return .bytes(count)
    }

    /// Ends and closes the connection. What the peer has sent is read into `buffer` and ignored; if descriptors are
    /// among that, the socket is passed to `discard`, which must close it when another process has it too, and have that process close it.
    public func close(using buffer: UnsafeMutableRawBufferPointer, discarding discard: (Descriptor) -> Void) {
        guard raw >= 0 else { return }
        if !isRefusing, !isAtEnd, hasDescriptors(buffer) { discard(descriptor) }
        descriptor.close()
    }

    private func hasDescriptors(_ buffer: UnsafeMutableRawBufferPointer) -> Bool {
        // From now on the peer can send nothing more, so the loop ends.
        guard (try? Sockets.shutDown(raw)) != nil else { return false }
        while true {
            switch try? read(into: buffer) {
            case .descriptors: return true
            case .bytes(1...): continue
            case .bytes, .nothing, nil: return false
            }
        }
    }
}

extension Sockets {
    /// Makes a Unix socket, and the connections that it accepts, refuse descriptors, so that a sender gets EPERM.
    /// Without this, they would be closed here, which can block. Throws ENOPROTOOPT before Linux 6.16, and always if
    /// the environment variable `TORPOR_TEST_OLD_KERNEL` is set (for tests).
    public static func refuseDescriptors(_ socket: Int32) throws(Errno) {
        guard getenv("TORPOR_TEST_OLD_KERNEL") == nil else { throw Errno(rawValue: ENOPROTOOPT) }
        try setOption(socket, 83, 0)
    }
}
