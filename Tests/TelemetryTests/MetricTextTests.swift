// SPDX-License-Identifier: Apache-2.0

import Telemetry
import Testing
import TorporAPI
import Varlink

@Suite("Metrics as text") struct MetricTextTests {
    private func app(_ name: String) -> MetricLabel { MetricLabel("app", name) }

    @Test("A counter has its suffix at its samples, and in the older format in its name")
    func counter() {
        let family = MetricFamily(.appLaunches, [MetricSample([app("web")], 3)])
        #expect(
            MetricText.openMetrics.text([family]) == """
                # TYPE torpor_app_launches counter
                # HELP torpor_app_launches How often an app was launched.
                torpor_app_launches_total{app="web"} 3
                # EOF

                """
        )
        #expect(
            MetricText.prometheus.text([family]) == """
                # TYPE torpor_app_launches_total counter
                # HELP torpor_app_launches_total How often an app was launched.
                torpor_app_launches_total{app="web"} 3

                """
        )
    }

    @Test("A histogram has all buckets, each with those below, the sum and the count")
    func histogram() {
        var sample = MetricSample([MetricLabel("transition", "suspending")], 1.25)
        sample.count = 3
        sample.buckets = [MetricBucket(bound: 0.5, count: 2), MetricBucket(bound: 1, count: 2)]
        let text = MetricText.openMetrics.text([MetricFamily(.transitionDuration, [sample])])
        #expect(
            text.split(separator: "\n").dropFirst(3) == [
                #"torpor_transition_duration_seconds_bucket{transition="suspending",le="0.5"} 2"#,
                #"torpor_transition_duration_seconds_bucket{transition="suspending",le="1.0"} 2"#,
                #"torpor_transition_duration_seconds_bucket{transition="suspending",le="+Inf"} 3"#,
                #"torpor_transition_duration_seconds_sum{transition="suspending"} 1.25"#,
                #"torpor_transition_duration_seconds_count{transition="suspending"} 3"#,
                "# EOF",
            ]
        )
        #expect(text.contains("# UNIT torpor_transition_duration_seconds seconds\n"))
    }

    @Test("A state is one of several, and one that is not known is there all the same")
    func state() {
        let samples = MetricFamily.state(of: .appState, [app("web")], is: "dreaming", of: ["active", "suspended"])
        let lines = MetricText.openMetrics.text([MetricFamily(.appState, samples)]).split(separator: "\n")
        #expect(
            lines[2...4] == [
                #"torpor_app_state{app="web",torpor_app_state="active"} 0"#,
                #"torpor_app_state{app="web",torpor_app_state="suspended"} 0"#,
                #"torpor_app_state{app="web",torpor_app_state="dreaming"} 1"#,
            ]
        )
        #expect(lines[0] == "# TYPE torpor_app_state stateset")
        let older = MetricText.prometheus.text([MetricFamily(.appState, samples)])
        #expect(older.hasPrefix("# TYPE torpor_app_state gauge\n"))
    }

    @Test("What others wrote ends no label and no line")
    func escaping() {
        let hostile = "a\"b\\c\nd"
        let text = MetricText.openMetrics.text([MetricFamily(.appWakes, [MetricSample([app(hostile)], 1)])])
        #expect(text.contains(#"{app="a\"b\\c\nd"} 1"# + "\n"))
    }

    @Test("A client gets the format that it asks for")
    func accepting() {
        let browser = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
        #expect(MetricText(accepting: browser) == .openMetrics)
        #expect(MetricText(accepting: "text/plain") == .prometheus)
        #expect(MetricText(accepting: nil) == .prometheus)
    }

    @Test("Names and units are as OpenMetrics wants them", arguments: Metric.allCases)
    func names(_ metric: Metric) {
        #expect(metric.rawValue.allSatisfy { $0.isASCII && ($0.isLowercase || $0 == "_") })
        #expect(!metric.rawValue.hasSuffix("_total") || metric.kind == .gauge)
        #expect(metric.help.hasSuffix(".") && metric.help.count < 120)
        if metric.kind == .stateset { #expect(metric.labels.last == metric.rawValue) }
    }

    @Test("A family goes over the wire and back, and one of a later version is passed over")
    func wire() throws {
        var sample = MetricSample([MetricLabel("transition", "launching")], 0.5)
        sample.count = 1
        sample.buckets = [MetricBucket(bound: 1, count: 1)]
        let family = MetricFamily(.transitionDuration, [sample])
        #expect(try MetricFamily(json: family.json) == family)
        #expect(try MetricFamily(json: ["name": "torpor_dreams", "samples": []]) == nil)
    }
}
