// SPDX-License-Identifier: Apache-2.0

public import Linux
import Varlink

/// One connection to the supervisor, made when it is needed first; a supervisor that is replaced is waited for.
final class SupervisorLink {
    private let socket: String
    private let patience: Duration
    private var client: PersistentVarlinkClient?

    init(socket: String, patience: Duration) {
        self.socket = socket
        self.patience = patience
    }

    /// Has it done, and waits until it is known what became of it.
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

    /// Posts, and waits until it is known what became of it. A message whose reply was lost with the connection is
    /// posted again, with the token by which the supervisor knows it.
    private func post(_ push: Push) -> PostOutcome {
        // Asked again and again it would not be taken either.
        guard push.payload.isNested(atMost: JSON.payloadDepthLimit) else {
            return .refused("the payload is nested more than \(JSON.payloadDepthLimit) deep")
        }
        guard push.payload.serialised().count <= JSON.payloadSizeLimit else {
            return .refused("the payload has more than \(JSON.payloadSizeLimit >> 10) KiB as JSON")
        }
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

/// Messages on their way to the supervisor: few at a time, and no more than a bound waiting.
public final class PostQueue: Sendable {
    private struct Job: Sendable {
        let request: OutsideRequest
        let done: @Sendable (PostOutcome) -> Void
    }

    private struct State: Sendable {
        var jobs: [Job] = []
        /// Where the first job is; what is before it was taken.
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

    /// How long the supervisor may take for one message: it waits for its disk, or is replaced by another meanwhile.
    public static let patience = Duration.seconds(10)

    private let state = Monitor(State())
    private let limit: Int

    /// Begins with so many threads, each with a connection of its own. Errors: out of threads.
    public init(
        socket: String,
        limit: Int,
        connections: Int,
        patience: Duration = PostQueue.patience
    ) throws(Errno) {
        self.limit = limit
        for _ in 0..<connections {
            try WorkerThread.start(named: "post") { [state] in
                let link = SupervisorLink(socket: socket, patience: patience)
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

    /// Has it done, and calls `done` on a thread of its own; false, and nothing is done, when too many wait already.
    public func submit(_ request: OutsideRequest, _ done: @escaping @Sendable (PostOutcome) -> Void) -> Bool {
        let isTaken = state.withLock { state in
            guard state.count < limit else { return false }
            state.jobs.append(Job(request: request, done: done))
            return true
        }
        if isTaken { state.wake() }
        return isTaken
    }

    /// Posts, and waits for what becomes of it; where too many wait, for its place first.
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

    /// Waits until nothing waits and nothing is under way; false at the deadline of CLOCK_MONOTONIC.
    public func waitUntilEmpty(until deadline: Duration) -> Bool {
        let isEmpty: Bool? = state.wait(until: deadline) { state, _ in
            state.count == 0 && state.underWay == 0 ? true : nil
        }
        return isEmpty ?? false
    }
}
