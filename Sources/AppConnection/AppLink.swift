// SPDX-License-Identifier: Apache-2.0

public import Linux
public import TorporAPI
public import Varlink

/// The app's side of its own socket (`TORPOR_APP_SOCKET`). The link survives replacements of the supervisor.
///
/// The link has two connections: one that streams messages, if the process wants to be the app's delegate, and one for
/// calls. If a connection is lost, the link reconnects, sends its state, and repeats unanswered calls. The link never
/// blocks and has no thread: call `work()` when `poller` is readable and at `wakeTime`, always on the same thread.
public final class AppLink {
    /// An event of the link, which ``work()`` returns.
    public enum Event: Sendable {
        /// The process has become the app's delegate, for the first time or again.
        case attached(AppSituation)
        /// A message for the app.
        case message(AppMessage)
        /// Tasks of this process that ended because the supervisor did not know them.
        case tasksLost([Int64])
        /// The supervisor does not answer; the link keeps trying.
        case lost
        /// The supervisor refuses to accept the process as the delegate; the link does not retry.
        case refused(VarlinkClientError)
    }

    /// Receives the result of a call to the supervisor.
    public typealias Completion = (Result<JSON, VarlinkClientError>) -> Void

    private struct Pending {
        var request: AppRequest
        var isSent = false
        var completion: Completion
    }

    /// Becomes readable when the caller must call ``work()``.
    public let poller: Poller
    /// The socket.
    public let path: String
    /// Whether the process is the delegate now.
    public private(set) var isAttached = false
    /// Whether this process may not connect to the socket, as the last attempt has shown: it runs as another user than
    /// the app's. The link keeps trying.
    public private(set) var isForbidden = false
    /// Whether the process wants to be the delegate.
    public let isDelegate: Bool

    private var stream: LinkChannel?
    private var calls: LinkChannel?
    private var streamRetry = Retry()
    private var callsRetry = Retry()
    private var isRefused = false
    private var isLost = false
    private var wasAttached = false
    private var attachRefusedSince: Duration?
    private var pending: [Pending] = []
    private var incarnation: Int64?
    private var lastMessage: Int64?
    private var tasks: [Int64] = []
    private var events: [Event] = []

    private static let streamTag: UInt64 = 1
    private static let callsTag: UInt64 = 2
    /// How long the link retries if a new supervisor refuses this process as the delegate, although the earlier
    /// supervisor had accepted it.
    private static let patience = Duration.seconds(10)

    /// Connects at the first `work()`. If `isDelegate` is false, the link only makes calls.
    public init(path: String, isDelegate: Bool) throws(Errno) {
        self.path = path
        self.isDelegate = isDelegate
        poller = try Poller()
    }

    /// The latest time for the next `work()`, on the monotonic clock; nil if the caller only has to wait for
    /// ``poller``.
    public var wakeTime: Duration? {
        var time: Duration?
        if isDelegate, stream == nil, !isRefused { time = streamRetry.at }
        if wantsCalls, calls == nil { time = min(time ?? callsRetry.at, callsRetry.at) }
        return time
    }

    /// Makes a call; the completion runs within `work()`.
    ///
    /// If the connection is lost before the reply, the call is repeated. If the supervisor refuses the repetition
    /// because it has handled the first call (it knows the answer already, or the task has ended already), the call
    /// succeeds.
    public func call(_ request: AppRequest, then completion: @escaping Completion) {
        pending.append(Pending(request: request, completion: completion))
        sendPending()
    }

    /// Fails all unanswered calls.
    public func giveUp() {
        let given = pending
        pending = []
        for call in given { call.completion(.failure(.disconnected)) }
    }

    /// How many calls are unanswered.
    public var pendingCount: Int { pending.count }

    /// Connects, sends and receives as far as possible without blocking, and returns the events that have occurred.
    public func work() -> [Event] {
        var ready: Set<UInt64> = []
        _ = try? poller.drain { tag, _ in ready.insert(tag) }
        if ready.contains(Self.streamTag) { readStream() }
        connectStream()
        if ready.contains(Self.callsTag) { readCalls() }
        sendPending()
        defer { events = [] }
        return events
    }

    // MARK: Messages

    private func connectStream() {
        guard isDelegate, stream == nil, !isRefused, Clock.monotonic() >= streamRetry.at else { return }
        var request = AttachRequest()
        request.incarnation = incarnation
        request.after = lastMessage
        request.tasks = tasks
        do {
            let channel = try LinkChannel(path: path, poller: poller, tag: Self.streamTag)
            isForbidden = false
            stream = channel
            try channel.send(AppRequest.attach(request).call)
        } catch {
            isForbidden = (error as? Errno)?.isRefusal ?? false
            loseStream()
        }
    }

    private func loseStream() {
        stream = nil
        isAttached = false
        streamRetry.failed(now: Clock.monotonic())
        if !isLost {
            isLost = true
            events.append(.lost)
        }
    }

