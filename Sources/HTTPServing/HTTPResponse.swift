// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A response to an HTTP request.
public struct HTTPResponse: Sendable {
    /// The response's body.
    public enum Body: Sendable {
        /// A complete body.
        case bytes([UInt8])
        /// A body that is sent while it is produced, until its stream ends.
        case stream(HTTPStream)
    }

    /// The HTTP status code.
    public var status: UInt32
    /// The names and values of the headers, in order.
    public var headers: [(name: String, value: String)]
    /// The body of the response.
    public var body: Body

    /// Creates a response.
    public init(status: UInt32, headers: [(name: String, value: String)] = [], body: Body) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// Creates a response with JSON, which must not be cached.
    public init(status: UInt32, json: JSON, headers: [(name: String, value: String)] = []) {
        self.init(
            status: status,
            headers: [("Content-Type", "application/json"), ("Cache-Control", "no-store")] + headers,
            body: .bytes(json.serialised() + [UInt8(ascii: "\n")])
        )
    }
}
