// SPDX-License-Identifier: Apache-2.0

public import EventLoop
import KeeperProtocol
public import Linux

/// torpord's side of the keeper: it launches, reaps and holds for us. Everything is answered through the loop; only
/// `init`, `held` and `takeHeld`, which recovery needs before the loop runs, wait for their answer.
///
/// Exits that were not seen (because torpord was away) are handed to `onExit` again after the start. An exit is kept
/// by the keeper until `onExit` has returned, or, with `keepsExits`, until `forget`.
public final class Keeper {
    /// Every end of what was launched, once; set it before the loop runs.
    public var onExit: ((ExitRecord) -> Void)? { didSet { deliverLater() } }
    /// Ends of descendants that lost their parent.
    public var onOrphan: ((OrphanRecord) -> Void)? { didSet { deliverLater() } }
    /// A launch of an earlier torpord (`OrphanedProcess.isLaunching`) has come to exec; set it before the loop runs.
    public var onLaunched: ((_ app: String, _ incarnation: UInt32, Launched) -> Void)? { didSet { deliverLater() } }
    /// The keeper is gone: nothing can be launched any more.
    public var onLost: (() -> Void)?
    /// A descriptor of `holdQuietly` is not held: ENOSPC when the keeper's table is full, EMFILE when it may open no more.
    public var onHoldRefused: ((_ name: String, Errno) -> Void)?
    /// Whether an exit stays in the keeper until `forget(_:)` says that it is committed.
    public var keepsExits = false
    /// What an earlier torpord launched and whose exit was not told yet, helpers excepted.
    public private(set) var leftOver: [OrphanedProcess] = []
    /// Exits that are told already and not yet to `onExit`: after `init`, all that an earlier torpord has not forgotten.
    /// What is neither here nor in `leftOver` was never launched, or its exit is forgotten.
    public var waitingExits: [ExitRecord] {
        (undelivered + channel.backlog).compactMap {
            if case .exited(let record) = $0.message { ExitRecord(record) } else { nil }
        }
    }
    /// How many torpords this keeper has started, this one included: more than 1 is a recovery.
    public let instance: UInt32
    /// Whether a service manager listens to `tellManager`.
    public let isUnderManager: Bool
    /// The soft limit of descriptors that apps get unless their plan says otherwise.
    public let appDescriptorLimit: UInt64
    /// The program on disk failed to come up and this torpord is the one that worked before: an upgrade has failed.
    public let isFallback: Bool
    /// What `torpor-keeper --accepts` must be asked before the keeper is replaced by `handOver`.
    public let resumeVersion: UInt32
    private let opensFiles: Bool
    /// The keeper's pid.
    public let pid: Int32
    /// The table of processes, readable when the keeper is gone (torpor_keeper_protocol.h).
    public let table: Descriptor
    /// Whether the keeper is gone.
    public private(set) var isLost = false

    let channel: KeeperChannel
    private let loop: EventLoop
    private var launches: [UInt32: (executable: String, completion: (Result<Launched, LaunchFailure>) -> Void)] = [:]
    private var holds: [UInt32: (Errno?) -> Void] = [:]
    /// What may still be refused.
    private var quietHolds: [(id: UInt32, name: String)] = []
    private static let mostQuietHolds = 256
    private var undelivered: [KeeperChannel.Received] = []
    private var deliveryAsked = false
    private var watch: KeeperWatch?

