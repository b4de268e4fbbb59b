// SPDX-License-Identifier: Apache-2.0

import Varlink

/// The parameters of StartTransfer.
public struct StartTransferRequest: Hashable, Sendable {
    /// A header field of the requests.
    public struct Header: Hashable, Sendable {
        /// Its name.
        public var name: String
        /// Its value.
        public var value: String

        /// Makes one.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The name under which the app groups transfers.
    public var session = "default"
    /// `download` or `upload`.
    public var direction: String
    /// http or https.
    public var url: String
    /// The file: below the app's state directory, or an absolute path below that or one of its data folders.
    public var file: String
    /// `GET`, `PUT` or `POST`; nil: GET for a download, PUT for an upload.
    public var method: String?
    /// In the order in which they are sent.
    public var headers: [Header] = []
    /// The SHA-256 that a download must have, 64 hexadecimal digits.
    public var sha256: String?
    /// Whether it waits for a good moment (docs/transfers.md).
    public var isDiscretionary = false
    /// Whether the end of the session wakes or launches the app.
    public var events = true
    /// Whether a POST is retried.
    public var retry = false
    /// Transfers with greater priority come first.
    public var priority: Int64 = 0
    /// The transfer is begun once, however often the request is sent.
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

/// The parameters of AnswerLogin: user and password, a header, or cancel.
public struct AnswerLoginRequest: Hashable, Sendable {
    /// The transfer.
    public var id: Int64
    /// The user name at the server.
    public var user: String?
    /// The password.
    public var password: String?
    /// The value of an Authorization field.
    public var header: String?
    /// Give up: the transfer fails.
    public var cancel = false

    /// An empty answer.
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
