// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
package import TorporAPI
package import Varlink

extension Daemon {
    /// Posts something to an app.
    @discardableResult
    package func post(
        _ topic: String,
        _ payload: JSON = .null,
        to app: String = "web",
        _ change: (inout PostRequest) -> Void = { _ in }
    ) throws -> PostResult {
        var request = PostRequest(app: app, topic: topic)
        request.payload = payload
        change(&request)
        return try PostResult(json: call(.post(request)))
    }

    /// The name of the error that a post is refused with, and what it says.
    package func refusal(
        _ topic: String,
        _ payload: JSON = .null,
        to app: String = "web",
        _ change: (inout PostRequest) -> Void = { _ in }
    ) throws -> (name: String, message: String)? {
        do {
            try post(topic, payload, to: app, change)
            return nil
        } catch VarlinkClientError.service(let name, let parameters) {
            let word = name.split(separator: ".").last.map(String.init) ?? name
            return (word, parameters["message"]?.stringValue ?? parameters["parameter"]?.stringValue ?? "")
        }
    }

    /// What waits for an app.
    package func mailbox(
        _ app: String = "web",
        _ change: (inout MailboxRequest) -> Void = { _ in }
    ) throws -> MailboxStatus {
        var request = MailboxRequest(app: app)
        change(&request)
        return try MailboxStatus(json: call(.mailbox(request)))
    }

    /// The payloads of the events that an app's delegate heard, in order.
    package func told(_ app: String = "web", incarnation: Int64? = nil) throws -> [JSON] {
        try heard(app).filter {
            $0.what == "message" && $0.name == "didReceiveEvent" && (incarnation ?? $0.incarnation) == $0.incarnation
        }
        .map { $0.parameters["payload"] ?? .null }
    }
}

/// Apps that something is posted to.
package enum Posting {
    /// A delegate that takes all topics.
    package static let head = Delegates.head + "topics = { \"*\" = \"all\", latest = \"latest\", count = \"count\" }\n"
}
