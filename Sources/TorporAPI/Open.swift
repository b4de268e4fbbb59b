// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The parameters of Open and Handlers: either a URL or a file.
public struct OpenRequest: Hashable, Sendable {
    /// What the app must open: a URL or a file.
    public enum Target: Hashable, Sendable {
        case url(String)
        /// The file's absolute path, and its media type if known.
        case file(String, type: String?)
    }

    /// The URL or file to open.
    public var target: Target
    /// The app that opens the target; nil for the best match.
    public var app: String?
    /// True to reply when the target was opened; false to reply at once.
    public var wait = true
    /// The longest time to wait, in milliseconds.
    public var timeoutMilliseconds: Int64?
    /// Makes the request idempotent: torpord carries it out once, however often it receives the same token.
    public var token: RequestToken?

    private static let longestURL = 8192
    private static let longestPath = 4096
    private static let longestType = 256

    /// A request with default options.
    public init(_ target: Target) { self.target = target }

    init(fields: Fields) throws(FieldError) {
        let url = try fields.optionalString("url")
        let file = try fields.optionalString("file")
        let type = try fields.optionalString("type")
        if let type, type.utf8.count > Self.longestType {
            throw FieldError(field: "type", problem: "must not be longer than \(Self.longestType) bytes")
        }
        switch (url, file) {
        case (let url?, nil):
            guard type == nil else { throw FieldError(field: "type", problem: "may be given only with file") }
            guard !url.isEmpty, url.utf8.count <= Self.longestURL else {
                throw FieldError(field: "url", problem: "must have from 1 to \(Self.longestURL) bytes")
            }
            target = .url(url)
        case (nil, let file?):
            guard file.utf8.first == UInt8(ascii: "/"), file.utf8.count <= Self.longestPath else {
                let problem = "must be an absolute path of at most \(Self.longestPath) bytes"
                throw FieldError(field: "file", problem: problem)
            }
            target = .file(file, type: type)
        case (nil, nil): throw FieldError(field: "url", problem: "is missing: give a url, or a file")
        case (_?, _?): throw FieldError(field: "file", problem: "cannot be given with url: give one of them")
        }
        app = try fields.optionalString("app")
        wait = try fields.optionalBool("wait") ?? true
        timeoutMilliseconds = try fields.optionalInt("timeout_ms")
        if let timeoutMilliseconds, timeoutMilliseconds < 0 {
            throw FieldError(field: "timeout_ms", problem: "must not be negative")
        }
        token = try fields.optionalToken("token")
    }

    /// The parameters of the method Handlers, which are only the URL or file. The method Open has further parameters.
    var targetParameters: JSON { .object(targetObject) }

    private var targetObject: JSONObject {
        switch target {
        case .url(let url): return ["url": .string(url)]
        case .file(let path, let type):
            var object: JSONObject = ["file": .string(path)]
            if let type { object["type"] = .string(type) }
            return object
        }
    }

    var parameters: JSON {
        var object = targetObject
        if let app { object["app"] = .string(app) }
        if !wait { object["wait"] = false }
        if let timeoutMilliseconds { object["timeout_ms"] = .int(timeoutMilliseconds) }
        if let token { object["token"] = .string(token.text) }
        return .object(object)
    }
}

/// An app that can open a URL or a file.
public struct HandlerInfo: Hashable, Sendable {
    /// The app's name.
    public var app: String
    /// Why the app matches: `host`, `scheme`, `name` or `type`.
    public var by: String

    /// Memberwise initializer.
    public init(app: String, by: String) {
        self.app = app
        self.by = by
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(app: try fields.string("app"), by: try fields.string("by"))
    }

    /// Encodes the value as a JSON object.
    public var json: JSON { ["app": .string(app), "by": .string(by)] }
}
