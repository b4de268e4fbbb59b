// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// Owns an open file descriptor, and closes it when the last reference is gone. This is a class, because closures and
/// tables share descriptors.
public final class Descriptor {
    /// The descriptor's number; −1 after ``close()`` or ``take()``.
    public private(set) var raw: Int32
    /// Whether ``close()`` must not block for long. Set this for a socket for which another process may have set
    /// SO_LINGER, because its close(2) can then block (see ``Promptly``).
    public var closesPromptly = false

    /// Takes ownership of `raw`.
    public init(owning raw: Int32) { self.raw = raw }

    deinit { close() }

    /// Keeps the descriptor open while `body` uses its number. With `open(…).raw`, in contrast, the descriptor would be
    /// closed before the number is used.
    public func withRaw<Result, Failure: Error>(
        _ body: (Int32) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { withExtendedLifetime(self) {} }
        return try body(raw)
    }

    /// Closes the descriptor now. A second call does nothing. Stop watching the descriptor before you close it: if the
    /// open file has a duplicate descriptor, epoll continues to watch the file.
    public func close() {
        guard raw >= 0 else { return }
        if closesPromptly { Promptly.run { _ = Glibc.close(raw) } } else { _ = Glibc.close(raw) }
        raw = -1
    }

    /// Gives up ownership of the descriptor: the caller must close the result.
    public func take() -> Int32 {
        defer { raw = -1 }
        return raw
    }

    /// A second descriptor for the same open file, close-on-exec.
    public func duplicate() throws(Errno) -> Descriptor { try Descriptor.duplicate(raw) }

    /// A second descriptor for the open file behind `raw`, close-on-exec, numbered `minimum` or above.
    public static func duplicate(_ raw: Int32, minimum: Int32 = 0) throws(Errno) -> Descriptor {
        Descriptor(owning: try call { fcntl(raw, F_DUPFD_CLOEXEC, minimum) })
    }

    /// Sets or clears O_NONBLOCK. The flag belongs to the open file, so every process that shares the file sees it.
    public static func setNonBlocking(_ raw: Int32, _ on: Bool = true) throws(Errno) {
        let flags = try call { fcntl(raw, F_GETFL) }
        try call { fcntl(raw, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK) }
    }

    /// Whether O_NONBLOCK is set.
    public static func isNonBlocking(_ raw: Int32) throws(Errno) -> Bool {
        try call { fcntl(raw, F_GETFL) } & O_NONBLOCK != 0
    }

    /// Whether two descriptors refer to the same open file (kcmp(2)). If kcmp is forbidden, whether they refer to the
    /// same device and inode.
    public static func sameFile(_ one: Int32, _ other: Int32) -> Bool {
        let answer = tlx_same_file(one, other)
        if answer >= 0 { return answer == 1 }
        guard let first = try? File.status(descriptor: one), let second = try? File.status(descriptor: other) else {
            return false
        }
        return first.device == second.device && first.inode == second.inode
    }

    /// Sets or clears close-on-exec.
    public static func setCloseOnExec(_ raw: Int32, _ on: Bool = true) throws(Errno) {
        try call { fcntl(raw, F_SETFD, on ? FD_CLOEXEC : 0) }
    }

    /// Whether `raw` is an open descriptor of this process.
    public static func isOpen(_ raw: Int32) -> Bool { fcntl(raw, F_GETFD) >= 0 }

    /// A pipe, close-on-exec.
    public static func pipe(nonBlocking: Bool = false) throws(Errno) -> (read: Descriptor, write: Descriptor) {
        var pair: (Int32, Int32) = (-1, -1)
        try withUnsafeMutableBytes(of: &pair) { bytes throws(Errno) in
            let numbers = bytes.bindMemory(to: Int32.self)
            try call { tlx_pipe(numbers.baseAddress!, nonBlocking ? 1 : 0) }
        }
        return (Descriptor(owning: pair.0), Descriptor(owning: pair.1))
    }

    /// An eventfd: a counter that is readable while it is not zero. Non-blocking, close-on-exec.
    public static func event() throws(Errno) -> Descriptor {
        Descriptor(owning: try call { tlx_eventfd() })
    }

    /// Closes every descriptor from `first` to `last`; if `last` is omitted, all from `first` on.
    public static func closeRange(from first: Int32, to last: Int32? = nil) throws(Errno) {
        try call { tlx_close_range(UInt32(bitPattern: first), last.map(UInt32.init(bitPattern:)) ?? .max, 0) }
    }

