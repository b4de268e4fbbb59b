// SPDX-License-Identifier: Apache-2.0

public import TorporPolicyKit

/// The entry point for the supervisor.
@c(torpor_policy_entry)
public func entry(_ abi: UInt32) -> UnsafePointer<torpor_policy>? { Jetsam.exported(to: abi) }

/// Orders the evictions if memory is short.
///
/// Each app belongs to a band, and the bands are evicted one after the other. Within a band, apps with lower priority
/// are evicted first. Among apps of the same priority, the configuration decides: those unused for the longest time are
/// evicted first, or the largest. Active apps are evicted last, if at all.
struct Jetsam: Policy {
    static let description = PolicyDescription(
        name: "jetsam",
        version: "1.0",
        summary: "Orders the evictions when memory is short: by band, priority, and age or size.",
        events: [.eviction],
        needs: [.memory],
        options: [
            OptionDescription(
                "order",
                "\"age\" or \"size\"",
                default: "\"age\"",
                "what is evicted first among equal priorities of a band: the app unused for longest, or the largest"
            ),
            OptionDescription(
                "last_resort",
                "boolean",
                default: "false",
                "whether active apps are evicted too, after all others"
            ),
            OptionDescription("protect", "list of apps", default: "[]", "apps that are never evicted"),
            OptionDescription(
                "bands",
                "list of tables",
                default: "[]",
                "bands before those of the states; an app is in the first one that names it or its priority, "
                    + "else in the first one for its state"
            ),
            OptionDescription("bands.*.name", "string", default: "its number", "the name of the band in reasons"),
            OptionDescription(
                "bands.*.states",
                "list of states",
                default: "all",
                "the states of its apps: suspended, background, inactive, active"
            ),
            OptionDescription("bands.*.apps", "list of apps", default: "all", "its apps"),
            OptionDescription("bands.*.min_priority", "integer", default: "none", "the lowest priority of its apps"),
            OptionDescription("bands.*.max_priority", "integer", default: "none", "the highest priority of its apps"),
            OptionDescription("bands.*.order", "\"age\" or \"size\"", default: "order", "the same for this band"),
        ]
    )

    private let bands: [Band]
    private let isLastResort: Bool
    private let protected: [Selector]

    init(options: Options) throws(PolicyError) {
        let order = try options.word("order", default: Band.Order.age)
        isLastResort = try options.boolean("last_resort", default: false)
        protected = try options.selectors("protect")
        var bands: [Band] = []
        for (index, table) in try options.tables("bands").enumerated() {
            let band = try Band(table, number: index + 1, order: order)
            if band.states == [.active], !isLastResort {
                throw table.error("states", "has only active apps, which are not evicted unless last_resort = true")
            }
            bands.append(band)
        }
        self.bands = bands + Band.ofStates(order: order)
    }

    mutating func decide(_ event: Event, in view: View, advice: inout Advice) -> Verdict {
        guard case .eviction = event else { return .continue }
        let now = view.now
        let ranked = view.apps.compactMap { rank($0) }.sorted()
        for (number, candidate) in ranked.enumerated() {
            advice.order(candidate.app, UInt32(number), because: reason(candidate, now))
        }
        return .continue
    }

    private func rank(_ app: App) -> Candidate? {
        guard app.state != .notRunning, app.edge != .terminating, app.state != .active || isLastResort,
            !app.isNeverEvicted, !app.isRequired, !app.isTraced, !app.matches(protected),
            let index = bandIndex(app)
        else { return nil }
        return Candidate(app, band: index, order: bands[index].order)
    }

    private func bandIndex(_ app: App) -> Int? {
        bands.firstIndex { $0.isSpecific && $0.has(app) } ?? bands.firstIndex { $0.has(app) }
    }

    private func reason(_ candidate: Candidate, _ now: Time) -> String {
        let app = candidate.app
        var parts = [Quantity.text(app.memory)]
        if app.priority != 0 { parts.append("priority \(app.priority)") }
        if app.state.isForeground {
            parts.append("in the foreground")
        } else if let lastUse = app.lastUse {
            parts.append("last used \((now - lastUse).inWords) ago")
        } else {
            parts.append("never used")
        }
        return "band \(bands[candidate.band].name): " + parts.joined(separator: ", ")
    }
}

/// An app with the values that decide its place in the order.
private struct Candidate: Comparable {
    let app: App
    let band: Int
    private let isActive: Bool
    private let priority: Int
    /// The two values by which apps of a band with the same priority are ordered, smallest first.
    private let rank: (Int64, Int64)

    init(_ app: App, band: Int, order: Band.Order) {
        self.app = app
        self.band = band
        isActive = app.state == .active
        priority = app.priority
        let age = (app.lastUse ?? app.launchedAt)?.microseconds ?? .min
        let size = -Int64(clamping: app.memory)
        rank = order == .age ? (age, size) : (size, age)
    }

    static func == (left: Candidate, right: Candidate) -> Bool { left.app.place == right.app.place }

    static func < (left: Candidate, right: Candidate) -> Bool {
        if left.isActive != right.isActive { return right.isActive }
        if left.band != right.band { return left.band < right.band }
        if left.priority != right.priority { return left.priority < right.priority }
        if left.rank != right.rank { return left.rank < right.rank }
        return left.app.place < right.app.place
    }
}
