// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

/// Apps as the ladder sees them, by short names.
enum Rungs {
    typealias Candidate = MemoryLadder.Candidate

    static func app(
        _ id: AppID,
        _ state: AppState,
        _ change: (inout Candidate) -> Void = { _ in }
    ) -> Candidate {
        var candidate = Candidate(app: id, state: state)
        candidate.bytes = 1 << 20
        change(&candidate)
        return candidate
    }

    /// `evict 3`.
    static func text(_ step: MemoryLadder.Step) -> String {
        "\(step.rung.rawValue) \(step.apps.map(String.init).joined(separator: ","))"
    }

    /// All that would be done when memory is as short as that.
    static func rehearse(_ level: MemoryLevel, _ candidates: [Candidate], urgent: Bool = false) -> [String] {
        MemoryLadder.rehearse(.pressure(level, urgent: urgent), candidates).map(text)
    }
}

@Suite("The memory ladder")
struct MemoryLadderTests {
    private typealias Candidate = MemoryLadder.Candidate
    private let critical = MemoryLadder.Demand.pressure(.critical, urgent: false)
    private let warning = MemoryLadder.Demand.pressure(.warning, urgent: false)

    /// One of each kind; 4 is active and says `last_resort = true`.
    private var all: [Candidate] {
        [
            Rungs.app(4, .active) { $0.hears = true },
            Rungs.app(3, .inactive) { $0.hears = true },
            Rungs.app(2, .background) {
                $0.hears = true
                $0.isPurgeable = true
            },
            Rungs.app(1, .suspended) { $0.canPageOut = true },
        ]
    }

    // MARK: Rungs

