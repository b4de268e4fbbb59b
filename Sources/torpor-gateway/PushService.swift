// SPDX-License-Identifier: Apache-2.0

import Configuration
import Gateway
import GatewayConfiguration
import HTTPServing
import Linux
import Varlink

/// The HTTP endpoint: each request is a message.
final class PushService: HTTPService {
    fileprivate let rules: HTTPRules
    fileprivate let surroundings: GatewayContext

    init(_ rules: HTTPRules, _ surroundings: GatewayContext) {
        self.rules = rules
        self.surroundings = surroundings
    }

    func begin(_ head: HTTPHead) -> HTTPBeginning {
        let verdict =
            surroundings.stop.isRequested
            ? .answer(HTTPAnswer(503, "the gateway is stopping: try again", headers: ["Retry-After": "2"]))
            : rules.judge(
                method: head.method,
                path: head.path,
                authorization: head.header("Authorization"),
                contentLength: head.header("Content-Length")
            )
        switch verdict {
        case .answer(let answer):
            if answer.status == 401 {
                surroundings.log.sayOften(.warning, "401", "a request for \(head.path) has no valid token")
            }
            return .answer(HTTPResponse(answer))
        case .open(let scene): return .take(SceneExchange(surroundings, scene))
        case .post(let target, let token): return .take(PushExchange(self, target, token))
        }
    }
}

extension HTTPResponse {
    init(_ answer: HTTPAnswer) {
        self.init(status: answer.status, json: answer.body, headers: answer.headers.map { ($0.key, $0.value) })
    }
}

/// One request to open a scene.
private final class SceneExchange: HTTPExchange {
    private let surroundings: GatewayContext
    private let scene: SceneOpening
    private var size = 0

    init(_ surroundings: GatewayContext, _ scene: SceneOpening) {
        (self.surroundings, self.scene) = (surroundings, scene)
    }

    /// Ignores the body.
    func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
        size += bytes.count
        return size <= surroundings.maxPayload
    }

    func end(_ head: HTTPHead) -> HTTPDecision {
        .later { [surroundings, scene] later in
            let isTaken = surroundings.queue.submit(.open(scene)) { outcome in
                let name = "\(scene.template)@\(scene.name)"
                if case .taken = outcome {
                    surroundings.log.say(.debug, "\(scene.sender): \(name) is open")
                } else {
                    surroundings.log.sayOften(
                        .info,
                        "\(scene.sender) \(name)",
                        "\(scene.sender): \(name): \(outcome.text)"
                    )
                }
                later.answer(HTTPResponse(HTTPAnswer(outcome, isScene: true)))
            }
            if !isTaken { later.answer(HTTPResponse(.busy)) }
        }
    }
}

/// One request that may become a message.
private final class PushExchange: HTTPExchange {
    private let service: PushService
    private let target: HTTPTarget
    private let token: GatewayToken
    private var body: [UInt8] = []
    private var size = 0

    /// If a body is too large, how many of its bytes are read before the response is sent and the connection is closed.
    private static let patience = 4 << 20

    init(_ service: PushService, _ target: HTTPTarget, _ token: GatewayToken) {
        self.service = service
        self.target = target
        self.token = token
    }

    func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
        size += bytes.count
        let limit = service.surroundings.maxPayload
        guard size > limit else {
            body.append(contentsOf: bytes)
            return true
        }
        body = []
        return size <= limit + Self.patience
    }

    func end(_ head: HTTPHead) -> HTTPDecision {
        let limit = service.surroundings.maxPayload
        guard size <= limit else { return .answer(HTTPResponse(.tooLarge(limit))) }
        let push: Push
        do throws(HTTPRefusal) {
            push = try service.rules.push(target, token, body: body) { head.header($0) }
        } catch {
            return .answer(HTTPResponse(error.answer))
        }
        body = []
        return .later { [surroundings = service.surroundings] later in
            let isTaken = surroundings.queue.submit(.post(push)) { outcome in
                Self.tell(outcome, push, surroundings.log)
                later.answer(HTTPResponse(HTTPAnswer(outcome)))
            }
            if !isTaken { later.answer(HTTPResponse(.busy)) }
        }
    }

    private static func tell(_ outcome: PostOutcome, _ push: Push, _ log: GatewayLog) {
        switch outcome {
        case .taken: log.say(.debug, "\(push.sender): \(push.app) \(push.topic)")
        case .unavailable(let text): log.sayOften(.error, "unavailable", text)
        case .full(let text), .elsewhere(let text), .refused(let text), .unknownApp(let text):
            log.sayOften(.info, "\(push.sender) \(push.app)", "\(push.sender): \(push.app) \(push.topic): \(text)")
        }
    }
}
