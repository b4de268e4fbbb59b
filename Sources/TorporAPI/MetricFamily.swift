// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// What a metric has to tell at one moment.
public struct MetricFamily: Hashable, Sendable {
    /// Which one.
    public var metric: Metric
    /// Its values; no two have the same labels.
    public var samples: [MetricSample]

    /// Makes one from its parts.
    public init(_ metric: Metric, _ samples: [MetricSample]) {
        self.metric = metric
        self.samples = samples
    }

    /// Makes one of a value without labels.
    public init(_ metric: Metric, _ value: Double) { self.init(metric, [MetricSample([], value)]) }

    /// Makes one of which one of some names is so: a state of several.
    public static func state(
        of metric: Metric,
        _ labels: [MetricLabel],
        is state: String,
        of states: [String]
    ) -> [MetricSample] {
        // One that this version does not know is shown all the same.
        (states.contains(state) ? states : states + [state]).map {
            MetricSample(labels + [MetricLabel(metric.rawValue, $0)], $0 == state ? 1 : 0)
        }
    }

    /// Reads it from its object; nil for a metric that this version does not know.
    public init?(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        guard let metric = Metric(rawValue: try fields.string("name")) else { return nil }
        self.init(metric, try fields.list("samples") { json throws(FieldError) in try MetricSample(json: json) })
    }

    /// It as an object.
    public var json: JSON {
        [
            "name": .string(metric.rawValue), "kind": .string(metric.kind.rawValue), "unit": .optional(metric.unit),
            "help": .string(metric.help), "samples": .array(samples.map(\.json)),
        ]
    }
}

/// A name and a value that tell a sample from others of its metric.
public struct MetricLabel: Hashable, Sendable {
    /// The name.
    public var name: String
    /// The value, any text.
    public var value: String

    /// Makes one from its parts.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// How many values of a histogram were not above a bound.
public struct MetricBucket: Hashable, Sendable {
    /// The bound, in the metric's unit.
    public var bound: Double
    /// How many were not above it.
    public var count: Int64

    /// Makes one from its parts.
    public init(bound: Double, count: Int64) {
        self.bound = bound
        self.count = count
    }
}

/// The value that a part of all values of a summary does not exceed.
public struct MetricQuantile: Hashable, Sendable {
    /// The part, 0 to 1.
    public var part: Double
    /// The value, in the metric's unit.
    public var value: Double

    /// Makes one from its parts.
    public init(part: Double, value: Double) {
        self.part = part
        self.value = value
    }
}

/// One value of a metric, or how many values there were in which range.
public struct MetricSample: Hashable, Sendable {
    /// What tells it from others.
    public var labels: [MetricLabel]
    /// The value, in the metric's unit; for a histogram the sum of all values.
    public var value: Double
    /// How many values a histogram or a summary has.
    public var count: Int64?
    /// Of a histogram, the lowest bound first. The last one's is `count`.
    public var buckets: [MetricBucket] = []
    /// Of a summary.
    public var quantiles: [MetricQuantile] = []

    /// Makes one with a value.
    public init(_ labels: [MetricLabel], _ value: Double) {
        self.labels = labels
        self.value = value
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        let members = fields["labels"]?.objectValue?.members ?? []
        labels = members.compactMap { member in member.value.stringValue.map { MetricLabel(member.name, $0) } }
        value = try fields.optionalDouble("value") ?? 0
        count = try fields.optionalInt("count")
        buckets = try (fields["buckets"]?.arrayValue ?? []).map { json throws(FieldError) in
            let fields = try Fields(json)
            return MetricBucket(bound: try fields.optionalDouble("le") ?? 0, count: try fields.int("count"))
        }
        quantiles = try (fields["quantiles"]?.arrayValue ?? []).map { json throws(FieldError) in
            let fields = try Fields(json)
            let part = try fields.optionalDouble("quantile") ?? 0
            return MetricQuantile(part: part, value: try fields.optionalDouble("value") ?? 0)
        }
    }

    /// It as an object.
    public var json: JSON {
        var object = JSONObject()
        object["labels"] = .object(JSONObject(members: labels.map { .init(name: $0.name, value: .string($0.value)) }))
        object["value"] = .double(value)
        if let count { object["count"] = .int(count) }
        if !buckets.isEmpty {
            object["buckets"] = .array(buckets.map { ["le": .double($0.bound), "count": .int($0.count)] })
        }
        if !quantiles.isEmpty {
            object["quantiles"] = .array(
                quantiles.map { ["quantile": .double($0.part), "value": .double($0.value)] }
            )
        }
        return .object(object)
    }
}
