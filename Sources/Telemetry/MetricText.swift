// SPDX-License-Identifier: Apache-2.0

public import TorporAPI

/// Text formats of metrics for Prometheus and compatible tools.
public enum MetricText: String, CaseIterable, Sendable {
    /// The OpenMetrics format (https://prometheus.io/docs/specs/om/open_metrics_spec/).
    case openMetrics = "openmetrics"
    /// The older format, which the textfile collector of node_exporter and `promtool check metrics` read.
    /// https://prometheus.io/docs/instrumenting/exposition_formats/
    case prometheus

    /// The value of the header Content-Type.
    public var contentType: String {
        switch self {
        case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
        case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
        }
    }

    /// The format for a client's Accept header.
    public init(accepting header: String?) {
        self = header?.contains("application/openmetrics-text") ?? false ? .openMetrics : .prometheus
    }

    /// The metrics as text. Families without samples are left out.
    public func text(_ families: [MetricFamily]) -> String {
        var text = ""
        for family in families where !family.samples.isEmpty { write(family, to: &text) }
        if self == .openMetrics { text += "# EOF\n" }
        return text
    }

    private func write(_ family: MetricFamily, to text: inout String) {
        let metric = family.metric
        let name = self == .openMetrics ? metric.rawValue : metric.rawValue + suffix(metric)
        text += "# TYPE \(name) \(kind(metric))\n"
        if self == .openMetrics, let unit = metric.unit { text += "# UNIT \(name) \(unit)\n" }
        text += "# HELP \(name) \(Self.escape(metric.help, quotes: self == .openMetrics))\n"
        for sample in family.samples { write(sample, of: metric, to: &text) }
    }

    private func write(_ sample: MetricSample, of metric: Metric, to text: inout String) {
        func line(_ suffix: String, _ more: MetricLabel? = nil, _ value: Double) {
            let labels = (sample.labels + (more.map { [$0] } ?? []))
                .map { "\($0.name)=\"\(Self.escape($0.value, quotes: true))\"" }
            text += metric.rawValue + suffix
            if !labels.isEmpty { text += "{" + labels.joined(separator: ",") + "}" }
            text += " \(Self.number(value))\n"
        }
        switch metric.kind {
        case .counter, .info, .gauge, .stateset: line(suffix(metric), nil, sample.value)
        case .histogram:
            for bucket in sample.buckets {
                line("_bucket", MetricLabel("le", number(bound: bucket.bound)), Double(bucket.count))
            }
            line("_bucket", MetricLabel("le", "+Inf"), Double(sample.count ?? 0))
            line("_sum", nil, sample.value)
            line("_count", nil, Double(sample.count ?? 0))
        case .summary:
            for quantile in sample.quantiles {
                line("", MetricLabel("quantile", number(bound: quantile.part)), quantile.value)
            }
            if let count = sample.count { line("_count", nil, Double(count)) }
        }
    }

    private func suffix(_ metric: Metric) -> String {
        switch metric.kind {
        case .counter: "_total"
        case .info: "_info"
        case .gauge, .histogram, .stateset, .summary: ""
        }
    }

    private func kind(_ metric: Metric) -> String {
        switch metric.kind {
        case .info, .stateset: self == .openMetrics ? metric.kind.rawValue : "gauge"
        case .counter, .gauge, .histogram, .summary: metric.kind.rawValue
        }
    }

    /// OpenMetrics requires bounds and quantiles in the form of floating-point numbers.
    private func number(bound: Double) -> String {
        let text = Self.number(bound)
        return text.contains(".") || text.contains("e") ? text : text + ".0"
    }

    /// The shortest text that parses to the same number.
    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value > 0 ? "+Inf" : "-Inf" }
        if let whole = Int64(exactly: value), abs(whole) < 1 << 53 { return "\(whole)" }
        return "\(value)"
    }

    /// Escapes text so that it cannot end a line or a label.
    static func escape(_ text: String, quotes: Bool) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += #"\\"#
            case "\n": result += #"\n"#
            case "\"" where quotes: result += #"\""#
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
