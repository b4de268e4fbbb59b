// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A policy in the chain of policies that torpord asks, as `torpor policies` shows it.
public struct PolicyStatus: Hashable, Sendable {
    /// The policy's name in the configuration.
    public var name: String
    /// The path of the policy's library.
    public var path: String
    /// The policy's state: `loading`, `ready`, `waiting` (it failed and is retried), `refused` or `quarantined` (it
    /// failed too often, and is retried later).
    public var state: String
    /// Whether torpord follows the policy's advice (`decide`) or only reports it (`advise`).
    public var mode: String
    /// How the policy is isolated from torpord: `process` or `none`.
    public var isolation: String
    /// What confines the policy's process: `landlock`, `seccomp`, `user`.
    public var confinement: [String] = []
    /// The process ID of the policy's process.
    public var pid: Int32?
    /// The policy's version, as the policy reports it.
    public var version: String?
    /// What the policy does, as the policy reports it.
    public var summary: String?
    /// The version of the policy interface that the policy was compiled with.
    public var abi: Int64?
    /// How often torpord has asked the policy for advice.
    public var questions: Int64 = 0
    /// How many pieces of the policy's advice changed something.
    public var taken: Int64 = 0
    /// How many pieces of advice changed nothing, because the app already was as they advised.
    public var idle: Int64 = 0
    /// How many pieces of advice were only reported, because the policy's mode is `advise`.
    public var told: Int64 = 0
    /// How many pieces of advice torpord refused, because they violated the rules or came too late.
    public var refused: Int64 = 0
    /// How many pieces of advice were ignored, because they contradicted the policy's earlier advice too often.
    public var damped: Int64 = 0
    /// How many pieces of advice had no effect, because an earlier policy in the chain overruled them.
    public var overruled: Int64 = 0
    /// How often the policy crashed, answered late, gave invalid answers, or flooded torpord with advice.
    public var failures: Int64 = 0
    /// How often the policy answered late while the whole machine stalled. This does not count as a failure.
    public var stalls: Int64 = 0
    /// How often the policy was reloaded after a failure or a stall.
    public var restarts: Int64 = 0
    /// The median time of the policy's answers, in microseconds.
    public var medianMicroseconds: Double?
    /// The 99th percentile of the time of the policy's answers, in microseconds.
    public var p99Microseconds: Double?
    /// The longest time that the policy may take for an answer, in milliseconds.
    public var deadlineMilliseconds: Int64 = 0
    /// Milliseconds until the policy is reloaded; nil while it is in use, or if only a user can reload it.
    public var retryMilliseconds: Int64?
    /// Milliseconds until the time at which the policy wants to be asked again; nil if it has named no time.
    public var asksAgainMilliseconds: Int64?
    /// The policy's last error, in a sentence.
    public var lastFailure: String?

    /// Sets the required fields; the others keep their defaults.
    public init(name: String, path: String, state: String, mode: String, isolation: String) {
        self.name = name
        self.path = path
        self.state = state
        self.mode = mode
        self.isolation = isolation
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        name = try fields.string("name")
        path = try fields.string("path")
        state = try fields.string("state")
        mode = try fields.string("mode")
        isolation = try fields.string("isolation")
        confinement = try fields.strings("confinement")
        pid = try fields.optionalInt32("pid")
        version = try fields.optionalString("version")
        summary = try fields.optionalString("summary")
        abi = try fields.optionalInt("abi")
        questions = try fields.int("questions")
        taken = try fields.int("taken")
        idle = try fields.int("idle")
        told = try fields.int("told")
        refused = try fields.int("refused")
        damped = try fields.int("damped")
        overruled = try fields.int("overruled")
        failures = try fields.int("failures")
        stalls = try fields.optionalInt("stalls") ?? 0
        restarts = try fields.int("restarts")
        medianMicroseconds = try fields.optionalDouble("median_us")
        p99Microseconds = try fields.optionalDouble("p99_us")
        deadlineMilliseconds = try fields.int("deadline_ms")
        retryMilliseconds = try fields.optionalInt("retry_ms")
        asksAgainMilliseconds = try fields.optionalInt("asks_again_ms")
        lastFailure = try fields.optionalString("last_failure")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "name": .string(name), "path": .string(path), "state": .string(state), "mode": .string(mode),
            "isolation": .string(isolation), "confinement": .strings(confinement), "pid": .optional(pid),
            "version": .optional(version), "summary": .optional(summary), "abi": .optional(abi),
            "questions": .int(questions), "taken": .int(taken), "idle": .int(idle), "told": .int(told),
            "refused": .int(refused), "damped": .int(damped), "overruled": .int(overruled),
            "failures": .int(failures), "stalls": .int(stalls), "restarts": .int(restarts),
            "median_us": .optional(medianMicroseconds), "p99_us": .optional(p99Microseconds),
            "deadline_ms": .int(deadlineMilliseconds),
            "retry_ms": .optional(retryMilliseconds), "asks_again_ms": .optional(asksAgainMilliseconds),
            "last_failure": .optional(lastFailure),
        ]
    }
}

/// An app's place in the order of eviction if memory were short.
public struct EvictionCandidate: Hashable, Sendable {
    /// The name of the app.
    public var app: String
    /// The app's state.
    public var state: String
    /// Bytes of the app in memory, as measured for the policy; nil if not measured.
    public var memoryBytes: Int64?
    /// The policy that put the app in this place.
    public var policy: String
    /// Why the app has this place, in the policy's words.
    public var reason: String

    /// Memberwise initializer.
    public init(app: String, state: String, memoryBytes: Int64?, policy: String, reason: String) {
        self.app = app
        self.state = state
        self.memoryBytes = memoryBytes
        self.policy = policy
        self.reason = reason
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        app = try fields.string("app")
        state = try fields.string("state")
        memoryBytes = try fields.optionalInt("memory_bytes")
        policy = try fields.string("policy")
        reason = try fields.string("reason")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "app": .string(app), "state": .string(state), "memory_bytes": .optional(memoryBytes),
            "policy": .string(policy), "reason": .string(reason),
        ]
    }
}
