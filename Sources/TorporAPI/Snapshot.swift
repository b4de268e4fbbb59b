// SPDX-License-Identifier: Apache-2.0

public import Varlink
import WireText

/// The format of a snapshot.
public enum SnapshotKind: String, Hashable, Sendable, CaseIterable {
    case png
    case jpeg
    case gif
    case webp
    /// Text in UTF-8.
    case text

    /// Detects the format from the content: an image by its first bytes, and text as UTF-8 without NUL. Nil for any
    /// other content, and for none.
    public init?(content: [UInt8]) {
        func begins(_ bytes: [UInt8], at offset: Int = 0) -> Bool { content.dropFirst(offset).starts(with: bytes) }
        if begins([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) {
            self = .png
        } else if begins([0xff, 0xd8, 0xff]) {
            self = .jpeg
        } else if begins(Array("GIF87a".utf8)) || begins(Array("GIF89a".utf8)) {
            self = .gif
        } else if begins(Array("RIFF".utf8)), begins(Array("WEBP".utf8), at: 8) {
            self = .webp
        } else if !content.isEmpty, !content.contains(0), String(validWire: content) != nil {
            self = .text
        } else {
            return nil
        }
    }

    /// The media type of the format, as in HTTP.
    public var mediaType: String {
        switch self {
        case .png, .jpeg, .gif, .webp: "image/\(rawValue)"
        case .text: "text/plain; charset=utf-8"
        }
    }
}

/// The snapshot of an app: what it showed when it was last in the background.
public struct SnapshotInfo: Hashable, Sendable {
    /// The format of the snapshot; nil for a format that only a later version of Torpor knows.
    public var kind: SnapshotKind?
    /// The size of the snapshot in bytes.
    public var bytes: Int64
    /// When the snapshot was taken, microseconds since 1970.
    public var at: Int64
    /// The number of the app's run that the snapshot shows.
    public var incarnation: Int64

    /// Memberwise initializer.
    public init(kind: SnapshotKind, bytes: Int64, at: Int64, incarnation: Int64) {
        self.kind = kind
        self.bytes = bytes
        self.at = at
        self.incarnation = incarnation
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        kind = SnapshotKind(rawValue: try fields.string("kind"))
        bytes = try fields.int("bytes")
        at = try fields.int("at")
        incarnation = try fields.int("incarnation")
    }

    static func optional(_ fields: Fields, _ name: String) throws(FieldError) -> SnapshotInfo? {
        guard let json = fields[name], !json.isNull else { return nil }
        return try SnapshotInfo(json: json)
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "kind": .optional(kind?.rawValue), "bytes": .int(bytes), "at": .int(at), "incarnation": .int(incarnation),
        ]
    }
}

/// A part of a snapshot: the reply of the method Snapshot.
public struct SnapshotPart: Hashable, Sendable {
    /// The maximum size of a part, in bytes.
    public static let mostBytes = 256 << 10

    /// The snapshot; nil if there is none.
    public var snapshot: SnapshotInfo?
    /// The snapshot's bytes from the requested offset on; empty if the offset is at or past the snapshot's end.
    public var data: [UInt8]

    /// Memberwise initializer.
    public init(_ snapshot: SnapshotInfo?, data: [UInt8] = []) {
        self.snapshot = snapshot
        self.data = data
    }

    /// Decodes the reply; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        snapshot = try SnapshotInfo.optional(fields, "snapshot")
        guard let data = Base64.decode(try fields.optionalString("data") ?? "") else {
            throw FieldError(field: "data", problem: "must be Base64")
        }
        self.data = data
    }

    /// Encodes the reply.
    public var json: JSON {
        ["snapshot": snapshot?.json ?? .null, "data": .string(Base64.encode(data))]
    }

    /// Reads a whole snapshot part by part; `data` is empty if there is no snapshot.
    ///
    /// - Parameter ask: requests the part that begins at an offset.
    public static func whole<Failure: Error>(
        _ ask: (_ offset: Int64) throws(Failure) -> SnapshotPart
    ) throws(Failure) -> SnapshotPart {
        var whole = try ask(0)
        var restarts = 0
        while let snapshot = whole.snapshot, whole.data.count < snapshot.bytes {
            let part = try ask(Int64(whole.data.count))
            if part.snapshot == snapshot, !part.data.isEmpty {
                whole.data += part.data
            } else {
                // A newer snapshot has replaced this one between two parts, so begin again. Give up after ten attempts,
                // because no app takes snapshots that often.
                restarts += 1
                guard restarts < 10 else { return SnapshotPart(nil) }
                whole = try ask(0)
            }
        }
        return whole
    }
}