    /// Greets the keeper at the other end of `descriptor` (TORPOR_KEEPER_FD) and takes over what it has.
    /// Errors: a keeper of another version, none that answers within 10 s.
    public init(descriptor: Descriptor, loop: EventLoop) throws(Errno) {
        self.loop = loop
        channel = KeeperChannel(socket: descriptor)
        let id = channel.nextId()
        try channel.send(KeeperRequest.hello(version: KeeperProtocol.version).encoded(id: id))
        let answer = try channel.wait(for: id)
        guard case .welcome(let welcome) = answer.message else { throw .protocolNotSupported }
        guard welcome.version == KeeperProtocol.version, answer.descriptors.count == 2 else {
            throw .protocolNotSupported
        }
        instance = welcome.instance
        isUnderManager = welcome.isUnderManager
        appDescriptorLimit = welcome.appDescriptorLimit
        isFallback = welcome.isFallback
        resumeVersion = welcome.resumeVersion
        opensFiles = welcome.opensFiles
        pid = welcome.keeperPid
        table = answer.descriptors[0]

        var entries: [OrphanedProcess] = []
        while true {
            let next = try channel.waitForNext()
            if case .tableEnd = next.message { break }
            if case .table(let record) = next.message {
                if let entry = try OrphanedProcess(record, next.descriptors.first) { entries.append(entry) }
            } else {
                undelivered.append(next)
            }
        }
        leftOver = entries
        watch = KeeperWatch(timer: answer.descriptors[1], milliseconds: welcome.watchMilliseconds, loop: loop)
        channel.onBlocked = { [weak self] in self?.updateEvents() }
        channel.source = try loop.watch(channel.socket.raw, .readable) { [weak self] _ in self?.socketIsReady() }
    }

    // MARK: Launching

    /// Starts a program; `completion` runs in a later turn, exactly once.
    public func launch(_ plan: LaunchPlan, completion: @escaping (Result<Launched, LaunchFailure>) -> Void) {
        func fail(_ stage: LaunchStage, _ errno: Errno, _ detail: String = "") {
            let failure = LaunchFailure(stage: stage, errno: errno, executable: plan.executable, detail: detail)
            loop.later { completion(.failure(failure)) }
        }
        if isLost { return fail(.keeper, .brokenPipe, "the keeper is gone") }
        guard opensFiles || plan.inputFile == nil && plan.errorFile == nil else {
            return fail(
                .plan,
                .notSupported,
                "the keeper is older than torpord, and opens no files: run ‘torpor upgrade’"
            )
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
            // A keeper that is gone may have launched it: the end of the socket says so, and what becomes of it.
            if error == .brokenPipe || error == .connectionReset { return }
            launches[id] = nil
            fail(.keeper, error)
        }
    }

    // MARK: Descriptors

    /// Gives the keeper duplicates of `descriptors` under `name` (1 to 383 bytes), added to what it has under it.
    /// With `replacing`, what it has under it is let go of, once it has the new ones. `completion` gets the error:
    /// ENOSPC when its table is full, EMFILE when it may open no more.
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

    /// As `hold` of one descriptor, in place of what is under the name, and answered by `onHoldRefused` only.
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

    /// An answer came: none of those asked for before it was refused.
    private func answered(_ id: UInt32) {
        guard id != 0, !quietHolds.isEmpty else { return }
        quietHolds.removeAll { Int32(bitPattern: id &- $0.id) > 0 }
    }

    /// Lets go of all that is held under `name`. ENOENT when there is nothing.
    public func release(_ name: String, completion: ((Errno?) -> Void)? = nil) {
        guard KeeperChannel.isName(name) else {
            loop.later { completion?(.invalidArgument) }
            return
        }
        ask(.release(name: name)) { completion?($0) }
    }

    /// The names under which descriptors are held. Waits for the answer.
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

    /// Duplicates of the descriptors under `name`, in the order in which they came; the keeper keeps its own. Empty
    /// when there are none. Waits for the answer.
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

