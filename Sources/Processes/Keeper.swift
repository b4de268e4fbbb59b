// SPDX-License-Identifier: Apache-2.0

public import EventLoop
import KeeperProtocol
public import Linux

/// torpord's connection to the keeper, the process that launches and reaps processes and holds descriptors. Answers
/// arrive through the event loop. Only `init`, `held`, `takeHeld` and `takeAllHeld` block until the answer arrives,
/// because recovery calls them before the loop runs.
///
/// Exits that an earlier torpord missed are delivered to `onExit` after the start. The keeper stores an exit until
/// `onExit` has returned, or, with `keepsExits`, until `forget` is called.
public final class Keeper {
    /// Called once for the exit of each launched or adopted process. Set it before the loop runs.
    public var onExit: ((ExitRecord) -> Void)? { didSet { deliverLater() } }
    /// Called for the exit of each orphan: a descendant of an app whose parent ended first.
    public var onOrphan: ((OrphanRecord) -> Void)? { didSet { deliverLater() } }
    /// Called when a launch that an earlier torpord requested has executed the app's program. Set it before the loop runs.
    public var onLaunched: ((_ app: String, _ incarnation: UInt32, Launched) -> Void)? { didSet { deliverLater() } }
    /// Called when the connection to the keeper is lost. From then on nothing can be launched.
    public var onLost: (() -> Void)?
    /// Called if `holdQuietly` failed: ENOSPC if the keeper's table is full, EMFILE if the keeper lacks descriptors.
    public var onHoldRefused: ((_ name: String, Errno) -> Void)?
    /// Whether the keeper stores each exit until `forget(_:)` confirms that torpord has persisted it.
    public var keepsExits = false
    /// Processes that an earlier torpord launched and whose exit is not reported yet. Helpers are not included.
    public private(set) var leftOver: [OrphanedProcess] = []
    /// Exits for which `onExit` was not called yet; after `init`, all exits that torpor-keeper was not told to forget.
    /// A process that is neither in this list nor in `leftOver` was never launched, or its exit was forgotten.
    public var waitingExits: [ExitRecord] {
        (undelivered + channel.backlog).compactMap {
            if case .exited(let record) = $0.message { ExitRecord(record) } else { nil }
        }
    }
    /// How many times torpor-keeper has started torpord. If more than once, this process must recover.
    public let instance: UInt32
    /// When the torpord before this one ended, on the monotonic clock; nil if there was none, or the keeper does not know.
    public internal(set) var earlierEnded: Duration?
    /// Whether a service manager such as systemd receives the states passed to `tellManager`.
    public let isUnderManager: Bool
    /// The soft limit of open descriptors for apps, unless a launch plan sets another.
    public let appDescriptorLimit: UInt64
    /// Whether an upgrade failed: the program on disk did not start, so the keeper started the previous program again.
    public let isFallback: Bool
    /// The version of the format of torpor-keeper's state (see `torpor-keeper --accepts`).
    public let resumeVersion: UInt32
    private let opensFiles: Bool
    /// Whether the keeper can launch programs in a sandbox.
    public let confines: Bool
    /// Whether sandboxed apps get their own IPC namespaces, and the kernel logs what their sandbox denies.
    public let hasWalls: Bool
    /// The keeper's pid.
    public let pid: Int32
    /// torpor-keeper's table of processes (torpor_keeper_protocol.h), readable even after torpor-keeper was lost.
    public let table: Descriptor
    /// Whether the keeper is lost.
    public private(set) var isLost = false

    let channel: KeeperChannel
    private let loop: EventLoop
    private var launches: [UInt32: (executable: String, completion: (Result<Launched, LaunchFailure>) -> Void)] = [:]
    private var holds: [UInt32: (Errno?) -> Void] = [:]
    /// Descriptors sent by `holdQuietly` that the keeper may still refuse.
    private var quietHolds: [(id: UInt32, name: String)] = []
    private static let mostQuietHolds = 256
    private var undelivered: [KeeperChannel.Received] = []
    private var deliveryAsked = false
    private var watch: KeeperWatch?

