// SPDX-License-Identifier: Apache-2.0

public import TorporAPI
public import Varlink

/// The state of a supervisor at one time, and the metrics derived from it.
public struct MetricSnapshot: Sendable {
    /// The reply of Describe.
    public var supervisor: SupervisorInfo
    /// The reply of List.
    public var apps: [AppSummary]
    /// The reply of Policies.
    public var policies: [PolicyStatus]
    /// The reply of Metrics: counters that only torpord has.
    public var counted: [MetricFamily]

    /// The calls whose replies make a snapshot.
    public static let requests: [ManagerRequest] = [.describe, .list, .policies, .metrics]

    /// Decodes the replies to ``requests``, in their order.
    public init(replies: [JSON]) throws(FieldError) {
        guard replies.count == Self.requests.count else {
            throw FieldError(field: "replies", problem: "must be \(Self.requests.count)")
        }
        supervisor = try SupervisorInfo(json: replies[0])
        apps = try Fields(replies[1]).list("apps") { json throws(FieldError) in try AppSummary(json: json) }
        policies = try Fields(replies[2]).list("policies") { json throws(FieldError) in try PolicyStatus(json: json) }
        counted = try Fields(replies[3]).list("metrics") { json throws(FieldError) in try MetricFamily(json: json) }
            .compactMap { $0 }
    }

    /// All metrics, in the order of ``Metric``.
    public var families: [MetricFamily] {
        let known = counted + own
        return Metric.allCases.compactMap { metric in known.first { $0.metric == metric } }
    }

    /// The metrics that are computed from the replies to Describe, List and Policies.
    private var own: [MetricFamily] {
        let info = [MetricLabel("version", supervisor.version), MetricLabel("generation", "\(supervisor.instance)")]
        func each(_ metric: Metric, _ value: (AppSummary) -> Double?) -> MetricFamily {
            MetricFamily(
                metric,
                apps.compactMap { app in value(app).map { MetricSample([MetricLabel("app", app.name)], $0) } }
            )
        }
        return [
            MetricFamily(.supervisor, [MetricSample(info, 1)]),
            MetricFamily(
                .apps,
                Self.states.map { state in
                    let count = apps.count { $0.state == state }
                    return MetricSample([MetricLabel("state", state)], Double(count))
                }
            ),
            MetricFamily(
                .appState,
                apps.flatMap {
                    MetricFamily.state(of: .appState, [MetricLabel("app", $0.name)], is: $0.state, of: Self.states)
                }
            ),
            each(.appFailed) { $0.failed ? 1 : 0 },
            each(.appMemory) { $0.memoryBytes.map(Double.init) },
            each(.appProcessor) { $0.cpuSeconds },
            each(.appUptime) { $0.uptime },
            each(.appRestarts) { Double($0.restarts) },
            each(.appHolds) { Double($0.holds.count) },
        ] + ofPolicies
    }

    private var ofPolicies: [MetricFamily] {
        func label(_ policy: PolicyStatus) -> MetricLabel { MetricLabel("policy", policy.name) }
        return [
            MetricFamily(
                .policyState,
                policies.flatMap {
                    MetricFamily.state(of: .policyState, [label($0)], is: $0.state, of: Self.policyStates)
                }
            ),
            MetricFamily(
                .policyAnswer,
                policies.map { policy in
                    var sample = MetricSample([label(policy)], 0)
                    sample.count = policy.questions
                    let values = [(0.5, policy.medianMicroseconds), (0.99, policy.p99Microseconds)]
                    sample.quantiles = values.compactMap { part, value in
                        value.map { MetricQuantile(part: part, value: $0 / 1_000_000) }
                    }
                    return sample
                }
            ),
            MetricFamily(
                .policyAdvice,
                policies.flatMap { policy in
                    [
                        ("taken", policy.taken), ("idle", policy.idle), ("told", policy.told),
                        ("refused", policy.refused), ("damped", policy.damped), ("overruled", policy.overruled),
                    ].map { MetricSample([label(policy), MetricLabel("outcome", $0.0)], Double($0.1)) }
                }
            ),
            MetricFamily(.policyFailures, policies.map { MetricSample([label($0)], Double($0.failures)) }),
            MetricFamily(.policyStalls, policies.map { MetricSample([label($0)], Double($0.stalls)) }),
        ]
    }

    private static let states = ["not-running", "inactive", "active", "background", "suspended"]
    private static let policyStates = ["loading", "ready", "waiting", "refused", "quarantined"]
}
