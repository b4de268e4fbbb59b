// SPDX-License-Identifier: Apache-2.0

public import Linux
public import TorporPolicyABI

/// A policy in a process of its own, for programs without a loop: it waits for each answer. Not for torpord.
public final class HostProcess {
    /// How the host process is run.
    public struct Settings: Sendable {
        /// The path of torpor-policy-host.
        public var program: String
        /// Bytes of address space; 256 MiB, of which Swift's libraries take some 60, and the view 12.
        public var addressSpace: UInt64 = 256 << 20
        /// Whom it is to become; nil: it stays who it is.
        public var user: UInt32?
        /// The group that goes with the user.
        public var group: UInt32?
        /// Pieces of advice to one question.
        public var adviceLimit = 4096
        /// How long it may take until the policy is there.
        public var loadDeadline = Duration.seconds(10)
        /// The process's environment, as `K=V`.
        public var environment = HostProcess.ownEnvironment

        /// As far as nothing else is said.
        public init(program: String) { self.program = program }
    }

    /// What of this process's environment a policy's process gets: language, time zone, and where libraries are looked
    /// for.
    public static var ownEnvironment: [String] {
        ThisProcess.environment.filter { entry in
            ["TZ=", "LANG=", "LC_", "LD_LIBRARY_PATH="].contains { entry.hasPrefix($0) }
        }
    }

    /// Where torpor-policy-host is: `TORPOR_POLICY_HOST`, else beside this program, else in `../libexec/torpor`.
    public static func findProgram() -> String? {
        ThisProcess.companion("torpor-policy-host", variable: "TORPOR_POLICY_HOST")
    }

    /// Whom a policy's process becomes: a user to whom nothing belongs. Only root can; nil for others. Looks into the user
    /// database, which may wait (``Users``).
    public static func unprivilegedUser() -> (user: UInt32, group: UInt32)? {
        guard Users.isRoot else { return nil }
        let user = ["torpor-policy", "nobody"].lazy.compactMap { Users.lookup($0) }.first
        return (user?.uid ?? 65534, user?.gid ?? 65534)
    }

    /// What the policy says about itself.
    public let description: PolicyDescription
    /// The number of the process.
    public var pid: Int32 { link.child.pid }

    private let link: Link
    private let adviceLimit: Int
    private var serial: UInt64 = 0
    private var question: [UInt8] = []

    /// Starts a host process and has it load a library.
    ///
    /// - Parameters:
    ///   - library: what ``LibraryTrust`` has opened.
    ///   - options: the configured options.
    ///   - view: the memory of a ``PolicyView``.
    ///   - viewSize: its bytes.
    /// - Throws: why the policy is not there; nothing is left of the process then.
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

    /// Asks the policy about events, 1 to ``HostMessages/mostEvents`` of them, and waits for the answer. After a failure
    /// the process is gone, and every further question fails in the same way.
    ///
    /// - Parameters:
    ///   - events: what happened; the view must rest until the answer is there.
    ///   - deadline: how long it may take, in steps of some milliseconds.
    public func ask(_ events: [torpor_policy_event], deadline: Duration) throws(PolicyFailure) -> PolicyAnswer {
        serial += 1
        HostMessages.encodeQuestion(serial: serial, events, into: &question)
        try link.send(question)
        var reader = HostAnswerReader(serial: serial, eventCount: events.count, adviceLimit: adviceLimit)
        return try link.receive(deadline: deadline) { bytes throws(PolicyFailure) in try reader.take(bytes) }
    }

    /// Has the policy end in its own way, within a second; nothing can be asked after it.
    public func close() { link.close() }
}

/// The socket, the process at its other end and what that writes to standard error.
private final class Link {
    let child: ChildProcess
    private let socket: Descriptor
    private let output: Descriptor
    private var lastLine = LastLine()
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
        // What it writes to standard error must not fill the pipe, or the last line would be lost.
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

    /// Takes messages until `body` has what it wants.
    func receive<Value>(
        deadline: Duration,
        _ body: (UnsafeRawBufferPointer) throws(PolicyFailure) -> Value?
    ) throws(PolicyFailure) -> Value {
        let end = Clock.monotonic() + deadline
        var left = deadline
        while true {
            let size: Int?
            do throws(Errno) {
                // Mostly what follows the first message is there at once: the time is set anew when half is used up.
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

    /// Takes the process away, and remembers why.
    private func fail(_ failure: PolicyFailure) -> PolicyFailure {
        child.kill()
        child.reap()
        self.failure = failure
        return failure
    }

    /// The connection has ended: the process has, or is about to.
    private func ended() -> PolicyFailure {
        guard let status = child.reap(within: .seconds(1)) else {
            return fail(.nonsense("it closed the connection and did not exit"))
        }
        drain()
        return fail(.ended(PolicyEnd(waitStatus: status), lastLine: lastLine.text))
    }

    private func drain() {
        // What does not fit into a pipe is not waited for.
        for _ in 0..<32 {
            guard let size = try? Descriptor.read(output.raw, into: buffer), size > 0 else { return }
            lastLine.take(UnsafeRawBufferPointer(rebasing: buffer[..<size]))
        }
    }

    func close() {
        socket.close()
        if child.reap(within: .seconds(1)) == nil {
            child.kill()
            child.reap()
        }
        drain()
        failure = failure ?? .ended(PolicyEnd(waitStatus: child.reap()), lastLine: lastLine.text)
    }
}
