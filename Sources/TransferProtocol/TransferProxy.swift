// SPDX-License-Identifier: Apache-2.0

import Varlink

/// A proxy with its credentials.
public struct TransferProxy: Hashable, Sendable {
    /// The proxy's URL, in the form that the environment variables have (curl(1)): with or without a scheme, perhaps
    /// with a login.
    public var url: String
    /// The login for the proxy, sent once, after a response with status 407.
    public var credentials: TransferCredentials?

    /// Creates a proxy.
    public init(url: String, credentials: TransferCredentials? = nil) {
        self.url = url
        self.credentials = credentials
    }

    /// The proxy's host; nil if the URL contains a login or is invalid.
    public var host: String? { WebAddress(url.utf8.contains(UInt8(ascii: "/")) ? url : "http://" + url)?.host }

    init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        url = try fields.string("url")
        credentials = try fields["credentials"].map { json throws(FieldError) in try TransferCredentials(json: json) }
    }

    var json: JSON { ["url": .string(url), "credentials": credentials?.json ?? .null] }
}
