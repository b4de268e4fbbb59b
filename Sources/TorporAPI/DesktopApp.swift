// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// What a desktop's menus show of an app.
public struct DesktopApp: Hashable, Sendable {
    /// The app's name.
    public var name: String
    /// The app's title for users of all languages that are not in ``titles``.
    public var title: String?
    /// The app's titles by language tag in lower case.
    public var titles: [String: String] = [:]
    /// What the app is for, in one line, for users of all languages that are not in ``summaries``.
    public var summary: String?
    /// What the app is for, by language tag in lower case.
    public var summaries: [String: String] = [:]
    /// The path of the file with the app's icon.
    public var icon: String?
    /// The categories under which menus list the app.
    public var categories: [String] = []
    /// The schemes of URLs that the app opens.
    public var schemes: [String] = []
    /// The files that the app opens: media types and patterns of file names.
    public var files: [String] = []
    /// Whether the app is a oneshot: it does its work and exits, and menus do not list it.
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

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "name": .string(name), "title": .optional(title), "titles": .strings(titles),
            "summary": .optional(summary), "summaries": .strings(summaries), "icon": .optional(icon),
            "categories": .strings(categories), "url_schemes": .strings(schemes), "opens": .strings(files),
            "oneshot": .bool(isOneshot),
        ]
    }
}
