// SPDX-License-Identifier: Apache-2.0

import TorporPolicyKit

/// A group of apps. All apps of a band are evicted before those of the next band.
struct Band {
    /// The value by which apps of the same priority are ordered.
    enum Order: String, CaseIterable {
        case age
        case size
    }

    /// The states in which apps can be evicted.
    private enum Ended: String, CaseIterable {
        case suspended
        case background
        case inactive
        case active

        var state: State {
            switch self {
            case .suspended: .suspended
            case .background: .background
            case .inactive: .inactive
            case .active: .active
            }
        }
    }

    let name: String
    let order: Order
    /// The states in which apps belong to the band; empty for all states.
    let states: [State]
    private let apps: [Selector]
    private let priorities: ClosedRange<Int>

    /// Whether the band selects apps by more than their state.
    let isSpecific: Bool

    /// Reads a band from the configuration.
    init(_ options: Options, number: Int, order: Order) throws(PolicyError) {
        name = try options.string("name", default: "\(number)")
        self.order = try options.word("order", default: order)
        states = try options.words("states", default: [Ended]()).map(\.state)
        apps = try options.selectors("apps")
        let range = Int(Int32.min)...Int(Int32.max)
        let least = try options.integer("min_priority", default: range.lowerBound, in: range)
        let most = try options.integer("max_priority", default: range.upperBound, in: range)
        guard least <= most else { throw options.error("max_priority", "must not be less than min_priority") }
        priorities = least...most
        isSpecific = !apps.isEmpty || options.has("min_priority") || options.has("max_priority")
        guard isSpecific || !states.isEmpty else {
            throw options.error("apps", "is missing: without apps, states or a priority the band would have all apps")
        }
    }

    private init(_ state: State, order: Order) {
        name = state.name
        self.order = order
        states = [state]
        apps = []
        priorities = .min ... .max
        isSpecific = false
    }

    /// The default bands, one for each state. They follow the configured bands.
    static func ofStates(order: Order) -> [Band] {
        Ended.allCases.map { Band($0.state, order: order) }
    }

    /// Whether the app belongs to the band.
    func has(_ app: App) -> Bool {
        (states.isEmpty || states.contains(app.state)) && priorities.contains(app.priority)
            && (apps.isEmpty || app.matches(apps))
    }
}
