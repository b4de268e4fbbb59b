// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Linux
import Processes
import TransferProtocol
import Varlink

/// The process that transfers for one app (torpor-transfer). It runs as the app's user, beside the app, while the app
/// has a running transfer, and a little longer. It outlives torpord: the keeper holds the socket to it.
///
/// Its messages may be forged by the app, so they are limited, and an invalid one ends it.
final class TransferHelper {
    struct Callbacks {
        let report: (TransferReport) -> Void
        /// It has ended or was given up; with a sentence if that was unexpected.
        let ended: (String?) -> Void
        /// Its process is gone, or was never launched; with its cgroup.
        let gone: (String?) -> Void
    }

    /// What a background thread finds out for its start.
    struct Facts: Sendable {
        let account: Account?
        /// How much downloads must leave free on the filesystem, in bytes.
        let minimumFree: Int64
    }

    /// What the configuration decides about it: if that changes, it is replaced.
    struct Manner: Hashable {
        /// The folders and files that it may use.
        let arguments: [String]
        let account: Account.Names?
    }

    /// In bytes; a URL with its header fields takes far less.
    private static let longestMessage = 64 << 10
    /// Bytes to read in one turn of the loop.
    private static let turn = 64 << 10
    /// Bytes that may wait to be sent: it reads all the time, unless it was stopped.
    private static let mostWaiting = 16 << 20

    let app: String
    private unowned(unsafe) let supervisor: Supervisor
    private let callbacks: Callbacks
    private var socket: Descriptor?
    private var source: IOSource?
    private var framer = MessageFramer(limit: longestMessage)
    private var outgoing: [UInt8] = []
    private var sent = 0
    private var pidfd: Descriptor?
    private var isOver = false
    /// It was killed, and is reported when it is gone.
    private var isLeaving = false
    /// What it did wrong, if that is why it was killed.
    private var failure: String?
    let manner: Manner
    /// How much its downloads must leave free, in bytes.
    let minimumFree: Int64
    /// An earlier torpord launched it, and it has not reported yet what it does.
    private(set) var isUnheard = false
    private var patience: TimerSource?
    private let heldName: String

    /// No working process takes longer to report what it does.
    private static let longestSilence = Duration.seconds(20)

    /// The pid; nil until it is launched.
    private(set) var pid: Int32?
    /// The process, its children, and their resource profile.
    private var tree: ProcessTree?
    /// Its cgroup; nil for none of its own.
    private let cgroup: String?
    /// The resource profile that it is to have.
    var profile: StateProfile {
        didSet { if profile != oldValue { tree?.apply(profile) } }
    }

    private init(
        _ app: String,
        _ manner: Manner,
        _ minimumFree: Int64,
        _ profile: StateProfile,
        cgroup: String?,
        _ supervisor: Supervisor,
        _ callbacks: Callbacks
    ) {
        self.profile = profile
        self.cgroup = cgroup
        self.app = app
        self.manner = manner
        self.minimumFree = minimumFree
        self.supervisor = supervisor
        self.callbacks = callbacks
        heldName = DescriptorName.transfers(app)
    }

    /// Starts it; it accepts commands from now on.
    convenience init(
        _ plan: LaunchPlan,
        of app: String,
        _ manner: Manner,
        minimumFree: Int64,
        _ profile: StateProfile,
        cgroup: String?,
        _ supervisor: Supervisor,
        _ callbacks: Callbacks
    ) {
        self.init(app, manner, minimumFree, profile, cgroup: cgroup, supervisor, callbacks)
        let theirs: Descriptor
        do throws(Errno) {
            let (ours, other) = try Sockets.pair(.stream)
            try listen(to: ours)
            theirs = other
        } catch {
            supervisor.loop.later { [weak self] in
                self?.end("cannot be started: \(error)")
                callbacks.gone(cgroup)
            }
            return
        }
        // Before the launch, so that a torpord that finds the process finds the socket too.
        if let socket { supervisor.hold(heldName, [socket.raw], replacing: true) }
        var plan = plan
        plan.passed = [theirs.raw]
        let gone = callbacks.gone
        supervisor.keeper.launch(plan) { [weak self, weak supervisor] result in
            switch result {
            case .success(let launched):
                supervisor?.launcher.helpers[launched.pid] = { [weak self] status in
                    self?.end("ended (\(Self.words(status)))")
                    gone(cgroup)
                }
                guard let self, !self.isOver, !self.isLeaving else {
                    try? Pidfd.sendSignal(launched.pidfd.raw, Signal.kill)
                    return
                }
                self.take(launched)
            case .failure(let failure):
                self?.end(failure.description)
                gone(cgroup)
            }
        }
        withExtendedLifetime(theirs) {}
        send(.hello)
    }

