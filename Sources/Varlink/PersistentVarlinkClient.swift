// SPDX-License-Identifier: Apache-2.0

import Linux

/// A blocking client that survives the replacement of its service by another instance on the same socket.
///
/// If the connection ends before the last reply to a call, the client reconnects and repeats the call. So a call must
/// be idempotent: either it only reads, or it carries an identifier by which the service recognises the repeated call.
/// If the connection ends twice within a long reply, the reply itself is the likely reason, and the call fails.
public final class PersistentVarlinkClient {
    /// The socket's path.
    public let path: String
    /// How long to wait for a service that does not answer: before the first reply, or after the connection was lost.
    public let patience: Duration
    /// Called each time the connection is lost, before the first reconnect.
    public var onLoss: (() -> Void)?

    private var client: VarlinkClient?

    /// If a connection ends after this many bytes of a reply for the second time, the call is not repeated again.
    private static let longPart = 1 << 20

    /// Connects. Does not retry if the service does not answer: only a service that answered before may be expected to
    /// return.
    public init(path: String, patience: Duration = .seconds(30)) throws(VarlinkClientError) {
        self.path = path
        self.patience = patience
        client = try VarlinkClient(path: path, timeout: patience)
    }

    /// Sends calls that are made next, in this order (``VarlinkClient/sendAhead(_:)``). If they cannot be sent, or if
    /// the connection is lost, each is sent when it is made.
    public func sendAhead(_ calls: [VarlinkCall]) { _ = try? client?.sendAhead(calls) }

    /// Makes a call and returns the last reply; `onReply` gets the replies before it.
    ///
    /// - Parameters:
    ///   - repeats: false if the call must not be repeated: then a lost connection throws.
    ///   - deadline: the time to give up (monotonic clock); nil for a stream or an unlimited wait.
    ///   - reserve: how long to wait after `deadline` while the service is connected: it knows the deadline too, and
    ///     replies when it has passed.
    ///   - call: creates the call for each connection, so that a repeated call can continue where the interrupted one
    ///     ended.
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
        var longParts = 0
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
                    longParts = 0
                    onReply(reply)
                }
            } catch {
                if case .service = error { throw error }
                if let client, client.partialBytes >= Self.longPart { longParts += 1 }
                client = nil
                let now = Clock.monotonic()
                switch error {
                case .disconnected:
                    if !isLost {
                        // Measure from now on how long the service does not answer.
                        silentSince = now
                        isLost = true
                        onLoss?()
                    }
                    if !repeats { throw error }
                    guard longParts < 2 else {
                        throw .malformed("the connection ended in the middle of a long reply, and again when repeated")
                    }
                case .cannotConnect: break
                case .timedOut where isLost: throw gone(since: silentSince, "it takes connections and does not answer")
                case .timedOut, .malformed, .service, .gone, .tooLong: throw error
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

    /// Waits until the service closes the connection of the last call. Returns false on timeout.
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
