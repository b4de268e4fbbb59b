// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// An app's service that other machines can find on the local network.
public struct AnnouncementInfo: Hashable, Sendable {
    /// The service's type, such as `_http._tcp`.
    public var type: String
    /// The service's port.
    public var port: Int64
    /// When the service is announced: `running`, `awake` or `always`.
    public var time: String
    /// The name under which the service is announced; nil while it is not announced.
    public var name: String?
    /// Why the service is not announced although it should be; nil if there is no such reason.
    public var trouble: String?

    /// Memberwise initializer.
    public init(type: String, port: Int64, time: String, name: String?, trouble: String?) {
        (self.type, self.port, self.time, self.name, self.trouble) = (type, port, time, name, trouble)
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        type = try fields.string("type")
        port = try fields.int("port")
        time = try fields.string("while")
        name = try fields.optionalString("name")
        trouble = try fields.optionalString("trouble")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "type": .string(type), "port": .int(port), "while": .string(time), "name": .optional(name),
            "trouble": .optional(trouble),
        ]
    }

    /// The announcement in one line, for users.
    public var text: String {
        let idle = time == "always" ? "not now, since no event may launch the app" : "not now, only while \(time)"
        let state = name.map { "as \($0)" } ?? trouble.map { "not now: \($0)" } ?? idle
        return "\(type), port \(port), \(state)"
    }
}