    /// Greets the keeper at the other end of `descriptor` (TORPOR_KEEPER_FD) and takes over its processes. Throws
    /// EPROTONOSUPPORT if the keeper has another protocol version, ETIMEDOUT if it does not answer within 10 s.
    public init(descriptor: Descriptor, loop: EventLoop) throws(Errno) {
        self.loop = loop
        channel = KeeperChannel(socket: descriptor)
        let (welcome, descriptors) = try channel.greet()
        confines = welcome.version >= 3
        instance = welcome.instance
        isUnderManager = welcome.isUnderManager
        appDescriptorLimit = welcome.appDescriptorLimit
        isFallback = welcome.isFallback
        resumeVersion = welcome.resumeVersion
        opensFiles = welcome.opensFiles
        hasWalls = welcome.hasWalls
        pid = welcome.keeperPid
        table = descriptors[0]

        var entries: [OrphanedProcess] = []
        while true {
            let next = try channel.waitForNext()
            if case .tableEnd = next.message { break }
            if case .table(let records) = next.message {
                var pidfds = next.descriptors[...]
                for (record, hasDescriptor) in records {
                    let pidfd = hasDescriptor ? pidfds.popFirst() : nil
                    if let entry = try OrphanedProcess(record, pidfd) { entries.append(entry) }
                }
            } else {
                undelivered.append(next)
            }
        }
        leftOver = entries
        watch = KeeperWatch(timer: descriptors[1], milliseconds: welcome.watchMilliseconds, loop: loop)
        channel.onBlocked = { [weak self] in self?.updateEvents() }
        channel.source = try loop.watch(channel.socket.raw, .readable) { [weak self] _ in self?.socketIsReady() }
    }

    // MARK: Launching

    /// Starts a program. `completion` is called exactly once, in a later iteration of the event loop.
    public func launch(_ plan: LaunchPlan, completion: @escaping (Result<Launched, LaunchFailure>) -> Void) {
        func fail(_ stage: LaunchStage, _ errno: Errno, _ detail: String = "") {
            let failure = LaunchFailure(stage: stage, errno: errno, executable: plan.executable, detail: detail)
            loop.later { completion(.failure(failure)) }
        }
        if isLost { return fail(.keeper, .brokenPipe, "the keeper is gone") }
        guard opensFiles || plan.inputFile == nil && plan.errorFile == nil else {
            return fail(.plan, .notSupported, "the keeper is older, and opens no files: run ‘torpor upgrade’")
        }
        guard confines || plan.sandbox == nil else {
            return fail(.sandbox, .notSupported, "the keeper is older than torpord: run ‘torpor upgrade’")
        }
        let id = channel.nextId()
        let request = plan.request
        let message: [UInt8]
        do {
            message = try request.encoded(id: id)
        } catch {
            return fail(.plan, .argListTooLong, error.description)
        }
        launches[id] = (plan.executable, completion)
        do throws(Errno) {
            try channel.send(message, descriptors: request.descriptors)
        } catch {
            // torpor-keeper is lost, but may have launched the program before that. `lose` calls `completion`.
            if error == .brokenPipe || error == .connectionReset { return }
            launches[id] = nil
            fail(.keeper, error)
        }
    }

    // MARK: Descriptors

    /// Sends torpor-keeper duplicates of `descriptors` to hold under `name` (1 to 383 bytes), in addition to earlier
    /// ones. With `replacing`, torpor-keeper closes the earlier ones once it holds the new ones. `completion` gets
    /// the error: ENOSPC if torpor-keeper's table is full, EMFILE if torpor-keeper is out of descriptors.
    public func hold(
        _ name: String,
        _ descriptors: [Int32],
        replacing: Bool = false,
        completion: ((Errno?) -> Void)? = nil
    ) {
        guard KeeperChannel.isName(name), !descriptors.isEmpty else {
            loop.later { completion?(.invalidArgument) }
            return
        }
        let batches = stride(from: 0, to: descriptors.count, by: KeeperProtocol.descriptorLimit).map {
            Array(descriptors[$0..<min($0 + KeeperProtocol.descriptorLimit, descriptors.count)])
        }
        let progress = HoldProgress(waiting: batches.count, completion: completion)
        for (index, batch) in batches.enumerated() {
            let request = KeeperRequest.hold(name: name, replacing: replacing && index == 0)
            ask(request, descriptors: batch) { progress.done($0) }
        }
    }

