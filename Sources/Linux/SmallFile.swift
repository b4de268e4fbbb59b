import Glibc

/// Why a small file could not be read.
public enum SmallFileError: Error, Sendable, Hashable {
    /// Nothing is there.
    case missing
    /// A folder, device or socket is there.
    case notAFile
    /// It is larger than the bound.
    case tooLarge
    /// As strerror(3) says it.
    case other(String)
}

/// Files that are read whole and at once, and never block: those that a configuration is made of.
public enum SmallFile {
    /// Reads a regular file of at most `limit` bytes.
    public static func read(_ path: String, limit: Int) throws(SmallFileError) -> [UInt8] {
        // O_NONBLOCK: a FIFO without a writer would block the open.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw problem(errno) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw problem(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .notAFile }
        guard status.st_size <= limit else { throw .tooLarge }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0 {
                if errno == EINTR { continue }
                throw problem(errno)
            }
            if count == 0 { return bytes }
            bytes += buffer[..<count]
            guard bytes.count <= limit else { throw .tooLarge }
        }
    }

    /// The names in a folder, sorted, without `.` and `..`; nil where there is no folder that can be read.
    public static func names(in path: String) -> [String]? {
        guard let folder = opendir(path) else { return nil }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// The working directory of this process.
    public static func workingDirectory() -> String {
        var buffer = [CChar](repeating: 0, count: 4_096)
        guard getcwd(&buffer, buffer.count) != nil else { return "/" }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private static func problem(_ number: Int32) -> SmallFileError {
        switch number {
        case ENOENT, ENOTDIR: .missing
        case EISDIR: .notAFile
        default: .other(String(cString: strerror(number)))
        }
    }
}
