// SPDX-License-Identifier: Apache-2.0

public import Linux
import Varlink

/// A connection to the supervisor, opened when it is first needed. While the supervisor is being replaced, calls wait.
final class SupervisorLink {
    private let socket: String
    private let patience: Duration
    private let owners: OwnerWatch?
    private var client: PersistentVarlinkClient?

    init(socket: String, patience: Duration, owners: OwnerWatch?) {
        self.socket = socket
        self.patience = patience
        self.owners = owners
    }

    /// Carries out the request and waits for the outcome.
    func carryOut(_ request: OutsideRequest) -> PostOutcome {
        switch request {
        case .post(let push): post(push)
        case .open(let scene): open(scene)
        }
    }

    private func open(_ scene: SceneOpening) -> PostOutcome {
        do throws(VarlinkClientError) {
            let reply = try connected().call(deadline: Clock.monotonic() + patience) { scene.call }
            guard let result = reply["results"]?.arrayValue?.first else {
                return .unavailable("the supervisor gave no result")
            }
            guard result["ok"]?.boolValue == true else {
                return .unavailable(result["message"]?.stringValue ?? "the scene cannot be opened now")
            }
            return .taken(["app": result["app"] ?? .null, "state": result["state"] ?? .null])
        } catch {
            if case .service = error {} else { client = nil }
            return PostOutcome(error)
        }
    }

    /// Posts a message and waits for the outcome. If the connection is lost before the reply, posts the message again
    /// with the same token, by which the supervisor recognises it.
    private func post(_ push: Push) -> PostOutcome {
        // A message that is nested too deeply would be refused again at every retry.
        guard push.payload.isNested(atMost: JSON.payloadDepthLimit) else {
            return .refused("the payload is nested more than \(JSON.payloadDepthLimit) deep")
        }
        guard push.payload.serialised().count <= JSON.payloadSizeLimit else {
            return .refused("the payload has more than \(JSON.payloadSizeLimit >> 10) KiB as JSON")
        }
        var push = push
        push.owned = owners?.isOfSeveralMachines(push.app) ?? false
        do throws(VarlinkClientError) {
            let client = try connected()
            return .taken(try client.call(deadline: Clock.monotonic() + patience) { push.call })
        } catch {
            if case .service = error {} else { client = nil }
            return PostOutcome(error)
        }
    }

    private func connected() throws(VarlinkClientError) -> PersistentVarlinkClient {
        if let client { return client }
        let new = try PersistentVarlinkClient(path: socket, patience: patience)
        client = new
        return new
    }
}

/// The bounded queue of messages for the supervisor. A few of them are sent at the same time.
public final class PostQueue: Sendable {
    private struct Job: Sendable {
        let request: OutsideRequest
        let done: @Sendable (PostOutcome) -> Void
    }

    private struct State: Sendable {
        var jobs: [Job] = []
        /// The index of the first job that is not done; all earlier jobs are done.
        var first = 0
        var underWay = 0

        var count: Int { jobs.count - first }

        mutating func take() -> Job? {
            guard count > 0 else { return nil }
            let job = jobs[first]
            first += 1
            if first == jobs.count || first > 1024 {
                jobs.removeFirst(first)
                first = 0
            }
            underWay += 1
            return job
        }
    }

    /// How long the supervisor may take for one message: its disk may be slow, or a newer version may be replacing it.
    public static let patience = Duration.seconds(10)

    private let state = Monitor(State())
    private let limit: Int

    /// Starts the threads, each with its own connection. With `owners`, a message for an app that several machines can
    /// own is posted only if this machine owns the app. Throws if no thread can be started.
    public init(
        socket: String,
        limit: Int,
        connections: Int,
        patience: Duration = PostQueue.patience,
        owners: OwnerWatch? = nil
    ) throws(Errno) {
        self.limit = limit
        for _ in 0..<connections {
            try WorkerThread.start(named: "post") { [state] in
                let link = SupervisorLink(socket: socket, patience: patience, owners: owners)
                while true {
                    let next: Job? = state.wait { state, _ in state.take() }
                    guard let job = next else { continue }
                    job.done(link.carryOut(job.request))
                    state.withLock { $0.underWay -= 1 }
                    state.wake()
                }
            }
        }
    }

    /// Queues a request. Calls `done` on a thread of the queue. Returns false, and does nothing, if the queue is
    /// full.
    public func submit(_ request: OutsideRequest, _ done: @escaping @Sendable (PostOutcome) -> Void) -> Bool {
        let isTaken = state.withLock { state in
            guard state.count < limit else { return false }
            state.jobs.append(Job(request: request, done: done))
            return true
        }
        if isTaken { state.wake() }
        return isTaken
    }

    /// Posts a message and waits for the outcome. If the queue is full, first waits for a place in it.
    public func post(_ push: Push) -> PostOutcome {
        let outcome = Monitor<PostOutcome?>(nil)
        let job = Job(request: .post(push)) { result in
            outcome.withLock { $0 = result }
            outcome.wake()
        }
        let limit = limit
        let _: Bool? = state.wait { state, _ in
            guard state.count < limit else { return nil }
            state.jobs.append(job)
            return true
        }
        state.wake()
        let result: PostOutcome? = outcome.wait { outcome, _ in outcome }
        return result!
    }

    /// Waits until all messages are handled. Returns false at the deadline (CLOCK_MONOTONIC).
    public func waitUntilEmpty(until deadline: Duration) -> Bool {
        let isEmpty: Bool? = state.wait(until: deadline) { state, _ in
            state.count == 0 && state.underWay == 0 ? true : nil
        }
        return isEmpty ?? false
    }
}