    /// Like `hold` with one descriptor and `replacing`, but only errors are reported, to `onHoldRefused`.
    public func holdQuietly(_ name: String, _ descriptor: Int32) {
        guard KeeperChannel.isName(name) else { return refuseHold(name, .invalidArgument) }
        let id = channel.nextId()
        do throws(Errno) {
            if isLost { throw .brokenPipe }
            try channel.send(
                KeeperRequest.hold(name: name, replacing: true, quiet: true).encoded(id: id),
                descriptors: [descriptor]
            )
        } catch {
            return refuseHold(name, error)
        }
        quietHolds.append((id, name))
        if quietHolds.count > Self.mostQuietHolds { quietHolds.removeFirst(quietHolds.count / 2) }
    }

    private func refuseHold(_ name: String, _ errno: Errno) {
        loop.later { [weak self] in self?.onHoldRefused?(name, errno) }
    }

    /// Called after the answer to request `id`. torpor-keeper answers in order, so it can no longer refuse any
    /// `holdQuietly` that was sent before this request.
    private func answered(_ id: UInt32) {
        guard id != 0, !quietHolds.isEmpty else { return }
        quietHolds.removeAll { Int32(bitPattern: id &- $0.id) > 0 }
    }

    /// Makes the keeper close all descriptors held under `name`. `completion` gets ENOENT if there are none.
    public func release(_ name: String, completion: ((Errno?) -> Void)? = nil) {
        guard KeeperChannel.isName(name) else {
            loop.later { completion?(.invalidArgument) }
            return
        }
        ask(.release(name: name)) { completion?($0) }
    }

    /// The names under which the keeper holds descriptors. Blocks until the answer arrives.
    public func held() throws(Errno) -> [String] {
        var names: [String] = []
        var cursor: UInt32 = 0
        repeat {
            guard case .names(let next, let some) = try roundTrip(.list(cursor: cursor)).message else {
                throw .protocolError
            }
            names += some
            cursor = next
        } while cursor != 0
        return names
    }

    /// Returns duplicates of the descriptors that torpor-keeper holds under `name`, in the order of their arrival;
    /// empty if there are none. torpor-keeper continues to hold its own. Blocks until the answer arrives.
    public func takeHeld(_ name: String) throws(Errno) -> [Descriptor] {
        var result: [Descriptor] = []
        while true {
            let answer = try roundTrip(.take(name: name, offset: UInt32(result.count)))
            guard case .taken(let errno, let total) = answer.message else { throw .protocolError }
            if errno == Errno.noSuchFileOrDirectory.rawValue { return [] }
            if errno != 0 { throw Errno(rawValue: errno) }
            result += answer.descriptors
            if result.count >= Int(total) { return result }
            if answer.descriptors.isEmpty { throw .tooManyOpenFiles }
        }
    }

    /// Duplicates of all held descriptors, by name. Blocks until the answers arrive, for some milliseconds if there are
    /// thousands of descriptors. Throws EMFILE if torpord may not open that many.
    public func takeAllHeld() throws(Errno) -> [(name: String, descriptors: [Descriptor])] {
        var result: [(name: String, descriptors: [Descriptor])] = []
        var next: (name: UInt32, offset: UInt32) = (0, 0)
        repeat {
            let answer = try roundTrip(.takeAll(name: next.name, offset: next.offset))
            guard case .held(let part) = answer.message else { throw .protocolError }
            guard part.names.reduce(0, { $0 + $1.count }) == answer.descriptors.count else { throw .tooManyOpenFiles }
            var rest = answer.descriptors[...]
            for entry in part.names {
                // The descriptors of one name may not fit into one message; the next message then contains the rest.
                if next.offset > 0, entry.name == result.last?.name {
                    result[result.count - 1].descriptors += rest.prefix(entry.count)
                } else {
                    result.append((entry.name, Array(rest.prefix(entry.count))))
                }
                rest = rest.dropFirst(entry.count)
            }
            next = (part.nextName, part.nextOffset)
        } while next != (0, 0)
        return result
    }

    // MARK: What others launched

    /// Makes the keeper watch a process that another program launched; `pidfd` refers to the process. The exit of the
    /// process is reported to `onExit`, with a status only if the kernel provides it (Linux 6.15). It is no error if
    /// the process has already ended. `completion` gets EEXIST if the keeper watches it, ENOSPC if its table is full.
    public func adopt(
        app: String,
        incarnation: UInt32,
        identity: Identity,
        pidfd: Int32,
        completion: ((Errno?) -> Void)? = nil
    ) {
        let request = KeeperRequest.adopt(
            app: app,
            incarnation: incarnation,
            pid: identity.pid,
            startTime: identity.startTime
        )
        ask(request, descriptors: [pidfd]) { completion?($0) }
    }

