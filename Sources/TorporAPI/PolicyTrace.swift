// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A line of a recording, which shows what policies were asked and what torpord did with their advice. RecordPolicies
/// replies with such lines of JSON, and ‘torpor events --record’ writes them to a file.
///
/// The first line is a ``PolicyTraceHeader``, every other line a ``PolicyTraceRound``. If the supervisor is replaced
/// during a recording, or skips lines because the reader is slow, another header follows, and then a round with the
/// records of all apps.
///
/// History of the version
///   1  the first
public enum PolicyTraceLine: Hashable, Sendable {
    case header(PolicyTraceHeader)
    case round(PolicyTraceRound)

    /// The version of the lines that this program writes.
    public static let version: Int64 = 1

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        if fields["torpor_policy_trace"] != nil {
            self = .header(try PolicyTraceHeader(fields: fields))
        } else {
            self = .round(try PolicyTraceRound(fields: fields))
        }
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        switch self {
        case .header(let header): header.json
        case .round(let round): round.json
        }
    }
}

/// The first line of a recording. The next line is the first round, which contains all apps.
public struct PolicyTraceHeader: Hashable, Sendable {
    /// The version of the lines that follow (``PolicyTraceLine/version``).
    public var version: Int64
    /// The supervisor's version.
    public var torpor: String
    /// The version of the supervisor's policy ABI, which defines the fields and their values.
    public var abi: Int64
    /// The number of the torpord instance. A new number means that the policies were loaded again and have lost what
    /// they had in memory.
    public var instance: Int64
    /// The interval, in milliseconds, at which a line with new measurements is recorded even if no event occurs.
    public var everyMilliseconds: Int64
    /// The policies, in the order in which they are asked.
    public var policies: [Policy]

    /// A policy of the chain.
    public struct Policy: Hashable, Sendable {
        /// The policy's name in the configuration.
        public var name: String
        /// The path of the policy's library.
        public var path: String
        /// Whether torpord follows the policy's advice (`decide`) or only reports it (`advise`).
        public var mode: String
        /// The policy's version, as the policy reports it; nil before its library is loaded.
        public var version: String?

        /// Memberwise initializer.
        public init(name: String, path: String, mode: String, version: String?) {
            self.name = name
            self.path = path
            self.mode = mode
            self.version = version
        }
    }

    /// Sets all fields except the version, which is that of this program.
    public init(torpor: String, abi: Int64, instance: Int64, everyMilliseconds: Int64, policies: [Policy]) {
        version = PolicyTraceLine.version
        self.torpor = torpor
        self.abi = abi
        self.instance = instance
        self.everyMilliseconds = everyMilliseconds
        self.policies = policies
    }

    init(fields: Fields) throws(FieldError) {
        version = try fields.int("torpor_policy_trace")
        guard version == PolicyTraceLine.version else {
            throw FieldError(
                field: "torpor_policy_trace",
                problem: "is \(version), and this torpor reads \(PolicyTraceLine.version): "
                    + (version > PolicyTraceLine.version ? "upgrade it" : "record again")
            )
        }
        torpor = try fields.string("torpor")
        abi = try fields.int("abi")
        instance = try fields.int("instance")
        everyMilliseconds = try fields.int("every_ms")
        policies = try fields.list("policies") { json throws(FieldError) in
            let fields = try Fields(json)
            return Policy(
                name: try fields.string("name"),
                path: try fields.string("path"),
                mode: try fields.string("mode"),
                version: try fields.optionalString("version")
            )
        }
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "torpor_policy_trace": .int(version), "torpor": .string(torpor), "abi": .int(abi),
            "instance": .int(instance), "every_ms": .int(everyMilliseconds),
            "policies": .array(
                policies.map {
                    [
                        "name": .string($0.name), "path": .string($0.path), "mode": .string($0.mode),
                        "version": .optional($0.version),
                    ]
                }
            ),
        ]
    }
}

/// One question to all policies: the data that the policies saw, their advice, and what torpord did with the advice. A
/// round without events was sent to no policy: it contains the data that the policies would have seen.
public struct PolicyTraceRound: Hashable, Sendable {
    /// When the policies were asked, in microseconds of CLOCK_MONOTONIC (`torpor_policy_system.now`).
    public var at: Int64
    /// When the policies were asked, microseconds since 1970.
    public var realtime: Int64
    /// The events that the policies were asked about.
    public var events: [Event]
    /// The apps whose records changed since the previous line.
    public var apps: [App]
    /// The fields of `torpor_policy_system` that changed since the previous line.
    public var system: JSONObject
    /// What the policies advised, and what torpord did with the advice.
    public var advice: [Advice]

    /// Memberwise initializer.
    public init(
        at: Int64,
        realtime: Int64,
        events: [Event] = [],
        apps: [App] = [],
        system: JSONObject = [:],
        advice: [Advice] = []
    ) {
        self.at = at
        self.realtime = realtime
        self.events = events
        self.apps = apps
        self.system = system
        self.advice = advice
    }

    init(fields: Fields) throws(FieldError) {
        at = try fields.int("at")
        realtime = try fields.int("realtime")
        events = try fields.list("events") { json throws(FieldError) in try Event(json: json) }
        apps = try fields.list("apps") { json throws(FieldError) in try App(json: json) }
        system = [:]
        if let json = fields["system"] {
            guard let object = json.objectValue else { throw FieldError(field: "system", problem: "must be an object") }
            system = object
        }
        let count = Int64(events.count)
        advice = try fields.list("advice") { json throws(FieldError) in
            let advice = try Advice(json: json)
            guard (0..<count).contains(advice.event) else {
                throw FieldError(field: "event", problem: "is \(advice.event), and the line has \(count) events")
            }
            return advice
        }
    }

    /// Encodes the value as a JSON object, without empty fields.
    public var json: JSON {
        var members: [JSONObject.Member] = [
            .init(name: "at", value: .int(at)), .init(name: "realtime", value: .int(realtime)),
        ]
        if !events.isEmpty { members.append(.init(name: "events", value: .array(events.map(\.json)))) }
        if !apps.isEmpty { members.append(.init(name: "apps", value: .array(apps.map(\.json)))) }
        if !system.members.isEmpty { members.append(.init(name: "system", value: .object(system))) }
        if !advice.isEmpty { members.append(.init(name: "advice", value: .array(advice.map(\.json)))) }
        return .object(JSONObject(members: members))
    }
}
