// SPDX-License-Identifier: Apache-2.0

import Configuration
public import GatewayConfiguration
import Varlink

extension GatewaySubscription {
    /// Converts a received message to a push for an app; nil if the message's subject does not match the
    /// subscription's pattern.
    ///
    /// - Parameters:
    ///   - header: returns a header of the message by its name, if the protocol has headers.
    ///   - sender: the sender that the app sees.
    /// - Throws: ``NoMessage`` with the reason if the message is not valid.
    public func push(
        subject: String,
        bytes: [UInt8],
        maxPayload: Int,
        sender: String,
        header: (String) -> String? = { _ in nil }
    ) throws(NoMessage) -> Push? {
        guard let found = pattern.match(subject) else { return nil }
        guard bytes.count <= maxPayload else {
            throw NoMessage(description: "it has \(bytes.count) bytes, more than max_payload = \(maxPayload)")
        }
        let app = app.text(subject, found)
        let topic = topic?.text(subject, found) ?? subject
        if let problem = GatewayNames.problem(app: app) ?? GatewayNames.problem(topic: topic) {
            throw NoMessage(description: problem)
        }
        let payload = (try? Payload.read(bytes, as: .unknown)) ?? .null
        let coalesce = header("Torpor-Coalesce").flatMap { Coalesce(rawValue: $0.lowercased()) } ?? coalesce
        let wakes =
            switch wake {
            case .always: true
            case .never: false
            case .payload:
                Payload.saysContentAvailable(header: header("Content-Available"))
                    ?? Payload.saysContentAvailable(payload)
            }
        return Push(
            app: app,
            topic: topic,
            payload: payload,
            coalesce: coalesce?.rawValue,
            key: header("Torpor-Key") ?? key?.text(subject, found),
            wakes: wakes,
            sender: sender
        )
    }
}

/// Why a received message cannot be passed to an app.
public struct NoMessage: Error, Sendable, CustomStringConvertible {
    /// Why the message cannot be passed on, as a sentence.
    public let description: String
}