    // MARK: The rest

    /// Sends a state such as `READY=1` or `STATUS=…`, at most 8 KiB, to the service manager, if there is one.
    public func tellManager(_ state: String) {
        guard isUnderManager, !isLost, state.utf8.count <= KeeperProtocol.managerTextLimit else { return }
        try? channel.send(KeeperRequest.manager(text: state).encoded(id: 0))
    }

    /// Announces that torpord exits on purpose. The keeper then exits with `status` (nil: with torpord's status), even
    /// if torpord is killed before it exits. After this call, send nothing. With `keepingParked`, the service manager
    /// keeps its copies of held descriptors for the next start.
    public func sayBye(status: UInt8? = nil, keepingParked: Bool = false) {
        guard !isLost else { return }
        try? channel.send(KeeperRequest.bye(status: status, keepingParked: keepingParked).encoded(id: 0))
    }

    /// Announces that this torpord has recovered and handles signals. If a later torpord ends before it announces this,
    /// torpor-keeper starts this torpord's program again.
    public func settled() {
        guard !isLost else { return }
        try? channel.send(KeeperRequest.settled.encoded(id: 0))
    }

    /// Announces that torpord exits so that the keeper starts the program on disk at once. With `replacingKeeper`, the
    /// keeper first executes its own program on disk. Has no effect before `settled`. After this call, send nothing.
    public func handOver(replacingKeeper: Bool = false) {
        guard !isLost else { return }
        try? channel.send(KeeperRequest.handOver(replacingKeeper: replacingKeeper).encoded(id: 0))
    }

    /// Blocks for at most 2 s until the keeper has received all messages. For the last ones before torpord exits.
    public func finishSending() {
        if !isLost { channel.flush(until: Clock.monotonic() + .seconds(2)) }
    }

    /// The id of the last request. It changes with each request to which the keeper answers.
    public var lastRequest: UInt32 { channel.lastId }

    /// Whether the keeper still has to answer a request.
    public var isBusy: Bool { !launches.isEmpty || !holds.isEmpty }

    /// Frees memory that is not needed while torpord is idle, and makes torpor-keeper do the same.
    public func rest() {
        if !isLost { try? channel.send(KeeperRequest.rest.encoded(id: 0)) }
        if launches.isEmpty { launches = [:] }
        if holds.isEmpty { holds = [:] }
    }

    /// Makes torpor-keeper free its slot for an exit that torpord has persisted. Needed only with `keepsExits`.
    public func forget(_ record: ExitRecord) {
        try? channel.send(KeeperRequest.freeSlot(slot: record.slot, generation: record.generation).encoded(id: 0))
    }

    private func ask(_ request: KeeperRequest, descriptors: [Int32] = [], _ completion: @escaping (Errno?) -> Void) {
        let id = channel.nextId()
        holds[id] = completion
        do throws(Errno) {
            if isLost { throw .brokenPipe }
            try channel.send(request.encoded(id: id), descriptors: descriptors)
        } catch {
            holds[id] = nil
            loop.later { completion(error) }
        }
    }

    private func roundTrip(_ request: KeeperRequest) throws(Errno) -> KeeperChannel.Received {
        if isLost { throw .brokenPipe }
        let id = channel.nextId()
        try channel.send(request.encoded(id: id))
        let answer = try channel.wait(for: id)
        if !channel.backlog.isEmpty { deliverLater() }
        if case .refused(let errno) = answer.message { throw Errno(rawValue: errno) }
        return answer
    }

    // MARK: Receiving

    private func socketIsReady() {
        do throws(Errno) {
            try channel.flush()
            deliver()
            for _ in 0..<64 {
                guard let received = try channel.receive() else { break }
                handle(received)
            }
        } catch {
            lose()
        }
        updateEvents()
    }

    private func updateEvents() {
        channel.updateEvents(loop) { [weak self] in self?.socketIsReady() }
    }

    private func deliverLater() {
        guard !deliveryAsked else { return }
        deliveryAsked = true
        loop.later { [weak self] in
            self?.deliveryAsked = false
            self?.deliver()
        }
    }

