// SPDX-License-Identifier: Apache-2.0

/// An event or a question for a policy. Kinds that only later supervisors know become ``unknown(_:)``.
public enum Event {
    /// The policy was loaded: it should examine all apps and the machine.
    case started
    /// The configuration changed: apps were added, removed or changed. A place may now belong to another app.
    case appsChanged
    /// The app changed its state.
    case stateChanged(App, from: State, to: State)
    /// The app's goal changed, but not by a policy.
    case goalChanged(App, from: State, to: State)
    /// The app's background time is over, and no task or hold keeps the app there, so it may be suspended.
    case timeUsed(App)
    /// The app is about to be launched.
    case launch(App, LaunchReason)
    /// The app ended. It is restarted after `restartsAfter`, or not at all (nil).
    case ended(App, EndReason, restartsAfter: Duration?)
    /// The time that the policy requested by ``Advice/askAgain(after:because:)`` has come.
    case timer
    /// The pressure on memory changed.
    case pressureChanged(from: Pressure, to: Pressure)
    /// A question: in which order should apps be evicted if memory is short?
    case eviction
    /// An event that this version of the kit does not know, or an event about an app that does not exist.
    case unknown(UInt32)

    /// Looks up the event's app in the view.
    init(_ raw: torpor_policy_event, in view: View) {
        let kind = raw.kind
        func aboutApp(_ make: (App) -> Event?) -> Event { view[raw.app].flatMap(make) ?? .unknown(kind) }
        func between(_ make: (State, State) -> Event) -> Event? {
            guard let from = State(rawValue: raw.from), let to = State(rawValue: raw.to) else { return nil }
            return make(from, to)
        }
        switch torpor_policy_event_kind(rawValue: kind) {
        case TORPOR_EVENT_STARTED: self = .started
        case TORPOR_EVENT_APPS: self = .appsChanged
        case TORPOR_EVENT_STATE:
            self = aboutApp { app in between { .stateChanged(app, from: $0, to: $1) } }
        case TORPOR_EVENT_GOAL:
            self = aboutApp { app in between { .goalChanged(app, from: $0, to: $1) } }
        case TORPOR_EVENT_TIME_USED: self = aboutApp { .timeUsed($0) }
        case TORPOR_EVENT_LAUNCH: self = aboutApp { .launch($0, LaunchReason(rawValue: raw.reason)) }
        case TORPOR_EVENT_ENDED:
            self = aboutApp { app in
                let delay = raw.delay == .min ? nil : Duration.microseconds(raw.delay)
                return .ended(app, EndReason(rawValue: raw.reason), restartsAfter: delay)
            }
        case TORPOR_EVENT_TIMER: self = .timer
        case TORPOR_EVENT_PRESSURE:
            let levels = (Pressure(rawValue: raw.from), Pressure(rawValue: raw.to))
            guard case (let from?, let to?) = levels else {
                self = .unknown(kind)
                return
            }
            self = .pressureChanged(from: from, to: to)
        case TORPOR_EVENT_EVICTION: self = .eviction
        default: self = .unknown(kind)
        }
    }
}
