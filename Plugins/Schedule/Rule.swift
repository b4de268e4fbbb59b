// SPDX-License-Identifier: Apache-2.0

import CalendarTime
import TorporPolicyKit

/// An entry of `rules`: some apps, a window, and their states in it and outside of it.
struct Rule {
    /// The states that a rule can set.
    enum Target: String, CaseIterable {
        case active
        case background
        case suspended
        case notRunning = "not-running"

        var state: State {
            switch self {
            case .active: .active
            case .background: .background
            case .suspended: .suspended
            case .notRunning: .notRunning
            }
        }
    }

    /// Its number from 1, for reasons.
    let number: Int
    let apps: [Selector]
    private let window: Window
    private let name: String?
    private let inside: State
    /// Nil: outside its windows the rule decides nothing.
    private let outside: State?
    /// The phase of the window when last checked.
    private(set) var phase = Window.Phase(isOpen: false)

    init(number: Int, options: Options, zones: some TimeZones) throws(PolicyError) {
        self.number = number
        for key in ["apps", "from", "to", "state"] where !options.has(key) {
            throw options.error(key, "is missing: every rule needs apps, from, to and state")
        }
        apps = try options.selectors("apps")
        if apps.isEmpty { throw options.error("apps", "names no app") }
        window = Window(
            from: try Self.expression("from", options, zones),
            to: try Self.expression("to", options, zones)
        )
        name = options.has("name") ? try options.string("name", default: "") : nil
        inside = try options.word("state", default: Target.active).state
        outside = options.has("otherwise") ? try options.word("otherwise", default: Target.active).state : nil
    }

    private static func expression(
        _ key: String,
        _ options: Options,
        _ zones: some TimeZones
    ) throws(PolicyError) -> CalendarExpression {
        let text = try options.string(key, default: "")
        let expression: CalendarExpression
        do throws(CalendarError) {
            expression = try CalendarExpression(text, zones: zones)
        } catch {
            throw options.error(key, "is \"\(text)\", which is not a calendar expression: \(error.description)")
        }
        guard expression.next(after: -1) != nil else { throw options.error(key, "is \"\(text)\", which never comes") }
        return expression
    }

    /// Whether a new phase began since the last check; `moment` in microseconds since 1970.
    mutating func look(at moment: Int64) -> Bool {
        if phase.holds(at: moment) { return false }
        said = nil
        let old = phase
        phase = window.phase(at: moment)
        return old.isOpen != phase.isOpen || old.since != phase.since
    }

    /// Makes the next check find a new phase.
    mutating func forget() { phase = Window.Phase(isOpen: false, since: .max) }

    /// The state of its apps now; nil if the rule decides nothing.
    var target: State? { phase.isOpen ? inside : outside }

    /// The last reason and its moment, cached: many apps get the same.
    private var said: (moment: Int64, text: String)?

    /// The reason in words.
    mutating func reason(at moment: Int64, in zone: TimeZone) -> String {
        if let said, said.moment == moment { return said.text }
        var text = phase.isOpen ? name ?? "in its window" : "outside \(name ?? "its window")"
        if let until = phase.until { text += " until " + ClockText.text(until, at: moment, in: zone) }
        text += " (Schedule rule \(number))"
        said = (moment, text)
        return text
    }
}
