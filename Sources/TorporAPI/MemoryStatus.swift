// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The reply of Memory: how much memory each app has, and what torpord would do if memory were short.
public struct MemoryStatus: Hashable, Sendable {
    /// How short memory is now: `none`, `warning` or `critical`.
    public var level: String
    /// Why torpord does nothing when memory is short, in a sentence; nil if it acts.
    public var trouble: String?
    /// Bytes of memory in the machine.
    public var totalBytes: Int64
    /// Bytes available without swapping.
    public var availableBytes: Int64
    /// Bytes of swap; 0 if there is none.
    public var swapTotalBytes: Int64
    /// Bytes of swap that are not in use.
    public var swapFreeBytes: Int64
    /// The percentage of the last 10 s in which at least one task waited for memory; nil if the kernel does not report
    /// it.
    public var somePercent: Double?
    /// The percentage of the last 10 s in which all tasks waited for memory at the same time; nil if the kernel does
    /// not report it.
    public var fullPercent: Double?
    /// The policy that orders evictions; nil for the supervisor's own order.
    public var policy: String?
    /// All running apps, in the order in which torpord would evict them.
    public var apps: [AppMemory]
    /// The steps that torpord would take, one after the other, as long as the shortage lasts.
    public var steps: [MemoryStep]

    /// Sets the fields about the machine.
    public init(level: String, totalBytes: Int64, availableBytes: Int64, swapTotalBytes: Int64, swapFreeBytes: Int64) {
        self.level = level
        self.totalBytes = totalBytes
        self.availableBytes = availableBytes
        self.swapTotalBytes = swapTotalBytes
        self.swapFreeBytes = swapFreeBytes
        apps = []
        steps = []
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        level = try fields.string("level")
        trouble = try fields.optionalString("trouble")
        totalBytes = try fields.int("total_bytes")
        availableBytes = try fields.int("available_bytes")
        swapTotalBytes = try fields.int("swap_total_bytes")
        swapFreeBytes = try fields.int("swap_free_bytes")
        somePercent = try fields.optionalDouble("some_percent")
        fullPercent = try fields.optionalDouble("full_percent")
        policy = try fields.optionalString("policy")
        apps = try fields.list("apps") { json throws(FieldError) in try AppMemory(json: json) }
        steps = try fields.list("steps") { json throws(FieldError) in try MemoryStep(json: json) }
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "level": .string(level), "trouble": .optional(trouble), "total_bytes": .int(totalBytes),
            "available_bytes": .int(availableBytes), "swap_total_bytes": .int(swapTotalBytes),
            "swap_free_bytes": .int(swapFreeBytes), "some_percent": .optional(somePercent),
            "full_percent": .optional(fullPercent), "policy": .optional(policy),
            "apps": .array(apps.map(\.json)), "steps": .array(steps.map(\.json)),
        ]
    }
}

/// The memory of a running app.
public struct AppMemory: Hashable, Sendable {
    /// The name of the app.
    public var app: String
    /// The app's state.
    public var state: String
    /// Bytes of the app that are in memory: of its cgroup or, without a cgroup, the proportional set size (PSS) of its
    /// processes.
    public var residentBytes: Int64
    /// Bytes of the app in swap.
    public var swappedBytes: Int64
    /// The key `memory_limit` of the app's configuration, in bytes; nil for no limit.
    public var limitBytes: Int64?
    /// The key `priority` of the app's configuration.
    public var priority: Int64
    /// The key `evict` of the app's configuration.
    public var evict: String
    /// Whether an eviction would now terminate the app without notice.
    public var endsAtOnce: Bool
    /// Why the app would not be evicted, in words; nil if it would be.
    public var protection: String?

    /// Sets the required fields; the others keep their defaults.
    public init(
        app: String,
        state: String,
        residentBytes: Int64,
        swappedBytes: Int64,
        priority: Int64,
        evict: String,
        endsAtOnce: Bool
    ) {
        self.app = app
        self.state = state
        self.residentBytes = residentBytes
        self.swappedBytes = swappedBytes
        self.priority = priority
        self.evict = evict
        self.endsAtOnce = endsAtOnce
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        app = try fields.string("app")
        state = try fields.string("state")
        residentBytes = try fields.int("resident_bytes")
        swappedBytes = try fields.int("swapped_bytes")
        limitBytes = try fields.optionalInt("limit_bytes")
        priority = try fields.int("priority")
        evict = try fields.string("evict")
        endsAtOnce = try fields.bool("ends_at_once")
        protection = try fields.optionalString("protection")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "app": .string(app), "state": .string(state), "resident_bytes": .int(residentBytes),
            "swapped_bytes": .int(swappedBytes), "limit_bytes": .optional(limitBytes), "priority": .int(priority),
            "evict": .string(evict), "ends_at_once": .bool(endsAtOnce), "protection": .optional(protection),
        ]
    }
}

/// A step that torpord would take if memory were short.
public struct MemoryStep: Hashable, Sendable {
    /// The kind of step: `tell`, `purge`, `page-out`, `evict`, `end-background`, `end-inactive` or `end-active`.
    public var rung: String
    /// The apps that the step concerns. Only the step `tell` can concern several apps.
    public var apps: [String]
    /// The maximum number of bytes that the step would free; nil if unknown.
    public var bytes: Int64?
    /// Why these apps are chosen now, and which apps are skipped, in words.
    public var why: String

    /// Memberwise initializer.
    public init(rung: String, apps: [String], bytes: Int64?, why: String) {
        self.rung = rung
        self.apps = apps
        self.bytes = bytes
        self.why = why
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        rung = try fields.string("rung")
        apps = try fields.strings("apps")
        bytes = try fields.optionalInt("bytes")
        why = try fields.string("why")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        ["rung": .string(rung), "apps": .strings(apps), "bytes": .optional(bytes), "why": .string(why)]
    }
}
