// SPDX-License-Identifier: Apache-2.0

public import Linux
public import TorporPolicyABI

/// A policy in a process of its own, for programs without an event loop: each call blocks until the answer. torpord
/// uses this class only on a background thread, to try new options (``PolicyProbe``).
public final class HostProcess {
    /// How to start the host process.
    public struct Settings: Sendable {
        /// The path of torpor-policy-host.
        public var program: String
        /// The limit of address space, in bytes. Of the default, 256 MiB, Swift's libraries take about 60 MiB and the
        /// view 12 MiB.
        public var addressSpace: UInt64 = 256 << 20
        /// The user that the host changes to; nil to keep its own.
        public var user: UInt32?
        /// The group that the host changes to, with `user`.
        public var group: UInt32?
        /// The maximum number of pieces of advice per question.
        public var adviceLimit = 4096
        /// How long loading the policy may take.
        public var loadDeadline = Duration.seconds(10)
        /// The environment of the host process, as `K=V`.
        public var environment = HostProcess.ownEnvironment

        /// The default settings.
        public init(program: String) { self.program = program }
    }

    /// The variables of this process's environment that a host process gets: language, time zone, and library path.
    public static var ownEnvironment: [String] {
        ThisProcess.environment.filter { entry in
            ["TZ=", "LANG=", "LC_", "LD_LIBRARY_PATH="].contains { entry.hasPrefix($0) }
        }
    }

    /// The path of torpor-policy-host: `TORPOR_POLICY_HOST`, or else beside this program, or else in
    /// `../libexec/torpor`.
    public static func findProgram() -> String? {
        ThisProcess.companion("torpor-policy-host", variable: "TORPOR_POLICY_HOST")
    }

    /// The user that host processes run as: a user that owns no files. nil if this process is not root, since only
    /// root can change users. Reads the user database, which may block (``Users``).
    public static func unprivilegedUser() -> (user: UInt32, group: UInt32)? {
        guard Users.isRoot else { return nil }
        let user = ["torpor-policy", "nobody"].lazy.compactMap { Users.lookup($0) }.first
        return (user?.uid ?? 65534, user?.gid ?? 65534)
    }

    /// The policy's description of itself.
    public let description: PolicyDescription
    /// The pid of the host process.
    public var pid: Int32 { link.child.pid }
    /// Called with each line that the policy writes to standard error, some questions later, or when it ends.
    public var onLine: ((String) -> Void)? {
        get { link.onLine }
        set { link.onLine = newValue }
    }

    private let link: Link
    private let adviceLimit: Int
    private var serial: UInt64 = 0
    private var question: [UInt8] = []

    /// Starts a host process, which loads a policy's library.
    ///
    /// - Parameters:
    ///   - library: the library, opened by ``LibraryTrust``.
    ///   - options: the policy's configured options.
    ///   - view: the memory of a ``PolicyView``.
    ///   - viewSize: the view's size in bytes.
    /// - Throws: ``PolicyFailure`` if the policy cannot be loaded; the process has then ended.
    public init(
        library: TrustedLibrary,
        options: [PolicyOption] = [],
        view: Descriptor,
        viewSize: Int,
        settings: Settings
    ) throws(PolicyFailure) {
        let load = try HostMessages.Load(
            path: library.path,
            options: options,
            addressSpace: settings.addressSpace,
            user: settings.user,
            group: settings.group,
            viewSize: viewSize,
            adviceLimit: settings.adviceLimit
        ).encoded()
        adviceLimit = settings.adviceLimit
        do throws(Errno) {
            link = try Link(library: library, view: view, settings: settings)
        } catch {
            throw .notStarted(program: settings.program, error)
        }
        let link = link
        try link.send(load)
        description = try link.receive(deadline: settings.loadDeadline) { bytes throws(PolicyFailure) in
            try HostAnswers.description(bytes)
        }
    }

    /// Asks the policy about 1 to ``HostMessages/mostEvents`` events and waits for the answer. After a failure the
    /// process has ended, and every further question throws the same failure.
    ///
    /// - Parameters:
    ///   - events: what happened; the view must not change until the answer has come.
    ///   - deadline: how long the answer may take; it is measured in steps of a few milliseconds.
    public func ask(_ events: [torpor_policy_event], deadline: Duration) throws(PolicyFailure) -> PolicyAnswer {
        serial += 1
        HostMessages.encodeQuestion(serial: serial, events, into: &question)
        try link.send(question)
        var reader = HostAnswerReader(serial: serial, eventCount: events.count, adviceLimit: adviceLimit)
        return try link.receive(deadline: deadline) { bytes throws(PolicyFailure) in try reader.take(bytes) }
    }

