// SPDX-License-Identifier: Apache-2.0

import CMicrohttpd
public import Linux
import Varlink
import WireText

/// Handles a server's requests. All methods are called on the server's only thread and must not block.
public protocol HTTPService: AnyObject, Sendable {
    /// Called when a request's head has arrived.
    func begin(_ head: HTTPHead) -> HTTPBeginning
}

/// What to do with a request whose head has arrived.
public enum HTTPBeginning {
    /// Respond without reading the request's body.
    case answer(HTTPResponse)
    /// Read the request's body.
    case take(any HTTPExchange)
}

/// A request with a body. All methods are called on the server's only thread and must not block.
public protocol HTTPExchange: AnyObject {
    /// Receives a part of the body. Returns false to close the connection.
    func take(_ bytes: UnsafeRawBufferPointer) -> Bool
    /// Called when the body is complete.
    func end(_ head: HTTPHead) -> HTTPDecision
}

/// What to do with a request whose body has arrived.
public enum HTTPDecision {
    /// Respond now.
    case answer(HTTPResponse)
    /// Respond later, from any thread. Until then, the connection is suspended.
    case later((HTTPLater) -> Void)
}

/// The head of a request. It is valid only during the call that passes it.
public struct HTTPHead {
    /// The HTTP method, such as GET or POST.
    public let method: String
    /// The path, percent-decoded and without the query.
    public let path: String
    private let connection: OpaquePointer

    init(_ connection: OpaquePointer, method: String, path: String) {
        self.connection = connection
        self.method = method
        self.path = path
    }

    /// The value of a header; nil if the request does not have it.
    public func header(_ name: String) -> String? {
        MHD_lookup_connection_value(connection, .HEADER_KIND, name).map { String(terminatedWire: $0) }
    }

    /// The value of a query parameter; nil if the request does not have it.
    public func query(_ name: String) -> String? {
        MHD_lookup_connection_value(connection, .GET_ARGUMENT_KIND, name).map { String(terminatedWire: $0) }
    }

    /// The value of a cookie; nil if the request does not have it.
    public func cookie(_ name: String) -> String? {
        MHD_lookup_connection_value(connection, .COOKIE_KIND, name).map { String(terminatedWire: $0) }
    }
}

/// A deferred response to a request, which is given exactly once.
public final class HTTPLater: @unchecked Sendable {
    // This class is safe to send: `response` is written before the connection is resumed, and read only after that.
    private let connection: OpaquePointer
    fileprivate private(set) var response: HTTPResponse?

    fileprivate init(_ connection: OpaquePointer) { self.connection = connection }

    /// Gives the response. May be called once, from any thread.
    public func answer(_ response: HTTPResponse) {
        self.response = response
        MHD_resume_connection(connection)
    }
}

/// An HTTP server. libmicrohttpd serves all connections on one thread of its own, which never blocks: a request with
/// a deferred response is suspended.
public final class HTTPServer: Sendable {
    fileprivate let service: any HTTPService
    private let open = Monitor(0)
    // Used only on the server's thread, where libmicrohttpd makes all callbacks.
    private nonisolated(unsafe) let table: ConnectionTable

    /// Serves a listening socket until the program ends. Throws if no thread or descriptor is left.
    ///
    /// - Parameters:
    ///   - connections: the most connections at the same time. A further one closes the connection that has waited
    ///     longest for its client, so that a client that only opens connections or sends partial requests cannot lock
    ///     other clients out.
    ///   - timeout: how long a connection may be idle.
    public init(
        _ socket: Descriptor,
        connections: Int,
        timeout: Duration,
        _ service: any HTTPService
    ) throws(Errno) {
        self.service = service
        table = ConnectionTable(most: connections)
        let daemon = torpor_http_start(
            socket.take(),
            // Allow a few more, since a connection that is closed to make room for another takes a moment to close.
            UInt32(connections + connections / 8 + 1),
            UInt32(timeout.components.seconds),
            { context, connection, url, method, version, data, size, place in
                guard let context, let connection, let url, let method, let version, let size, let place else {
                    return .NO
                }
                let server = Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
                let head = HTTPHead(
                    connection,
                    method: String(terminatedWire: method),
                    path: String(terminatedWire: url)
                )
                guard let request = place.pointee else {
                    let framing = torpor_http_framing_of(connection, method, version)
                    return server.begin(connection, head, framing.flaw(String(terminatedWire: version)), place)
                }
                let known = Unmanaged<OpenRequest>.fromOpaque(request).takeUnretainedValue()
                guard size.pointee > 0 else { return known.end(connection, head) }
                // A client that is sending is not idle.
                ConnectionTable.Entry.of(connection)?.waitForClient()
                let bytes = UnsafeRawBufferPointer(start: data, count: size.pointee)
                size.pointee = 0
                return known.exchange.take(bytes) ? .YES : .NO
            },
            { context, connection, place, _ in
                guard let context else { return }
                let server = Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
                connection.flatMap(ConnectionTable.Entry.of)?.waitForClient()
                server.table.trim()
                guard let request = place?.pointee else { return }
                Unmanaged<OpenRequest>.fromOpaque(request).release()
                server.ended()
            },
            { context, connection, place, event in
                guard let context, let connection, let place else { return }
                let table = Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue().table
                if event == .CONNECTION_NOTIFY_STARTED {
                    place.pointee = Unmanaged.passRetained(table.open(connection)).toOpaque()
                } else if let entry = place.pointee {
                    table.close(Unmanaged<ConnectionTable.Entry>.fromOpaque(entry).takeRetainedValue())
                    place.pointee = nil
                }
            },
            Unmanaged.passRetained(self).toOpaque()
        )
        guard daemon != nil else { throw .resourceTemporarilyUnavailable }
    }

