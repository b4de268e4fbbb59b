import Glibc
public import SystemPackage

/// Unix stream sockets as descriptors: what a server and a client of a line of messages need, and no more.
public enum StreamSocket {
    /// The longest path of a socket in bytes (unix(7): 108 with the NUL).
    public static let longestPath = 107

    /// What came of reading or writing.
    public enum Outcome: Hashable, Sendable {
        /// So many bytes went through.
        case bytes(Int)
        /// Nothing to read, or no room to write, for now.
        case wouldBlock
        /// The other side is gone, or has nothing more to say.
        case closed
    }

    /// What came of an accept.
    public enum Accepted: Hashable, Sendable {
        /// A connection, close-on-exec and non-blocking; the caller owns the descriptor.
        case connection(Int32)
        /// Nobody waits.
        case none
        /// The process or the machine has no descriptor or memory left: try again later, not at once.
        case exhausted(Errno)
    }

    /// Binds a socket to a path that is free and listens; non-blocking and close-on-exec.
    ///
    /// - Parameter mode: permission bits; connecting needs write permission.
    /// - Throws: ENAMETOOLONG for a path longer than ``longestPath``, EADDRINUSE when something is there.
    public static func listen(path: String, mode: UInt32, backlog: Int32 = 512) throws(Errno) -> Int32 {
        let fd = try make(blocking: false)
        do throws(Errno) {
            try withAddress(path) { address, length in Glibc.bind(fd, address, length) }
            try check(Glibc.chmod(path, mode_t(mode)))
            try check(Glibc.listen(fd, backlog))
            return fd
        } catch {
            Glibc.close(fd)
            throw error
        }
    }

    /// Connects and blocks until it has.
    ///
    /// - Throws: ENOENT when there is no socket, ECONNREFUSED when nobody listens on it.
    public static func connect(path: String, blocking: Bool = true) throws(Errno) -> Int32 {
        let fd = try make(blocking: blocking)
        do throws(Errno) {
            try withAddress(path) { address, length in
                var result: Int32
                repeat { result = Glibc.connect(fd, address, length) } while result != 0 && errno == EINTR
                return result
            }
            return fd
        } catch {
            Glibc.close(fd)
            throw error
        }
    }

    /// Takes one connection that waits.
    public static func accept(_ listener: Int32) throws(Errno) -> Accepted {
        while true {
            let fd = Glibc.accept(listener, nil, nil)
            if fd >= 0 {
                _ = Glibc.fcntl(fd, F_SETFD, FD_CLOEXEC)
                _ = Glibc.fcntl(fd, F_SETFL, Glibc.fcntl(fd, F_GETFL) | O_NONBLOCK)
                return .connection(fd)
            }
            switch errno {
            case EINTR, ECONNABORTED: continue
            case EAGAIN: return .none
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: return .exhausted(Errno(rawValue: errno))
            default: throw Errno(rawValue: errno)
            }
        }
    }

    /// Reads what is there, up to the buffer's size. A reset counts as closed.
    public static func read(_ fd: Int32, into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Outcome {
        while true {
            let count = Glibc.recv(fd, buffer.baseAddress, buffer.count, 0)
            if count > 0 { return .bytes(count) }
            if count == 0 { return .closed }
            switch errno {
            case EINTR: continue
            case EAGAIN: return .wouldBlock
            case ECONNRESET: return .closed
            default: throw Errno(rawValue: errno)
            }
        }
    }

    /// Writes what fits. Never raises SIGPIPE.
    public static func write(_ fd: Int32, _ bytes: UnsafeRawBufferPointer) throws(Errno) -> Outcome {
        while true {
            let count = Glibc.send(fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            if count >= 0 { return .bytes(count) }
            switch errno {
            case EINTR: continue
            case EAGAIN: return .wouldBlock
            case EPIPE, ECONNRESET: return .closed
            default: throw Errno(rawValue: errno)
            }
        }
    }

    /// Waits until there is something to read (or the other side is gone); false when the time is up.
    ///
    /// - Parameter milliseconds: negative waits for ever.
    public static func waitReadable(_ fd: Int32, milliseconds: Int32) -> Bool {
        var entry = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
        var result: Int32
        repeat { result = Glibc.poll(&entry, 1, milliseconds) } while result < 0 && errno == EINTR
        return result != 0
    }

    /// Closes a descriptor that was got from here.
    public static func close(_ fd: Int32) { Glibc.close(fd) }

    /// Whether somebody listens on the path.
    public static func isAnswered(path: String) -> Bool {
        guard let fd = try? connect(path: path, blocking: false) else { return errno == EAGAIN }
        Glibc.close(fd)
        return true
    }

    /// What stands at a path, as far as somebody who wants to listen there cares.
    public enum Occupant: Hashable, Sendable { case nothing, socket, other }

    /// What stands at a path; symbolic links are not followed.
    public static func occupant(path: String) throws(Errno) -> Occupant {
        var status = stat()
        if lstat(path, &status) != 0 {
            if errno == ENOENT { return .nothing }
            throw Errno(rawValue: errno)
        }
        return status.st_mode & S_IFMT == S_IFSOCK ? .socket : .other
    }

    /// Removes the name of a socket; that there is none is no error.
    public static func remove(path: String) throws(Errno) {
        if Glibc.unlink(path) != 0, errno != ENOENT { throw Errno(rawValue: errno) }
    }

    /// Makes the directory of a path (its parent must be there) open for all to enter; one that is there stays as it is.
    public static func makeDirectory(of path: String) throws(Errno) {
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return }
        let directory = String(path[..<slash])
        if Glibc.mkdir(directory, 0o755) == 0 {
            try check(Glibc.chmod(directory, 0o755))
        } else if errno != EEXIST {
            throw Errno(rawValue: errno)
        }
    }

    private static func make(blocking: Bool) throws(Errno) -> Int32 {
        let kind =
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
            | (blocking ? 0 : Int32(SOCK_NONBLOCK.rawValue))
        let fd = Glibc.socket(AF_UNIX, kind, 0)
        if fd < 0 { throw Errno(rawValue: errno) }
        return fd
    }

    private static func check(_ result: Int32) throws(Errno) {
        if result != 0 { throw Errno(rawValue: errno) }
    }

    private static func withAddress(
        _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) throws(Errno) {
        let bytes = Array(path.utf8)
        guard !bytes.isEmpty, !bytes.contains(0) else { throw .invalidArgument }
        guard bytes.count <= longestPath else { throw .fileNameTooLong }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try check(result)
    }
}
