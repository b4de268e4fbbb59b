// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Linux
import Processes
import Varlink

/// A command that torpord sends to a companion. The command `hello` asks the companion to report everything that it
/// knows.
protocol CompanionCommand {
    static var hello: Self { get }
    var json: JSON { get }
}

/// A message that a companion (a helper program, see ``Companion``) sends to torpord.
protocol CompanionReport {
    init(json: JSON) throws(FieldError)
    /// Whether this report answers the command `hello`.
    var isGreeting: Bool { get }
}

/// A helper program that runs beside the apps, as some user, and survives a restart of torpord: torpor-keeper holds the
/// socket to the companion. Messages are JSON, each with a NUL at its end.
///
/// The user that the companion runs as could forge messages. So their size is limited, and torpord kills a companion
/// that sends an invalid message.
class Companion<Command: CompanionCommand, Report: CompanionReport> {
    struct Callbacks {
        let report: (Report) -> Void
        /// Called when the companion has ended, or when torpord has given up on it. The argument is the reason; nil if
        /// the end was expected.
        let ended: (String?) -> Void
        /// Called when the companion's process is gone, or was never launched. The argument is the path of its
        /// cgroup.
        let gone: (String?) -> Void
    }

    /// The longest message, in bytes.
    private static var longestMessage: Int { 64 << 10 }
    /// The most bytes to read in one turn of the event loop, and to pass to one call of send(2).
    private static var turn: Int { 64 << 10 }
    /// The most bytes that may wait to be sent. If more bytes wait, the companion does not read, and so does not work.
    private static var mostWaiting: Int { 16 << 20 }
    /// A companion that an earlier torpord launched is killed if it has not answered `hello` after this time.
    private static var longestSilence: Duration { .seconds(20) }

    let place: CompanionPlace
    private unowned(unsafe) let supervisor: Supervisor
    private let callbacks: Callbacks
    private var socket: Descriptor?
    /// The same, for reading.
    private var stream: StrangerStream?
    private var source: IOSource?
    private var framer = MessageFramer(limit: longestMessage)
    private var outgoing = PendingBytes()
    private var pidfd: Descriptor?
    /// The process of a companion that was told to end; nil after its end was awaited.
    private var left: Descriptor?
    private var isOver = false
    /// Whether torpord has killed the companion. Its end is reported when the process is gone.
    private var isLeaving = false
    /// Why torpord killed the companion; nil if the companion did nothing wrong.
    private var failure: String?
    /// Whether an earlier torpord launched the companion, and the companion has not answered `hello` yet.
    private(set) var isUnheard = false
    /// Whether an earlier torpord launched the companion.
    private(set) var isAdopted = false
    private var isGreeted = false
    private var patience: TimerSource?

    /// The companion's pid; nil until it is launched.
    private(set) var pid: Int32?
    /// The companion's process and its children, to which the resource profile is applied; nil before the launch.
    private var tree: ProcessTree?
    /// The resource profile to apply to the companion.
    var profile: StateProfile {
        didSet { if profile != oldValue { tree?.apply(profile) } }
    }

    /// Creates a companion without starting it: call `start` or `adopt` next.
    init(_ place: CompanionPlace, _ profile: StateProfile, _ supervisor: Supervisor, _ callbacks: Callbacks) {
        self.place = place
        self.profile = profile
        self.supervisor = supervisor
        self.callbacks = callbacks
    }

    deinit { source?.cancel() }

    /// Launches the companion. Commands can be sent from now on.
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
        // torpor-keeper must hold the socket before the launch, so that a later torpord that finds the process also
        // finds the socket.
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

