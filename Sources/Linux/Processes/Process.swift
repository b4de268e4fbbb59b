// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import WireText

/// This process.
public enum ThisProcess {
    /// Finds a helper program: at the path in an environment variable, if one is named, beside this program's
    /// executable, or in `../libexec/torpor`. nil if none of these is an executable file.
    public static func companion(_ name: String, variable: String? = nil) -> String? {
        if let variable, let path = environment(variable), File.isExecutable(path) { return path }
        guard let own = executable, let directory = File.parent(of: own) else { return nil }
        return companions(name, of: directory).first(where: File.isExecutable)
    }

    /// Where a helper of the programs in a folder may be.
    public static func companions(_ name: String, of folder: String) -> [String] {
        [folder + "/" + name, folder + "/../libexec/torpor/" + name]
    }

    /// This process's pid.
    public static var pid: Int32 { getpid() }
    /// The pid of this process's parent.
    public static var parent: Int32 { getppid() }

    /// A variable of this process's environment.
    public static func environment(_ name: String) -> String? { getenv(name).map { String(terminatedWire: $0) } }

    /// The whole environment as `K=V`.
    public static var environment: [String] {
        var result: [String] = []
        var entry = environ
        while let text = entry.pointee {
            result.append(String(terminatedWire: text))
            entry += 1
        }
        return result
    }

    /// The whole environment, by name.
    public static var variables: [String: String] {
        var result: [String: String] = [:]
        for entry in environment {
            guard let split = entry.firstIndex(of: "=") else { continue }
            result[String(entry[..<split])] = String(entry[entry.index(after: split)...])
        }
        return result
    }

    /// Sets a variable of this process's environment, or removes it if the value is nil.
    public static func setEnvironment(_ name: String, _ value: String?) {
        if let value { setenv(name, value, 1) } else { unsetenv(name) }
    }

    /// Sets the name that ps -e and /proc/PID/comm show, at most 15 bytes. Call this on the first thread.
    public static func rename(_ name: String) { _ = name.withCString { tlx_prctl(15, UInt(bitPattern: $0)) } }

    /// This process's current directory.
    public static var directory: String {
        guard let path = getcwd(nil, 0) else { return "/" }
        defer { free(path) }
        return String(terminatedWire: path)
    }

    /// The path of this process's executable.
    public static var executable: String? { try? File.readLink("/proc/self/exe") }

    /// Raises the limit of open descriptors to the hard limit. Returns the new limit.
    @discardableResult
    public static func raiseDescriptorLimit() -> UInt64 {
        var soft: UInt64 = 0
        var hard: UInt64 = 0
        let resource = Int32(RLIMIT_NOFILE.rawValue)
        guard tlx_get_limit(resource, &soft, &hard) == 0 else { return 1024 }
        return tlx_set_limit(resource, hard, hard) == 0 ? hard : soft
    }

    /// A limit of this process (getrlimit(2)).
    public static func limit(_ resource: Int32) throws(Errno) -> (soft: UInt64, hard: UInt64) {
        var soft: UInt64 = 0
        var hard: UInt64 = 0
        try call { tlx_get_limit(resource, &soft, &hard) }
        return (soft, hard)
    }

