// SPDX-License-Identifier: Apache-2.0

import Varlink

/// The parameters of StartTransfer.
public struct StartTransferRequest: Hashable, Sendable {
    /// A header field of the transfer's HTTP requests.
    public struct Header: Hashable, Sendable {
        /// The field's name.
        public var name: String
        /// The field's value.
        public var value: String

        /// Creates a header field from name and value.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The name under which the app groups transfers.
    public var session = "default"
    /// `download` or `upload`.
    public var direction: String
    /// The http or https URL to download from or upload to.
    public var url: String
    /// The file to write or to upload: a path relative to the app's state directory, or an absolute path in this
    /// directory or in one of the app's data folders.
    public var file: String
    /// `GET`, `PUT` or `POST`; nil means GET for a download, PUT for an upload.
    public var method: String?
    /// Header fields, in the order in which they are sent.
    public var headers: [Header] = []
    /// The expected SHA-256 of a download, 64 hexadecimal digits; nil for no check.
    public var sha256: String?
    /// Whether the transfer waits until power, memory, load, network and time of day allow it (docs/transfers.md).
    public var isDiscretionary = false
    /// Whether torpord wakes or launches the app when all transfers of the session have ended.
    public var events = true
    /// Whether to retry a POST after an error, although the server may then receive it twice.
    public var retry = false
    /// The priority: transfers with a greater value start first.
    public var priority: Int64 = 0
    /// Makes the request idempotent: torpord starts the transfer once, however often it receives the same token.
    public var token: RequestToken?

    /// A request with the required parameters.
    public init(direction: String, url: String, file: String) {
        (self.direction, self.url, self.file) = (direction, url, file)
    }

    init(fields: Fields) throws(FieldError) {
        self.init(
            direction: try fields.string("direction"),
            url: try fields.string("url"),
            file: try fields.string("file")
        )
        session = try fields.optionalString("session") ?? "default"
        method = try fields.optionalString("method")
        headers = try fields.list("headers") { json throws(FieldError) in
            let fields = try Fields(json)
            return Header(name: try fields.string("name"), value: try fields.string("value"))
        }
        sha256 = try fields.optionalString("sha256")
        isDiscretionary = try fields.optionalBool("discretionary") ?? false
        events = try fields.optionalBool("events") ?? true
        retry = try fields.optionalBool("retry") ?? false
        priority = try fields.optionalInt("priority") ?? 0
        token = try fields.optionalToken("token")
    }

    var parameters: JSON {
        var object: JSONObject = [
            "session": .string(session), "direction": .string(direction), "url": .string(url), "file": .string(file),
            "discretionary": .bool(isDiscretionary), "events": .bool(events), "retry": .bool(retry),
            "priority": .int(priority),
        ]
        if let method { object["method"] = .string(method) }
        if !headers.isEmpty {
            object["headers"] = .array(headers.map { ["name": .string($0.name), "value": .string($0.value)] })
        }
        if let sha256 { object["sha256"] = .string(sha256) }
        if let token { object["token"] = .string(token.text) }
        return .object(object)
    }
}

/// The parameters of AnswerLogin: user and password, a header field, or cancel.
public struct AnswerLoginRequest: Hashable, Sendable {
    /// The number of the transfer that waits for a login.
    public var id: Int64
    /// The user name at the server.
    public var user: String?
    /// The password.
    public var password: String?
    /// The value of the header field Authorization; nil for a user name and password, or to cancel.
    public var header: String?
    /// Whether to cancel the login: the transfer then fails.
    public var cancel = false

    /// An answer without credentials yet.
    public init(id: Int64) { self.id = id }

    init(fields: Fields) throws(FieldError) {
        id = try fields.int("id")
        user = try fields.optionalString("user")
        password = try fields.optionalString("password")
        header = try fields.optionalString("header")
        cancel = try fields.optionalBool("cancel") ?? false
        guard [user != nil, header != nil, cancel].count(where: { $0 }) == 1, (user == nil) == (password == nil) else {
            throw FieldError(field: "user", problem: "and password, header, or cancel: give one of the three")
        }
    }

    var parameters: JSON {
        var object: JSONObject = ["id": .int(id)]
        if let user { object["user"] = .string(user) }
        if let password { object["password"] = .string(password) }
        if let header { object["header"] = .string(header) }
        if cancel { object["cancel"] = true }
        return .object(object)
    }
}
