// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The data folders of an app and their sizes.
public struct DataFoldersInfo: Hashable, Sendable {
    /// The app's name. The app may no longer be in the configuration.
    public var app: String
    /// The folder that contains all data folders of the app.
    public var path: String
    /// Whether the configuration contains this app and gives it data folders.
    public var isConfigured: Bool
    /// The last version of the app that launched successfully; nil if none did.
    public var version: String?
    /// The disk space that `documents` uses, in bytes.
    public var documents: Int64 = 0
    /// The disk space that `library` uses, in bytes.
    public var library: Int64 = 0
    /// The disk space that `caches` uses, in bytes.
    public var caches: Int64 = 0
    /// The disk space that `tmp` uses, in bytes.
    public var temporary: Int64 = 0
    /// Whether the sizes are complete. They are not if there were too many files, or if some files were not readable.
    public var isWhole = true

    /// The data folders of an app that has stored nothing yet.
    public init(app: String, path: String, isConfigured: Bool) {
        (self.app, self.path, self.isConfigured) = (app, path, isConfigured)
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        app = try fields.string("app")
        path = try fields.string("path")
        isConfigured = try fields.optionalBool("configured") ?? true
        version = try fields.optionalString("version")
        documents = try fields.int("documents_bytes")
        library = try fields.int("library_bytes")
        caches = try fields.int("caches_bytes")
        temporary = try fields.int("tmp_bytes")
        isWhole = try fields.optionalBool("complete") ?? true
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "app": .string(app), "path": .string(path), "configured": .bool(isConfigured),
            "version": .optional(version), "documents_bytes": .int(documents), "library_bytes": .int(library),
            "caches_bytes": .int(caches), "tmp_bytes": .int(temporary), "complete": .bool(isWhole),
        ]
    }
}

/// The parameters of PurgeData.
public struct PurgeDataRequest: Hashable, Sendable {
    /// The app's name. The app may no longer be in the configuration.
    public var app: String
    /// The folders to empty: `documents`, `library`, `caches` or `tmp`; an empty list stands for all.
    public var folders: [String] = []

    /// The valid values of ``folders``.
    public static let names = ["documents", "library", "caches", "tmp"]

    /// Memberwise initializer.
    public init(app: String, folders: [String] = []) { (self.app, self.folders) = (app, folders) }

    init(fields: Fields) throws(FieldError) {
        app = try fields.string("app")
        folders = try fields.strings("folders")
        if let wrong = folders.first(where: { !Self.names.contains($0) }) {
            throw FieldError(
                field: "folders",
                problem: "has the unknown folder \(wrong): choose from \(Self.names.joined(separator: ", "))"
            )
        }
    }

    var parameters: JSON {
        var object: JSONObject = ["app": .string(app)]
        if !folders.isEmpty { object["folders"] = .strings(folders) }
        return .object(object)
    }
}
