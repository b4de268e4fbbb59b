// SPDX-License-Identifier: Apache-2.0

import EventLoop
public import Linux
public import Policies
import TorporPolicyABI

/// What a launcher needs to start a host process.
public struct HostPlan {
    /// The policy's name in the configuration.
    public let name: String
    /// The descriptors that become 3, 4, … in the host process; they may be closed once the launch was requested.
    public let descriptors: [Int32]
    /// The descriptor that becomes the host's standard error.
    public let standardError: Int32
}

/// A running host process.
public struct StartedHost {
    /// The process ID of the host.
    public let pid: Int32
    /// The pidfd of the host, which shows whether the process ID was reused.
    public let pidfd: Descriptor

    /// Creates a host from its process ID and pidfd.
    public init(pid: Int32, pidfd: Descriptor) {
        self.pid = pid
        self.pidfd = pidfd
    }
}

/// Starts host processes, which end when this process ends.
public protocol PolicyHostLauncher: AnyObject {
    /// The user and group that a host switches to; nil to keep those of this process.
    var hostUser: (user: UInt32, group: UInt32)? { get }
    /// Starts torpor-policy-host, and calls `started` once with the result. If the start succeeded, `ended` is called
    /// once,
    /// when the process has ended.
    func launch(
        _ plan: HostPlan,
        started: @escaping (Result<StartedHost, PolicyFailure>) -> Void,
        ended: @escaping (PolicyEnd) -> Void
    )
}

/// A policy in a process of its own; questions and answers go through a socket.
final class HostRuntime: PolicyRuntime {
    /// How long the host may take to open the library and create the policy.
    static let loadDeadline = Duration.seconds(5)
    /// If a policy's deadline is not above this, the event loop polls instead of sleeping while it waits for the
    /// answer.
    private static let shortDeadline = Duration.milliseconds(100)
    /// After the socket was closed: how long to wait for the exit status of the process, which shows how the process
    /// ended.
    private static let endPatience = Duration.milliseconds(20)

    /// Called once, when the policy was loaded or could not be loaded; nil afterwards.
    private var loaded: ((Result<PolicyDescription, PolicyFailure>) -> Void)?
    /// The policy's description of itself.
    private var description: PolicyDescription?
    /// Called if the process ends, or sends an invalid message, after the policy was loaded and while no question is
    /// pending.
    var onFailure: ((PolicyFailure) -> Void)?

    /// Called with each line that the policy writes to standard error.
    var onLine: ((String) -> Void)? {
        get { output.onLine }
        set { output.onLine = newValue }
    }

