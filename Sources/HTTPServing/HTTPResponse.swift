// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// What a server answers.
public struct HTTPResponse: Sendable {
    /// What comes behind the headers.
    public enum Body: Sendable {
        /// All of it.
        case bytes([UInt8])
        /// What comes to be, until it is ended.
        case stream(HTTPStream)
    }

    /// The status code.
    public var status: UInt32
    /// Names and values, in their order.
    public var headers: [(name: String, value: String)]
    /// The body.
    public var body: Body

    /// Makes one from its parts.
    public init(status: UInt32, headers: [(name: String, value: String)] = [], body: Body) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// An answer in JSON, which nobody keeps.
    public init(status: UInt32, json: JSON, headers: [(name: String, value: String)] = []) {
        self.init(
            status: status,
            headers: [("Content-Type", "application/json"), ("Cache-Control", "no-store")] + headers,
            body: .bytes(json.serialised() + [UInt8(ascii: "\n")])
        )
    }
}
