// SPDX-License-Identifier: Apache-2.0

package import Lifecycle
import Linux
package import TorporAPI

/// Counts since this torpord started, for `torpor metrics`.
///
/// All counts start at zero with every torpord, as counters of a process should.
package struct Counters {
    private var events: [String: Int] = [:]
    private var transitions: [Pair: Int] = [:]
    private var durations: [Transition: DurationHistogram] = [:]
    private var missed: [DeadlineKind: Int] = [:]
    private var wakes: [String: DurationHistogram] = [:]
    private var wakesHeldBack = 0
    private var steps: [String: Int] = [:]

    private struct Pair: Hashable {
        var from: String
        var to: String
    }

    /// Counts an event that was recorded.
    mutating func noted(_ kind: EventKind, from: String?, to: String?, reason: String?) {
        events[kind.category, default: 0] += 1
        switch kind {
        case .entered:
            if let from, let to, from != to { transitions[Pair(from: from, to: to), default: 0] += 1 }
        case .madeRoom:
            if let reason, reason != "freed" { steps[reason, default: 0] += 1 }
        default: break
        }
    }

    /// Counts a transition that an app completed, and its duration.
    mutating func finished(_ transition: Transition, after time: Duration) {
        durations[transition, default: DurationHistogram()].add(time)
    }

    /// Counts a deadline that an app missed.
    package mutating func missed(_ deadline: DeadlineKind) { missed[deadline, default: 0] += 1 }

    /// Counts an event that woke or launched an app. `time` is the time from the event until the app ran.
    package mutating func woken(by source: WakeSource, after time: Duration) {
        wakes[source.rawValue, default: DurationHistogram()].add(time)
    }

    /// Counts an event that did not wake an app because the app's events are held back.
    package mutating func heldBack() { wakesHeldBack += 1 }

    /// The counts as metrics.
    package var families: [MetricFamily] {
        func counted(_ metric: Metric, _ counts: [String: Int]) -> MetricFamily {
            let name = metric.labels[0]
            return MetricFamily(
                metric,
                counts.sorted { $0.key < $1.key }.map { MetricSample([MetricLabel(name, $0.key)], Double($0.value)) }
            )
        }
        func timed(_ metric: Metric, _ times: [String: DurationHistogram]) -> MetricFamily {
            let name = metric.labels[0]
            return MetricFamily(
                metric,
                times.sorted { $0.key < $1.key }.map { $0.value.sample([MetricLabel(name, $0.key)]) }
            )
        }
        let pairs = transitions.sorted { ($0.key.from, $0.key.to) < ($1.key.from, $1.key.to) }
        return [
            counted(.events, events),
            MetricFamily(
                .transitions,
                pairs.map {
                    MetricSample([MetricLabel("from", $0.key.from), MetricLabel("to", $0.key.to)], Double($0.value))
                }
            ),
            timed(.transitionDuration, Dictionary(uniqueKeysWithValues: durations.map { ($0.key.rawValue, $0.value) })),
            counted(.deadlinesMissed, Dictionary(uniqueKeysWithValues: missed.map { ($0.key.rawValue, $0.value) })),
            timed(.wakeLatency, wakes),
            MetricFamily(.wakesHeldBack, Double(wakesHeldBack)),
            counted(.memorySteps, steps),
        ]
    }
}

/// Counts about one app since this torpord started.
package struct AppCounters {
    package var launches: UInt32 = 0
    package var wakes: UInt32 = 0
    /// How often the app ended, for each reason. The list is searched linearly, because few apps have more than two or
    /// three reasons.
    package private(set) var endings: [(reason: TerminationReason, count: UInt32)] = []

    package mutating func ended(_ reason: TerminationReason) {
        if let index = endings.firstIndex(where: { $0.reason == reason }) {
            endings[index].count &+= 1
        } else {
            endings.append((reason, 1))
        }
    }
}

/// A histogram with cumulative buckets, as OpenMetrics defines them.
struct DurationHistogram {
    /// Upper bounds of the buckets, in seconds: from 0.1 ms, shorter than a suspension, to 60 s, longer than usual
    /// deadlines.
    static let bounds: [Double] = [
        0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
    ]

    private var counts = [UInt32](repeating: 0, count: bounds.count)
    private var count = 0
    private var sum = Duration.zero

    mutating func add(_ time: Duration) {
        let time = max(time, .zero)
        let seconds = time.inSeconds
        if let index = Self.bounds.firstIndex(where: { seconds <= $0 }) { counts[index] &+= 1 }
        count += 1
        sum += time
    }

    func sample(_ labels: [MetricLabel]) -> MetricSample {
        var sample = MetricSample(labels, sum.inSeconds)
        sample.count = Int64(count)
        var below: Int64 = 0
        for (bound, number) in zip(Self.bounds, counts) {
            below += Int64(number)
            sample.buckets.append(MetricBucket(bound: bound, count: below))
        }
        return sample
    }
}
