// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// Memory and pressure at a moment.
public struct Sample: Sendable {
    /// Microseconds since 1970.
    public var at: Int64
    /// Bytes that the machine has.
    public var total: UInt64
    /// Bytes that could be had.
    public var available: UInt64
    /// Swap that is in use, in bytes.
    public var swapUsed: UInt64
    /// Percent of 10 s in which some task waited for memory; nil where the kernel does not say.
    public var some: Double?
    /// The same for all tasks at once.
    public var full: Double?
    /// Bytes of each app that has any.
    public var apps: [(name: String, bytes: Int64)]

    /// Makes one from its parts.
    public init(
        at: Int64,
        total: UInt64,
        available: UInt64,
        swapUsed: UInt64,
        some: Double?,
        full: Double?,
        apps: [(name: String, bytes: Int64)]
    ) {
        self.at = at
        self.total = total
        self.available = available
        self.swapUsed = swapUsed
        self.some = some
        self.full = full
        // A thousand apps in each of 1,800 samples would be a lot: the rest is one.
        let sorted = apps.sorted { ($0.bytes, $1.name) > ($1.bytes, $0.name) }
        self.apps = Array(sorted.prefix(Self.mostApps))
        let rest = sorted.dropFirst(Self.mostApps).reduce(0) { $0 + $1.bytes }
        if rest > 0 { self.apps.append(("", rest)) }
    }

    /// So many apps a sample are told apart; the others together have no name.
    public static let mostApps = 16

    /// It as an object.
    public var json: JSON {
        var members = JSONObject()
        for app in apps { members[app.name] = .int(app.bytes) }
        return [
            "at": .int(at), "total_bytes": .int(Int64(clamping: total)),
            "available_bytes": .int(Int64(clamping: available)), "swap_used_bytes": .int(Int64(clamping: swapUsed)),
            "some_percent": .optional(some), "full_percent": .optional(full), "apps": .object(members),
        ]
    }
}

/// The samples of the last hour, what was evicted meanwhile, and when nobody looked.
public struct SampleRing: Sendable {
    /// A time without samples, and why.
    public struct Gap: Hashable, Sendable {
        /// The last sample before it, microseconds since 1970.
        public var from: Int64
        /// The first one behind it; nil while it lasts.
        public var to: Int64?
        /// A sentence.
        public var why: String
    }

    private let capacity: Int
    private let age: Int64
    private var samples: [Sample] = []
    private var marks: [JSON] = []
    private var gaps: [Gap] = []
    private var pending: String?

    /// An empty one.
    ///
    /// - Parameters:
    ///   - capacity: so many samples at most.
    ///   - age: how old a sample may be, in microseconds.
    public init(capacity: Int, age: Int64) {
        self.capacity = max(1, capacity)
        self.age = age
    }

    /// How many samples there are.
    public var count: Int { samples.count }

    /// From the last sample on there is none, for that reason.
    public mutating func pause(_ why: String) {
        guard pending == nil, let last = samples.last else { return }
        pending = why
        gaps.append(Gap(from: last.at, to: nil, why: why))
    }

    /// Takes a sample.
    public mutating func take(_ sample: Sample) {
        if pending != nil {
            gaps[gaps.count - 1].to = sample.at
            pending = nil
        }
        samples.append(sample)
        if samples.count > capacity + 64 { samples.removeFirst(samples.count - capacity) }
        let oldest = sample.at - age
        if let first = samples.first, first.at < oldest - age / 32 {
            samples.removeFirst(samples.firstIndex { $0.at >= oldest } ?? samples.count)
        }
        gaps.removeAll { ($0.to ?? .max) < oldest }
        marks.removeAll { ($0["at"]?.intValue ?? 0) < oldest }
    }

    /// Takes an event that is to be seen in the picture: an app was ended for want of memory.
    public mutating func mark(_ event: JSON) {
        marks.append(event)
        if marks.count > 500 { marks.removeFirst(marks.count - 500) }
    }

    /// Everything, for a page.
    public var json: JSON {
        [
            "samples": .array(samples.map(\.json)), "evictions": .array(marks),
            "gaps": .array(
                gaps.map { ["from": .int($0.from), "to": .optional($0.to), "why": .string($0.why)] }
            ),
        ]
    }
}
