// SPDX-License-Identifier: Apache-2.0

import Linux
import TorporAPI
import Varlink

/// The connection of one thread to torpord, opened when it is first needed.
final class Link {
    private let socket: String
    private var client: PersistentVarlinkClient?

    private let patience: Duration

    /// How long to wait for a torpord that does not reply or is being replaced. If no torpord runs, calls fail at
    /// once.
    static let patience = Duration.seconds(10)

    init(socket: String, patience: Duration = patience) {
        self.socket = socket
        self.patience = patience
    }

    /// Makes a call, and returns the last reply. `onReply` gets earlier replies.
    func call(
        _ request: ManagerRequest,
        within timeout: Duration = .seconds(15),
        onReply: (JSON) -> Void = { _ in }
    ) throws(VarlinkClientError) -> JSON {
        do throws(VarlinkClientError) {
            let client = try connected()
            let deadline = Clock.monotonic() + timeout
            return try client.call(deadline: deadline, { request.call }, onReply: onReply)
        } catch {
            if case .service = error {} else { client = nil }
            throw error
        }
    }

    private func connected() throws(VarlinkClientError) -> PersistentVarlinkClient {
        if let client { return client }
        let new = try PersistentVarlinkClient(path: socket, patience: patience)
        client = new
        return new
    }
}

/// A few threads that call torpord, so that the server's thread never blocks. The queue of their jobs is bounded.
final class WorkPool: Sendable {
    private struct State: Sendable {
        var jobs: [@Sendable (Link) -> Void] = []
    }

    private let state = Monitor(State())
    private let limit: Int

    /// Starts the threads. Throws if no thread can be started.
    init(
        named name: String,
        socket: String,
        patience: Duration = Link.patience,
        threads: Int,
        limit: Int
    ) throws(Errno) {
        self.limit = limit
        for _ in 0..<threads {
            try WorkerThread.start(named: name) { [state] in
                let link = Link(socket: socket, patience: patience)
                while true {
                    let job: (@Sendable (Link) -> Void)? = state.wait { state, _ in
                        state.jobs.isEmpty ? nil : state.jobs.removeFirst()
                    }
                    job?(link)
                }
            }
        }
    }

    /// Queues a job. Returns false if the queue is full.
    func submit(_ job: @escaping @Sendable (Link) -> Void) -> Bool {
        let isTaken = state.withLock { state in
            guard state.jobs.count < limit else { return false }
            state.jobs.append(job)
            return true
        }
        if isTaken { state.wake() }
        return isTaken
    }
}