    @Test("rung by rung: tell, purge, page out, evict, end background, inactive and, as the last resort, active ones")
    func rungs() {
        #expect(
            Rungs.rehearse(.critical, all) == [
                "tell 4,3,2", "purge 2", "page-out 1", "evict 1", "end-background 2", "end-inactive 3", "end-active 4",
            ]
        )
    }

    @Test("what has next to nothing is not ended for it, unless nothing is known of what it has")
    func small() {
        let apps = [
            Rungs.app(1, .suspended) { $0.bytes = 200 << 10 },
            Rungs.app(2, .background) { $0.bytes = 1 << 20 },
            Rungs.app(3, .suspended) { $0.bytes = 0 },
        ]
        var rules = MemoryRules()
        let reading = MemoryReading(total: 8 << 30, available: 300 << 20)
        #expect(rules.worth(reading) == 1 << 20, "many of a mebibyte are much")
        let steps = MemoryLadder.rehearse(critical, apps, worth: rules.worth(reading))
        #expect(steps.map(Rungs.text) == ["evict 3", "end-background 2"])
        let passedOver = steps.last?.passedOver.map { [$0.app: $0.reason] }
        #expect(passedOver == [[1: .small]])
        // Where little is missing little helps, and where work waits nobody knows what is.
        rules.warningAvailable = 0.5
        #expect(rules.worth(MemoryReading(total: 100 << 20, available: 49 << 20)) < 12 << 10)
        #expect(rules.worth(MemoryReading(total: 8 << 30, available: 8 << 30)) > 800 << 10)
        #expect(MemoryRules.worth(missing: 20 << 20) > 200 << 10)
    }

    @Test("a warning reaches suspended apps only, and active ones do not hear of it")
    func warningLevel() {
        #expect(Rungs.rehearse(.warning, all) == ["tell 3,2", "purge 2", "page-out 1", "evict 1"])
    }

    @Test("where it is urgent, what only helps a little is skipped")
    func urgent() {
        #expect(
            Rungs.rehearse(.critical, all, urgent: true) == [
                "tell 4,3,2", "evict 1", "end-background 2", "end-inactive 3", "end-active 4",
            ]
        )
    }

    @Test("one at a time: whatever the rung, a step names one app; only tell names several")
    func oneAtATime() {
        let many = (0..<20).map { id in
            Rungs.app(id, id < 10 ? .suspended : .background) {
                $0.hears = true
                $0.isPurgeable = true
                $0.canPageOut = id < 10
            }
        }
        let steps = MemoryLadder.rehearse(critical, many)
        #expect(steps.count == 1 + 20 + 10 + 20)
        #expect(steps.dropFirst().allSatisfy { $0.apps.count == 1 })
        #expect(steps[0].apps.count == 10, "a suspended app hears nothing")
    }

    @Test("nobody there, nothing to do")
    func empty() {
        var ladder = MemoryLadder()
        #expect(ladder.next(critical, [], now: .zero) == nil)
        #expect(MemoryLadder.rehearse(critical, []).isEmpty)
    }

    // MARK: Order

    @Test("among suspended apps the lower priority goes first, then the larger, then the one unused for longer")
    func order() {
        let apps = [
            Rungs.app(1, .suspended) {
                $0.priority = 1
                $0.bytes = 900
            },
            Rungs.app(2, .suspended) { $0.bytes = 100 },
            Rungs.app(3, .suspended) { $0.bytes = 200 },
            Rungs.app(4, .suspended) {
                $0.bytes = 100
                $0.lastUse = .seconds(50)
            },
            Rungs.app(5, .suspended) {
                $0.bytes = 100
                $0.lastUse = .seconds(40)
            },
            Rungs.app(6, .suspended) {
                $0.priority = -1
                $0.bytes = 1
            },
        ]
        #expect(MemoryLadder.sorted(apps).map(\.app) == [6, 3, 2, 5, 4, 1])
        #expect(MemoryLadder.sorted(apps.reversed()).map(\.app) == [6, 3, 2, 5, 4, 1])
    }

    @Test("a state counts more than priority and size")
    func stateFirst() {
        let apps = [
            Rungs.app(1, .active) {
                $0.priority = -10
                $0.bytes = 1 << 40
            },
            Rungs.app(2, .inactive) { $0.priority = -5 },
            Rungs.app(3, .background) { $0.priority = -3 },
            Rungs.app(4, .suspended) {
                $0.priority = 10
                $0.bytes = 0
            },
        ]
        #expect(MemoryLadder.sorted(apps).map(\.app) == [4, 3, 2, 1])
    }

    @Test("a policy's order counts more than all that, but no active app comes before one that is not")
    func policyOrder() {
        let apps = [
            Rungs.app(1, .suspended) { $0.rank = 3 },
            Rungs.app(2, .background) { $0.rank = 2 },
            Rungs.app(3, .active) { $0.rank = 0 },
            Rungs.app(4, .inactive) { $0.rank = 1 },
            Rungs.app(5, .suspended) { $0.protection = .unnamed },
        ]
        #expect(MemoryLadder.sorted(apps).map(\.app) == [4, 2, 1, 5, 3])
        // Whom policies do not name is not ended, and that is said of those that would have come before.
        let steps = MemoryLadder.rehearse(critical, apps)
        #expect(steps.map(Rungs.text) == ["end-inactive 4", "end-background 2", "evict 1", "end-active 3"])
        #expect(steps[3].passedOver.map(\.app) == [5] && steps[3].passedOver[0].reason == .unnamed)
        // At a warning the order is the same, among those that it reaches.
        #expect(Rungs.rehearse(.warning, apps).first == "evict 1")
    }

    @Test("what only helps a little goes by the same order")
    func gentleOrder() {
        let apps = [
            Rungs.app(1, .suspended) {
                $0.canPageOut = true
                $0.bytes = 10
            },
            Rungs.app(2, .suspended) {
                $0.canPageOut = true
                $0.bytes = 20
            },
            Rungs.app(3, .active) { $0.isPurgeable = true },
            Rungs.app(4, .background) { $0.isPurgeable = true },
            Rungs.app(5, .background) { $0.canPageOut = true },
        ]
        let steps = Rungs.rehearse(.warning, apps)
        #expect(steps.prefix(4) == ["purge 4", "purge 3", "page-out 2", "page-out 1"])
        #expect(!steps.contains("page-out 5"), "only what is suspended stays out")
    }

    // MARK: Protection

    @Test(
        "who is protected is passed over, and every one of them is named with the reason",
        arguments: [MemoryLadder.Protection.never, .required, .traced, .busy]
    )
    func protection(reason: MemoryLadder.Protection) {
        let apps = [
            Rungs.app(1, .suspended) { $0.protection = reason },
            Rungs.app(2, .suspended) {
                $0.priority = 1
                $0.protection = reason
            },
            Rungs.app(3, .background),
        ]
        let steps = MemoryLadder.rehearse(critical, apps)
        #expect(steps.map(Rungs.text) == ["end-background 3"])
        #expect(steps[0].passedOver.map(\.app) == [1, 2])
        #expect(steps[0].passedOver.allSatisfy { $0.reason == reason })
        #expect(Rungs.rehearse(.warning, apps).isEmpty)
    }

    @Test("an app that may not be ended can still be told, give what is purgeable, and go to swap")
    func gentleToAll() {
        let apps = [
            Rungs.app(1, .suspended) {
                $0.protection = .never
                $0.canPageOut = true
            },
            Rungs.app(2, .background) {
                $0.protection = .never
                $0.hears = true
                $0.isPurgeable = true
            },
        ]
        #expect(Rungs.rehearse(.critical, apps) == ["tell 2", "purge 2", "page-out 1"])
    }

    @Test("an active app without last_resort is never ended, whatever there is and whatever a policy says")
    func active() {
        let apps = [
            Rungs.app(1, .active) {
                $0.protection = .active
                $0.rank = 0
            },
            Rungs.app(2, .suspended) { $0.rank = 1 },
        ]
        #expect(Rungs.rehearse(.critical, apps, urgent: true) == ["evict 2"])
    }

    // MARK: Time

    @Test("at a warning nobody is ended before it has lasted; gentle steps are not waited with")
    func patience() {
        var ladder = MemoryLadder()
        var apps = [Rungs.app(1, .suspended) { $0.canPageOut = true }]
        #expect(ladder.next(warning, apps, now: .seconds(10)).map(Rungs.text) == "page-out 1")
        apps[0].canPageOut = false
        #expect(ladder.next(warning, apps, now: .milliseconds(10_999)) == nil)
        #expect(ladder.next(warning, apps, now: .seconds(11)).map(Rungs.text) == "evict 1")
    }

    @Test("critical waits for nothing")
    func impatience() {
        var ladder = MemoryLadder()
        #expect(ladder.next(critical, [Rungs.app(1, .suspended)], now: .seconds(10)).map(Rungs.text) == "evict 1")
    }

    @Test("the patience is as long as it is told, and begins anew when memory was enough meanwhile")
    func longPatience() {
        var ladder = MemoryLadder()
        let apps = [Rungs.app(1, .suspended)]
        ladder.patience = MemoryLadder.longPatience
        #expect(ladder.next(warning, apps, now: .seconds(10)) == nil)
        #expect(ladder.next(warning, apps, now: .milliseconds(14_999)) == nil)
        ladder.reset()
        #expect(ladder.next(warning, apps, now: .seconds(15)) == nil)
        #expect(ladder.next(warning, apps, now: .seconds(19)) == nil)
        #expect(ladder.next(warning, apps, now: .seconds(20)) != nil)
    }

    @Test("after a pause the patience begins anew, and who was told is not told again")
    func pause() {
        var ladder = MemoryLadder()
        let apps = [Rungs.app(1, .background) { $0.hears = true }, Rungs.app(2, .suspended)]
        #expect(ladder.next(warning, apps, now: .seconds(10)).map(Rungs.text) == "tell 1")
        #expect(ladder.next(warning, apps, now: .milliseconds(10_900)) == nil)
        ladder.pause()
        #expect(ladder.next(warning, apps, now: .seconds(12)) == nil)
        #expect(ladder.next(warning, apps, now: .milliseconds(12_900)) == nil)
        #expect(ladder.next(warning, apps, now: .seconds(13)).map(Rungs.text) == "evict 2")
    }

    @Test("an app hears of it once, again half a minute later when it is still short, and at once in a new episode")
    func tellingAgain() {
        var ladder = MemoryLadder()
        let apps = [Rungs.app(1, .background) { $0.hears = true }]
        #expect(ladder.next(warning, apps, now: .seconds(10)).map(Rungs.text) == "tell 1")
        #expect(ladder.next(warning, apps, now: .milliseconds(39_999)) == nil)
        #expect(ladder.next(warning, apps, now: .seconds(40)).map(Rungs.text) == "tell 1")
        #expect(ladder.next(warning, apps, now: .seconds(41)) == nil)
        ladder.reset()
        #expect(ladder.next(warning, apps, now: .seconds(42)).map(Rungs.text) == "tell 1")
    }

    @Test("who comes later is told later; active ones when it becomes critical")
    func tellingTheRest() {
        var ladder = MemoryLadder()
        var apps = [Rungs.app(1, .background) { $0.hears = true }, Rungs.app(2, .active) { $0.hears = true }]
        apps[1].protection = .active
        apps[0].protection = .never
        #expect(ladder.next(warning, apps, now: .seconds(10)).map(Rungs.text) == "tell 1")
        #expect(ladder.next(critical, apps, now: .seconds(11)).map(Rungs.text) == "tell 2")
        apps.append(Rungs.app(3, .inactive) { $0.hears = true })
        apps[2].protection = .never
        #expect(ladder.next(critical, apps, now: .seconds(12)).map(Rungs.text) == "tell 3")
        #expect(ladder.next(critical, apps, now: .seconds(13)) == nil)
    }

    @Test("what is purgeable is asked for once in an episode: an app that fills it again is not emptied for ever")
    func purgedOnce() {
        var ladder = MemoryLadder()
        let apps = [Rungs.app(1, .active) { $0.isPurgeable = true }].map { app in
            var app = app
            app.protection = .active
            return app
        }
        #expect(ladder.next(critical, apps, now: .zero).map(Rungs.text) == "purge 1")
        #expect(ladder.next(critical, apps, now: .seconds(1)) == nil)
        ladder.reset()
        #expect(ladder.next(critical, apps, now: .seconds(2)).map(Rungs.text) == "purge 1")
    }

    // MARK: Room for a launch

    @Test("for a launch into the background only suspended apps go; nobody is told, nobody waits")
    func backgroundLaunch() {
        let demand = MemoryLadder.Demand.launch(foreground: false, priority: 100)
        #expect(MemoryLadder.rehearse(demand, all).map(Rungs.text) == ["purge 2", "page-out 1", "evict 1"])
    }

    @Test("for one into the foreground also who is in the background, unless its priority is higher")
    func foregroundLaunch() {
        let demand = MemoryLadder.Demand.launch(foreground: true, priority: 5)
        let apps = [
            Rungs.app(1, .background) { $0.priority = 6 },
            Rungs.app(2, .background) { $0.priority = 5 },
            Rungs.app(3, .suspended) { $0.priority = 9 },
            Rungs.app(4, .inactive), Rungs.app(5, .active),
        ]
        #expect(MemoryLadder.rehearse(demand, apps).map(Rungs.text) == ["evict 3", "end-background 2"])
    }

    // MARK: Rehearsal

    @Test("a rehearsal is what would really be done, step by step, and leaves no trace")
    func rehearsal() {
        let rehearsed = MemoryLadder.rehearse(critical, all)
        var ladder = MemoryLadder()
        var (apps, real, now) = (all, [MemoryLadder.Step](), Duration.seconds(5))
        while let step = ladder.next(critical, apps, now: now) {
            real.append(step)
            now += .milliseconds(200)
            switch step.rung {
            case .tell, .purge: break
            case .pageOut: apps = apps.map { app in Rungs.app(app.app, app.state) { $0.protection = app.protection } }
            case .evict, .endBackground, .endInactive, .endActive: apps.removeAll { step.apps == [$0.app] }
            }
        }
        #expect(real.map(Rungs.text) == rehearsed.map(Rungs.text))
        #expect(MemoryLadder.rehearse(critical, all) == rehearsed)
    }

    @Test("what a step takes grows with the number of apps, and no faster")
    func many() {
        /// The shortest of several: a busy machine does others' work within most of them.
        func time(_ count: Int) -> Duration {
            let apps = (0..<count).map { id in Rungs.app(id, .suspended) { $0.bytes = UInt64(id) } }
            let times = (0..<10).map { _ in
                var ladder = MemoryLadder()
                return ContinuousClock().measure { _ = ladder.next(critical, apps, now: .zero) }
            }
            return times.min() ?? .zero
        }
        let (few, most) = (time(200), time(2_000))
        #expect(most < few * 40, "ten times as many apps: \(few), \(most)")
    }
}
