// SPDX-License-Identifier: Apache-2.0

import Linux
import Policies
import TorporPolicyABI

/// Views that no supervisor produces on purpose, but that a policy has to handle: measurements can be wrong, apps
/// disappear at any moment, and newer supervisors use numbers that an older policy does not know.
struct AbsurdView {
    let name: String
    /// Puts the apps and the machine into an empty view.
    let build: (PolicyView) -> Void
    /// Changes each event before the policy is asked about it.
    var bend: (inout torpor_policy_event) -> Void = { _ in }
    /// Whether the policy is also asked about kinds of events that this version does not know.
    var hasUnknownEvents = false

    static var all: [AbsurdView] {
        [
            AbsurdView(name: "no apps", build: { _ in }),
            AbsurdView(name: "10,000 apps", build: { fill($0, 10_000) }),
            AbsurdView(name: "empty places") { view in
                fill(view, 64)
                for place in stride(from: 0, to: 64, by: 2) { view.remove(place) }
            },
            AbsurdView(name: "all apps gone") { view in
                fill(view, 64)
                for place in 0..<64 { view.remove(place) }
            },
            AbsurdView(name: "strange names") { view in
                let names = [
                    "", String(repeating: "n", count: 63), "\u{1F980}", "a/b", "%s%n", "tag:x", "*", " ", "\u{202E}txt",
                ]
                for (place, name) in names.enumerated() { view.put(place, name: name, tags: ["", name, name]) }
                let tags = (0..<200).map { "tag-\($0)" }
                view.put(names.count, name: "much", tags: tags)
                live(view)
            },
            AbsurdView(name: "the smallest numbers") { view in
                fill(view, 16)
                bendAll(view) { $0 = .min }
            },
            AbsurdView(name: "the largest numbers") { view in
                fill(view, 16)
                bendAll(view) { $0 = .max }
            },
            AbsurdView(
                name: "unknown numbers",
                build: { view in
                    fill(view, 16)
                    for place in 0..<view.count {
                        view[place].flags = UInt32.max
                        view[place].state = UInt32(TORPOR_STATE_COUNT) + UInt32(place)
                        view[place].edge = 99
                        view[place].goal = 77
                        view[place].last_reason = 1000
                    }
                    view.system.power = 9
                    view.system.pressure = 9
                },
                bend: { event in
                    event.from = 99
                    event.to = 77
                    event.reason = 1000
                }
            ),
            AbsurdView(name: "unknown events", build: { fill($0, 16) }, hasUnknownEvents: true),
            AbsurdView(name: "times in the future") { view in
                fill(view, 16)
                let later = view.system.now + 10 * 365 * 86_400_000_000
                setTimes(view, later)
                view.system.started = later
                view.system.measured_at = later
            },
            AbsurdView(
                name: "never",
                build: { view in
                    fill(view, 16)
                    setTimes(view, Int64.min)
                    view.system.started = Int64.min
                },
                bend: { $0.at = Int64.min }
            ),
            AbsurdView(name: "a clock at its end") { view in
                fill(view, 16)
                view.system.now = Int64.max
                view.system.realtime = Int64.max
            },
            AbsurdView(name: "a clock before its beginning") { view in
                fill(view, 16)
                view.system.now = Int64.min + 1
                view.system.realtime = Int64.min
            },
            AbsurdView(name: "noise") { view in
                fill(view, 200)
                var random = SeededNumbers(seed: 7)
                bendAll(view) { $0 = Int64(bitPattern: random.next()) }
            },
        ]
    }

    /// Events of that kind: one about the first app, one about an index without an app, and one about the last index of
    /// the view. An event that concerns no app is made only once.
    func events(_ kind: UInt32, in view: PolicyView) -> [torpor_policy_event] {
        var places: [UInt32] = [UInt32.max]
        let isAboutApp: [torpor_policy_event_kind] = [
            TORPOR_EVENT_STATE, TORPOR_EVENT_GOAL, TORPOR_EVENT_TIME_USED, TORPOR_EVENT_LAUNCH, TORPOR_EVENT_ENDED,
        ]
        if isAboutApp.contains(where: { $0.rawValue == kind }) {
            let present = (0..<view.count).first(where: view.isPresent)
            let empty = (0..<view.count).first { !view.isPresent($0) } ?? view.count
            places = [present, empty, view.count == 0 ? nil : view.count - 1].compactMap { $0 }.map { UInt32($0) }
        }
        return places.map { place in
            var event = torpor_policy_event()
            event.size = UInt32(MemoryLayout<torpor_policy_event>.size)
            event.kind = kind
            event.app = place
            event.from = TORPOR_STATE_ACTIVE.rawValue
            event.to = TORPOR_STATE_BACKGROUND.rawValue
            event.reason = 1
            event.at = view.system.now
            event.delay = 1_000_000
            bend(&event)
            return event
        }
    }

    // MARK: Building

    private static func fill(_ view: PolicyView, _ count: Int) {
        for place in 0..<count { view.put(place, name: "app-\(place)", tags: ["demo"]) }
        live(view)
    }

    /// Fills the view with running apps. Their states take turns: inactive, active, background, suspended, and again
    /// inactive.
    private static func live(_ view: PolicyView) {
        view.system.now = 3_600_000_000
        view.system.realtime = 1_750_000_000_000_000
        view.system.processors = 4
        for place in 0..<view.count {
            view[place].state = UInt32(1 + place % 4)
            view[place].goal = view[place].state
            view[place].incarnation = 1
            view[place].processes = 1
            view[place].memory = 1 << 20
            view[place].launched_at = 1_000_000
            view[place].state_since = (0, 1_000_000, 2_000_000, 3_000_000, 4_000_000)
            view[place].last_use = 2_500_000
            view[place].grant_ends = 8_000_000
        }
    }

    private static func setTimes(_ view: PolicyView, _ time: Int64) {
        for place in 0..<view.count {
            view[place].state_since = (time, time, time, time, time)
            view[place].last_use = time
            view[place].launched_at = time
            view[place].grant_ends = time
            view[place].next_restart = time
            view[place].measured_at = time
            view[place].last_traffic = time
            view[place].last_heartbeat = time
        }
    }

    /// Changes every field of every app and of the machine, except the flag that says that an app is present.
    private static func bendAll(_ view: PolicyView, _ value: (inout Int64) -> Void) {
        func fit(_ record: UnsafeMutableRawBufferPointer, _ fields: [PolicyField]) {
            for field in fields {
                for index in 0..<field.count {
                    var number: Int64 = 0
                    value(&number)
                    field.force(number, into: record, index)
                }
            }
        }
        for place in 0..<view.count {
            withUnsafeMutableBytes(of: &view[place]) { fit($0, PolicyField.ofApps) }
            view[place].flags |= TORPOR_APP_PRESENT
        }
        var system = view.system
        withUnsafeMutableBytes(of: &system) { fit($0, PolicyField.ofSystem) }
        view.system = system
    }
}
