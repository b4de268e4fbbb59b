// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// Memory and memory pressure at one time.
public struct Sample: Sendable {
    /// The time of the sample in microseconds since 1970.
    public var at: Int64
    /// The machine's memory in bytes.
    public var total: UInt64
    /// The machine's available memory in bytes.
    public var available: UInt64
    /// Used swap in bytes.
    public var swapUsed: UInt64
    /// How many percent of the last 10 s some task waited for memory (PSI); nil if the kernel does not report it.
    public var some: Double?
    /// How many percent of the last 10 s all tasks waited for memory at once (PSI); nil if the kernel does not report
    /// it.
    public var full: Double?
    /// The memory in bytes of each app that uses any.
    public var apps: [(name: String, bytes: Int64)]

    /// Creates a sample.
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
        // Up to 1,800 samples are kept. To limit their size, list only the apps with the most memory, and merge all
        // others into one entry.
        let sorted = apps.sorted { ($0.bytes, $1.name) > ($1.bytes, $0.name) }
        self.apps = Array(sorted.prefix(Self.mostApps))
        let rest = sorted.dropFirst(Self.mostApps).reduce(0) { $0 + $1.bytes }
        if rest > 0 { self.apps.append(("", rest)) }
    }

    /// The most apps that a sample lists. The other apps are summed up under an empty name.
    public static let mostApps = 16

    /// The sample as JSON, for pages.
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

/// The samples and evictions of the last hour, and gaps during which no samples were taken.
public struct SampleRing: Sendable {
    /// A time without samples, with the reason.
    public struct Gap: Hashable, Sendable {
        /// The time of the last sample before the gap, in microseconds since 1970.
        public var from: Int64
        /// The time of the first sample after the gap, in microseconds since 1970; nil while the gap lasts.
        public var to: Int64?
        /// The reason as a sentence.
        public var why: String
    }

    private let capacity: Int
    private let age: Int64
    private var samples: [Sample] = []
    private var marks: [JSON] = []
    private var gaps: [Gap] = []
    private var pending: String?

    /// Creates an empty ring.
    ///
    /// - Parameters:
    ///   - capacity: the most samples that are kept.
    ///   - age: how long a sample is kept, in microseconds.
    public init(capacity: Int, age: Int64) {
        self.capacity = max(1, capacity)
        self.age = age
    }

    /// The number of samples.
    public var count: Int { samples.count }

    /// Starts a gap after the last sample.
    public mutating func pause(_ why: String) {
        guard pending == nil, let last = samples.last else { return }
        pending = why
        gaps.append(Gap(from: last.at, to: nil, why: why))
    }

    /// Adds a sample. This ends a gap.
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

    /// Adds an eviction, which the chart shows.
    public mutating func mark(_ event: JSON) {
        marks.append(event)
        if marks.count > 500 { marks.removeFirst(marks.count - 500) }
    }

    /// All samples, evictions and gaps as JSON, for a page.
    public var json: JSON {
        [
            "samples": .array(samples.map(\.json)), "evictions": .array(marks),
            "gaps": .array(
                gaps.map { ["from": .int($0.from), "to": .optional($0.to), "why": .string($0.why)] }
            ),
        ]
    }
}
