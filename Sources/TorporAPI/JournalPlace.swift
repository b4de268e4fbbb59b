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
    /// The user that the supervisor runs as; nil if the processes of the app may belong to any user and cgroup, as those
    /// of a container.
    public var supervisor: UInt32?
    /// The name or number of the user that the app runs as; nil for the supervisor's own user.
    public var account: String?
    /// The last two parts of the path of the app's cgroup; nil if it has none.
    public var cgroup: String?

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
        supervisor = try fields.optionalInt("supervisor").map { UInt32(clamping: $0) }
        account = try fields.optionalString("account")
        cgroup = try fields.optionalString("cgroup")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "identifier": .string(identifier), "units": .strings(units), "user": .optional(user.map { Int64($0) }),
            "supervisor": .optional(supervisor.map { Int64($0) }), "account": .optional(account),
            "cgroup": .optional(cgroup),
        ]
    }

    /// The fields of an entry that ``mayHave(_:ofUser:)`` reads.
    public static let fields = [
        "_SYSTEMD_OWNER_UID", "_SYSTEMD_CGROUP", "_SYSTEMD_UNIT", "_SYSTEMD_USER_UNIT", "_UID",
    ]

    /// Whether a process of the app may have written an entry of the journal. Every user can write entries with the
    /// app's identifier, but journald itself determines the fields that tell the process.
    ///
    /// - Parameter account: the ID of the user `account`; nil if there is no such user.
    public func mayHave(_ entry: JSON, ofUser account: UInt32?) -> Bool {
        guard let supervisor else { return true }
        // Sessions and service managers of other users.
        if user == nil, let owner = entry["_SYSTEMD_OWNER_UID"]?.stringValue, owner != String(supervisor) {
            return false
        }
        if let cgroup, let group = entry["_SYSTEMD_CGROUP"]?.stringValue {
            return "\(group)/".contains("/\(cgroup)/")
        }
        // journald cannot find the cgroup of a process that has ended.
        let own = self.account == nil ? supervisor : account
        guard let uid = entry["_UID"]?.stringValue, let own else { return true }
        if uid == String(own) || uid == String(supervisor) { return true }
        // Processes of an app of root may have changed their user. Where apps have no cgroups, they are in the
        // supervisor's unit, which no other user's processes are in but those of other apps.
        let field = user == nil ? "_SYSTEMD_UNIT" : "_SYSTEMD_USER_UNIT"
        guard cgroup == nil, own == 0, let unit = entry[field]?.stringValue else { return false }
        return units.contains { $0.utf8.elementsEqual(unit.utf8) }
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
