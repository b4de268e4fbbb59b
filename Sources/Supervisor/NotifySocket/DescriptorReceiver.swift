// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import KeeperProtocol
import Linux
import Processes
import SystemPackage

/// Opens the file descriptors that an app sends for its descriptor store, in a separate process (`torpor-keeper
/// --receive`). Closing a file may block until the owner of its filesystem answers, and no signal can interrupt the
/// close. So a separate process opens and checks the descriptors, and only that process may block: torpord gets only
/// descriptors that can be closed at once.
///
/// Another such process removes each datagram with descriptors from the socket: a datagram may have the last reference
/// to a file, and to let go of it may block as well. Until then, a copy that torpord closes is not the last one.
///
/// An app has at most one process of each kind, and only while one is needed.
final class DescriptorReceiver {
    /// Gets the descriptors of one datagram, and warnings about those that were not opened.
    typealias Completion = (_ opened: [Descriptor], _ warnings: [String]) -> Void

    /// The longest time to wait for the answer to a request. Only a close that blocks takes long.
    private static let patience = Duration.seconds(10)
    /// `torpor-keeper --receive` is told to end if no further request comes within this time after its last answer.
    private static let idle = Duration.seconds(1)

    private unowned(unsafe) let supervisor: Supervisor
    private let app: String
    /// The socket for requests to `torpor-keeper --receive` and its answers; nil if it does not run or is about to end.
    private var requests: Descriptor?
    private var source: IOSource?
    private var timer: TimerSource?
    /// The app's notify socket, from which `torpor-keeper --receive` reads the descriptors; nil if no such process is
    /// needed.
    private var datagrams: Descriptor?
    /// Whether `torpor-keeper --receive` was started and has not ended yet.
    private var isThere = false
    private var isStuck = false
    private var waiting: Request?
    /// Whether the request was sent.
    private var isSent = false

    private enum Request {
        case open(Completion)
        case drop((_ isDropped: Bool) -> Void)

        var byte: UInt8 {
            switch self {
            case .open: ReceiveAnswer.Request.open.rawValue
            case .drop: ReceiveAnswer.Request.drop.rawValue
            }
        }
    }

    /// Whether an answer is pending.
    var isAsked: Bool { waiting != nil }

    init(of app: String, _ supervisor: Supervisor) {
        self.app = app
        self.supervisor = supervisor
    }

    deinit {
        timer?.cancel()
        source?.cancel()
    }

    /// Opens the descriptors of the next datagram in an app's socket, and leaves the datagram there. Only one request
    /// may be open at a time. The completion is called in a later turn of the event loop.
    func open(_ datagrams: Descriptor, _ completion: @escaping Completion) {
        request(.open(completion), datagrams)
    }

    /// Removes the next datagram in an app's socket. The completion gets false if that is not possible now, because a
    /// close blocks `torpor-keeper --receive`, or it cannot be started. It is called in a later turn of the event loop.
    func drop(_ datagrams: Descriptor, _ completion: @escaping (_ isDropped: Bool) -> Void) {
        request(.drop(completion), datagrams)
    }

    private func request(_ request: Request, _ datagrams: Descriptor) {
        (waiting, isSent) = (request, false)
        guard !isStuck else {
            return supervisor.loop.later { [weak self] in
                self?.finish(
                    [],
                    ["refused its descriptors: closing one that it sent before still blocks torpor-keeper --receive"]
                )
            }
        }
        if timer == nil { timer = try? supervisor.loop.timer { [weak self] in self?.timeIsOver() } }
        timer?.arm(after: Self.patience)
        // The process reads only the socket that it was started with: for another socket, start another process.
        if datagrams !== self.datagrams { dismiss() }
        self.datagrams = datagrams
        // In a later turn torpord has closed what it has not kept of the datagram's descriptors.
        supervisor.loop.later { [weak self] in self?.ask() }
    }

    private func ask() {
        guard let waiting, !isSent else { return }
        if requests == nil, !isThere { start() }
        guard let requests else { return }
        isSent = true
        _ = try? Sockets.send(requests.raw, [waiting.byte])
    }

