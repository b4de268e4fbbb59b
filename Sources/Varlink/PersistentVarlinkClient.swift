// SPDX-License-Identifier: Apache-2.0

import Linux

/// A blocking client of a service that may be replaced by another instance at any time, on the same socket.
///
/// When the connection ends before the last reply of a call, it connects again and asks again. So a call must be one
/// that can be asked twice: it only reads, or carries something by which the service knows it again.
public final class PersistentVarlinkClient {
    /// The socket's path.
    public let path: String
    /// How long it goes on without a word from the service: before the first reply, or after the connection was lost.
    public let patience: Duration
    /// Called each time that the connection is lost, before the first try to connect again.
    public var onLoss: (() -> Void)?

    private var client: VarlinkClient?

    /// Connects; if that fails there is no second try, since nobody was there to come back.
    public init(path: String, patience: Duration = .seconds(30)) throws(VarlinkClientError) {
        self.path = path
        self.patience = patience
        client = try VarlinkClient(path: path, timeout: patience)
    }

    /// Calls and gives the last reply; `onReply` gets every reply that others follow.
    ///
    /// - Parameters:
    ///   - repeats: false for what must not be asked twice: a loss is thrown then.
    ///   - deadline: when it gives up at the latest, on the monotonic clock; nil for a stream or a wait without end.
    ///   - reserve: so much longer than the deadline it waits for a service that is there, and knows the deadline too.
    ///   - call: what to ask, made anew for each connection: so that it can go on where the last one ended.
    public func call(
        repeats: Bool = true,
        deadline: Duration? = nil,
        reserve: Duration = .zero,
        _ call: () -> VarlinkCall,
        onReply: (JSON) -> Void = { _ in }
    ) throws(VarlinkClientError) -> JSON {
        var silentSince = Clock.monotonic()
        var isLost = false
        var pause = Duration.zero
        while true {
            do throws(VarlinkClientError) {
                let client = try connected(until: Self.sooner(silentSince + patience, deadline))
                let last = deadline.map { $0 + reserve }
                return try client.callMore(
                    call(),
                    timeoutMilliseconds: last.map(Self.milliseconds(until:)),
                    firstTimeoutMilliseconds: Self.milliseconds(until: Self.sooner(silentSince + patience, last))
                ) { reply in
                    silentSince = Clock.monotonic()
                    isLost = false
                    pause = .zero
                    onReply(reply)
                }
            } catch {
                if case .service = error { throw error }
                client = nil
                let now = Clock.monotonic()
                switch error {
                case .disconnected:
                    if !isLost {
                        // Only what is not heard after this counts.
                        silentSince = now
                        isLost = true
                        onLoss?()
                    }
                    if !repeats { throw error }
                case .cannotConnect: break
                case .timedOut where isLost: throw gone(since: silentSince, "it takes connections and does not answer")
                case .timedOut, .malformed, .service, .gone: throw error
                }
                let left = Self.sooner(silentSince + patience, deadline) - now
                guard left > .zero else { throw gone(since: silentSince, problem(of: error)) }
                ThisProcess.sleep(min(pause, left))
                pause = min(max(pause * 2, .milliseconds(2)), .milliseconds(250))
            }
        }
    }

    /// Ends the connection; the next call connects again.
    public func disconnect() { client = nil }

    /// Waits until the service ends the connection that the last call used. False when the time is up.
    public func waitForEnd(timeout: Duration) -> Bool {
        defer { client = nil }
        return client?.waitForEnd(timeout: timeout) ?? true
    }

    private func connected(until giveUp: Duration) throws(VarlinkClientError) -> VarlinkClient {
        if let client { return client }
        let left = max(.milliseconds(1), giveUp - Clock.monotonic())
        let client = try VarlinkClient(path: path, timeout: left)
        self.client = client
        return client
    }

    private func gone(since: Duration, _ problem: String) -> VarlinkClientError {
        .gone(path: path, waited: Clock.monotonic() - since, problem: problem)
    }

    private func problem(of error: VarlinkClientError) -> String {
        if case .cannotConnect(_, let problem) = error { return problem }
        return "it ends every connection"
    }

    private static func sooner(_ time: Duration, _ deadline: Duration?) -> Duration {
        deadline.map { min(time, $0) } ?? time
    }

    private static func milliseconds(until time: Duration) -> Int32 {
        Int32(clamping: max(0, (time - Clock.monotonic()).microseconds) / 1000 + 1)
    }
}
