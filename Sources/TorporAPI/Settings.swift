// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A setting of an app, as operators see it.
public struct SettingInfo: Hashable, Sendable {
    /// The setting's name.
    public var key: String
    /// The setting's type: `string`, `integer`, `number`, `boolean`, `choice`, `duration`, `size`, `path` or
    /// `secret`.
    public var type: String
    /// Whether the setting has a valid value.
    public var isSet: Bool
    /// The value for programs; null if there is no value, or if the setting is secret.
    public var value: JSON
    /// The value in the form that users write.
    public var text: String?
    /// The default in the form that users write.
    public var defaultText: String?
    /// When the setting was last set or unset, microseconds since 1970.
    public var changedAt: Int64?
    /// The setting's title for users of all languages that are not in ``titles``.
    public var title: String?
    /// The setting's titles for users, by language tag.
    public var titles: [String: String] = [:]
    /// A text for users that explains the setting, for all languages that are not in ``helps``.
    public var help: String?
    /// The texts of ``help`` by language tag.
    public var helps: [String: String] = [:]
    /// The valid words of a setting of the type `choice`.
    public var choices: [String] = []
    /// Whether a change of the setting restarts a running app.
    public var restart = false
    /// Whether the setting determines the account for which the app works, as an API key does. A change then sends
    /// identityDidChange instead of settingsDidChange.
    public var identity = false
    /// Whether the app may change the setting itself.
    public var writable = false
    /// Why the stored value is ignored; nil if it is not ignored.
    public var trouble: String?

    /// Sets the required fields; the others keep their defaults.
    public init(key: String, type: String, isSet: Bool, value: JSON, text: String?) {
        self.key = key
        self.type = type
        self.isSet = isSet
        self.value = value
        self.text = text
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(
            key: try fields.string("key"),
            type: try fields.string("type"),
            isSet: try fields.bool("set"),
            value: fields["value"] ?? .null,
            text: try fields.optionalString("text")
        )
        defaultText = try fields.optionalString("default")
        changedAt = try fields.optionalInt("changed")
        title = try fields.optionalString("title")
        titles = try fields.strings(byName: "titles")
        help = try fields.optionalString("help")
        helps = try fields.strings(byName: "helps")
        choices = try fields.strings("choices")
        restart = try fields.optionalBool("restart") ?? false
        identity = try fields.optionalBool("identity") ?? false
        writable = try fields.optionalBool("writable") ?? false
        trouble = try fields.optionalString("trouble")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "key": .string(key), "type": .string(type), "set": .bool(isSet), "value": value, "text": .optional(text),
            "default": .optional(defaultText), "changed": .optional(changedAt), "title": .optional(title),
            "titles": .strings(titles), "help": .optional(help), "helps": .strings(helps), "choices": .strings(choices),
            "restart": .bool(restart), "identity": .bool(identity), "writable": .bool(writable),
            "trouble": .optional(trouble),
        ]
    }
}

/// The parameters of SetSettings.
public struct SetSettingsRequest: Hashable, Sendable {
    /// The name of the app.
    public var app: String
    /// The settings to change, in this order, with values in the form that users write.
    public var values: [Value] = []
    /// The names of the settings to reset to their defaults.
    public var unset: [String] = []

    /// A setting and its new value.
    public struct Value: Hashable, Sendable {
        /// The setting's name.
        public var key: String
        /// The setting's value in the form that users write.
        public var text: String

        /// Memberwise initializer.
        public init(_ key: String, _ text: String) {
            self.key = key
            self.text = text
        }
    }

    /// A request that changes nothing yet.
    public init(app: String) { self.app = app }

    init(fields: Fields, app: String) throws(FieldError) {
        self.app = app
        unset = try fields.strings("unset")
        guard let json = fields["values"] else { return }
        guard let object = json.objectValue else {
            throw FieldError(field: "values", problem: "must be an object: a value for each setting")
        }
        for member in object.members {
            guard let text = Self.text(member.value) else {
                throw FieldError(field: "values", problem: "must have strings, numbers, true and false only")
            }
            values.append(Value(member.name, text))
        }
    }

    /// Converts a JSON value to the form that users write; nil for null, arrays and objects.
    public static func text(_ json: JSON) -> String? {
        switch json {
        case .string(let text): text
        case .int(let number): "\(number)"
        case .double(let number): "\(number)"
        case .bool(let flag): flag ? "true" : "false"
        case .null, .array, .object: nil
        }
    }

    var parameters: JSON {
        var object: JSONObject = app.isEmpty ? [:] : ["app": .string(app)]
        if !values.isEmpty {
            let members = values.map { JSONObject.Member(name: $0.key, value: .string($0.text)) }
            object["values"] = .object(JSONObject(members: members))
        }
        if !unset.isEmpty { object["unset"] = .strings(unset) }
        return .object(object)
    }
}

/// What SetSettings did.
public struct SetSettingsReply: Hashable, Sendable {
    /// The names of the settings that changed.
    public var changed: [String]
    /// The consequence of the change, in a sentence; nil if there is none.
    public var message: String?

    /// Memberwise initializer.
    public init(changed: [String], message: String? = nil) {
        self.changed = changed
        self.message = message
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(changed: try fields.strings("changed"), message: try fields.optionalString("message"))
    }

    /// Encodes the value as a JSON object.
    public var json: JSON { ["changed": .strings(changed), "message": .optional(message)] }
}
