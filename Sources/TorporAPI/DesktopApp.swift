// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// What a desktop's menus show of an app.
public struct DesktopApp: Hashable, Sendable {
    /// The app's name.
    public var name: String
    /// Its title in all languages that are not in ``titles``.
    public var title: String?
    /// Its title by language tag in lower case.
    public var titles: [String: String] = [:]
    /// What it is for, in one line, in all languages that are not in ``summaries``.
    public var summary: String?
    /// What it is for, by language tag in lower case.
    public var summaries: [String: String] = [:]
    /// The file of its icon.
    public var icon: String?
    /// Where menus list it.
    public var categories: [String] = []
    /// The schemes of URLs that it opens.
    public var schemes: [String] = []
    /// The files that it opens: media types and patterns of file names.
    public var files: [String] = []
    /// Whether it does its work and ends, and is not for the foreground.
    public var isOneshot = false

    /// An app with only a name.
    public init(name: String) { self.name = name }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        name = try fields.string("name")
        title = try fields.optionalString("title")
        titles = try fields.strings(byName: "titles")
        summary = try fields.optionalString("summary")
        summaries = try fields.strings(byName: "summaries")
        icon = try fields.optionalString("icon")
        categories = try fields.strings("categories")
        schemes = try fields.strings("url_schemes")
        files = try fields.strings("opens")
        isOneshot = try fields.bool("oneshot")
    }

    /// Encodes a JSON object.
    public var json: JSON {
        [
            "name": .string(name), "title": .optional(title), "titles": .strings(titles),
            "summary": .optional(summary), "summaries": .strings(summaries), "icon": .optional(icon),
            "categories": .strings(categories), "url_schemes": .strings(schemes), "opens": .strings(files),
            "oneshot": .bool(isOneshot),
        ]
    }
}
