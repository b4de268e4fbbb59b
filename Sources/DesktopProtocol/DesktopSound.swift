// SPDX-License-Identifier: Apache-2.0

import Varlink

/// A running sound stream of the session.
public struct DesktopSound: Hashable, Sendable {
    /// PipeWire's number for the stream.
    public var id: Int64
    /// The process that owns the stream. If PipeWire does not know the process, this is the pid that the stream's
    /// client claims.
    public var pid: Int32
    /// Whether the stream records sound instead of playing it.
    public var isRecording: Bool
    /// The stream's purpose, such as `Music` or `Communication` (PipeWire's `media.role`), as the stream itself
    /// claims.
    public var role: String?

    /// The most streams in one report; further streams, which are newer, are left out.
    public static let most = 256
    /// The longest role in bytes; a longer role is treated as no role.
    public static let longestRole = 32

    /// Creates a stream from its parts.
    public init(id: Int64, pid: Int32, isRecording: Bool = false, role: String? = nil) {
        self.id = id
        self.pid = pid
        self.isRecording = isRecording
        self.role = role.flatMap { $0.utf8.count <= Self.longestRole ? $0 : nil }
    }

    init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        guard let pid = Int32(exactly: try fields.int("pid")), pid > 0 else {
            throw FieldError(field: "pid", problem: "is out of range")
        }
        self.init(
            id: try fields.int("id"),
            pid: pid,
            isRecording: try fields.bool("recording"),
            role: try fields.optionalString("role")
        )
    }

    var json: JSON {
        ["id": .int(id), "pid": .int(Int64(pid)), "recording": .bool(isRecording), "role": .optional(role)]
    }
}
