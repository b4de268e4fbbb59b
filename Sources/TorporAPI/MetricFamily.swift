// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A metric and its values at one moment.
public struct MetricFamily: Hashable, Sendable {
    /// The metric.
    public var metric: Metric
    /// The metric's values; no two samples have the same labels.
    public var samples: [MetricSample]

    /// Memberwise initializer.
    public init(_ metric: Metric, _ samples: [MetricSample]) {
        self.metric = metric
        self.samples = samples
    }

    /// A metric with one value and no labels.
    public init(_ metric: Metric, _ value: Double) { self.init(metric, [MetricSample([], value)]) }

    /// The samples of a state set, which has a sample for each state: 1 for the current state, 0 for all others.
    public static func state(
        of metric: Metric,
        _ labels: [MetricLabel],
        is state: String,
        of states: [String]
    ) -> [MetricSample] {
        // If this version does not know the state, add a sample for it.
        (states.contains(state) ? states : states + [state]).map {
            MetricSample(labels + [MetricLabel(metric.rawValue, $0)], $0 == state ? 1 : 0)
        }
    }

    /// Decodes a JSON object; nil for a metric that this version does not know. Throws if a field is missing or has
    /// the wrong type.
    public init?(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        guard let metric = Metric(rawValue: try fields.string("name")) else { return nil }
        self.init(metric, try fields.list("samples") { json throws(FieldError) in try MetricSample(json: json) })
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "name": .string(metric.rawValue), "kind": .string(metric.kind.rawValue), "unit": .optional(metric.unit),
            "help": .string(metric.help), "samples": .array(samples.map(\.json)),
        ]
    }
}

/// A name and a value that distinguish a sample from others of the same metric.
public struct MetricLabel: Hashable, Sendable {
    /// The label's name.
    public var name: String
    /// The label's value, any text.
    public var value: String

    /// Memberwise initializer.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// A bucket of a histogram: how many values do not exceed a bound.
public struct MetricBucket: Hashable, Sendable {
    /// The bound, in the metric's unit.
    public var bound: Double
    /// How many values of the histogram do not exceed the bound.
    public var count: Int64

    /// Memberwise initializer.
    public init(bound: Double, count: Int64) {
        self.bound = bound
        self.count = count
    }
}

/// A quantile of a summary: the value that a given part of all values does not exceed.
public struct MetricQuantile: Hashable, Sendable {
    /// The part of all values, from 0 to 1.
    public var part: Double
    /// The value, in the metric's unit.
    public var value: Double

    /// Memberwise initializer.
    public init(part: Double, value: Double) {
        self.part = part
        self.value = value
    }
}

/// A value of a metric, or the distribution of several values (a histogram or a summary).
public struct MetricSample: Hashable, Sendable {
    /// The labels that distinguish the sample from others of the metric.
    public var labels: [MetricLabel]
    /// The value, in the metric's unit; for a histogram the sum of all values.
    public var value: Double
    /// How many values a histogram or a summary has; nil for other metrics.
    public var count: Int64?
    /// The buckets of a histogram, the lowest bound first. The bucket `+Inf` is omitted: its value is `count`.
    public var buckets: [MetricBucket] = []
    /// The quantiles of a summary; empty for other metrics.
    public var quantiles: [MetricQuantile] = []

    /// A sample with one value.
    public init(_ labels: [MetricLabel], _ value: Double) {
        self.labels = labels
        self.value = value
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
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

    /// Encodes the value as a JSON object.
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
