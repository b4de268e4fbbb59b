// SPDX-License-Identifier: Apache-2.0

public import Varlink
import WireText

/// The icon of an app: the reply of Icon.
public struct AppIcon: Hashable, Sendable {
    /// The maximum size of an icon, in bytes.
    public static let mostBytes = 256 << 10

    /// The media type of the icon, as in HTTP; nil if there is no icon.
    public var mediaType: String?
    /// The content of the icon's file; empty if there is no icon.
    public var data: [UInt8]
    /// Why the configured icon is not returned; nil if it is, or if no icon is configured.
    public var trouble: String?

    /// A reply with the content of an icon's file. If the content is no picture in a known format, the reply has no
    /// icon, and ``trouble`` says so.
    public init(content: [UInt8]) {
        mediaType = Self.mediaType(content)
        data = mediaType == nil ? [] : content
        trouble = mediaType == nil ? "it is neither PNG, JPEG, GIF, WebP nor SVG" : nil
    }

    /// A reply without an icon, with the reason.
    public init(trouble: String?) { (mediaType, data, self.trouble) = (nil, [], trouble) }

    /// The media type, detected from the first bytes of a file; for SVG, from the root element. Nil for unknown
    /// formats.
    private static func mediaType(_ content: [UInt8]) -> String? {
        guard let kind = SnapshotKind(content: content) else { return nil }
        guard kind == .text else { return kind.mediaType }
        let text = String(wire: content)
        guard let start = text.firstIndex(where: { !$0.isWhitespace && $0 != "\u{feff}" }), text[start] == "<" else {
            return nil
        }
        return text.contains("<svg") ? "image/svg+xml" : nil
    }

    /// Decodes the reply; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        mediaType = try fields.optionalString("media_type")
        trouble = try fields.optionalString("trouble")
        guard let data = Base64.decode(try fields.optionalString("data") ?? "") else {
            throw FieldError(field: "data", problem: "must be Base64")
        }
        self.data = data
    }

    /// Encodes the reply.
    public var json: JSON {
        ["media_type": .optional(mediaType), "data": .string(Base64.encode(data)), "trouble": .optional(trouble)]
    }
}
