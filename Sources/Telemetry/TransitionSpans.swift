// SPDX-License-Identifier: Apache-2.0

public import TorporAPI
import Varlink

/// Exports the lives of apps as OpenTelemetry traces: each run of an app is a trace, with a span for each state and
/// each transition that takes time.
///
/// A span is written when it ends, as OTLP/JSON with one request per line. The OpenTelemetry Collector reads that
/// from files (receiver `otlpjsonfile`) and accepts it at `/v1/traces`.
/// https://opentelemetry.io/docs/specs/otlp/
public struct TransitionSpans: Sendable {
    private var runs: [String: Run] = [:]

    /// A run with spans that have not ended.
    private struct Run: Sendable {
        var incarnation: Int64
        var began: Int64
        var state: (name: String, since: Int64)?
        var transition: (name: String, since: Int64)?
    }

    /// Creates an exporter without runs.
    public init() {}

    /// Adds an event; events must come in the order of their numbers.
    ///
    /// - Returns: a line for each span that ends with the event.
    public mutating func add(_ event: EventRecord) -> [String] {
        guard let app = event.app, let incarnation = event.incarnation, incarnation > 0 else { return [] }
        var spans: [JSON] = []
        if let run = runs[app], run.incarnation != incarnation { runs[app] = nil }
        switch event.kind {
        case "launch": if runs[app] == nil { runs[app] = Run(incarnation: incarnation, began: event.at) }
        case "transition":
            guard let name = event.to else { break }
            finishTransition(of: app, event.at, &spans)
            runs[app, default: Run(incarnation: incarnation, began: event.at)].transition = (name, event.at)
        case "state":
            // If the run has ended already, by an event of the kind `exit`, a change to not-running begins no new run.
            guard let name = event.to, name != "not-running" || runs[app] != nil else { break }
            var run = runs[app] ?? Run(incarnation: incarnation, began: event.at)
            runs[app] = run
            finishTransition(of: app, event.at, &spans)
            if let state = run.state {
                spans.append(span(app, run, state.name, state.since, event.at, [("torpor.next_state", name)]))
            }
            run.transition = nil
            run.state = name == "not-running" ? nil : (name, event.at)
            runs[app] = run
        case "exit":
            guard let run = runs[app] else { break }
            finishTransition(of: app, event.at, &spans)
            let reason = [("torpor.reason", event.reason ?? "unknown")]
            if let state = run.state { spans.append(span(app, run, state.name, state.since, event.at, reason)) }
            let isFailure = !Self.harmless.contains(event.reason ?? "")
            spans.append(
                span(
                    app,
                    run,
                    "run \(incarnation)",
                    run.began,
                    event.at,
                    reason,
                    isRoot: true,
                    isFailure ? event.text : nil
                )
            )
            runs[app] = nil
        default: break
        }
        return spans.map { Self.request(app, $0) }
    }

    private mutating func finishTransition(of app: String, _ at: Int64, _ spans: inout [JSON]) {
        guard let run = runs[app], let transition = run.transition else { return }
        spans.append(span(app, run, transition.name, transition.since, at))
        runs[app]?.transition = nil
    }

    /// Reasons for an exit that are no errors.
    private static let harmless: Set = [
        "exit-success", "stopped", "force-quit", "evicted", "exits-on-suspend", "shutdown", "replaced",
        "permission-changed", "protected-data-open",
    ]

    private func span(
        _ app: String,
        _ run: Run,
        _ name: String,
        _ began: Int64,
        _ ended: Int64,
        _ attributes: [(String, String)] = [],
        isRoot: Bool = false,
        _ failure: String? = nil
    ) -> JSON {
        let trace = [app, "\(run.incarnation)", "\(run.began)"]
        let root = Self.hexadecimal(Self.hash(trace + ["root"]))
        var object: JSONObject = [
            "traceId": .string(Self.hexadecimal(Self.hash(trace)) + Self.hexadecimal(Self.hash(trace + ["trace"]))),
            "spanId": .string(isRoot ? root : Self.hexadecimal(Self.hash(trace + [name, "\(began)"]))),
            "name": .string(name),
            "kind": 1,
            "startTimeUnixNano": .string("\(began)000"),
            "endTimeUnixNano": .string("\(max(began, ended))000"),
            "attributes": .array(
                ([("torpor.app", app)] + attributes).map(Self.attribute)
                    + [["key": "torpor.incarnation", "value": ["intValue": .string("\(run.incarnation)")]]]
            ),
        ]
        if !isRoot { object["parentSpanId"] = .string(root) }
        if let failure { object["status"] = ["code": 2, "message": .string(failure)] }
        return .object(object)
    }

    private static func request(_ app: String, _ span: JSON) -> String {
        let resource = [("service.name", app), ("service.namespace", "torpor")].map(attribute)
        let request: JSON = [
            "resourceSpans": [
                [
                    "resource": ["attributes": .array(resource)],
                    "scopeSpans": [
                        ["scope": ["name": "torpor", "version": .string(TorporVersion.text)], "spans": [span]]
                    ],
                ]
            ]
        ]
        return request.description
    }

    private static func attribute(_ name: String, _ value: String) -> JSON {
        ["key": .string(name), "value": ["stringValue": .string(value)]]
    }

    /// Computes an id by FNV-1a. All readers of the same events must get the same ids; nothing else is required of the
    /// hash.
    private static func hash(_ parts: [String]) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for part in parts {
            for byte in Array(part.utf8) + [0] { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        }
        // OpenTelemetry reserves the id 0.
        return hash == 0 ? 1 : hash
    }

    private static func hexadecimal(_ number: UInt64) -> String {
        let text = String(number, radix: 16)
        return String(repeating: "0", count: 16 - text.count) + text
    }
}
