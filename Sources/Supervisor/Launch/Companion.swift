// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Linux
import Processes
import Varlink

/// A command to a companion: `hello` asks it for all that it knows.
protocol CompanionCommand {
    static var hello: Self { get }
    var json: JSON { get }
}

/// A report of a companion.
protocol CompanionReport {
    init(json: JSON) throws(FieldError)
    /// Whether it is the answer to `hello`.
    var isGreeting: Bool { get }
}

/// A program that runs beside the apps as a user, and outlives torpord: the keeper holds the socket to it. Messages are
/// JSON, each with a NUL at its end.
///
/// Its messages may be forged by its user, so they are limited, and an invalid one ends it.
class Companion<Command: CompanionCommand, Report: CompanionReport> {
    struct Callbacks {
        let report: (Report) -> Void
        /// It has ended or was given up; with a sentence if that was unexpected.
        let ended: (String?) -> Void
        /// Its process is gone, or was never launched; with its cgroup.
        let gone: (String?) -> Void
    }

    /// In bytes.
    private static var longestMessage: Int { 64 << 10 }
    /// Bytes to read in one turn of the loop.
    private static var turn: Int { 64 << 10 }
    /// Bytes that may wait to be sent: it reads all the time, unless it was stopped.
    private static var mostWaiting: Int { 16 << 20 }
    /// No working process takes longer to answer `hello`.
    private static var longestSilence: Duration { .seconds(20) }

    let place: CompanionPlace
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
    /// An earlier torpord launched it, and it has not reported yet what it does.
    private(set) var isUnheard = false
    /// An earlier torpord launched it.
    private(set) var isAdopted = false
    private var isGreeted = false
    private var patience: TimerSource?

    /// The pid; nil until it is launched.
    private(set) var pid: Int32?
    /// The process, its children, and their resource profile.
    private var tree: ProcessTree?
    /// The resource profile that it is to have.
    var profile: StateProfile {
        didSet { if profile != oldValue { tree?.apply(profile) } }
    }

    /// It does nothing yet: `start` or `adopt` follows.
    init(_ place: CompanionPlace, _ profile: StateProfile, _ supervisor: Supervisor, _ callbacks: Callbacks) {
        self.place = place
        self.profile = profile
        self.supervisor = supervisor
        self.callbacks = callbacks
    }

    deinit { source?.cancel() }

    /// Starts it; it accepts commands from now on.
    func start(_ plan: LaunchPlan) {
        let (callbacks, cgroup) = (callbacks, place.cgroup)
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
        if let socket { supervisor.hold(place.heldName, [socket.raw], replacing: true) }
        var plan = plan
        plan.passed = [theirs.raw]
        supervisor.keeper.launch(plan) { [weak self, weak supervisor] result in
            switch result {
            case .success(let launched):
                supervisor?.launcher.helpers[launched.pid] = { [weak self] status in
                    self?.end("ended (\(Self.words(status)))")
                    callbacks.gone(cgroup)
                }
                guard let self, !self.isOver, !self.isLeaving else {
                    try? Pidfd.sendSignal(launched.pidfd.raw, Signal.kill)
                    return
                }
                self.take(launched)
            case .failure(let failure):
                self?.end(failure.description)
                callbacks.gone(cgroup)
            }
        }
        withExtendedLifetime(theirs) {}
        send(.hello)
    }

