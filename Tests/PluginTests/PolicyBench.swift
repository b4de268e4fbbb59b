// SPDX-License-Identifier: Apache-2.0

import Linux
import Policies
import Testing
import TorporPolicyABI

/// A policy from its built library, and apps whose states and clock go as the test says.
final class PolicyBench {
    let view: PolicyView
    private let policy: PolicyLibrary
    private var places: [String: Int] = [:]

    enum State: UInt32 {
        case notRunning = 0
        case inactive = 1
        case active = 2
        case background = 3
        case suspended = 4
    }

    /// Opens `lib…Policy.so` from where the tests were built.
    convenience init(_ product: String, options: KeyValuePairs<String, PolicyOption.Value> = [:]) throws {
        try self.init(library: BuiltProducts.path("lib\(product).so"), options: options)
    }

    /// Opens a library.
    convenience init(library: String, options: KeyValuePairs<String, PolicyOption.Value> = [:]) throws {
        try self.init(library: library, options: options.map { PolicyOption(key: $0.key, value: $0.value) })
    }

    /// Opens a library with options that were put together before.
    init(library: String, options: [PolicyOption]) throws {
        view = try PolicyView()
        policy = try PolicyLibrary(path: library, options: options)
        view.system.now = 1_000_000_000
        view.system.realtime = 1_700_000_000_000_000
        view.system.processors = 4
    }

    /// What the policy says when it is made with options that are wrong; empty when it takes them.
    static func complaint(_ product: String, _ options: KeyValuePairs<String, PolicyOption.Value>) -> String {
        complaint(library: BuiltProducts.path("lib\(product).so"), options)
    }

    static func complaint(library: String, _ options: KeyValuePairs<String, PolicyOption.Value>) -> String {
        complaint(library: library, options.map { PolicyOption(key: $0.key, value: $0.value) })
    }

    static func complaint(library: String, _ options: [PolicyOption]) -> String {
        do throws(PolicyFailure) {
            _ = try PolicyLibrary(path: library, options: options)
            return ""
        } catch {
            return error.description
        }
    }

    var description: PolicyDescription { policy.description }

    // MARK: The world

    var now: Int64 { view.system.now }

    func pass(_ duration: Duration) {
        let microseconds = duration.components.seconds * 1_000_000 + duration.components.attoseconds / 1_000_000_000_000
        view.system.now += microseconds
        view.system.realtime += microseconds
        for place in places.values where [1, 2].contains(view[place].state) { view[place].last_use = now }
    }

    @discardableResult
    func add(_ name: String, _ state: State = .notRunning, tags: [String] = []) -> Int {
        let place = places.count
        places[name] = place
        view.put(place, name: name, tags: tags)
        move(name, to: state)
        return place
    }

    /// The app is there from now on, and wants to be.
    func move(_ name: String, to state: State) {
        let place = place(name)
        let old = State(rawValue: view[place].state)!
        view[place].state = state.rawValue
        view[place].goal = state.rawValue
        if old == .notRunning, state != .notRunning {
            view[place].incarnation += 1
            view[place].launched_at = now
            view[place].cpu_time = 0
        }
        switch state {
        case .notRunning: view[place].state_since.0 = now
        case .inactive: view[place].state_since.1 = now
        case .active: view[place].state_since.2 = now
        case .background: view[place].state_since.3 = now
        case .suspended: view[place].state_since.4 = now
        }
        if state == .active || state == .inactive { view[place].last_use = now }
        view[place].grant_ends = state == .background ? now + 5_000_000 : .min
    }

    func place(_ name: String) -> Int { places[name]! }

    /// Two apps change their places, as they may when the configuration changes.
    func swap(_ one: String, _ other: String) {
        let (first, second) = (place(one), place(other))
        (view[first], view[second]) = (view[second], view[first])
        places[one] = second
        places[other] = first
    }

    func change(_ name: String, _ body: (inout torpor_policy_app) -> Void) { body(&view[place(name)]) }

    func state(_ name: String) -> State { State(rawValue: view[place(name)].state)! }

    // MARK: Questions

    /// Asks about one event; the advice as text, `web → background` or `ask again in 600 s`.
    func ask(
        _ kind: torpor_policy_event_kind,
        _ app: String? = nil,
        from: UInt32 = 0,
        to: UInt32 = 0,
        reason: UInt32 = 0
    ) throws -> [String] {
        try ask([event(kind, app, from: from, to: to, reason: reason)])
    }

