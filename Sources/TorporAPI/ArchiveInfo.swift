// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A state archive of an app.
public struct ArchiveInfo: Hashable, Sendable {
    /// The path of the archive's file.
    public var path: String
    /// Size in bytes.
    public var bytes: Int64
    /// When the archive was saved, microseconds since 1970.
    public var at: Int64

    /// Memberwise initializer.
    public init(path: String, bytes: Int64, at: Int64) {
        self.path = path
        self.bytes = bytes
        self.at = at
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        path = try fields.string("path")
        bytes = try fields.int("bytes")
        at = try fields.int("at")
    }

    static func optional(_ fields: Fields, _ name: String) throws(FieldError) -> ArchiveInfo? {
        guard let json = fields[name], !json.isNull else { return nil }
        return try ArchiveInfo(json: json)
    }

    /// Encodes the value as a JSON object.
    public var json: JSON { ["path": .string(path), "bytes": .int(bytes), "at": .int(at)] }
}
