// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs
import Linux
import Telemetry
import TorporAPI
import Varlink

struct MetricsVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "metrics",
        abstract: "Shows metrics, for Prometheus and others.",
        discussion: "‘torpor-web’ serves the same at /metrics. docs/metrics.md explains each metric."
    )
    .examples(
        "torpor metrics",
        "torpor metrics --format prometheus >torpor.prom"
    )

    @Option(help: "The format: openmetrics, or prometheus for the older text format.")
    var format = Format.openmetrics
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let manager = try Manager(options)
        var replies: [JSON] = []
        for request in MetricSnapshot.requests { replies.append(try manager.call(request)) }
        let read = replies
        let snapshot = try Manager.read { () throws(FieldError) in try MetricSnapshot(replies: read) }
        guard !options.json else { return Output.document(.array(snapshot.families.map(\.json))) }
        Output.write(format.text.text(snapshot.families))
    }
}

enum Format: String, ExpressibleByArgument, CaseIterable {
    case openmetrics, prometheus

    package var text: MetricText {
        switch self {
        case .openmetrics: .openMetrics
        case .prometheus: .prometheus
        }
    }
}