    /// Reads once, at most `buffer.count` bytes. Returns 0 at the end of the file, and nil if there is nothing to
    /// read now (EAGAIN).
    public static func read(_ raw: Int32, into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int? {
        try callUnlessBlocked { Glibc.read(raw, buffer.baseAddress, buffer.count) }
    }

    /// Reads once, at most `maximum` bytes. Returns an empty array at the end of the file, and nil if there is
    /// nothing to read now (EAGAIN).
    public static func read(_ raw: Int32, maximum: Int) throws(Errno) -> [UInt8]? {
        var failure: Errno?
        var blocked = false
        let bytes = [UInt8](unsafeUninitializedCapacity: maximum) { buffer, count in
            do throws(Errno) {
                let got = try read(raw, into: UnsafeMutableRawBufferPointer(buffer))
                blocked = got == nil
                count = got ?? 0
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return blocked ? nil : bytes
    }

    /// Writes once and returns how many bytes were written; nil if there is no room now (EAGAIN). The process must
    /// ignore SIGPIPE.
    public static func write(_ raw: Int32, _ bytes: UnsafeRawBufferPointer) throws(Errno) -> Int? {
        try callUnlessBlocked { Glibc.write(raw, bytes.baseAddress, bytes.count) }
    }

    /// Writes once and returns how many bytes were written; nil if there is no room now (EAGAIN).
    public static func write(_ raw: Int32, _ bytes: [UInt8]) throws(Errno) -> Int? {
        try callUnlessBlocked { Glibc.write(raw, bytes, bytes.count) }
    }

    /// Writes all of `bytes`, to a file or a blocking descriptor.
    public static func writeAll(_ raw: Int32, _ bytes: [UInt8]) throws(Errno) {
        if let failure = bytes.withUnsafeBytes({ writeAll(raw, $0) }).failure { throw failure }
    }

    /// Writes all of `bytes`. Returns how much was written, and the error if one occurred.
    public static func writeAll(_ raw: Int32, _ bytes: UnsafeRawBufferPointer) -> (written: Int, failure: Errno?) {
        var done = 0
        while done < bytes.count {
            do throws(Errno) {
                let count = try call { Glibc.write(raw, bytes.baseAddress! + done, bytes.count - done) }
                if count == 0 { return (done, .ioError) }
                done += count
            } catch {
                return (done, error)
            }
        }
        return (done, nil)
    }

    /// Which of these conditions are true now: readable, writable, closed by the peer. Empty if poll(2) fails.
    public static func readiness(_ raw: Int32) -> IOEvents {
        // Use epoll's bits, which are the same as those of poll(2): POLLRDHUP is available only with _GNU_SOURCE.
        let wanted: IOEvents = [.readable, .writable, .peerClosed]
        var entry = pollfd(fd: raw, events: Int16(truncatingIfNeeded: wanted.rawValue), revents: 0)
        guard poll(&entry, 1, 0) > 0 else { return [] }
        return IOEvents(rawValue: UInt32(UInt16(bitPattern: entry.revents)))
    }

    /// Blocks until the peer has closed the other end of `raw` (a pipe, socket or terminal), so that no process reads
    /// what is written. For a file, blocks forever. Returns false if `raw` is not open.
    public static func waitUntilUnread(_ raw: Int32) -> Bool {
        while true {
            // poll(2) always reports POLLERR (a pipe without readers), POLLHUP (a closed socket or terminal) and
            // POLLNVAL.
            var entry = pollfd(fd: raw, events: 0, revents: 0)
            let result = poll(&entry, 1, -1)
            if result > 0 { return Int32(entry.revents) & POLLNVAL == 0 }
            if result < 0, errno != EINTR { return false }
        }
    }

    /// Blocks until `raw` is readable (or, with `writable`, writable), at most for `timeout`. For programs without an
    /// event loop.
    public static func wait(_ raw: Int32, writable: Bool = false, timeout: Duration?) throws(Errno) -> Bool {
        let deadline = timeout.map { Clock.monotonic() + $0 }
        while true {
            var entry = pollfd(fd: raw, events: Int16(writable ? POLLOUT : POLLIN), revents: 0)
            let left = deadline.map { max(0, ($0 - Clock.monotonic()).microseconds) }
            let result = poll(&entry, 1, left.map { Int32(clamping: ($0 + 999) / 1000) } ?? -1)
            if result >= 0 { return result > 0 }
            if errno != EINTR { throw Errno(rawValue: errno) }
        }
    }
}
