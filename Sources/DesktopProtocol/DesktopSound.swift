// SPDX-License-Identifier: Apache-2.0

import Varlink

/// A running stream of sound of the session.
public struct DesktopSound: Hashable, Sendable {
    /// PipeWire's number of the stream.
    public var id: Int64
    /// The process that it belongs to: by PipeWire's word, otherwise by its own.
    public var pid: Int32
    /// Whether it records.
    public var isRecording: Bool
    /// What it is for, such as `Music` or `Communication` (PipeWire's `media.role`), by its own word.
    public var role: String?

    /// The most streams of one report. More are cut off, the newest first.
    public static let most = 256
    /// The longest role in bytes; a longer one is none.
    public static let longestRole = 32

    /// Creates one from its parts.
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
