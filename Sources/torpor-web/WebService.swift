// SPDX-License-Identifier: Apache-2.0

import Bearer
import Configuration
import GatewayConfiguration
import HTTPServing
import Linux
import TorporAPI
import Varlink
import Web

/// Handles all requests to the dashboard.
final class WebService: HTTPService {
    let hub: Hub
    let readers: WorkPool
    private let hosts: HostRule
    private let access: WebAccess
    private let isReadOnly: Bool
    private let assets: Assets
    private let answers: Answers
    private let doers: WorkPool
    private static let onlyShows = "this dashboard is read-only: it was started with --read-only"
    private let tries = Monitor(TryLimit(most: 10))

    init(_ options: WebOptions, token: [UInt8]?, socket: String) throws {
        hub = Hub()
        hosts = HostRule(options.address, further: options.hosts)
        access = WebAccess(token: token, address: options.address)
        isReadOnly = options.isReadOnly
        assets = Assets(folder: options.assets)
        answers = Answers(hub: hub)
        readers = try WorkPool(named: "readers", socket: socket, threads: 3, limit: 64)
        doers = try WorkPool(
            named: "doers",
            socket: socket,
            patience: Answers.patience + .seconds(5),
            threads: 4,
            limit: 32
        )
        try EventWatch.start(socket: socket, hub: hub, refusal: options.isReadOnly ? Self.onlyShows : nil)
        try AppWatch.start(socket: socket, hub: hub)
    }

    func begin(_ head: HTTPHead) -> HTTPBeginning {
        switch judge(head) {
        case .answer(let response): .answer(response.secured)
        case .take(let exchange): .take(exchange)
        }
    }

    private func judge(_ head: HTTPHead) -> HTTPBeginning {
        guard hosts.allows(head.header("Host")) else {
            return .answer(HTTPResponse(421, "this dashboard does not answer under that host name: add it with --host"))
        }
        guard let route = WebRoute(path: head.path) else { return .answer(HTTPResponse(404, "there is nothing here")) }
        guard route.methods.contains(head.method) else {
            let allowed = route.methods.joined(separator: ", ")
            return .answer(HTTPResponse(405, "the method must be \(allowed) here", headers: [("Allow", allowed)]))
        }
        switch route {
        case .health: return .answer(HTTPResponse(status: 200, json: ["status": "ok"]))
        case .asset(let name):
            if name == "index.html", let token = head.query("token") { return .answer(enter(token, .redirect)) }
            guard let answer = assets.answer(name, knownTag: head.header("If-None-Match")) else {
                return .answer(HTTPResponse(404, "there is nothing here"))
            }
            return .answer(answer)
        default: break
        }
        if route != .session, let refusal = refusal(head) { return .answer(refusal) }
        if head.method == "POST" {
            if let refusal = refusalOfPost(head, route) { return .answer(refusal) }
            return .take(PostExchange { [self] body in post(route, body) })
        }
        let query: Answers.Query
        do throws(FieldError) {
            query = try Answers.Query(head)
        } catch {
            return .answer(HTTPResponse(400, "\(error)"))
        }
        let lastEvent = (head.header("Last-Event-ID") ?? head.query("last_event_id")).flatMap { Int64($0) }
        return .take(PostExchange { [self] _ in get(route, query, lastEvent) })
    }

    // MARK: Access

    /// The response to a request that has no access; nil if the request has access.
    private func refusal(_ head: HTTPHead) -> HTTPResponse? {
        let verdict = access.judge(
            authorization: head.header("Authorization"),
            cookie: head.cookie(access.cookieName)
        )
        switch verdict {
        case .cookie, .socket: return nil
        case .missing: return .unauthorized
        case .bearer: return nil
        case .wrong: return refusalOfToken
        }
    }

    /// The response to a wrong token: 401, or 429 if there were too many within a second. The right token always
    /// works, since otherwise an attacker could lock all users out. So guesses are not slowed down, and the token
    /// must be too long to guess (`Bearer.shortest`).
    private var refusalOfToken: HTTPResponse {
        let second = Clock.monotonic().components.seconds
        let isLimited = tries.withLock { tries in
            guard tries.allows(at: second) else { return true }
            tries.fail(at: second)
            return false
        }
        guard isLimited else { return .unauthorized }
        return HTTPResponse(429, "too many wrong tokens: try again in a second", headers: [("Retry-After", "1")])
    }

    private enum SignIn { case redirect, answer }

    /// Checks the token and sets the cookie.
    private func enter(_ token: String, _ manner: SignIn) -> HTTPResponse {
        guard access.isToken(Array(token.utf8)) else {
            // Without a cookie, the page at / asks for the token again.
            if manner == .redirect { return HTTPResponse(status: 303, headers: [("Location", "/")], body: .bytes([])) }
            return refusalOfToken
        }
        let cookie = access.needsToken ? [("Set-Cookie", access.setCookie)] : []
        switch manner {
        case .redirect: return HTTPResponse(status: 303, headers: cookie + [("Location", "/")], body: .bytes([]))
        case .answer: return HTTPResponse(status: 200, json: ["ok": true], headers: cookie)
        }
    }