    /// Takes over a helper that an earlier torpord launched. It first reports what it does (`here`); reports before
    /// that are ignored.
    convenience init(
        adopting process: Launched,
        _ socket: Descriptor?,
        of app: String,
        _ manner: Manner,
        minimumFree: Int64,
        _ profile: StateProfile,
        cgroup: String?,
        _ supervisor: Supervisor,
        _ callbacks: Callbacks
    ) {
        self.init(app, manner, minimumFree, profile, cgroup: cgroup, supervisor, callbacks)
        take(process)
        isUnheard = true
        supervisor.launcher.helpers[process.pid] = { [weak self] status in
            self?.end("ended (\(Self.words(status)))")
            callbacks.gone(cgroup)
        }
        guard let socket else {
            replace()
            return
        }
        do throws(Errno) {
            try listen(to: socket)
            patience = try supervisor.loop.timer { [weak self] in self?.replace() }
            patience?.arm(after: Self.longestSilence)
        } catch {
            supervisor.loop.later { [weak self] in self?.fail("cannot be reached: \(error)") }
            return
        }
        // The earlier torpord may have died halfway through a message.
        outgoing = [0]
        send(.hello)
    }

    deinit { source?.cancel() }

    /// It runs: applies its resource profile from now on.
    private func take(_ process: Launched) {
        pid = process.pid
        pidfd = process.pidfd
        tree = supervisor.takeover.tree(
            AppTag(app: app, incarnation: AppTag.companion),
            Identity(pid: process.pid, startTime: process.startTime),
            process.pidfd,
            cgroup,
            isOurs: true
        )
        tree?.apply(profile)
    }

    private func listen(to ours: Descriptor) throws(Errno) {
        try Descriptor.setNonBlocking(ours.raw)
        source = try supervisor.loop.watch(ours.raw, .readable) { [weak self] events in self?.happened(events) }
        socket = ours
    }

    private static func words(_ status: ExitStatus) -> String {
        switch status {
        case .exited(let code): "exit status \(code)"
        case .signaled(let signal, _): Signal.name(signal)
        }
    }

    func send(_ command: TransferCommand) {
        guard socket != nil else { return }
        outgoing += command.json.serialised() + [0]
        guard outgoing.count - sent <= Self.mostWaiting else { return fail("no longer reads its commands") }
        flush()
    }

    /// It is no longer needed.
    func dismiss() {
        guard !isOver else { return }
        isOver = true
        stop()
    }

    /// Ends it, so that another one can replace it once it is gone: two must not write the same files.
    func replace() {
        guard !isOver, !isLeaving else { return }
        isLeaving = true
        stop()
    }

    private func happened(_ events: IOEvents) {
        if events.contains(.writable) { flush() }
        if events != .writable { read() }
    }

    private func flush() {
        guard let socket else { return }
        while sent < outgoing.count {
            do throws(Errno) {
                let part = Array(outgoing[sent..<min(sent + Self.turn, outgoing.count)])
                guard let count = try Sockets.send(socket.raw, part) else { break }
                sent += count
            } catch {
                // The keeper reports its end.
                break
            }
        }
        if sent == outgoing.count { (outgoing, sent) = ([], 0) }
        source?.setEvents(outgoing.isEmpty ? .readable : [.readable, .writable])
    }

    private func read() {
        guard let socket else { return }
        let bytes: [UInt8]?
        do throws(Errno) {
            // Closes any descriptors that it may send along.
            bytes = try Promptly.run { () throws(Errno) in try Descriptor.read(socket.raw, maximum: Self.turn) }
        } catch {
            return fail("cannot be reached: \(error)")
        }
        guard let bytes else { return }
        // The keeper reports its end, with the status.
        guard !bytes.isEmpty else { return hangUp() }
        framer.append(bytes)
        while !isOver, !isLeaving {
            let message: ArraySlice<UInt8>?
            do throws(MessageFramer.TooLong) { message = try framer.next() } catch {
                return fail("sent an invalid report: \(error)")
            }
            guard let message else { return }
            let report: TransferReport
            do {
                report = try TransferReport(json: JSON.parse(message))
            } catch {
                // The first message may be the rest of one that an earlier torpord had begun to read.
                if isUnheard { continue }
                return fail("sent an invalid report: \(error)")
            }
            if case .here = report {
                // The transfers of a helper that this torpord launched are known.
                guard isUnheard else { continue }
                isUnheard = false
                patience = nil
            }
            // Everything but progress is reported again after that.
            if isUnheard { continue }
            callbacks.report(report)
        }
    }

    /// It sends nothing more: kills what is left of it.
    private func hangUp() {
        source?.cancel()
        source = nil
        if let pidfd { try? Pidfd.sendSignal(pidfd.raw, Signal.kill) }
    }

    /// It is unusable. Another one may be started when it is gone.
    private func fail(_ why: String) {
        guard !isOver, !isLeaving else { return }
        guard pid != nil else { return end(why) }
        failure = why
        replace()
    }

    private func end(_ why: String) {
        guard !isOver else { return }
        isOver = true
        stop()
        callbacks.ended(isLeaving ? failure : why)
    }

    private func stop() {
        source?.cancel()
        source = nil
        patience = nil
        if socket != nil { supervisor.release(heldName) }
        socket = nil
        if let pidfd { try? Pidfd.sendSignal(pidfd.raw, Signal.kill) }
        pidfd = nil
        tree = nil
    }
}
