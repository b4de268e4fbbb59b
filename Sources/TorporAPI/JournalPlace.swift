// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// Where in systemd's journal the output of an app is (`log = "journal"`).
public struct JournalPlace: Hashable, Sendable {
    /// What its entries carry as SYSLOG_IDENTIFIER; others may carry it too.
    public var identifier: String
    /// The units of the service manager in which the supervisor and its apps are.
    public var units: [String]
    /// The user whose service manager that is; nil for the system's.
    public var user: UInt32?

    /// Makes one from its parts.
    public init(identifier: String, units: [String] = [], user: UInt32? = nil) {
        self.identifier = identifier
        self.units = units
        self.user = user
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        identifier = try fields.string("identifier")
        units = try fields.strings("units")
        user = try fields.optionalInt("user").map { UInt32(clamping: $0) }
    }

    /// It as an object.
    public var json: JSON {
        ["identifier": .string(identifier), "units": .strings(units), "user": .optional(user.map { Int64($0) })]
    }

    /// What finds it, in words for a shell.
    public var command: String { "journalctl -t \(identifier)" }
}

extension JournalPlace {
    /// Reads an optional field.
    static func optional(_ fields: Fields) throws(FieldError) -> JournalPlace? {
        guard let json = fields["journal"], json != .null else { return nil }
        return try JournalPlace(json: json)
    }
}
