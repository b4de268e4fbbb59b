// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// Where systemd's journal contains the output of an app (`log = "journal"`).
public struct JournalPlace: Hashable, Sendable {
    /// The SYSLOG_IDENTIFIER of the app's entries; other programs may use the same identifier.
    public var identifier: String
    /// The systemd units in which the supervisor and its apps run.
    public var units: [String]
    /// The user whose service manager runs the units; nil for the system's service manager.
    public var user: UInt32?

    /// Memberwise initializer.
    public init(identifier: String, units: [String] = [], user: UInt32? = nil) {
        self.identifier = identifier
        self.units = units
        self.user = user
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        identifier = try fields.string("identifier")
        units = try fields.strings("units")
        user = try fields.optionalInt("user").map { UInt32(clamping: $0) }
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        ["identifier": .string(identifier), "units": .strings(units), "user": .optional(user.map { Int64($0) })]
    }

    /// The shell command that shows the app's output.
    public var command: String { "journalctl -t \(identifier)" }
}

extension JournalPlace {
    /// Reads the field that contains this value; nil if the field is absent.
    static func optional(_ fields: Fields) throws(FieldError) -> JournalPlace? {
        guard let json = fields["journal"], json != .null else { return nil }
        return try JournalPlace(json: json)
    }
}