    private func start() {
        guard let datagrams else { return }
        guard let program = Keeper.findProgram(),
            let (ours, theirs) = try? Sockets.pair(.sequenced, nonBlocking: false),
            let source = try? supervisor.loop.watch(ours.raw, .readable, { [weak self] _ in self?.answered() })
        else {
            return supervisor.loop.later { [weak self] in
                self?.fail("torpor-keeper --receive cannot be started for them (see ‘torpor doctor’)")
            }
        }
        var plan = LaunchPlan(
            app: "torpor.receive",
            incarnation: 1,
            executable: program,
            arguments: ["torpor-keeper", "--receive"],
            environment: ["\(AppTag.helperVariable)=1"]
        )
        plan.isHelper = true
        plan.passed = [datagrams.raw, theirs.raw]
        requests = ours
        self.source = source
        isThere = true
        supervisor.keeper.launch(plan) { [weak self, weak supervisor] result in
            switch result {
            case .success(let launched):
                supervisor?.launcher.helpers[launched.pid] = { [weak self] _ in self?.ended() }
            case .failure(let failure):
                self?.fail(failure.description)
                self?.ended()
            }
        }
        withExtendedLifetime(theirs) {}
    }

    private func answered() {
        guard let requests else { return }
        guard let message = try? Sockets.receive(requests.raw, maximum: ReceiveAnswer.size),
            let answer = ReceiveAnswer(decoding: message.bytes)
        else { return fail("torpor-keeper --receive ended before it answered") }
        for descriptor in message.descriptors { descriptor.closesPromptly = true }
        timer?.arm(after: Self.idle)
        if case .drop = waiting {
            guard answer.isOfDrop else { return fail("torpor-keeper --receive is older than torpord") }
            // If there is no datagram, another process has read it, which no app can.
            return finish([], [], isDropped: answer.failure == nil || answer.failure == .wouldBlock)
        }
        if let failure = answer.failure { return fail(failure.description) }
        if answer.isIncomplete || message.controlTruncated {
            // It is not known which of the datagram's descriptors are missing, so use none of them.
            let sentence =
                "descriptors were lost on the way, so all of this datagram's were closed: send at most "
                + "\(Sockets.mostDescriptors) at once, and check the limit of open files (‘torpor doctor’)"
            return finish([], [sentence])
        }
        let refusal =
            "refused \(answer.refused) of its descriptors: only memory, pipes, sockets, files of local disks and the kernel's "
            + "own descriptors can be stored, since closing any other can block"
        finish(message.descriptors, answer.refused > 0 ? [refusal] : [])
    }

    private func timeIsOver() {
        isStuck = waiting != nil && isThere
        dismiss()
        if waiting != nil { fail("closing one that it sent before blocks torpor-keeper --receive") }
    }

    /// Closes torpord's end of the socket for requests, so that `torpor-keeper --receive` exits.
    private func dismiss() {
        source?.cancel()
        source = nil
        requests = nil
        datagrams = nil
    }

    private func ended() {
        isThere = false
        isStuck = false
        guard waiting != nil else { return }
        // A request arrived while the old `torpor-keeper --receive` was about to exit: start another for that request.
        if requests == nil, datagrams != nil { ask() }
    }

    private func fail(_ why: String) {
        dismiss()
        finish([], ["its descriptors could not be opened: \(why)"])
    }

    private func finish(_ opened: [Descriptor], _ warnings: [String], isDropped: Bool = false) {
        let request = waiting
        waiting = nil
        switch request {
        case .open(let completion): completion(opened, warnings)
        case .drop(let completion): completion(isDropped)
        case nil: break
        }
    }
}

extension AppRuntime {
    /// The receiver that opens the descriptors which the app sends for its descriptor store; nil if there is none.
    var receiver: DescriptorReceiver? {
        get { slots[ReceiverSlot.self] }
        set { slots[ReceiverSlot.self] = newValue }
    }

    /// The receiver that removes datagrams with descriptors from the app's socket; nil if there is none.
    var dropper: DescriptorReceiver? {
        get { slots[DropperSlot.self] }
        set { slots[DropperSlot.self] = newValue }
    }

    /// Whether messages of the app wait for one of these.
    var awaitsReceiver: Bool { receiver?.isAsked == true || dropper?.isAsked == true }
}

private enum ReceiverSlot: Slot { typealias Value = DescriptorReceiver }

private enum DropperSlot: Slot { typealias Value = DescriptorReceiver }
