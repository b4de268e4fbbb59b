// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// How long a launch took to reach each stage, in milliseconds from its beginning; nil for a stage not reached.
public struct LaunchTimes: Hashable, Sendable {
    /// Milliseconds until the commands of `before_start` were done, and the app's process was about to be forked.
    public var planned: Double?
    /// Milliseconds until the program was executed.
    public var executed: Double?
    /// Milliseconds until the app's first contact: a connection to `TORPOR_APP_SOCKET` or a message to
    /// `NOTIFY_SOCKET`.
    public var contact: Double?
    /// Milliseconds until torpord sent the app its first message.
    public var message: Double?
    /// Milliseconds until the app was ready.
    public var ready: Double?

    /// The times of a launch that has reached no stage yet.
    public init() {}

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        planned = try fields.optionalDouble("fork_ms")
        executed = try fields.optionalDouble("exec_ms")
        contact = try fields.optionalDouble("contact_ms")
        message = try fields.optionalDouble("message_ms")
        ready = try fields.optionalDouble("ready_ms")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        var object = JSONObject()
        addMembers(to: &object)
        return .object(object)
    }

    func addMembers(to members: inout some JSONMembers & ~Copyable) {
        members.add("fork_ms", planned)
        members.add("exec_ms", executed)
        members.add("contact_ms", contact)
        members.add("message_ms", message)
        members.add("ready_ms", ready)
    }

    static func optional(_ fields: Fields, _ name: String) throws(FieldError) -> LaunchTimes? {
        guard let json = fields[name], json != .null else { return nil }
        return try LaunchTimes(json: json)
    }
}

/// An event in a run of an app.
public struct TimelineEntry: Hashable, Sendable {
    /// Seconds since the launch of the run began; nil for the kind `gap`.
    public var after: Double?
    /// The kind of event: `launch`, `state`, `transition`, `message`, `answer`, `failed-answer`, `pending-answer`,
    /// `missed`, `signal`, `task-begin`, `task-end`, `stopping`, `supervisor`, `main`, `exit` or `gap`.
    public var kind: String
    /// The name of the state, message, deadline or signal; for `launch` the stage: fork, exec, contact or ready; for
    /// `gap` how many entries were dropped.
    public var name: String?

    /// Memberwise initializer.
    public init(after: Double?, kind: String, name: String?) {
        self.after = after
        self.kind = kind
        self.name = name
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        after = try fields.optionalDouble("after_s")
        kind = try fields.string("kind")
        name = try fields.optionalString("name")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        var object = JSONObject()
        addMembers(to: &object)
        return .object(object)
    }

    func addMembers(to members: inout some JSONMembers & ~Copyable) {
        members.add("after_s", after)
        members.add("kind", kind)
        members.add("name", name)
    }
}
