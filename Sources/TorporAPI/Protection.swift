// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// Information about the protected data of an app.
public struct ProtectionInfo: Hashable, Sendable {
    /// The app's name.
    public var app: String
    /// `complete` or `first-unlock`, as in the configuration.
    public var kind: String
    /// `unlocked`, `locking` or `locked`.
    public var state: String
    /// The app's protected folder.
    public var folder: String
    /// Whether the kernel encrypts the folder; nil if the folder was not opened yet, so that this is unknown.
    public var isEncrypted: Bool?
    /// Why the data stays locked, or which files in the folder are still in use; nil if neither applies.
    public var message: String?

    /// Creates the information about a folder that was not opened yet.
    public init(app: String, kind: String, state: String, folder: String) {
        (self.app, self.kind, self.state, self.folder) = (app, kind, state, folder)
    }

    /// Decodes a JSON object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(
            app: try fields.string("app"),
            kind: try fields.string("kind"),
            state: try fields.string("state"),
            folder: try fields.string("folder")
        )
        isEncrypted = try fields.optionalBool("encrypted")
        message = try fields.optionalString("message")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "app": .string(app), "kind": .string(kind), "state": .string(state), "folder": .string(folder),
            "encrypted": isEncrypted.map { .bool($0) } ?? .null, "message": .optional(message),
        ]
    }

    /// The state of the data in a few words, such as `locked, not encrypted, 1 file busy: PID 4711 (less)`.
    public var text: String {
        let how = isEncrypted == false ? ", not encrypted" : isEncrypted == true ? ", encrypted" : ""
        return state + how + (message.map { ", " + $0 } ?? "")
    }

    static func optional(_ fields: Fields, _ name: String) throws(FieldError) -> ProtectionInfo? {
        guard let json = fields[name], !json.isNull else { return nil }
        return try ProtectionInfo(json: json)
    }
}
