// SPDX-License-Identifier: Apache-2.0

import Configuration
public import GatewayConfiguration
public import Varlink

/// A response of the HTTP endpoint.
public struct HTTPAnswer: Sendable, Hashable {
    /// The status code.
    public var status: UInt32
    /// The response's body.
    public var body: JSON
    /// Further headers of the response.
    public var headers: [String: String]

    /// Creates a response with an error message.
    public init(_ status: UInt32, _ sentence: String, headers: [String: String] = [:]) {
        self.init(status: status, body: ["error": .string(sentence)], headers: headers)
    }

    private init(status: UInt32, body: JSON, headers: [String: String] = [:]) {
        self.status = status
        self.body = body
        self.headers = headers
    }

    /// The response to a health check.
    public static var healthy: HTTPAnswer { HTTPAnswer(status: 200, body: ["status": "ok"]) }

    /// Creates the response for the outcome of a message, or of the opening of a scene.
    public init(_ outcome: PostOutcome, isScene: Bool = false) {
        switch outcome {
        case .taken(let reply): self.init(status: isScene ? 200 : 202, body: reply)
        case .unknownApp(let text): self.init(404, text)
        case .refused(let text): self.init(422, text)
        case .full(let text): self.init(429, text, headers: ["Retry-After": "30"])
        case .elsewhere(let text): self.init(503, text, headers: ["Retry-After": "5"])
        case .unavailable(let text): self.init(503, text, headers: ["Retry-After": "5"])
        }
    }

    /// The response if too many messages wait for the supervisor.
    public static var busy: HTTPAnswer {
        HTTPAnswer(503, "too many messages are waiting for the supervisor: try again", headers: ["Retry-After": "1"])
    }

    /// The response for a body that is too large.
    public static func tooLarge(_ limit: Int) -> HTTPAnswer {
        HTTPAnswer(413, "a message has at most \(limit) bytes: send a reference, and have the app fetch it")
    }

    /// The response to a request without a valid token.
    public static var unauthorized: HTTPAnswer {
        HTTPAnswer(
            401,
            "send a token: Authorization: Bearer TOKEN",
            headers: ["WWW-Authenticate": "Bearer realm=\"torpor\""]
        )
    }
}

/// The target of a request `POST /apps/NAME/TOPIC`.
public struct HTTPTarget: Sendable, Hashable {
    /// The app's name.
    public let app: String
    /// The topic, which may contain slashes.
    public let topic: String

    /// Parses a path, without decoding percent signs; nil if it is not the path of an app.
    public init?(path: String) {
        let parts = path.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: true)
        guard parts.count == 3, parts[0] == "apps" else { return nil }
        app = String(parts[1])
        topic = String(parts[2])
    }
}

/// Decides which requests the endpoint allows.
public struct HTTPRules: Sendable {
    private let tokens: TokenTable
    private let maxPayload: Int

    /// Creates rules with these tokens.
    public init(tokens: TokenTable, maxPayload: Int) {
        self.tokens = tokens
        self.maxPayload = maxPayload
    }

    /// What to do with a request, decided before its body is read.
    public enum Verdict: Sendable {
        /// Respond at once.
        case answer(HTTPAnswer)
        /// Open a scene.
        case open(SceneOpening)
        /// Read the body: it is a message for the target, sent with this token.
        case post(HTTPTarget, GatewayToken)
    }

    /// Decides by the method, the path and the headers of a request.
    public func judge(
        method: String,
        path: String,
        authorization: String?,
        contentLength: String?
    ) -> Verdict {
        if path == "/health" {
            guard method == "GET" || method == "HEAD" else { return .answer(Self.wrongMethod("GET, HEAD")) }
            return .answer(.healthy)
        }
        // Check the token before any response that reveals which apps exist.
        guard let token = tokens.find(authorization: authorization) else { return .answer(.unauthorized) }
        if path.hasPrefix("/scenes/") { return scene(method, path, token) }
        guard let target = HTTPTarget(path: path) else {
            return .answer(
                HTTPAnswer(404, "there is nothing here: POST /apps/NAME/TOPIC, or GET /scenes/TEMPLATE/NAME")
            )
        }
        guard method == "POST" else { return .answer(Self.wrongMethod("POST")) }
        if let problem = GatewayNames.problem(app: target.app) ?? GatewayNames.problem(topic: target.topic) {
            return .answer(HTTPAnswer(400, problem))
        }
        guard token.allows(app: target.app, topic: target.topic) else {
            return .answer(HTTPAnswer(403, "this token may not post \(target.topic) to \(target.app)"))
        }
        if let contentLength, let length = UInt64(contentLength), length > UInt64(maxPayload) {
            return .answer(.tooLarge(maxPayload))
        }
        return .post(target, token)
    }

    /// Handles `GET /scenes/TEMPLATE/NAME`, which a proxy sends before it passes a request on to a scene.
    private func scene(_ method: String, _ path: String, _ token: GatewayToken) -> Verdict {
        let parts = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 3 else {
            return .answer(HTTPAnswer(404, "there is nothing here: GET /scenes/TEMPLATE/NAME"))
        }
        guard ["GET", "HEAD", "POST"].contains(method) else { return .answer(Self.wrongMethod("GET, HEAD, POST")) }
        let (template, name) = (String(parts[1]), String(parts[2]))
        if let problem = AppName.problem(template) ?? AppName.problem(scene: name, of: template) {
            return .answer(HTTPAnswer(400, problem))
        }
        guard token.opens(template) else {
            return .answer(HTTPAnswer(403, "this token may not open scenes of \(template)"))
        }
        return .open(SceneOpening(template: template, name: name, sender: "http:\(token.name)"))
    }

    private static func wrongMethod(_ allowed: String) -> HTTPAnswer {
        HTTPAnswer(405, "the method must be \(allowed) here", headers: ["Allow": allowed])
    }

    /// The message of a request whose body is complete.
    ///
    /// - Throws: ``HTTPRefusal`` if the message is not valid.
    public func push(
        _ target: HTTPTarget,
        _ token: GatewayToken,
        body: [UInt8],
        header: (String) -> String?
    ) throws(HTTPRefusal) -> Push {
        let payload: JSON
        do throws(JSONError) {
            payload = try Payload.read(body, as: Payload.Kind(contentType: header("Content-Type")))
        } catch {
            throw HTTPRefusal(answer: HTTPAnswer(400, "the body is \(error)"))
        }
        let coalesce = header("Torpor-Coalesce")?.lowercased()
        if let coalesce, GatewaySubscription.Coalesce(rawValue: coalesce) == nil {
            let names = GatewaySubscription.Coalesce.allCases.map(\.rawValue).joined(separator: ", ")
            throw HTTPRefusal(answer: HTTPAnswer(400, "Torpor-Coalesce must be one of \(names)"))
        }
        return Push(
            app: target.app,
            topic: target.topic,
            payload: payload,
            coalesce: coalesce,
            key: header("Torpor-Key"),
            wakes: Payload.saysContentAvailable(header: header("Content-Available"))
                ?? Payload.saysContentAvailable(payload),
            sender: "http:\(token.name)"
        )
    }
}

/// Why a request is not a valid message.
public struct HTTPRefusal: Error {
    /// The response that gives the reason.
    public let answer: HTTPAnswer
}
