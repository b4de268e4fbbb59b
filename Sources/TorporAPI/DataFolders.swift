// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The folders of an app's data, and what they take.
public struct DataFoldersInfo: Hashable, Sendable {
    /// The app, which need not be in the configuration any more.
    public var app: String
    /// The folder that has them all.
    public var path: String
    /// Whether the configuration has such an app, with data folders.
    public var isConfigured: Bool
    /// The version that came up last; nil where it has none.
    public var version: String?
    /// Bytes on the disk.
    public var documents: Int64 = 0
    /// Bytes on the disk.
    public var library: Int64 = 0
    /// Bytes on the disk.
    public var caches: Int64 = 0
    /// Bytes on the disk.
    public var temporary: Int64 = 0
    /// False where not all could be looked at, since there is too much or it cannot be read.
    public var isWhole = true

    /// Makes one of an app that has nothing there yet.
    public init(app: String, path: String, isConfigured: Bool) {
        (self.app, self.path, self.isConfigured) = (app, path, isConfigured)
    }

    /// Reads it from its object.
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

    /// It as an object.
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
    /// The app, which need not be in the configuration any more.
    public var app: String
    /// `documents`, `library`, `caches` or `tmp`; empty for all.
    public var folders: [String] = []

    /// The names that ``folders`` may have.
    public static let names = ["documents", "library", "caches", "tmp"]

    /// Makes one from its parts.
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
