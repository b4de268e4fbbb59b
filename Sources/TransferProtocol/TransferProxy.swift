// SPDX-License-Identifier: Apache-2.0

import Varlink

/// A proxy, and what it is told when it asks who that is.
public struct TransferProxy: Hashable, Sendable {
    /// As the variables have it (curl(1)): with or without a scheme, perhaps with a login.
    public var url: String
    /// For 407, used once.
    public var credentials: TransferCredentials?

    /// Makes one.
    public init(url: String, credentials: TransferCredentials? = nil) {
        self.url = url
        self.credentials = credentials
    }

    /// Its name or address; nil where the URL has a login of its own, or is none.
    public var host: String? { WebAddress(url.utf8.contains(UInt8(ascii: "/")) ? url : "http://" + url)?.host }

    init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        url = try fields.string("url")
        credentials = try fields["credentials"].map { json throws(FieldError) in try TransferCredentials(json: json) }
    }

    var json: JSON { ["url": .string(url), "credentials": credentials?.json ?? .null] }
}
