import CMicrohttpd
import Configuration
import Gateway
import Linux
import Varlink

/// The endpoint for HTTP. libmicrohttpd serves all connections on one thread of its own, which never waits for the
/// supervisor: a request whose message is under way is suspended.
final class HTTPServer: Sendable {
    fileprivate let rules: HTTPRules
    fileprivate let surroundings: Surroundings
    private let open = Monitor(0)

    /// Serves a listening socket as long as the program runs. Errors: out of threads or descriptors.
    init(
        _ socket: Descriptor,
        rules: HTTPRules,
        connections: Int,
        timeout: Duration,
        _ surroundings: Surroundings
    ) throws(Errno) {
        self.rules = rules
        self.surroundings = surroundings
        let daemon = torpor_http_start(
            socket.take(),
            UInt32(connections),
            UInt32(timeout.components.seconds),
            { context, connection, url, method, _, data, size, place in
                guard let context, let connection, let url, let method, let size, let place else { return .NO }
                let server = Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
                guard let request = place.pointee else {
                    return server.begin(connection, String(cString: url), String(cString: method), place)
                }
                let known = Unmanaged<HTTPRequest>.fromOpaque(request).takeUnretainedValue()
                guard size.pointee > 0 else { return known.end() }
                let bytes = UnsafeRawBufferPointer(start: data, count: size.pointee)
                size.pointee = 0
                return known.take(bytes)
            },
            { context, _, place, _ in
                guard let context, let request = place?.pointee else { return }
                Unmanaged<HTTPRequest>.fromOpaque(request).release()
                Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue().ended()
            },
            Unmanaged.passRetained(self).toOpaque()
        )
        guard daemon != nil else { throw .resourceTemporarilyUnavailable }
    }

    /// Waits until every request that has begun is answered; false when the time is up.
    func finish(until deadline: Duration) -> Bool {
        let isOver: Bool? = open.wait(until: deadline) { count, _ in count == 0 ? true : nil }
        return isOver ?? false
    }

    fileprivate func ended() {
        open.withLock { $0 -= 1 }
        open.wake()
    }

    /// A request's headers are there.
    private func begin(
        _ connection: OpaquePointer,
        _ path: String,
        _ method: String,
        _ place: UnsafeMutablePointer<UnsafeMutableRawPointer?>
    ) -> MHD_Result {
        let verdict =
            surroundings.stop.isRequested
            ? .answer(HTTPAnswer(503, "the gateway is ending: try again", headers: ["Retry-After": "2"]))
            : rules.judge(
                method: method,
                path: path,
                authorization: Self.header(connection, "Authorization"),
                contentLength: Self.header(connection, "Content-Length")
            )
        switch verdict {
        case .answer(let answer):
            if answer.status == 401 {
                surroundings.log.sayOften(.warning, "401", "somebody without a token of ours asked for \(path)")
            }
            return Self.respond(connection, answer, withBody: method != "HEAD")
        case .post(let target, let token):
            open.withLock { $0 += 1 }
            let request = HTTPRequest(self, connection, target, token)
            place.pointee = Unmanaged.passRetained(request).toOpaque()
            return .YES
        }
    }

    static func header(_ connection: OpaquePointer, _ name: String) -> String? {
        MHD_lookup_connection_value(connection, .HEADER_KIND, name).map { String(cString: $0) }
    }

    static func respond(_ connection: OpaquePointer, _ answer: HTTPAnswer, withBody: Bool = true) -> MHD_Result {
        var body = withBody ? answer.body.serialised() + [UInt8(ascii: "\n")] : []
        guard let response = MHD_create_response_from_buffer(body.count, &body, .RESPMEM_MUST_COPY) else {
            return .NO
        }
        defer { MHD_destroy_response(response) }
        MHD_add_response_header(response, "Content-Type", "application/json")
        MHD_add_response_header(response, "Cache-Control", "no-store")
        for (name, value) in answer.headers { MHD_add_response_header(response, name, value) }
        return MHD_queue_response(connection, answer.status, response)
    }
}

/// One request that may become a message.
private final class HTTPRequest: @unchecked Sendable {
    // Sendable, since all is done on the server's thread; only `answer` comes from another, before the connection is
    // resumed, and is read after that.
    private let server: HTTPServer
    private let connection: OpaquePointer
    private let target: HTTPTarget
    private let token: GatewayToken
    private var body: [UInt8] = []
    private var size = 0
    private var answer: HTTPAnswer?
    private var isSuspended = false

    /// So much of a body that is too large is read before it is answered; then the connection ends.
    private static let patience = 4 << 20

    init(_ server: HTTPServer, _ connection: OpaquePointer, _ target: HTTPTarget, _ token: GatewayToken) {
        self.server = server
        self.connection = connection
        self.target = target
        self.token = token
    }

    /// A part of the body.
    func take(_ bytes: UnsafeRawBufferPointer) -> MHD_Result {
        size += bytes.count
        let limit = server.surroundings.maxPayload
        guard size > limit else {
            body.append(contentsOf: bytes)
            return .YES
        }
        body = []
        return size > limit + Self.patience ? .NO : .YES
    }

    /// The body is whole, or the message is decided.
    func end() -> MHD_Result {
        if isSuspended { return HTTPServer.respond(connection, answer ?? .busy) }
        let limit = server.surroundings.maxPayload
        guard size <= limit else { return HTTPServer.respond(connection, .tooLarge(limit)) }
        let push: Push
        do throws(HTTPRefusal) {
            push = try server.rules.push(target, token, body: body) { HTTPServer.header(connection, $0) }
        } catch {
            return HTTPServer.respond(connection, error.answer)
        }
        body = []
        isSuspended = true
        MHD_suspend_connection(connection)
        let isTaken = server.surroundings.queue.submit(push) { [self] outcome in
            tell(outcome, push)
            answer = HTTPAnswer(outcome)
            MHD_resume_connection(connection)
        }
        if !isTaken { MHD_resume_connection(connection) }
        return .YES
    }

    private func tell(_ outcome: PostOutcome, _ push: Push) {
        let log = server.surroundings.log
        switch outcome {
        case .taken: log.say(.debug, "\(push.sender): \(push.app) \(push.topic)")
        case .unavailable(let text): log.sayOften(.error, "unavailable", text)
        case .full(let text), .refused(let text), .unknownApp(let text):
            log.sayOften(.info, "\(push.sender) \(push.app)", "\(push.sender): \(push.app) \(push.topic): \(text)")
        }
    }
}
