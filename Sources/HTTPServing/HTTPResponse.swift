// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The response of a server.
public struct HTTPResponse: Sendable {
    /// The response's body.
    public enum Body: Sendable {
        /// A complete body.
        case bytes([UInt8])
        /// A body that is produced until its stream ends.
        case stream(HTTPStream)
    }

    /// The status code.
    public var status: UInt32
    /// Header names and values, in order.
    public var headers: [(name: String, value: String)]
    /// The body.
    public var body: Body

    /// Creates a response.
    public init(status: UInt32, headers: [(name: String, value: String)] = [], body: Body) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// A JSON response that must not be cached.
    public init(status: UInt32, json: JSON, headers: [(name: String, value: String)] = []) {
        self.init(
            status: status,
            headers: [("Content-Type", "application/json"), ("Cache-Control", "no-store")] + headers,
            body: .bytes(json.serialised() + [UInt8(ascii: "\n")])
        )
    }
}