    private func readStream() {
        guard let stream else { return }
        do throws(LinkChannel.Lost) {
            try stream.flush()
            try stream.receive { take($0) }
        } catch {
            loseStream()
        }
    }

    /// Handles a reply. Returns false if nothing more may be read from the connection.
    private func take(_ response: VarlinkResponse) -> Bool {
        if let error = response.error {
            refuse(.service(name: error, parameters: response.parameters))
            return false
        }
        do throws(FieldError) {
            if !isAttached { try attached(response.parameters) }
            if let message = response.parameters["message"], !message.isNull {
                let message = try AppMessage(json: message)
                if message.id > lastMessage ?? 0 {
                    lastMessage = message.id
                    events.append(.message(message))
                }
            }
        } catch {
            loseStream()
            return false
        }
        if !response.continues { loseStream() }
        return response.continues
    }

    private func attached(_ parameters: JSON) throws(FieldError) {
        let situation = try AppSituation(json: parameters)
        if incarnation != situation.incarnation { lastMessage = nil }
        incarnation = situation.incarnation
        isAttached = true
        wasAttached = true
        isLost = false
        attachRefusedSince = nil
        streamRetry.succeeded()
        callsRetry.succeeded()
        let held = Set(situation.tasks.map(\.token))
        lose(tasks: tasks.filter { !held.contains($0) })
        events.append(.attached(situation))
    }

    private func lose(tasks lost: [Int64]) {
        guard !lost.isEmpty else { return }
        tasks.removeAll { lost.contains($0) }
        events.append(.tasksLost(lost))
    }

    private func refuse(_ error: VarlinkClientError) {
        let now = Clock.monotonic()
        let since = attachRefusedSince ?? now
        attachRefusedSince = since
        loseStream()
        // A new supervisor may at first refuse a delegate that the earlier supervisor had accepted, because it does not
        // know the app's processes yet: retry.
        if wasAttached, now - since < Self.patience { return }
        isRefused = true
        events.append(.refused(error))
    }

    // MARK: Calls

    /// A supervisor can assign an answer to a message only after the process has attached again as the delegate.
    private var mayCall: Bool { !isDelegate || isAttached }
    private var wantsCalls: Bool { mayCall && !(pending.isEmpty && tasks.isEmpty) }

    private func sendPending() {
        guard mayCall else { return }
        do {
            if calls == nil {
                guard wantsCalls, Clock.monotonic() >= callsRetry.at else { return }
                calls = try LinkChannel(path: path, poller: poller, tag: Self.callsTag)
                if !tasks.isEmpty { pending.insert(claim(), at: 0) }
            }
            for index in pending.indices where !pending[index].isSent {
                try calls?.send(pending[index].request.call)
                pending[index].isSent = true
            }
        } catch {
            loseCalls()
        }
    }

    private func loseCalls() {
        calls = nil
        callsRetry.failed(now: Clock.monotonic())
        pending.removeAll { if case .claimTasks = $0.request { true } else { false } }
        for index in pending.indices { pending[index].isSent = false }
        if !isLost, !isDelegate {
            isLost = true
            events.append(.lost)
        }
    }

    private func claim() -> Pending {
        let claimed = tasks
        return Pending(request: .claimTasks(tokens: claimed)) { [weak self] result in
            guard let self, case .success(let reply) = result, let list = reply["tasks"]?.arrayValue else { return }
            let held = Set(list.compactMap { $0["token"]?.intValue })
            lose(tasks: claimed.filter { !held.contains($0) })
        }
    }

    private func readCalls() {
        guard let calls else { return }
        do throws(LinkChannel.Lost) {
            try calls.flush()
            try calls.receive { response in
                guard !pending.isEmpty, pending[0].isSent else { return true }
                isLost = isLost && isDelegate
                callsRetry.succeeded()
                complete(pending.removeFirst(), response)
                return true
            }
        } catch {
            loseCalls()
        }
    }

    private func complete(_ call: Pending, _ response: VarlinkResponse) {
        switch (call.request, response.error) {
        case (.beginTask, nil):
            if let token = response.parameters["token"]?.intValue { tasks.append(token) }
        case (.endTask(let token), nil), (.endTask(let token), AppInterface.ErrorName.unknownTask):
            tasks.removeAll { $0 == token }
        default: break
        }
        if case .answer(var answer) = call.request, answer.result == .unhandled,
            response.error == VarlinkErrorName.invalidParameter
        {
            // A supervisor that does not know `unhandled` refuses it: send `done` instead.
            answer.result = .done
            pending.append(Pending(request: .answer(answer), completion: call.completion))
            return
        }
        switch (call.request, response.error) {
        case (_, nil), (.answer, AppInterface.ErrorName.alreadyAnswered),
            (.endTask, AppInterface.ErrorName.unknownTask):
            call.completion(.success(response.parameters))
        case (_, let error?):
            call.completion(.failure(.service(name: error, parameters: response.parameters)))
        }
    }
}
