// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import TorporAPI

/// Everything that the test decides in one round. It depends on the seed and the round alone; what the machine makes of
/// it does not.
struct Plan {
    /// Whom a kill hits.
    enum Victim: String {
        case torpord
        case keeper
        case both
    }

    enum Action {
        /// Asks for something without waiting for the answer. `background` is for start alone.
        case ask(app: Int, verb: Verb, background: Bool)
        /// Ends one of the app's processes from outside.
        case crash(app: Int)
        /// Takes torpord, the keeper or both away.
        case kill(Victim, signal: Int32)
        /// Puts a torpord in the place of this one, as `kill -USR2` does; also a keeper in the place of the keeper.
        case upgrade(withKeeper: Bool)
        /// Has the configuration read again, with another grace in it; then, perhaps, breaks the file: nobody has asked
        /// for that to be read.
        case apply(breaking: Bool)
    }

    struct Step {
        let after: Duration
        let action: Action
    }

    /// What the storm may do.
    struct Weather {
        var kills: [(Victim, weight: Int)] = []
        var upgrades = false
        var applies = false
    }

    private(set) var steps: [Step] = []
    /// When both are taken away: how long nobody is there, and how many apps end meanwhile, strangers getting their pids.
    private(set) var absence: Duration = .zero
    private(set) var strangers: [Int] = []

    init(seed: UInt64, round: Int, fleet: Fleet, weather: Weather) {
        var dice = Dice(seed: seed, round: round)
        let count = Int.random(in: 8...24, using: &dice)
        var disasters: [Int] = []
        if weather.upgrades {
            disasters = [Int.random(in: 0..<count, using: &dice)]
        } else if !weather.kills.isEmpty {
            let many = dice.pick([(1, 70), (2, 20), (3, 10)])
            disasters = (0..<many).map { _ in Int.random(in: 0..<count, using: &dice) }
        }
        for index in 0..<count {
            let pause = dice.percent(40) ? 0 : Int.random(in: 0...12_000, using: &dice)
            steps.append(Step(after: .microseconds(pause), action: Self.request(fleet, &dice)))
            if weather.applies, dice.percent(3) {
                steps.append(Step(after: .zero, action: .apply(breaking: dice.percent(50))))
            }
            guard disasters.contains(index) else { continue }
            // Soon after a request, so that what was asked for is under way; sometimes in the midst of its answer.
            let instant = dice.pick([((0, 300), 30), ((0, 3_000), 40), ((0, 30_000), 30)])
            var after = Duration.microseconds(Int.random(in: instant.0...instant.1, using: &dice))
            if weather.upgrades {
                steps.append(Step(after: after, action: .upgrade(withKeeper: dice.percent(40))))
                continue
            }
            if dice.percent(20) {
                // Killed in the midst of an upgrade, which takes a tenth of a second.
                steps.append(Step(after: after, action: .upgrade(withKeeper: dice.percent(40))))
                after = .microseconds(Int.random(in: 0...150_000, using: &dice))
            }
            let victim = dice.pick(weather.kills)
            // SIGKILL, or what a crash looks like.
            let signal: Int32 = victim == .torpord ? dice.pick([(9, 80), (11, 10), (6, 10)]) : 9
            steps.append(Step(after: after, action: .kill(victim, signal: signal)))
        }
        absence = .microseconds(Int.random(in: 0...60_000, using: &dice))
        strangers = (0..<2).map { _ in Int.random(in: 0..<fleet.apps.count, using: &dice) }
    }

    private static func request(_ fleet: Fleet, _ dice: inout Dice) -> Action {
        let index = Int.random(in: 0..<fleet.apps.count, using: &dice)
        let app = fleet.apps[index]
        if app.sort == .lasting, dice.percent(8) { return .crash(app: index) }
        let verb: Verb
        switch app.sort {
        case .lasting, .mortal:
            verb = dice.pick([
                (.start, 25), (.stop, 14), (.suspend, 22), (.resume, 8), (.foreground, 8), (.background, 9),
                (.restart, 9), (.kill, 5),
            ])
        case .oneshot: verb = dice.pick([(.start, 70), (.stop, 15), (.restart, 10), (.kill, 5)])
        case .link:
            // A force quit of one that others require would leave them without it.
            let last = fleet.dependents(of: app.name).isEmpty ? Verb.kill : Verb.stop
            verb = dice.pick([(.start, 60), (.stop, 35), (last, 5)])
        }
        return .ask(app: index, verb: verb, background: verb == .start && dice.percent(25))
    }
}