    /// Takes over a companion that an earlier torpord launched. Its reports are ignored until it has answered `hello`
    /// (`isGreeting`).
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
        // The earlier torpord may have died after it had sent a part of a message. This NUL ends that message.
        outgoing.append([0])
        send(.hello)
    }

    /// Stores the launched process, and applies the resource profile to it from now on.
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
        // Possible only since Linux 6.16. The companion can have sent nothing yet, or an earlier torpord has set it.
        stream = StrangerStream(ours, isRefusing: (try? Sockets.refuseDescriptors(ours.raw)) != nil)
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
        outgoing.append(command.json.serialised() + [0])
        guard outgoing.count <= Self.mostWaiting else { return fail("no longer reads its commands") }
        flush()
    }

    /// Kills the companion, because it is no longer needed. `ended` is not called.
    func dismiss() {
        guard !isOver else { return }
        isOver = true
        stop()
    }

    /// Closes the socket, so that the companion ends by itself. Kills the companion if it has not ended within `bound`.
    /// `ended` is not called.
    func leave(within bound: Duration) {
        guard !isOver else { return }
        isOver = true
        let process = pidfd
        pidfd = nil
        stop()
        guard let process else { return }
        left = process
        patience = try? supervisor.loop.timer { [weak self] in self?.awaitEnd(.zero) }
        patience?.arm(after: bound)
    }

    /// Blocks until a companion that was told to end has ended. Kills it if it has not ended within `bound`.
    func awaitEnd(_ bound: Duration) {
        patience = nil
        guard let left else { return }
        self.left = nil
        let hasEnded = (try? Descriptor.wait(left.raw, timeout: bound)) ?? false
        if !hasEnded { try? Pidfd.sendSignal(left.raw, Signal.kill) }
    }

    /// Kills the companion so that another one can replace it. Start the other one only when this one has ended,
    /// because two companions must not do the same work.
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
        while !outgoing.isEmpty {
            do throws(Errno) {
                guard let count = try Sockets.send(socket.raw, Array(outgoing.first(Self.turn))) else { break }
                outgoing.drop(count)
            } catch {
                // Nothing more can be sent. If the companion has ended, torpor-keeper reports its end.
                break
            }
        }
        source?.setEvents(outgoing.isEmpty ? .readable : [.readable, .writable])
    }

    private func read() {
        guard let stream else { return }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.turn, alignment: 8)
        defer { buffer.deallocate() }
        do throws(Errno) {
            switch try stream.read(into: buffer) {
            case .nothing: return
            // The companion has closed the socket. torpor-keeper reports its end, with the exit status.
            case .bytes(0): return hangUp()
            case .bytes(let count): framer.append(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            // torpor-keeper has the socket closed last, since that may block.
            case .descriptors: return fail("sent descriptors, which are none of its reports")
            }
        } catch {
            return fail("cannot be reached: \(error)")
        }
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
                // The first message may be incomplete: an earlier torpord may have read its beginning.
                if isUnheard { continue }
                return fail("sent an invalid report: \(error)")
            }
            if report.isGreeting {
                // Only the first answer to `hello` is passed on.
                guard !isGreeted else { continue }
                (isGreeted, isUnheard) = (true, false)
                patience = nil
            }
            // Ignore this report, because the companion repeats everything that matters when it answers `hello`.
            if isUnheard { continue }
            callbacks.report(report)
        }
    }

    /// Called when the companion has closed the socket: kills its process.
    private func hangUp() {
        source?.cancel()
        source = nil
        if let pidfd { try? Pidfd.sendSignal(pidfd.raw, Signal.kill) }
    }

    /// Kills a companion that does not work. `why` is a sentence. Start another companion only when this one has ended.
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
        let wasOpen = socket != nil
        // First, so that torpord is not the last one that closes it.
        socket?.close()
        (socket, stream) = (nil, nil)
        if wasOpen { supervisor.release(place.heldName) }
        if let pidfd { try? Pidfd.sendSignal(pidfd.raw, Signal.kill) }
        pidfd = nil
        tree = nil
    }
}

/// The names by which this torpord and the next one find a companion.
struct CompanionPlace {
    /// The app that the companion works for, or a name that no app can have.
    let name: String
    /// The name under which torpor-keeper holds the socket to the companion.
    let heldName: String
    /// The path of the companion's own cgroup; nil if it has none.
    let cgroup: String?
}

/// A companion that an earlier torpord left running.
struct FoundCompanion {
    let process: Launched
    /// The socket to the companion; nil if the socket was lost.
    let socket: Descriptor?
    /// The path of the companion's own cgroup; nil if it has none.
    let cgroup: String?
    /// Whether the companion has ended after torpord found it.
    var hasEnded = false
    /// Kills the companion, because it is not needed.
    func end() { try? Pidfd.sendSignal(process.pidfd.raw, Signal.kill) }

    /// Takes over the companion whose socket torpor-keeper holds as `name`; nil if none runs. If there are several
    /// processes, only the latest is taken over, because an earlier torpord has already killed the others, or asked
    /// them to end.
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

    /// Whether a process was started with these arguments and, if `user` is given, runs as that user. Must be called on
    /// a background thread.
    static func isRunning(_ arguments: [String], as user: UInt32?, _ pid: Int32) -> Bool {
        guard let words = try? File.read("/proc/\(pid)/cmdline", limit: 1 << 16),
            let real = try? ProcFS.realUser(pid)
        else { return false }
        let expected = Array(arguments.map { Array($0.utf8) + [0] }.joined())
        return words.elementsEqual(expected) && (user == nil || real == user)
    }
}

/// Counts the companions of one part of the supervisor, and waits for their processes when torpord ends.
final class CompanionCount {
    private unowned(unsafe) let supervisor: Supervisor
    /// How many companion processes have not ended.
    private(set) var count = 0
    private var timer: TimerSource?
    private var isPastWaiting = false

    /// How long the shutdown waits for companions that were killed or told to end. A killed process that waits for a
    /// disk ends only when the disk answers.
    private static let longestEnd = Duration.seconds(5)

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    func begun() { count += 1 }

    func gone() {
        count -= 1
        if timer != nil, count == 0 { supervisor.shutdown.finishWhenGone() }
    }

    /// Whether all companions have ended, or torpord has waited long enough for that. If false, the shutdown continues
    /// when they have ended. Called after all were asked to end, if no other torpord follows.
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
    /// The launch plan of a companion, which runs in `/` with a low priority.
    ///
    /// - Parameter variables: variables added to the environment that torpord inherited.
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
        // The nice value matters only on machines where neither cgroups nor sessions (autogroups) have CPU weights.
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