    /// How many processors are online.
    public static var processorCount: Int { max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))) }

    /// Enlarges the descriptor table to `count` entries now. The kernel also enlarges it on demand, but in a process
    /// with several threads, this takes 10 to 30 ms each time, because it waits for all processors (synchronize_rcu).
    public static func reserveDescriptors(_ count: Int) {
        var most: UInt64 = 1024
        if let limit = try? limit(Int32(RLIMIT_NOFILE.rawValue)) { most = limit.soft }
        let last = min(UInt64(max(count, 1)), most, UInt64(Int32.max)) - 1
        let highest = fcntl(2, F_DUPFD_CLOEXEC, Int32(last))
        if highest >= 0 { close(highest) }
    }

    /// Makes this process a subreaper: when the parent of one of its descendants ends, the kernel makes this process
    /// the parent (PR_SET_CHILD_SUBREAPER).
    public static func becomeSubreaper() throws(Errno) { try call { tlx_prctl(36, 1) } }

    /// Replaces this process with another program. Returns only on failure, with the error.
    ///
    /// - Parameter environment: nil for this process's own, to the byte.
    public static func execute(_ path: String, arguments: [String], environment: [String]? = nil) -> Errno {
        var argv: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        var envp: [UnsafeMutablePointer<CChar>?] = environment.map { $0.map { strdup($0) } + [nil] } ?? []
        if environment == nil { execve(path, &argv, environ) } else { execve(path, &argv, &envp) }
        let code = errno
        for text in argv + envp { free(text) }
        return Errno(rawValue: code)
    }

    /// Ends this process.
    public static func exit(_ code: Int32) -> Never { Glibc.exit(code) }

    /// Writes all of a text to standard output or another descriptor; blocks if necessary.
    public static func write(_ text: String, to descriptor: Int32 = 1) throws(Errno) {
        try write(Array(text.utf8), to: descriptor)
    }

    /// Writes all bytes to standard output or another descriptor; blocks if necessary. Throws `brokenPipe` if the
    /// pipe has no reader, `noSpace` if the disk is full.
    public static func write(_ bytes: [UInt8], to descriptor: Int32 = 1) throws(Errno) {
        var rest = bytes
        while !rest.isEmpty {
            if let count = try Descriptor.write(descriptor, rest) {
                rest.removeFirst(count)
            } else {
                _ = try Descriptor.wait(descriptor, writable: true, timeout: .seconds(1))
            }
        }
    }

    /// Writes a line to standard error; errors are ignored.
    public static func complain(_ line: String) { try? write(line + "\n", to: 2) }

    /// Whether a descriptor is a terminal.
    public static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

    /// The host's name. It is not read from /proc/sys, because services with `ProcSubset=pid` do not see that folder.
    public static var hostName: String {
        // HOST_NAME_MAX is 64; the last byte stays 0.
        var bytes = [CChar](repeating: 0, count: 65)
        guard gethostname(&bytes, 64) == 0, bytes[0] != 0 else { return "localhost" }
        return String(terminatedWire: bytes)
    }

    /// The id of this boot; empty if the kernel has none or if the id could not be read (``readBootID()``).
    public static var bootID: String { (try? readBootID()) ?? "" }

    /// The id of this boot, read once; empty if the kernel has none.
    ///
    /// Call this before ``bootID``, which returns an empty id after an error. With an empty id, torpord would discard
    /// its records, because they would seem to come from another boot.
    /// - Throws: the error of reading the id, such as EMFILE.
    @discardableResult public static func readBootID() throws(Errno) -> String {
        if let known = bootIdentity.withLock({ $0 }) { return known }
        var found = ""
        do throws(Errno) {
            let text = try File.readString("/proc/sys/kernel/random/boot_id")
            found = text.split(separator: "\n").first.map(String.init) ?? ""
        } catch {
            guard error == .noSuchFileOrDirectory else { throw error }
        }
        bootIdentity.withLock { $0 = found }
        return found
    }

    private static let bootIdentity = Monitor<String?>(nil)

    /// The machine id (machine-id(5)); empty if the machine has none, as in many containers.
    public static var machineID: String {
        for path in ["/etc/machine-id", "/var/lib/dbus/machine-id"] {
            if let id = try? File.readString(path).split(separator: "\n").first, !id.isEmpty { return String(id) }
        }
        return ""
    }

    /// The names of limits in `[apps.NAME.limits]`, with their RLIMIT numbers.
    public static let resources: [(name: String, number: Int32)] = [
        ("cpu", 0), ("fsize", 1), ("data", 2), ("stack", 3), ("core", 4), ("rss", 5), ("nproc", 6), ("nofile", 7),
        ("memlock", 8), ("as", 9), ("locks", 10), ("sigpending", 11), ("msgqueue", 12), ("nice", 13), ("rtprio", 14),
        ("rttime", 15),
    ]

    /// Sleeps for a time, or until a signal arrives. For programs without an event loop that poll or retry.
    public static func sleep(_ duration: Duration) {
        let microseconds = max(0, duration.microseconds)
        var time = timespec(tv_sec: Int(microseconds / 1_000_000), tv_nsec: Int(microseconds % 1_000_000) * 1000)
        nanosleep(&time, nil)
    }

    /// Gives up the processor (sched_yield(2)). For a caller that waits for a reply that takes only microseconds.
    public static func yield() { sched_yield() }
}
