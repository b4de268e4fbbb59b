// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import KeeperProtocol
import Linux
import Processes

/// Opens the file descriptors that an app sends for its descriptor store, in a separate process (`torpor-keeper
/// --receive`). Closing a file may block until the owner of its filesystem answers, and no signal can interrupt the
/// close. So a separate process opens and checks the descriptors, and only that process may block: torpord gets only
/// descriptors that can be closed at once.
///
/// An app has at most one such process, and only while one is needed.
final class DescriptorReceiver {
    /// Gets the descriptors of one datagram, and warnings about those that were not opened.
    typealias Completion = (_ opened: [Descriptor], _ warnings: [String]) -> Void

    /// The longest time to wait for the answer to a request. Only a close that blocks takes long.
    private static let patience = Duration.seconds(10)
    /// The process ends if no further request comes within this time after its last answer.
    private static let idle = Duration.seconds(1)

    private unowned(unsafe) let supervisor: Supervisor
    private let app: String
    /// The socket for requests and answers; nil if there is no process, or if the process is about to end.
    private var requests: Descriptor?
    private var source: IOSource?
    private var timer: TimerSource?
    /// The app's notify socket, which the process reads; nil if no process is needed.
    private var datagrams: Descriptor?
    /// Whether the process was started and has not ended yet.
    private var isThere = false
    private var isStuck = false
    private var waiting: Completion?

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
        waiting = completion
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
        ask()
    }

    private func ask() {
        if requests == nil, !isThere { start() }
        guard let requests else { return }
        _ = try? Sockets.send(requests.raw, [1])
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

    /// Closes this end of the socket for requests. The process then exits.
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
        // A request arrived while this process was about to exit: start another process for that request.
        if requests == nil, datagrams != nil { ask() }
    }

    private func fail(_ why: String) {
        dismiss()
        finish([], ["its descriptors could not be opened: \(why)"])
    }

    private func finish(_ opened: [Descriptor], _ warnings: [String]) {
        guard let completion = waiting else { return }
        waiting = nil
        completion(opened, warnings)
    }
}

extension AppRuntime {
    /// The receiver that opens the descriptors which the app sends for its descriptor store; nil if there is none.
    var receiver: DescriptorReceiver? {
        get { slots[ReceiverSlot.self] }
        set { slots[ReceiverSlot.self] = newValue }
    }
}

private enum ReceiverSlot: Slot { typealias Value = DescriptorReceiver }