    /// Lets the policy end within a second, then kills its process. No question can be asked afterwards.
    public func close() { link.close() }
}

/// The host process, the socket to it, and a pipe from its standard error.
private final class Link {
    let child: ChildProcess
    private let socket: Descriptor
    private let output: Descriptor
    private var lines = PolicyLines()
    var onLine: ((String) -> Void)?
    private var failure: PolicyFailure?
    private var timeout: Duration?
    private var sent = 0
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: HostMessages.largest + 8, alignment: 8)

    init(library: TrustedLibrary, view: Descriptor, settings: HostProcess.Settings) throws(Errno) {
        let (ours, theirs) = try Sockets.pair(.sequenced)
        let (read, write) = try Descriptor.pipe()
        try Descriptor.setNonBlocking(read.raw)
        socket = ours
        output = read
        child = try ChildProcess(
            settings.program,
            arguments: ["torpor-policy-host", library.path],
            environment: settings.environment,
            descriptors: [
                (2, write.raw), (3, theirs.raw), (4, view.raw), (5, library.library.raw), (6, library.directory.raw),
            ]
        )
    }

    deinit { buffer.deallocate() }

    func send(_ bytes: [UInt8]) throws(PolicyFailure) {
        if let failure { throw failure }
        // Read the host's standard error from time to time: if the pipe became full, the host's last line would be
        // lost.
        sent += 1
        if sent % 32 == 0 { drain() }
        let size: Int?
        do throws(Errno) {
            size = try Sockets.send(socket.raw, bytes)
        } catch {
            throw ended()
        }
        if size == nil { throw fail(.nonsense("it does not read its questions")) }
    }

    /// Receives messages until `body` returns a value.
    func receive<Value>(
        deadline: Duration,
        _ body: (UnsafeRawBufferPointer) throws(PolicyFailure) -> Value?
    ) throws(PolicyFailure) -> Value {
        let end = Clock.monotonic() + deadline
        var left = deadline
        while true {
            let size: Int?
            do throws(Errno) {
                // Most messages after the first have arrived already: to save system calls, set the timeout again only
                // when half of the time is over.
                if left == deadline ? timeout != deadline : (timeout ?? deadline) > left * 2 {
                    try Sockets.setReceiveTimeout(socket.raw, left)
                    timeout = left
                }
                size = try Sockets.receive(socket.raw, into: buffer, wait: true)
            } catch {
                throw ended()
            }
            guard let size else { throw fail(.late(deadline)) }
            if size == 0 { throw ended() }
            do throws(PolicyFailure) {
                if let value = try body(UnsafeRawBufferPointer(rebasing: buffer[..<size])) { return value }
            } catch {
                throw fail(error)
            }
            left = end - Clock.monotonic()
            if left <= .zero { throw fail(.late(deadline)) }
        }
    }

    /// Kills the process and stores the failure.
    private func fail(_ failure: PolicyFailure) -> PolicyFailure {
        child.kill()
        child.reap()
        self.failure = failure
        return failure
    }

    /// Called when the host process has closed its end of the socket. Waits for its exit, and returns how it ended.
    private func ended() -> PolicyFailure {
        guard let status = child.reap(within: .seconds(1)) else {
            return fail(.nonsense("it closed the connection and did not exit"))
        }
        return fail(.ended(PolicyEnd(waitStatus: status), lastLine: lastLine()))
    }

    private func drain() {
        // A pipe holds a limited number of bytes, and 32 reads are enough to read all of them.
        for _ in 0..<32 {
            guard let size = try? Descriptor.read(output.raw, into: buffer), size > 0 else { return }
            for line in lines.take(UnsafeRawBufferPointer(rebasing: buffer[..<size])) { onLine?(line) }
        }
    }

    private func lastLine() -> String {
        drain()
        if let line = lines.finish() { onLine?(line) }
        return lines.last
    }

    func close() {
        socket.close()
        if child.reap(within: .seconds(1)) == nil {
            child.kill()
            child.reap()
        }
        let line = lastLine()
        failure = failure ?? .ended(PolicyEnd(waitStatus: child.reap()), lastLine: line)
    }
}
