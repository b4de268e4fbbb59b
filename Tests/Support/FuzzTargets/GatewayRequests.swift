// SPDX-License-Identifier: Apache-2.0

import Configuration
import Gateway
import GatewayConfiguration
import Varlink
import WireText

/// A request to the gateway's endpoint: method, path, `Authorization`, `Content-Length`, `Content-Type`,
/// `Torpor-Coalesce`, `Torpor-Key`, `Content-Available` and the body, with a newline between.
enum GatewayRequests: FuzzedParser {
    private static let secret = "0123456789abcdef"

    static func run(_ bytes: [UInt8]) throws(Finding) {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 8, omittingEmptySubsequences: false)
        guard lines.count == 9 else { return }
        let texts = lines.map { $0.isEmpty ? nil : String(wire: $0) }
        var token = GatewayToken()
        token.name = "fuzz"
        token.apps = ["web", "mail-*"]
        token.topics = ["*"]
        token.scenes = ["code", "pre*"]
        let table = TokenTable([(token, Array(secret.utf8))])
        let rules = HTTPRules(tokens: table, maxPayload: 4_096)
        let verdict = rules.judge(
            method: texts[0] ?? "GET",
            path: texts[1] ?? "/",
            authorization: texts[2],
            contentLength: texts[3]
        )
        switch verdict {
        case .answer(let answer):
            try expect((200..<600).contains(answer.status), "the status is \(answer.status)")
            _ = answer.body.serialised()
        case .open(let scene):
            let isShown = lines[2].dropFirst(7).elementsEqual(secret.utf8) && lines[2].count == secret.utf8.count + 7
            try expect(isShown, "no token was shown, and a scene is opened")
            try expect(token.opens(scene.template), "scenes of \(scene.template) are not allowed")
            try expect(
                GatewayNames.problem(app: "\(scene.template)@\(scene.name)") == nil,
                "\(scene.name) is no name of a scene"
            )
        case .post(let target, let token):
            let isShown = lines[2].dropFirst(7).elementsEqual(secret.utf8) && lines[2].count == secret.utf8.count + 7
            try expect(isShown, "no token was shown, and a message is taken")
            try expect(token.allows(app: target.app, topic: target.topic), "\(target.app) is not allowed")
            let headers = [
                "Content-Type": texts[4], "Torpor-Coalesce": texts[5], "Torpor-Key": texts[6],
                "Content-Available": texts[7],
            ]
            do throws(HTTPRefusal) {
                let push = try rules.push(target, token, body: Array(lines[8])) { headers[$0] ?? nil }
                try check(push, target)
            } catch {
                guard error.answer.status == 400 else { throw Finding("the status is \(error.answer.status)") }
            }
        }
    }

    private static func check(_ push: Push, _ target: HTTPTarget) throws(HTTPRefusal) {
        precondition(push.app == target.app && push.topic == target.topic, "a message for another app")
        precondition(push.payload.isNested(atMost: 64), "a payload that is nested too deeply")
    }
}