    private(set) var pid: Int32?
    private let loop: EventLoop
    private let deadline: Duration
    private let socket: Descriptor
    private let output: HostOutput
    private var process: StartedHost?
    private var watch: IOSource?
    private var timer: TimerSource?
    private var question: (reader: HostAnswerReader, completion: (Result<PolicyAnswer, PolicyFailure>) -> Void)?
    private var serial: UInt64 = 0
    private var message: [UInt8] = []
    /// One word larger than any valid message, so that a longer message is noticed.
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: HostMessages.largest + 8, alignment: 8)
    /// The processor that the host is bound to: the one on which this process ran at the last question. nil if the
    /// host is not bound.
    private var processor: Int32?
    private var staysNear = true
    private var isClosed = false
    private var end: PolicyEnd?
    private var isEnding = false
    private let machineStalls: () -> Bool
    /// How long the current step (loading, or a question) may still take.
    private var patience: Patience

    /// Starts the host process, which loads the library.
    init(
        _ settings: PolicySettings,
        library: TrustedLibrary,
        view: PolicyView,
        loop: EventLoop,
        hosts: any PolicyHostLauncher,
        machineStalls: @escaping () -> Bool,
        loaded: @escaping (Result<PolicyDescription, PolicyFailure>) -> Void
    ) throws(PolicyFailure) {
        self.loop = loop
        self.loaded = loaded
        self.machineStalls = machineStalls
        deadline = settings.deadline
        // The time for loading the library begins when the process starts. At that moment, the process has used no
        // processor time.
        patience = Patience(deadline: Self.loadDeadline, first: Scheduling(ran: .zero, waited: .zero))
        let load = HostMessages.Load(
            path: library.path,
            options: settings.options,
            addressSpace: PolicySettings.addressSpace,
            user: hosts.hostUser?.user,
            group: hosts.hostUser?.group,
            viewSize: view.size,
            adviceLimit: PolicyAnswer.limit(events: 1, apps: PolicyView.capacity)
        )
        let bytes = try load.encoded()
        let theirs: Descriptor
        let itsOutput: Descriptor
        do throws(Errno) {
            (socket, theirs) = try Sockets.pair(.sequenced)
            let errors: Descriptor
            (errors, itsOutput) = try Descriptor.pipe(nonBlocking: true)
            output = try HostOutput(errors, loop)
            // The host does not run yet: the socket keeps the message until the host reads it.
            try Sockets.send(socket.raw, bytes)
            timer = try loop.timer { [weak self] in self?.late() }
            watch = try loop.watch(socket.raw, .readable, priority: .answer) { [weak self] _ in self?.receive() }
        } catch {
            throw .notStarted(program: "torpor-policy-host", error)
        }
        timer?.arm(after: Self.loadDeadline)
        let plan = HostPlan(
            name: settings.name,
            descriptors: [theirs.raw, view.descriptor.raw, library.library.raw, library.directory.raw],
            standardError: itsOutput.raw
        )
        hosts.launch(plan) { [weak self] result in
            switch result {
            case .success(let process):
                guard let self, !self.isClosed else {
                    try? Pidfd.sendSignal(process.pidfd.raw, Signal.kill)
                    return
                }
                self.process = process
                self.pid = process.pid
                self.tellLoaded()
            case .failure(let failure): self?.fail(failure)
            }
        } ended: { [weak self] end in
            self?.ended(end)
        }
        withExtendedLifetime((theirs, itsOutput)) {}
    }

    deinit { buffer.deallocate() }

    func ask(
        _ events: [torpor_policy_event],
        limit: Int,
        _ completion: @escaping (Result<PolicyAnswer, PolicyFailure>) -> Void
    ) {
        serial += 1
        HostMessages.encodeQuestion(serial: serial, events, into: &message)
        question = (HostAnswerReader(serial: serial, eventCount: events.count, adviceLimit: limit), completion)
        timer?.arm(after: deadline)
        patience = Patience(deadline: deadline)
        loop.wakesSoon = deadline <= Self.shortDeadline
        comeNear()
        do throws(Errno) {
            guard try Sockets.send(socket.raw, message) != nil else {
                return loop.later { [weak self] in self?.fail(.nonsense("it does not read its questions")) }
            }
        } catch {
            lost()
        }
    }

    /// Binds the host process to the processor on which this process runs. This process only waits for the host's
    /// answer anyway, and to wake another processor (in a virtual machine, through the hypervisor) takes several times
    /// as long as the answer itself.
    private func comeNear() {
        guard staysNear, let process else { return }
        let here = Processor.current
        guard here != processor else { return }
        // As long as the pidfd can be signalled, the process ID still belongs to the host.
        guard (try? Pidfd.sendSignal(process.pidfd.raw, 0)) != nil, (try? Processor.bind(process.pid, to: here)) != nil
        else {
            // Without permission, or if the host may not use this processor, let it run where it is.
            staysNear = false
            return
        }
        processor = here
    }

    func close() {
        guard !isClosed else { return }
        if question != nil { loop.wakesSoon = false }
        isClosed = true
        _ = output.finish()
        onLine = nil
        watch?.cancel()
        watch = nil
        timer = nil
        question = nil
        loaded = nil
        onFailure = nil
        // The host exits when its socket closes, unless it hangs: so kill it.
        if let process { try? Pidfd.sendSignal(process.pidfd.raw, Signal.kill) }
    }

    // MARK: What comes

    private func receive() {
        while !isClosed, !isEnding {
            let size: Int?
            do throws(Errno) {
                size = try Sockets.receive(socket.raw, into: buffer)
            } catch {
                return lost()
            }
            guard let size else { return }
            if size == 0 { return lost() }
            take(UnsafeRawBufferPointer(rebasing: buffer[..<size]))
            // Once the answer was handled (`question` is nil), stop reading: a question has only one answer.
            if question == nil { return }
        }
    }

    /// Reports that the policy was loaded, once the keeper has also reported the host's process ID. That report may
    /// come after the host's own message.
    private func tellLoaded() {
        guard process != nil, let description, let loaded else { return }
        self.loaded = nil
        timer?.disarm()
        loaded(.success(description))
    }

    private func take(_ bytes: UnsafeRawBufferPointer) {
        do throws(PolicyFailure) {
            if loaded != nil, description == nil {
                description = try HostAnswers.description(bytes)
                tellLoaded()
            } else if question != nil {
                guard let answer = try question?.reader.take(bytes) else { return }
                timer?.disarm()
                loop.wakesSoon = false
                let completion = question?.completion
                question = nil
                completion?(.success(answer))
            } else {
                fail(.nonsense("an answer without a question"))
            }
        } catch {
            fail(error)
        }
    }

    /// Called when the deadline of a question or of the load is over, and again and again while the machine keeps the
    /// host from running.
    private func late() {
        let limit = loaded == nil ? deadline : Self.loadDeadline
        let look = Patience.Look(
            state: process.flatMap { try? ProcFS.stat($0.pid).state },
            scheduling: process.flatMap { Scheduling($0.pid) },
            isMachineStalled: machineStalls()
        )
        switch patience.judge(look) {
        case .look(let time): timer?.arm(after: time)
        case .late: fail(.late(limit))
        case .stalled: fail(.stalled(limit))
        }
    }

    /// Handles the end of the socket, and waits a moment for the exit status of the host.
    private func lost() {
        guard !isClosed, !isEnding else { return }
        if let end { return fail(.ended(end, lastLine: output.finish())) }
        isEnding = true
        loop.wakesSoon = false
        watch?.cancel()
        watch = nil
        if let process { try? Pidfd.sendSignal(process.pidfd.raw, Signal.kill) }
        timer = try? loop.timer { [weak self] in
            guard let self else { return }
            self.fail(.ended(.unknown, lastLine: self.output.finish()))
        }
        timer?.arm(after: Self.endPatience)
    }

    private func ended(_ end: PolicyEnd) {
        self.end = end
        guard !isClosed else { return }
        // First receive the messages that the host sent before it ended: they are still valid.
        if !isEnding { receive() }
        guard !isClosed else { return }
        fail(.ended(end, lastLine: output.finish()))
    }

    private func fail(_ failure: PolicyFailure) {
        guard !isClosed else { return }
        let (loaded, completion, onFailure) = (loaded, question?.completion, onFailure)
        close()
        if let loaded {
            loaded(.failure(failure))
        } else if let completion {
            completion(.failure(failure))
        } else {
            onFailure?(failure)
        }
    }
}
