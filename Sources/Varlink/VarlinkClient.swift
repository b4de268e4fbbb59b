// SPDX-License-Identifier: Apache-2.0

import Linux

/// Why a call failed.
public enum VarlinkClientError: Error, Hashable, Sendable, CustomStringConvertible {
    /// No service answers at the socket; `problem` says why.
    case cannotConnect(path: String, problem: String)
    /// The connection ended before the last reply.
    case disconnected
    /// The connection ended, and no service has answered at the socket since; `problem` is the error of the last
    /// attempt.
    case gone(path: String, waited: Duration, problem: String)
    /// The call is longer than a service takes: its size and the limit, in bytes.
    case tooLong(bytes: Int, limit: Int)
    /// The timeout has expired.
    case timedOut
    /// The reply is not valid Varlink.
    case malformed(String)
    /// The service answered with an error.
    case service(name: String, parameters: JSON)

    /// A sentence for users.
    public var description: String {
        switch self {
        case .cannotConnect(let path, let problem): "no server answers at \(path): \(problem)"
        case .disconnected: "the connection ended before the reply came"
        case .gone(let path, let waited, let problem):
            "the connection was lost, and no server answered at \(path) for \(waited.components.seconds) s: \(problem)"
        case .tooLong(let bytes, let limit):
            "the call has \(bytes) bytes, and a service takes \(limit): send less at once"
        case .timedOut: "no reply came in time"
        case .malformed(let problem): "the reply cannot be read: \(problem)"
        case .service(let name, let parameters): parameters["message"]?.stringValue ?? "\(name) \(parameters)"
        }
    }
}

/// A blocking client of a Varlink service on a Unix socket; one call at a time, which may have been sent ahead.
public final class VarlinkClient {
    private let socket: Descriptor
    private var framer = MessageFramer()
    /// The calls that ``sendAhead(_:)`` has sent and that were not made yet.
    private var ahead: [VarlinkCall] = []

    /// How many bytes of a message have come whose end has not come yet.
    var partialBytes: Int { framer.waitingBytes }

    /// Connects. `timeout` limits how long to wait for a service whose backlog of connections is full.
    public init(path: String, timeout: Duration? = nil) throws(VarlinkClientError) {
        do throws(Errno) {
            socket = try Sockets.connect(path: path, sendTimeout: timeout)
        } catch {
            let problem =
                path.utf8.count > Sockets.longestPath
                ? "the path is longer than \(Sockets.longestPath) bytes"
                : error == .resourceTemporarilyUnavailable ? "it is too busy to take the connection" : "\(error)"
            throw .cannotConnect(path: path, problem: problem)
        }
    }

    /// Sends calls at once, so that the service answers them without waiting for this client in between. Then make the
    /// same calls in the same order: they are not sent again. If another call is made, the replies still to come are
    /// dropped.
    public func sendAhead(_ calls: [VarlinkCall]) throws(VarlinkClientError) {
        var messages: [UInt8] = []
        for call in calls { messages += try Self.message(call) }
        try send(messages)
        ahead += calls
    }

    /// Makes a call and returns the results of its only (or last) reply.
    ///
    /// - Parameter timeoutMilliseconds: the maximum time between two replies; nil for no limit.
    public func call(_ call: VarlinkCall, timeoutMilliseconds: Int32? = nil) throws(VarlinkClientError) -> JSON {
        try callMore(call, timeoutMilliseconds: timeoutMilliseconds) { _ in }
    }

    /// Makes a call and returns the last reply; `onReply` gets the replies before it.
    ///
    /// - Parameters:
    ///   - timeoutMilliseconds: the maximum time between two replies; nil for no limit.
    ///   - firstTimeoutMilliseconds: the maximum time until the first reply, if it differs from `timeoutMilliseconds`.
    public func callMore(
        _ call: VarlinkCall,
        timeoutMilliseconds: Int32? = nil,
        firstTimeoutMilliseconds: Int32? = nil,
        onReply: (JSON) -> Void
    ) throws(VarlinkClientError) -> JSON {
        let wasSent = ahead.first == call
        if wasSent { ahead.removeFirst() } else { try send(Self.message(call)) }
        guard !call.oneway else { return .emptyObject }
        // Replies that come first, to calls that were sent and then not made.
        var dropped = 0
        if !wasSent { (dropped, ahead) = (ahead.count, []) }
        var timeout = firstTimeoutMilliseconds ?? timeoutMilliseconds
        while true {
            let response = try receive(timeoutMilliseconds: timeout)
            if dropped > 0 {
                if !response.continues { dropped -= 1 }
                continue
            }
            timeout = timeoutMilliseconds
            if let error = response.error { throw .service(name: error, parameters: response.parameters) }
            guard response.continues else { return response.parameters }
            onReply(response.parameters)
        }
    }

    /// Waits until the service closes the connection, discarding what it sends. Returns false on timeout.
    public func waitForEnd(timeout: Duration) -> Bool {
        let end = Clock.monotonic() + timeout
        while true {
            let left = max(.zero, end - Clock.monotonic())
            guard (try? Descriptor.wait(socket.raw, timeout: left)) == true else { return false }
            guard let bytes = try? Descriptor.read(socket.raw, maximum: 1 << 16), !bytes.isEmpty else { return true }
        }
    }

    private static func message(_ call: VarlinkCall) throws(VarlinkClientError) -> [UInt8] {
        var message = call.json.serialised()
        // Do not send a call that is too long: the service would end the connection in the middle of it.
        guard message.count <= MessageFramer.callLimit else {
            throw .tooLong(bytes: message.count, limit: MessageFramer.callLimit)
        }
        message.append(0)
        return message
    }

    private func send(_ bytes: [UInt8]) throws(VarlinkClientError) {
        var rest = bytes
        while !rest.isEmpty {
            guard let count = try? Sockets.send(socket.raw, rest, wait: true) else { throw .disconnected }
            rest.removeFirst(count)
        }
    }

    private func receive(timeoutMilliseconds: Int32?) throws(VarlinkClientError) -> VarlinkResponse {
        while true {
            if let response = try nextResponse() { return response }
            if let timeoutMilliseconds,
                (try? Descriptor.wait(socket.raw, timeout: .milliseconds(timeoutMilliseconds))) == false
            {
                throw .timedOut
            }
            guard let bytes = try? Descriptor.read(socket.raw, maximum: 1 << 16), !bytes.isEmpty else {
                throw .disconnected
            }
            framer.append(bytes[...])
        }
    }

    private func nextResponse() throws(VarlinkClientError) -> VarlinkResponse? {
        let message: ArraySlice<UInt8>?
        do throws(MessageFramer.TooLong) { message = try framer.next() } catch { throw .malformed("\(error)") }
        guard let message else { return nil }
        let json: JSON
        do throws(JSONError) { json = try JSON.parse(message) } catch { throw .malformed("\(error)") }
        do throws(FieldError) { return try VarlinkResponse(json: json) } catch { throw .malformed("\(error)") }
    }
}
