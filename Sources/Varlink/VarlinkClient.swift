import Linux

/// Why a call did not come back with results.
public enum VarlinkClientError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Nobody answers at the socket; `problem` says why.
    case cannotConnect(path: String, problem: String)
    /// The connection ended before the last reply.
    case disconnected
    /// The time is up.
    case timedOut
    /// What came back is no Varlink.
    case malformed(String)
    /// The service answered with an error.
    case service(name: String, parameters: JSON)

    public var description: String {
        switch self {
        case .cannotConnect(let path, let problem): "nobody answers at \(path): \(problem)"
        case .disconnected: "the connection ended before the reply came"
        case .timedOut: "no reply came in time"
        case .malformed(let problem): "the reply cannot be read: \(problem)"
        case .service(let name, let parameters): parameters["message"]?.stringValue ?? "\(name) \(parameters)"
        }
    }
}

/// A blocking client of a Varlink service on a Unix socket, one call after the other.
public final class VarlinkClient {
    private let fd: Int32
    private var framer = MessageFramer()
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)

    /// Connects.
    public init(path: String) throws(VarlinkClientError) {
        do throws(Errno) {
            fd = try StreamSocket.connect(path: path)
        } catch {
            let problem =
                path.utf8.count > StreamSocket.longestPath
                ? "the path is longer than \(StreamSocket.longestPath) bytes" : "\(error)"
            throw .cannotConnect(path: path, problem: problem)
        }
    }

    deinit { StreamSocket.close(fd) }

    /// Calls and gives the results of the one reply (of the last one, if there are more).
    ///
    /// - Parameter timeoutMilliseconds: the longest time between two replies; nil waits for ever.
    public func call(_ call: VarlinkCall, timeoutMilliseconds: Int32? = nil) throws(VarlinkClientError) -> JSON {
        try callMore(call, timeoutMilliseconds: timeoutMilliseconds) { _ in }
    }

    /// Calls; `onReply` gets every reply that others follow; the last one is returned.
    public func callMore(
        _ call: VarlinkCall, timeoutMilliseconds: Int32? = nil, onReply: (JSON) -> Void
    ) throws(VarlinkClientError) -> JSON {
        try send(call)
        guard !call.oneway else { return .emptyObject }
        while true {
            let response = try receive(timeoutMilliseconds: timeoutMilliseconds)
            if let error = response.error { throw .service(name: error, parameters: response.parameters) }
            guard response.continues else { return response.parameters }
            onReply(response.parameters)
        }
    }

    private func send(_ call: VarlinkCall) throws(VarlinkClientError) {
        var message = call.json.serialised()
        message.append(0)
        var sent = 0
        while sent < message.count {
            let outcome: Result<StreamSocket.Outcome, Errno> = message.withUnsafeBytes { bytes in
                do throws(Errno) {
                    return .success(try StreamSocket.write(fd, UnsafeRawBufferPointer(rebasing: bytes[sent...])))
                } catch {
                    return .failure(error)
                }
            }
            guard case .success(.bytes(let count)) = outcome else { throw .disconnected }
            sent += count
        }
    }

    private func receive(timeoutMilliseconds: Int32?) throws(VarlinkClientError) -> VarlinkResponse {
        while true {
            if let response = try nextResponse() { return response }
            if let timeoutMilliseconds, !StreamSocket.waitReadable(fd, milliseconds: timeoutMilliseconds) {
                throw .timedOut
            }
            let outcome: Result<StreamSocket.Outcome, Errno> = buffer.withUnsafeMutableBytes { bytes in
                do throws(Errno) {
                    return .success(try StreamSocket.read(fd, into: bytes))
                } catch {
                    return .failure(error)
                }
            }
            guard case .success(.bytes(let count)) = outcome else { throw .disconnected }
            framer.append(buffer[..<count])
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
