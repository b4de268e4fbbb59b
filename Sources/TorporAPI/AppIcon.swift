// SPDX-License-Identifier: Apache-2.0

public import Varlink
import WireText

/// The picture of an app, as its configuration names it: the reply of Icon.
public struct AppIcon: Hashable, Sendable {
    /// The most that one has, in bytes.
    public static let mostBytes = 256 << 10

    /// As HTTP names it; nil where there is no icon.
    public var mediaType: String?
    /// What is in the file; empty where there is no icon.
    public var data: [UInt8]
    /// Why one that is configured is not given.
    public var trouble: String?

    /// The icon that a file holds.
    public init(content: [UInt8]) {
        mediaType = Self.mediaType(content)
        data = mediaType == nil ? [] : content
        trouble = mediaType == nil ? "it is neither PNG, JPEG, GIF, WebP nor SVG" : nil
    }

    /// None, because of this.
    public init(trouble: String?) { (mediaType, data, self.trouble) = (nil, [], trouble) }

    /// By the first bytes; of SVG, by its root.
    private static func mediaType(_ content: [UInt8]) -> String? {
        guard let kind = SnapshotKind(content: content) else { return nil }
        guard kind == .text else { return kind.mediaType }
        let text = String(wire: content)
        guard let start = text.firstIndex(where: { !$0.isWhitespace && $0 != "\u{feff}" }), text[start] == "<" else {
            return nil
        }
        return text.contains("<svg") ? "image/svg+xml" : nil
    }

    /// Reads it from the reply.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        mediaType = try fields.optionalString("media_type")
        trouble = try fields.optionalString("trouble")
        guard let data = Base64.decode(try fields.optionalString("data") ?? "") else {
            throw FieldError(field: "data", problem: "must be Base64")
        }
        self.data = data
    }

    /// It as a reply.
    public var json: JSON {
        ["media_type": .optional(mediaType), "data": .string(Base64.encode(data)), "trouble": .optional(trouble)]
    }
}
