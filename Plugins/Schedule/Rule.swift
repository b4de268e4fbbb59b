// SPDX-License-Identifier: Apache-2.0

import CalendarTime
import TorporPolicyKit

/// An entry of `rules`: some apps, a window of time, and the states of these apps inside and outside the window.
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

    /// The number of the rule, from 1, for use in reasons.
    let number: Int
    let apps: [Selector]
    private let window: Window
    private let name: String?
    private let inside: State
    /// The state of the rule's apps outside its window; nil if the rule then decides nothing.
    private let outside: State?
    /// The phase of the rule's window at the last check.
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

    /// Whether the window has entered a new phase since the last check. `moment` is in microseconds since 1970.
    mutating func look(at moment: Int64) -> Bool {
        if phase.holds(at: moment) { return false }
        said = nil
        let old = phase
        phase = window.phase(at: moment)
        return old.isOpen != phase.isOpen || old.since != phase.since
    }

    /// Forgets the phase, so that the next check reports a new phase.
    mutating func forget() { phase = Window.Phase(isOpen: false, since: .max) }

    /// The state that the rule's apps should have now; nil if the rule decides nothing.
    var target: State? { phase.isOpen ? inside : outside }

    /// The text and the time of the last reason, cached because many apps get the same reason.
    private var said: (moment: Int64, text: String)?

    /// The reason for advice by this rule, in words.
    mutating func reason(at moment: Int64, in zone: TimeZone) -> String {
        if let said, said.moment == moment { return said.text }
        var text = phase.isOpen ? name ?? "in its window" : "outside \(name ?? "its window")"
        if let until = phase.until { text += " until " + ClockText.text(until, at: moment, in: zone) }
        text += " (Schedule rule \(number))"
        said = (moment, text)
        return text
    }
}