    /// Waits until all open requests have responses. Returns false at the deadline.
    public func finish(until deadline: Duration) -> Bool {
        let isOver: Bool? = open.wait(until: deadline) { count, _ in count == 0 ? true : nil }
        return isOver ?? false
    }

    private func ended() {
        open.withLock { $0 -= 1 }
        open.wake()
    }

    private func begin(
        _ connection: OpaquePointer,
        _ head: HTTPHead,
        _ flaw: String?,
        _ place: UnsafeMutablePointer<UnsafeMutableRawPointer?>
    ) -> MHD_Result {
        let entry = ConnectionTable.Entry.of(connection)
        // The connection is being closed: refuse its request, which the client will retry.
        guard entry?.isCut != true else { return .NO }
        entry?.waitForClient()
        if let flaw {
            let answer = HTTPResponse(status: 400, json: ["error": .string(flaw)], headers: [("Connection", "close")])
            return respond(connection, answer, withBody: head.method != "HEAD")
        }
        switch service.begin(head) {
        case .answer(let response):
            // libmicrohttpd closes a connection if the response comes before the request's body was read. A GET has
            // no body, so its connection can stay open.
            guard head.method == "GET" else { return respond(connection, response, withBody: head.method != "HEAD") }
            return take(Decided(response), place)
        case .take(let exchange): return take(exchange, place)
        }
    }

    private func take(
        _ exchange: any HTTPExchange,
        _ place: UnsafeMutablePointer<UnsafeMutableRawPointer?>
    ) -> MHD_Result {
        open.withLock { $0 += 1 }
        place.pointee = Unmanaged.passRetained(OpenRequest(exchange)).toOpaque()
        return .YES
    }
}

extension torpor_http_framing {
    /// Why it is ambiguous where the request ends, for which host it is, or from which page it comes, as a sentence;
    /// nil if nothing is ambiguous. If two headers contradict each other, a proxy in front of this server may follow
    /// the other header than this server does. Then the proxy takes bytes as the body of one request that this server
    /// takes as the next request (request smuggling; RFC 9112, 3.2 and 6.3).
    fileprivate func flaw(_ version: String) -> String? {
        if is_malformed != 0 {
            return "a header is malformed: NAME: VALUE, on one line that ends with CRLF, without control characters"
        }
        if hosts > 1 { return "a request must not have several Host headers" }
        // The checks of the origin read only the first of these headers, so a second one could contradict it.
        if origins > 1 || sites > 1 { return "a request must not have several Origin or Sec-Fetch-Site headers" }
        if lengths > 1 { return "a request must not have several Content-Length headers" }
        guard codings > 0 else { return nil }
        if lengths > 0 { return "a request must not have both Content-Length and Transfer-Encoding" }
        if version != "HTTP/1.1" { return "only a request of HTTP/1.1 may have Transfer-Encoding" }
        return codings == 1 && is_chunked != 0 ? nil : "the only Transfer-Encoding that is accepted is chunked, once"
    }
}

/// A request whose body is arriving, or whose response is deferred.
private final class OpenRequest {
    let exchange: any HTTPExchange
    private var later: HTTPLater?

    init(_ exchange: any HTTPExchange) { self.exchange = exchange }

    func end(_ connection: OpaquePointer, _ head: HTTPHead) -> MHD_Result {
        if let later {
            guard let response = later.response else { return .YES }
            return respond(connection, response)
        }
        let entry = ConnectionTable.Entry.of(connection)
        guard entry?.isCut != true else { return .NO }
        switch exchange.end(head) {
        case .answer(let response): return respond(connection, response)
        case .later(let begin):
            let later = HTTPLater(connection)
            self.later = later
            entry?.keep()
            MHD_suspend_connection(connection)
            begin(later)
            return .YES
        }
    }
}

/// A request whose response was decided before its body arrived.
private final class Decided: HTTPExchange {
    private let response: HTTPResponse

    init(_ response: HTTPResponse) { self.response = response }

    func take(_ bytes: UnsafeRawBufferPointer) -> Bool { false }
    func end(_ head: HTTPHead) -> HTTPDecision { .answer(response) }
}

private func respond(_ connection: OpaquePointer, _ answer: HTTPResponse, withBody: Bool = true) -> MHD_Result {
    let response: OpaquePointer?
    let entry = ConnectionTable.Entry.of(connection)
    entry?.waitForClient()
    switch answer.body {
    case .bytes(var bytes):
        if !withBody { bytes = [] }
        response = MHD_create_response_from_buffer(bytes.count, &bytes, .RESPMEM_MUST_COPY)
    case .stream(let stream):
        response = stream.response(connection)
        entry?.keep()
    }
    guard let response else { return .NO }
    defer { MHD_destroy_response(response) }
    for (name, value) in answer.headers { MHD_add_response_header(response, name, value) }
    return MHD_queue_response(connection, answer.status, response)
}