    /// Takes over a process that an earlier torpord launched. It first reports what it does (`isGreeting`); reports
    /// before that are ignored.
    func adopt(_ process: Launched, _ socket: Descriptor?) {
        let (callbacks, cgroup) = (callbacks, place.cgroup)
        take(process)
        (isAdopted, isUnheard) = (true, true)
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

    /// It runs: applies its resource profile from now on.
    private func take(_ process: Launched) {
        pid = process.pid
        pidfd = process.pidfd
        tree = supervisor.takeover.tree(
            AppTag(app: place.name, incarnation: AppTag.companion),
            Identity(pid: process.pid, startTime: process.startTime),
            process.pidfd,
            place.cgroup,
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

    func send(_ command: Command) {
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

    /// Ends it, so that another one can replace it once it is gone: two must not do the same work.
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
            let report: Report
            do {
                report = try Report(json: JSON.parse(message))
            } catch {
                // The first message may be the rest of one that an earlier torpord had begun to read.
                if isUnheard { continue }
                return fail("sent an invalid report: \(error)")
            }
            if report.isGreeting {
                // It is greeted once.
                guard !isGreeted else { continue }
                (isGreeted, isUnheard) = (true, false)
                patience = nil
            }
            // All that matters is reported again after that.
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
    func fail(_ why: String) {
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
        if socket != nil { supervisor.release(place.heldName) }
        socket = nil
        if let pidfd { try? Pidfd.sendSignal(pidfd.raw, Signal.kill) }
        pidfd = nil
        tree = nil
    }
}

/// Where a companion is found, by torpord and by the torpord after that.
struct CompanionPlace {
    /// The app that it works for, or a name that no app can have.
    let name: String
    /// Under which the keeper holds the socket to it.
    let heldName: String
    /// Its cgroup; nil for none of its own.
    let cgroup: String?
}

/// A companion that an earlier torpord left.
struct FoundCompanion {
    let process: Launched
    /// The socket to it; nil if that is lost.
    let socket: Descriptor?
    /// Its cgroup; nil if it has none of its own.
    let cgroup: String?
    /// It has ended since it was found.
    var hasEnded = false
    /// Kills it, because it is not needed.
    func end() { try? Pidfd.sendSignal(process.pidfd.raw, Signal.kill) }

    /// Takes the companion of that name over from the keeper. If there are two, the earlier one had been told to end.
    static func take(
        _ processes: [OrphanedProcess],
        heldAs name: String,
        cgroup cgroupName: String,
        _ supervisor: Supervisor
    ) -> (companion: FoundCompanion, cgroups: [String])? {
        let inOrder = processes.sorted { $0.startTime < $1.startTime }
        func cgroup(_ process: OrphanedProcess) -> String? {
            supervisor.place.cgroups?.companion(cgroupName, around: process.pid)
        }
        for process in inOrder.dropLast() { try? Pidfd.sendSignal(process.pidfd.raw, Signal.kill) }
        guard let process = inOrder.last else { return nil }
        let socket = supervisor.inheritance.take(name).first
        return (
            FoundCompanion(process: process.launched, socket: socket, cgroup: cgroup(process)),
            inOrder.compactMap(cgroup)
        )
    }

    /// Whether a process has these arguments, and runs as that user if it is known. Call it on a background thread.
    static func isRunning(_ arguments: [String], as user: UInt32?, _ pid: Int32) -> Bool {
        guard let words = try? File.read("/proc/\(pid)/cmdline", limit: 1 << 16),
            let real = try? ProcFS.realUser(pid)
        else { return false }
        let expected = Array(arguments.map { Array($0.utf8) + [0] }.joined())
        return words.elementsEqual(expected) && (user == nil || real == user)
    }
}

/// Counts a room's companions, and waits for their processes when torpord ends.
final class CompanionCount {
    private unowned(unsafe) let supervisor: Supervisor
    /// Processes that have not ended.
    private(set) var count = 0
    private var timer: TimerSource?
    private var isPastWaiting = false

    /// A process that is killed may wait for a disk.
    private static let longestEnd = Duration.seconds(5)

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    func begun() { count += 1 }

    func gone() {
        count -= 1
        if timer != nil, count == 0 { supervisor.shutdown.finishWhenGone() }
    }

    /// All were told to end, and no other torpord follows. Returns whether they are gone or were waited for long
    /// enough; otherwise the shutdown continues when they are gone.
    func areGone() -> Bool {
        guard count > 0, !isPastWaiting else { return true }
        if timer == nil {
            timer = try? supervisor.loop.timer { [weak self] in
                self?.isPastWaiting = true
                self?.supervisor.shutdown.finishWhenGone()
            }
            timer?.arm(after: Self.longestEnd)
        }
        return timer == nil
    }
}

extension Launcher {
    /// The plan of a companion: in `/`, with little weight.
    ///
    /// - Parameter variables: added to the environment that torpord inherited.
    func companionPlan(
        _ program: String,
        _ arguments: [String],
        of name: String,
        environment: LaunchEnvironment = .inherited,
        _ variables: [String: String] = [:]
    ) -> LaunchPlan {
        let tags = [
            AppTag.helperVariable: "1", "TORPOR_MANAGER_SOCKET": supervisor.runtime.socket, "TORPOR_APP": name,
            "TORPOR_INCARNATION": "\(AppTag.companion)",
        ]
        var plan = LaunchPlan(
            app: name,
            incarnation: AppTag.companion,
            executable: program,
            arguments: arguments,
            environment: environment.entries(adding: variables.merging(tags) { $1 })
        )
        plan.directory = "/"
        // Takes effect where neither cgroups nor sessions have weights.
        plan.nice = 5
        return plan
    }

    /// Makes the cgroup of a companion; nil, with a warning, if that is impossible.
    func companionCgroup(_ name: String, for who: String) -> (path: String, directory: Descriptor, isFresh: Bool)? {
        do throws(Errno) {
            return try makeCgroup(name)
        } catch {
            log.warning("\(who): no cgroup of its own (\(error))")
            return nil
        }
    }
}