    /// Why a POST is refused although it has access; nil if it is allowed.
    private func refusalOfPost(_ head: HTTPHead, _ route: WebRoute) -> HTTPResponse? {
        guard head.header("X-Torpor-Request") != nil else {
            return HTTPResponse(403, "a request that changes something needs the header X-Torpor-Request: 1")
        }
        let isOurs = OriginRule.allows(
            origin: head.header("Origin"),
            fetchSite: head.header("Sec-Fetch-Site"),
            host: head.header("Host"),
            hasBearer: head.header("Authorization") != nil || !access.needsToken || route == .session
        )
        guard isOurs else { return HTTPResponse(403, "the request does not come from the dashboard's own page") }
        if route.changesApp, isReadOnly { return HTTPResponse(403, Self.onlyShows) }
        if let length = head.header("Content-Length").flatMap({ UInt64($0) }), length > UInt64(PostExchange.limit) {
            return HTTPResponse(413, "the body is too large")
        }
        return nil
    }

    // MARK: Answers

    private func post(_ route: WebRoute, _ body: [UInt8]) -> HTTPDecision {
        let json: JSON
        do throws(JSONError) {
            json = body.isEmpty ? .emptyObject : try JSON.parse(body)
        } catch {
            return .answer(HTTPResponse(400, "the body is \(error)").secured)
        }
        let name: String
        switch route {
        case .verb(let app, _), .settings(let app), .unhandled(let app), .transfers(let app),
            .alerts(let app), .permissions(let app):
            name = app
        default: return .answer(enter(json["token"]?.stringValue ?? "", .answer).secured)
        }
        // The name must be that of a single app, not a pattern.
        if let problem = GatewayNames.problem(app: name) {
            return .answer(HTTPResponse(404, "there is no app of that name: \(problem)").secured)
        }
        do throws(FieldError) {
            if case .verb(_, let verb) = route {
                let request = try Answers.request(verb, name, json)
                return later(doers) { [answers] link in answers.act(request, link) }
            }
            let request = try Answers.change(route, json)
            return later(doers) { [answers] link in answers.change(request, link) }
        } catch {
            return .answer(HTTPResponse(400, "\(error)").secured)
        }
    }

    private func get(_ route: WebRoute, _ query: Answers.Query, _ lastEvent: Int64?) -> HTTPDecision {
        hub.look()
        switch route {
        case .samples: return .answer(HTTPResponse(status: 200, json: hub.state.withLock { $0.samples.json }).secured)
        case .stream: return later(readers) { [self] link in stream(after: lastEvent, link) }
        case .metrics:
            let accepted = query.accepted
            return later(readers) { HTTPResponse(metrics: $0, accepting: accepted) }
        default: return later(readers) { [answers] link in answers.answer(route, query, link) }
        }
    }

    private func later(_ pool: WorkPool, _ job: @escaping @Sendable (Link) -> HTTPResponse) -> HTTPDecision {
        .later { later in
            let isTaken = pool.submit { link in later.answer(job(link).secured) }
            guard !isTaken else { return }
            let busy = HTTPResponse(503, "too many requests are waiting: try again", headers: [("Retry-After", "1")])
            later.answer(busy.secured)
        }
    }

    /// Opens the stream of a page. Missed events that are no longer in the ring are first read from torpord.
    private func stream(after last: Int64?, _ link: Link) -> HTTPResponse {
        var missed: [JSON] = []
        if let last, !hub.knows(eventsAfter: last) {
            var request = EventsRequest()
            request.after = last
            request.limit = 2000
            missed = (try? link.call(.events(request)))?["events"]?.arrayValue ?? []
        }
        // Start with a new list, because the hub's may be two seconds old.
        if let apps = (try? link.call(.list, within: .seconds(5)))?["apps"]?.arrayValue { hub.take(apps: apps) }
        let number = hub.nextPage()
        let stream = HTTPStream(limit: Hub.mostPending) { [hub] in hub.close(number) }
        guard hub.open(stream, number: number, after: last, missed: missed) else {
            return HTTPResponse(503, "too many pages are open", headers: [("Retry-After", "5")])
        }
        return HTTPResponse(
            status: 200,
            headers: [
                ("Content-Type", "text/event-stream"), ("Cache-Control", "no-store"), ("X-Accel-Buffering", "no"),
            ],
            body: .stream(stream)
        )
    }
}

/// A request with a small body, which is handled once it is complete.
private final class PostExchange: HTTPExchange {
    static let limit = 16 << 10
    private var body: [UInt8] = []
    private let decide: ([UInt8]) -> HTTPDecision

    init(_ decide: @escaping ([UInt8]) -> HTTPDecision) { self.decide = decide }

    func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard body.count + bytes.count <= Self.limit else { return false }
        body += bytes
        return true
    }

    func end(_ head: HTTPHead) -> HTTPDecision { decide(body) }
}

extension HTTPResponse {
    fileprivate static var unauthorized: HTTPResponse {
        HTTPResponse(
            401,
            "open the link that torpor-web printed at its start, or send Authorization: Bearer TOKEN",
            headers: [("WWW-Authenticate", "Bearer realm=\"torpor-web\"")]
        )
    }

    /// The response with security headers: no external content, no inline scripts or styles, no frames.
    fileprivate var secured: HTTPResponse {
        var response = self
        // Keep the Content-Security-Policy that the response has itself, because it is more specific.
        if !headers.contains(where: { $0.name == "Content-Security-Policy" }) {
            let policy =
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
                + "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
            response.headers.append(("Content-Security-Policy", policy))
        }
        response.headers += [
            ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"), ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Opener-Policy", "same-origin"), ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
        ]
        if !headers.contains(where: { $0.name == "Cache-Control" }) {
            response.headers.append(("Cache-Control", "no-store"))
        }
        return response
    }
}