    /// Delivers at once the exits, orphans and launches that an earlier torpord did not handle.
    public func deliverWaiting() { deliver() }

    private func deliver() {
        let waiting = undelivered + channel.takeBacklog()
        undelivered = []
        for received in waiting { handle(received) }
    }

    private func handle(_ received: KeeperChannel.Received) {
        defer { answered(received.id) }
        switch received.message {
        case .launched(let record) where received.id == 0:
            guard let onLaunched else { return undelivered.append(received) }
            let entry = leftOver.first { $0.pid == record.pid && $0.startTime == record.startTime }
            guard let pidfd = received.descriptors.first ?? entry?.pidfd else { return }
            let launched = Launched(pid: record.pid, startTime: record.startTime, pidfd: pidfd)
            onLaunched(record.app, record.incarnation, launched)
        case .launched(let record):
            guard let launch = launches.removeValue(forKey: received.id) else { return }
            if let pidfd = received.descriptors.first {
                launch.completion(.success(Launched(pid: record.pid, startTime: record.startTime, pidfd: pidfd)))
            } else {
                try? Signal.send(Signal.kill, to: record.pid)  // The pid is valid until the process is reaped.
                launch.completion(
                    .failure(
                        LaunchFailure(
                            stage: .keeper,
                            errno: .tooManyOpenFiles,
                            executable: launch.executable,
                            detail: "torpord may open no more files: raise LimitNOFILE"
                        )
                    )
                )
            }
        case .launchFailed(let stage, let errno):
            guard let launch = launches.removeValue(forKey: received.id) else { return }
            launch.completion(
                .failure(
                    LaunchFailure(
                        stage: LaunchStage(rawValue: stage) ?? .unknown,
                        errno: Errno(rawValue: errno),
                        executable: launch.executable
                    )
                )
            )
        case .exited(let wire):
            guard let onExit else { return undelivered.append(received) }
            let record = ExitRecord(wire)
            leftOver.removeAll { $0.pid == record.pid && $0.startTime == record.startTime }
            onExit(record)
            if !keepsExits { forget(record) }
        case .orphan(let wire):
            guard let onOrphan else { return undelivered.append(received) }
            onOrphan(OrphanRecord(wire))
            try? channel.send(KeeperRequest.freeOrphans(upTo: wire.sequence).encoded(id: 0))
        case .done(let errno):
            if errno != 0, let refused = quietHolds.first(where: { $0.id == received.id }) {
                onHoldRefused?(refused.name, Errno(rawValue: errno))
            }
            holds.removeValue(forKey: received.id)?(errno == 0 ? nil : Errno(rawValue: errno))
        case .refused(let errno):
            holds.removeValue(forKey: received.id)?(Errno(rawValue: errno))
            if let launch = launches.removeValue(forKey: received.id) {
                launch.completion(
                    .failure(
                        LaunchFailure(stage: .plan, errno: Errno(rawValue: errno), executable: launch.executable)
                    )
                )
            }
        case .welcome, .table, .tableEnd, .taken, .names, .held, .unknown:
            break
        }
    }

    private func lose() {
        guard !isLost else { return }
        isLost = true
        channel.close()
        watch?.cancel()
        // Call `onLost` first: it may execute a new torpor-keeper in this process, and then does not return. If it
        // returns, unanswered requests fail, although the lost torpor-keeper may have carried them out.
        onLost?()
        let launches = launches
        let holds = holds
        self.launches = [:]
        self.holds = [:]
        for launch in launches.values {
            launch.completion(
                .failure(
                    LaunchFailure(
                        stage: .keeper,
                        errno: .brokenPipe,
                        executable: launch.executable,
                        detail: "the keeper is gone"
                    )
                )
            )
        }
        for completion in holds.values { completion(.brokenPipe) }
    }
}

/// Combines the answers to several messages into one: the first error, or none.
private final class HoldProgress {
    private var waiting: Int
    private var error: Errno?
    private let completion: ((Errno?) -> Void)?

    init(waiting: Int, completion: ((Errno?) -> Void)?) {
        self.waiting = waiting
        self.completion = completion
    }

    func done(_ error: Errno?) {
        waiting -= 1
        self.error = self.error ?? error
        if waiting == 0 { completion?(self.error) }
    }
}
