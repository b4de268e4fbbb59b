// SPDX-License-Identifier: Apache-2.0

import Linux
import TorporAPI
import Varlink

/// A connection to torpord of one thread, made when it is needed.
final class Link {
    private let socket: String
    private var client: PersistentVarlinkClient?

    private let patience: Duration

    /// How long a torpord that is being replaced, or that says nothing, is waited for. One that is not there at all is
    /// not.
    static let patience = Duration.seconds(10)

    init(socket: String, patience: Duration = patience) {
        self.socket = socket
        self.patience = patience
    }

    /// Calls and gives the last reply; `onReply` gets those before.
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

/// A few threads that ask torpord, so that the server's never waits; no more than a bound waits for them.
final class WorkPool: Sendable {
    private struct State: Sendable {
        var jobs: [@Sendable (Link) -> Void] = []
    }

    private let state = Monitor(State())
    private let limit: Int

    /// Errors: out of threads.
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

    /// Has it done by one of the threads; false, and nothing is done, when too many wait already.
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