    /// Everything that is held, by name, as `takeHeld` gives it for one. Waits for the answers, some milliseconds for
    /// thousands of descriptors. Throws EMFILE when this process may not open as many.
    public func takeAllHeld() throws(Errno) -> [(name: String, descriptors: [Descriptor])] {
        var result: [(name: String, descriptors: [Descriptor])] = []
        var next: (name: UInt32, offset: UInt32) = (0, 0)
        repeat {
            let answer = try roundTrip(.takeAll(name: next.name, offset: next.offset))
            guard case .held(let part) = answer.message else { throw .protocolError }
            guard part.names.reduce(0, { $0 + $1.count }) == answer.descriptors.count else { throw .tooManyOpenFiles }
            var rest = answer.descriptors[...]
            for entry in part.names {
                // What does not fit into one message goes on in the next.
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

    /// Has the keeper watch a process that somebody else launched, and that `pidfd` stands for: its end comes by
    /// `onExit` like any other, with what the kernel tells about it (Linux 6.15). One that has ended already is no
    /// error. `completion` gets the error: EEXIST when the keeper has it already, ENOSPC when its table is full.
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

    /// Tells the service manager, if there is one: `READY=1`, `STATUS=…`; at most 8 KiB.
    public func tellManager(_ state: String) {
        guard isUnderManager, !isLost, state.utf8.count <= KeeperProtocol.managerTextLimit else { return }
        try? channel.send(KeeperRequest.manager(text: state).encoded(id: 0))
    }

    /// Says that the end that follows is meant. The keeper then exits with `status`, even if this process is killed on
    /// its way out; without one, with the status of the exit. Nothing else is sent after it.
    /// With `keepingParked`, what the service manager keeps for the keeper stays there for the next start.
    public func sayBye(status: UInt8? = nil, keepingParked: Bool = false) {
        guard !isLost else { return }
        try? channel.send(KeeperRequest.bye(status: status, keepingParked: keepingParked).encoded(id: 0))
    }

    /// Says that this torpord has recovered and listens to signals. The keeper keeps its program from now on, and
    /// starts it again should a later one end before it says the same.
    public func settled() {
        guard !isLost else { return }
        try? channel.send(KeeperRequest.settled.encoded(id: 0))
    }

    /// Says that the exit that follows makes room for the program on disk, which is started at once; with
    /// `replacingKeeper` the keeper executes its own program on disk before. Means nothing before `settled`. Nothing
    /// else is sent after it.
    public func handOver(replacingKeeper: Bool = false) {
        guard !isLost else { return }
        try? channel.send(KeeperRequest.handOver(replacingKeeper: replacingKeeper).encoded(id: 0))
    }

    /// Waits until the keeper has taken all that was sent, for what is said last before this process ends.
    public func finishSending() {
        let end = Clock.monotonic() + .seconds(2)
        while channel.isBlocked, !isLost, Clock.monotonic() < end {
            _ = try? Descriptor.wait(channel.socket.raw, writable: true, timeout: .milliseconds(10))
            guard (try? channel.flush()) != nil else { return }
        }
    }

    /// Another number after each request that is answered.
    public var lastRequest: UInt32 { channel.lastId }

    /// Whether something was asked for that is not answered yet.
    public var isBusy: Bool { !launches.isEmpty || !holds.isEmpty }

    /// Gives back the room of what was asked for and is answered, and says to the keeper that there is nothing to do for
    /// now, so that it does so too.
    public func rest() {
        if !isLost { try? channel.send(KeeperRequest.rest.encoded(id: 0)) }
        if launches.isEmpty { launches = [:] }
        if holds.isEmpty { holds = [:] }
    }

    /// The exit is committed: its slot in the keeper is free again. Only with `keepsExits`.
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
        channel.source?.setEvents(channel.isBlocked ? [.readable, .writable] : .readable)
    }

    private func deliverLater() {
        guard !deliveryAsked else { return }
        deliveryAsked = true
        loop.later { [weak self] in
            self?.deliveryAsked = false
            self?.deliver()
        }
    }

    /// Hands over at once what an earlier torpord did not take: exits, orphans, launches that it asked for.
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
                try? Signal.send(Signal.kill, to: record.pid)  // our keeper has not reaped it: its exit comes after
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
        // First, since it may not come back: what was asked for may have been done.
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

/// Several messages, one answer: the first error, or none.
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
