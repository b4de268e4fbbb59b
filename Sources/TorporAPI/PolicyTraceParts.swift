// SPDX-License-Identifier: Apache-2.0

public import Varlink

extension PolicyTraceRound {
    /// An event that policies were asked about: `torpor_policy_event`.
    public struct Event: Hashable, Sendable {
        /// The name of a value of `enum torpor_policy_event_kind`, such as `state` or `ended`; digits if this version
        /// has no name for it.
        public var kind: String
        /// The app's index in the recording; nil if the event concerns no app.
        public var app: Int64?
        /// The state before the event (`enum torpor_policy_state`), or another value that depends on the kind.
        public var from: Int64
        /// The state after the event (`enum torpor_policy_state`), or another value that depends on the kind.
        public var to: Int64
        /// The reason for the event: `enum torpor_policy_reason` or `enum torpor_policy_launch`.
        public var reason: Int64
        /// When the event happened, microseconds of CLOCK_MONOTONIC.
        public var at: Int64
        /// If the app ended, the delay until its restart, in microseconds; nil if it is not restarted.
        public var delay: Int64?

        /// Memberwise initializer.
        public init(
            kind: String,
            app: Int64? = nil,
            from: Int64 = 0,
            to: Int64 = 0,
            reason: Int64 = 0,
            at: Int64,
            delay: Int64? = nil
        ) {
            self.kind = kind
            self.app = app
            self.from = from
            self.to = to
            self.reason = reason
            self.at = at
            self.delay = delay
        }

        init(json: JSON) throws(FieldError) {
            let fields = try Fields(json)
            kind = try fields.string("kind")
            app = try fields.optionalNatural32("app")
            from = try fields.optionalNatural32("from") ?? 0
            to = try fields.optionalNatural32("to") ?? 0
            reason = try fields.optionalNatural32("reason") ?? 0
            at = try fields.int("at")
            delay = try fields.optionalInt("delay")
        }

        var json: JSON {
            var members: [JSONObject.Member] = [.init(name: "kind", value: .string(kind))]
            if let app { members.append(.init(name: "app", value: .int(app))) }
            if from != 0 { members.append(.init(name: "from", value: .int(from))) }
            if to != 0 { members.append(.init(name: "to", value: .int(to))) }
            if reason != 0 { members.append(.init(name: "reason", value: .int(reason))) }
            members.append(.init(name: "at", value: .int(at)))
            if let delay { members.append(.init(name: "delay", value: .int(delay))) }
            return .object(JSONObject(members: members))
        }
    }

    /// An app whose record changed since the previous line.
    public struct App: Hashable, Sendable {
        /// The app's index in the recording.
        public var place: Int64
        /// The app's name, if the index belonged to another app before; otherwise nil. If there is a name, fields that
        /// are missing in `fields` have the values of an app that never ran.
        public var name: String?
        /// The app's tags; empty if `name` is nil.
        public var tags: [String]
        /// The fields of `torpor_policy_app` that changed, each a number (`state_since` an array of five); null means
        /// never or unknown. If the field `flags` is 0, the app was removed.
        public var fields: JSONObject

        private static let own: Set = ["place", "name", "tags"]

        /// Memberwise initializer.
        public init(place: Int64, name: String? = nil, tags: [String] = [], fields: JSONObject) {
            self.place = place
            self.name = name
            self.tags = tags
            self.fields = fields
        }

        init(json: JSON) throws(FieldError) {
            let fields = try Fields(json)
            guard let place = try fields.optionalNatural32("place") else {
                throw FieldError(field: "place", problem: "is missing")
            }
            self.place = place
            name = try fields.optionalString("name")
            tags = try fields.strings("tags")
            self.fields = JSONObject(
                members: (json.objectValue?.members ?? []).filter { !Self.own.contains($0.name) }
            )
        }

        var json: JSON {
            var members: [JSONObject.Member] = [.init(name: "place", value: .int(place))]
            if let name {
                members.append(.init(name: "name", value: .string(name)))
                members.append(.init(name: "tags", value: .strings(tags)))
            }
            return .object(JSONObject(members: members + fields.members))
        }
    }

    /// A piece of advice (`torpor_policy_advice`), and what torpord did with it.
    public struct Advice: Hashable, Sendable {
        /// The name of the policy that gave the advice, as in the configuration.
        public var policy: String
        /// The index of the event, in the same line, that the advice answers.
        public var event: Int64
        /// The name of a value of `enum torpor_policy_advice_kind`, such as `goal` or `grant`; digits if this version
        /// has no name for it.
        public var kind: String
        /// The app's index in the recording; nil if the advice concerns no app.
        public var app: Int64?
        /// The value of the advice, whose meaning depends on the kind.
        public var value: Int64
        /// The time of the advice in microseconds, whose meaning depends on the kind.
        public var time: Int64
        /// Why the policy advises this, in the policy's own words.
        public var reason: String
        /// `taken`, `idle` (nothing had to change), `refused`, `damped` (ignored, because the policy changed its mind
        /// too often), or `told` (only reported, because the policy's mode is `advise`).
        public var outcome: String
        /// Why the advice was refused.
        public var why: String?

        /// Memberwise initializer.
        public init(
            policy: String,
            event: Int64,
            kind: String,
            app: Int64?,
            value: Int64,
            time: Int64,
            reason: String,
            outcome: String,
            why: String? = nil
        ) {
            self.policy = policy
            self.event = event
            self.kind = kind
            self.app = app
            self.value = value
            self.time = time
            self.reason = reason
            self.outcome = outcome
            self.why = why
        }

        init(json: JSON) throws(FieldError) {
            let fields = try Fields(json)
            policy = try fields.string("policy")
            event = try fields.int("event")
            kind = try fields.string("kind")
            app = try fields.optionalNatural32("app")
            value = try fields.optionalNatural32("value") ?? 0
            time = try fields.optionalInt("time") ?? 0
            reason = try fields.optionalString("reason") ?? ""
            outcome = try fields.string("outcome")
            why = try fields.optionalString("why")
        }

        var json: JSON {
            var members: [JSONObject.Member] = [
                .init(name: "policy", value: .string(policy)), .init(name: "event", value: .int(event)),
                .init(name: "kind", value: .string(kind)),
            ]
            if let app { members.append(.init(name: "app", value: .int(app))) }
            if value != 0 { members.append(.init(name: "value", value: .int(value))) }
            if time != 0 { members.append(.init(name: "time", value: .int(time))) }
            if !reason.isEmpty { members.append(.init(name: "reason", value: .string(reason))) }
            members.append(.init(name: "outcome", value: .string(outcome)))
            if let why { members.append(.init(name: "why", value: .string(why))) }
            return .object(JSONObject(members: members))
        }
    }
}

extension Fields {
    /// Reads an unsigned number of 32 bits; nil if absent.
    fileprivate func optionalNatural32(_ name: String) throws(FieldError) -> Int64? {
        guard let value = try optionalInt(name) else { return nil }
        guard (0...Int64(UInt32.max)).contains(value) else { throw FieldError(field: name, problem: "is out of range") }
        return value
    }
}