    /// Asks about several events at once.
    func ask(_ events: [torpor_policy_event]) throws -> [String] {
        answer = try questions(events)
        return answer.advice.map(text)
    }

    /// The last answer as it came.
    private(set) var answer = PolicyAnswer()
    var reasons: [String] { answer.advice.map(\.reason) }

    func event(
        _ kind: torpor_policy_event_kind,
        _ app: String? = nil,
        from: UInt32 = 0,
        to: UInt32 = 0,
        reason: UInt32 = 0
    ) -> torpor_policy_event {
        torpor_policy_event(
            size: UInt32(MemoryLayout<torpor_policy_event>.size),
            kind: kind.rawValue,
            app: app.map { UInt32(place($0)) } ?? UInt32.max,
            from: from,
            to: to,
            reason: reason,
            at: now,
            delay: .min
        )
    }

    func questions(_ events: [torpor_policy_event]) throws -> PolicyAnswer {
        try events.withUnsafeBufferPointer { events throws(PolicyFailure) in
            try policy.ask(events, of: view, limit: PolicyAnswer.limit(events: events.count, apps: view.count))
        }
    }

    /// Moves an app and tells the policy of it.
    @discardableResult
    func comes(_ name: String, to state: State) throws -> [String] {
        let old = self.state(name)
        move(name, to: state)
        return try ask(TORPOR_EVENT_STATE, name, from: old.rawValue, to: state.rawValue)
    }

    private func text(_ advice: PolicyAdvice) -> String {
        let app = advice.app == UInt32.max ? "" : view.name(Int(advice.app))
        let seconds = Double(advice.time) / 1e6
        let time = seconds == seconds.rounded() ? "\(Int(seconds)) s" : "\(seconds) s"
        switch advice.kind {
        case TORPOR_ADVISE_GOAL.rawValue:
            let state = State(rawValue: advice.value).map { "\($0)" } ?? "\(advice.value)"
            return "\(app) → \(state)"
        case TORPOR_ADVISE_GRANT.rawValue: return "\(app) is granted \(time)"
        case TORPOR_ADVISE_ORDER.rawValue: return "\(advice.value): \(app)"
        case TORPOR_ADVISE_ASK_AGAIN.rawValue: return "ask again in \(time)"
        case TORPOR_ADVISE_ADMIT.rawValue: return "\(app) is admitted"
        case TORPOR_ADVISE_DELAY.rawValue: return "\(app) is delayed by \(time)"
        case TORPOR_ADVISE_REFUSE.rawValue: return "\(app) is refused"
        case TORPOR_ADVISE_RESTART.rawValue: return "\(app) restarts in \(time)"
        case TORPOR_ADVISE_GIVE_UP.rawValue: return "\(app) is given up"
        default: return "\(app) \(advice.kind) \(advice.value) \(time)"
        }
    }
}

/// What was built beside the tests.
enum BuiltProducts {
    static let folder: String = {
        for start in [ThisProcess.executable, CommandLine.arguments.first] {
            var folder = start.flatMap { File.parent(of: $0) }
            for _ in 0..<4 {
                guard let here = folder else { break }
                if File.exists(here + "/libMobilePolicy.so") { return here }
                folder = File.parent(of: here)
            }
        }
        for argument in CommandLine.arguments {
            if let here = File.parent(of: argument), File.exists(here + "/libMobilePolicy.so") { return here }
        }
        return ThisProcess.directory + "/.build/debug"
    }()

    static func path(_ name: String) -> String { folder + "/" + name }
}

extension PolicyOption.Value: ExpressibleByStringLiteral {
    init(stringLiteral value: String) { self = .string(value) }
}

extension PolicyOption.Value: ExpressibleByIntegerLiteral {
    init(integerLiteral value: Int64) { self = .integer(value) }
}

extension PolicyOption.Value: ExpressibleByBooleanLiteral {
    init(booleanLiteral value: Bool) { self = .boolean(value) }
}

extension PolicyOption.Value: ExpressibleByFloatLiteral {
    init(floatLiteral value: Double) { self = .number(value) }
}
