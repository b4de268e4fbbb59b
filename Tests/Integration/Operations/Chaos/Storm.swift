// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import SystemPackage
import Testing
import TorporAPI
import Varlink

/// One daemon, its fleet, and what is done to them.
final class Storm {
    let seed: UInt64
    let fleet = Fleet()
    let installation: Installation
    let daemon: Daemon
    let decoys: Decoys
    let census: Census
    let logs: Logs
    private(set) var goals: Goals
    private(set) var tally = Tally()
    /// What was done in this round, for the account of a failure.
    private(set) var history: [String] = []
    /// What was done in the rounds before.
    private(set) var past: [String] = []
    private var round = 0
    /// Requests that are not answered yet. One at a time for an app, and for apps that require each other: of two on
    /// different connections nobody could say which came first.
    private var asks: [String: Ask] = [:]
    /// Apps whose request's connection broke: whether it was carried out nobody knows.
    private var broken: Set<String> = []
    private var began = Clock.monotonic()
    private var reportsSince = Clock.realtimeMicroseconds()
    /// Keeper and torpord were taken away together in this round.
    private var wereBothLost = false
    /// A torpord was killed, and the next one has not answered yet.
    private var isTorpordNew = false
    private var losses: UInt64 = 0
    private var configurationVersion = 0
    private var upgrading: (keeper: Int32, torpord: Int32, withKeeper: Bool)?

    init(seed: UInt64, environment: [String: String]) throws {
        self.seed = seed
        installation = try Installation()
        daemon = try Daemon(
            fleet.configuration(seed: seed),
            environment: [
                "TORPOR_RESTART_DELAY_CAP_MS": "1", "TORPOR_LOOP_WATCHDOG_MS": "30000",
                "SWIFT_BACKTRACE": "enable=no",
            ].merging(environment) { $1 },
            program: installation.torpord,
            nested: true
        )
        try File.makeDirectories(daemon.directory + "/t")
        census = Census(folder: daemon.directory)
        decoys = try Decoys(folder: daemon.directory)
        logs = Logs(fleet, daemon)
        goals = Goals(fleet)
    }

    /// Up, with every app where the configuration wants it, and the decoys among them.
    func begin() throws {
        for app in ["plain1", "tree1", "mortal1"] { try decoys.add(like: app) }
        try daemon.waitUntilItAnswers()
        for app in ["plain2", "tree2", "mortal2"] { try decoys.add(like: app) }
        try settle()
    }

    func play(_ round: Int, _ weather: Plan.Weather) throws {
        past += history
        history = []
        self.round = round
        began = Clock.monotonic()
        wereBothLost = false
        let plan = Plan(seed: seed, round: round, fleet: fleet, weather: weather)
        for step in plan.steps {
            if step.after > .zero { usleep(UInt32(step.after.microseconds)) }
            try take(step.action, plan)
        }
        tally.phase("storm")
        if round % 10 == 9 { try decoys.add(like: fleet.apps[round % fleet.apps.count].name) }
        try settle()
        tally.rounds += 1
    }

    /// SIGTERM to all, and nobody may be left.
    func finish() throws {
        guard let keeper = keeper() else { throw Trouble("there is no keeper to end") }
        kill(keeper, SIGTERM)
        let end = Clock.monotonic() + .seconds(60)
        while Clock.monotonic() < end {
            _ = daemon.reap()
            if Truth.processes(marked: daemon.directory).isEmpty { break }
            usleep(10_000)
        }
        daemon.expectNothingLeft(at: #_sourceLocation)
        let problems = try logs.problems(census) + decoys.problems()
        if !problems.isEmpty { throw Trouble(problems.joined(separator: "\n")) }
        tally.take(logs, decoys)
    }

    // MARK: Steps

    private func note(_ text: String) {
        history.append("\(round): \((Clock.monotonic() - began).microseconds) µs  \(text)")
    }

    private func take(_ action: Plan.Action, _ plan: Plan) throws {
        switch action {
        case .ask(let index, let verb, let background): ask(fleet.apps[index].name, verb, background)
        case .crash(let index): crash(fleet.apps[index].name)
        case .kill(.torpord, let signal): strike(signal)
        case .kill(.keeper, _): try killKeeper()
        case .kill(.both, _): try killBoth(plan)
        case .upgrade(let withKeeper): try upgrade(withKeeper: withKeeper)
        case .apply(let breaking): try apply(breaking: breaking)
        }
    }

    private func ask(_ app: String, _ verb: Verb, _ background: Bool) {
        collect()
        let group = group(app)
        guard asks[group] == nil, !broken.contains(group) else {
            tally.skipped += 1
            return
        }
        // What a background start means for an app that is on its way depends on how far it is.
        let background = background && goals.of[app] == Goals.Goal.none
        asks[group] = Ask(verb, app, background: background, socket: daemon.socket)
        note("asked \(app) to \(verb.rawValue)\(background ? " in the background" : "")")
        tally.asked += 1
    }

    private func group(_ app: String) -> String {
        fleet.apps.contains { $0.name == app && $0.sort == .link } ? "links" : app
    }

    /// Takes the answers that have come.
    private func collect() {
        for (group, ask) in asks {
            guard let outcome = ask.outcome() else { continue }
            asks[group] = nil
            let app = ask.app
            switch outcome {
            case .answered(let result) where result.ok:
                goals.acknowledged(ask.verb, app)
                broken.remove(group)
                note("\(app) will \(ask.verb.rawValue): \(goals.of[app]?.rawValue ?? "")")
            case .answered(let result) where result.error == "refused":
                note("\(app) refuses to \(ask.verb.rawValue): \(result.message ?? "")")
                tally.refused += 1
                guard broken.contains(group) else { continue }
                // The first asking may have been carried out: something that cannot be refused settles it.
                asks[group] = Ask(.start, app, background: false, socket: daemon.socket)
            case .answered(let result):
                tally.strange.append("\(app) \(ask.verb.rawValue): \(result.message ?? "") \(result.error ?? "")")
            case .broken(let why):
                if !wereBothLost, [Errno.noSuchFileOrDirectory, .connectionRefused].map(\.description).contains(why) {
                    tally.strange.append("\(app): nobody listened although one of torpord and its keeper lived: \(why)")
                }
                // Asked again until it is answered.
                if broken.insert(group).inserted {
                    note("no answer from \(app) to \(ask.verb.rawValue): \(why)")
                    tally.broken[why, default: 0] += 1
                }
                asks[group] = Ask(ask.verb, app, background: ask.background, socket: daemon.socket)
            case .failed(let why): tally.strange.append("\(app) \(ask.verb.rawValue): \(why)")
            }
        }
    }

    /// Ends an app's process from outside, as a crash or a person does; an app that is stopped would count as evicted.
    private func crash(_ app: String) {
        collect()
        guard goals.of[app] == .running, asks[app] == nil, !broken.contains(app),
            let member = census.look().members(app).first, !member.isStopped, send(SIGKILL, to: member.pid)
        else { return }
        note("killed \(app)'s process \(member.pid)")
        tally.crashes += 1
    }

    // MARK: Disasters

    private func keeper() -> Int32? {
        let look = census.look()
        return look.keepers.first { keeper in !look.keepers.contains { $0.pid == keeper.parent } }?.pid
    }

    private func torpord(under keeper: Int32) -> Int32? {
        // The newest child is most likely it.
        for child in ((try? ProcFS.children(keeper)) ?? []).reversed() {
            if let stat = try? ProcFS.stat(child), stat.comm == "torpord", !stat.hasEnded, !Census.isCheck(child) {
                return child
            }
        }
        return nil
    }

    /// To a process that is still the one it was when it was found.
    @discardableResult
    private func send(_ signal: Int32, to pid: Int32) -> Bool {
        guard let process = try? Pidfd.open(pid), (try? ProcFS.environment(pid, "TPTEST")) == daemon.directory else {
            return false
        }
        return (try? Pidfd.sendSignal(process.raw, signal)) != nil
    }

    private func countsKill(_ victim: Plan.Victim) -> Bool {
        collect()
        // An upgrade that is under way may come to nothing.
        upgrading = nil
        for ask in asks.values { tally.killsDuring[ask.verb, default: 0] += 1 }
        tally.kills[victim, default: 0] += 1
        return true
    }

    private func strike(_ signal: Int32) {
        guard let keeper = knownKeeper(), let torpord = torpord(under: keeper), countsKill(.torpord),
            send(signal, to: torpord)
        else {
            tally.misses += 1
            return
        }
        isTorpordNew = true
        note("signal \(signal) to torpord, \(torpord)")
    }

    private var keeperSeen: Int32?

    /// Without a walk through all processes where it can be avoided: an instant should be hit.
    private func knownKeeper() -> Int32? {
        if let keeperSeen, let stat = try? ProcFS.stat(keeperSeen), !stat.hasEnded { return keeperSeen }
        keeperSeen = keeper()
        return keeperSeen
    }

    private func killKeeper() throws {
        let makesWay = upgrading != nil
        guard countsKill(.keeper), let old = keeper() else { return }
        // A torpord that has just been started has nothing of its keeper's yet, and one that makes way leaves it to the
        // keeper to start the next: this may be the loss of both.
        let losesBoth = isTorpordNew || makesWay
        if losesBoth {
            try countLoss()
            // A new start reads it: where the other files are stands in it.
            try writeConfiguration()
        }
        guard send(SIGKILL, to: old) else { return }
        if losesBoth { try countLoss() }
        note("killed the keeper, \(old)\(losesBoth ? ", perhaps with torpord" : "")")
        try waitForAnother(keeper: old, mayBeNobody: losesBoth)
        guard losesBoth else { return }
        wereBothLost = true
        tally.bothInTurn += 1
        logs.excuseTheDead(census.look())
    }

    private func waitForAnother(keeper old: Int32, mayBeNobody: Bool) throws {
        keeperSeen = nil
        try eventually("somebody takes the lost keeper's place") {
            _ = daemon.reap()
            if mayBeNobody {
                let look = census.look()
                if look.keepers.isEmpty, look.torpords.isEmpty {
                    note("nobody is left")
                    try daemon.startAgain()
                    usleep(20_000)
                }
            }
            guard let keeper = keeper(), keeper != old else { return false }
            return torpord(under: keeper) != nil
        }
        try waitForAnswer()
    }

    private func killBoth(_ plan: Plan) throws {
        guard countsKill(.both) else { return }
        wereBothLost = true
        try countLoss()
        // The keeper first, or it starts another torpord; then whatever torpord there is by then, and what it became.
        keeperSeen = nil
        if let keeper = keeper() {
            let torpord = torpord(under: keeper)
            send(SIGKILL, to: keeper)
            if let torpord { send(SIGKILL, to: torpord) }
        }
        var quietSince = Clock.monotonic()
        while Clock.monotonic() - quietSince < .milliseconds(30) {
            for torpord in census.look().torpords {
                quietSince = Clock.monotonic()
                if (try? ProcFS.stat(torpord.parent).comm) == "torpor-keeper" { send(SIGKILL, to: torpord.parent) }
                send(SIGKILL, to: torpord.pid)
            }
            _ = daemon.reap()
            usleep(2_000)
        }
        try countLoss()
        note("killed keeper and torpord")
        for index in plan.strangers { try replaceByStranger(fleet.apps[index]) }
        usleep(UInt32(plan.absence.microseconds))
        try writeConfiguration()
        try daemon.startAgain()
        try waitForAnswer()
        logs.excuseTheDead(census.look())
        note("another one answers")
    }

    /// Told to the apps, before and after: a descriptor that one gave away before it, or in between, may be gone.
    private func countLoss() throws {
        losses += 1
        try File.replace(daemon.directory + "/t/epoch", Array("\(losses)\n".utf8))
    }

    /// An app ends while nobody looks, and somebody else gets its pid.
    private func replaceByStranger(_ app: Fleet.App) throws {
        collect()
        guard app.sort == .lasting, app.processes == 1, goals.of[app.name] == .running, asks[app.name] == nil,
            !broken.contains(app.name), let member = census.look().members(app.name).first, !member.isStopped,
            let process = try? Pidfd.open(member.pid), send(SIGKILL, to: member.pid)
        else { return }
        _ = try Descriptor.wait(process.raw, timeout: .seconds(60))
        let end = Clock.monotonic() + .seconds(60)
        while File.exists("/proc/\(member.pid)"), Clock.monotonic() < end { usleep(500) }
        try decoys.add(pid: member.pid, of: app.name)
        note("\(app.name)'s process \(member.pid) ended unseen, a stranger has its pid")
    }

    /// The storm goes on meanwhile; `awaitUpgrade` sees whether it was done.
    private func upgrade(withKeeper: Bool) throws {
        collect()
        if withKeeper { try installation.replaceKeeper() }
        guard let keeper = knownKeeper(), let old = torpord(under: keeper), send(SIGUSR2, to: old) else { return }
        note("asked torpord, \(old), to make room for another\(withKeeper ? ", and the keeper too" : "")")
        for ask in asks.values { tally.killsDuring[ask.verb, default: 0] += 1 }
        tally.upgrades += 1
        upgrading = (keeper, old, withKeeper)
    }

    private func awaitUpgrade() throws {
        guard let (keeper, old, withKeeper) = upgrading else { return }
        upgrading = nil
        try eventually("another torpord is in charge") {
            // The keeper may have replaced itself too, but it keeps its pid.
            guard let now = torpord(under: keeper) else { return false }
            return now != old
        }
        try waitForAnswer()
        tally.upgradesDone += 1
        guard withKeeper else { return }
        tally.keeperUpgrades += 1
        guard installation.isInstalledKeeper(keeper) else { throw Trouble("the keeper is still the old one") }
    }

    private func apply(breaking: Bool) throws {
        configurationVersion += 1
        try writeConfiguration()
        guard let keeper = knownKeeper(), let torpord = torpord(under: keeper), send(SIGHUP, to: torpord) else {
            return
        }
        note("asked torpord to read its configuration again")
        tally.applies += 1
        guard breaking else { return }
        usleep(2_000)
        try File.replace(daemon.directory + "/torpor.toml", Array("[apps.".utf8))
        note("broke the file")
    }

    private func writeConfiguration() throws {
        let grace = configurationVersion % 2 == 0 ? "3s" : "2500ms"
        let text = fleet.configuration(seed: seed).replacingOccurrences(
            of: "grace = \"3s\"",
            with: "grace = \"\(grace)\""
        )
        _ = try Daemon.writeConfiguration(text, in: daemon.directory)
    }

    // MARK: Calm

    private func waitForAnswer() throws {
        try eventually("torpord answers") { (try? daemon.list()) != nil }
        isTorpordNew = false
    }

    func eventually(_ what: String, within bound: Duration = .seconds(60), _ isSo: () throws -> Bool) throws {
        let end = Clock.monotonic() + bound
        while try !isSo() {
            guard Clock.monotonic() < end else { throw Trouble("in \(bound) it did not come to be that \(what)") }
            usleep(3_000)
        }
    }

    /// No more disasters: everything must come to where it was asked to be, and nothing may be missing.
    private func settle() throws {
        try awaitUpgrade()
        try waitForAnswer()
        try eventually("every request is answered") {
            collect()
            return asks.isEmpty
        }
        tally.phase("answers")
        try waitForGoals()
        tally.phase("goals")
        var problems = try logs.problems(census) + decoys.problems() + tally.strange
        tally.phase("logs")
        problems += try disagreements()
        tally.phase("agreement")
        problems += try reasons()
        tally.phase("reasons")
        if !problems.isEmpty { throw Trouble(problems.joined(separator: "\n")) }
    }

    private func waitForGoals() throws {
        var seen: Set<String> = []
        var wrong: [String] = []
        let end = Clock.monotonic() + .seconds(60)
        repeat {
            let look = census.look()
            wrong = fleet.apps.compactMap { app in
                let problem = goals.problem(app, look.members(app.name))
                if problem == nil { seen.insert(app.name) }
                // One that ends again and again must be seen where it should be once.
                return app.sort == .mortal && seen.contains(app.name) ? nil : problem
            }
            if wrong.isEmpty { return }
            usleep(5_000)
        } while Clock.monotonic() < end
        throw Trouble("in 60 s these did not come to where they should be:\n" + wrong.joined(separator: "\n"))
    }

    /// Where the daemon's word differs from what /proc shows.
    private func disagreements() throws -> [String] {
        var wrong: [String] = []
        let end = Clock.monotonic() + .seconds(60)
        repeat {
            wrong = []
            let list = try daemon.list()
            let look = census.look()
            for summary in list {
                guard let app = fleet.apps.first(where: { $0.name == summary.name }), app.sort != .mortal else {
                    continue
                }
                let goal = app.sort == .oneshot ? Goals.Goal.none : goals.of[app.name] ?? .none
                let isRight =
                    switch goal {
                    case .none: summary.state == "not-running" && summary.pid == nil
                    case .running: summary.state != "not-running" && summary.state != "suspended"
                    case .stopped: summary.state == "suspended"
                    }
                let members = look.members(app.name)
                let pidIsRight = members.isEmpty || members.contains { $0.pid == summary.pid }
                let listed = summary.status.flatMap { UInt64($0) } ?? 0
                if !isRight || summary.transition != nil || !pidIsRight {
                    wrong.append("\(app.name) is \(goal.rawValue), \(members), but listed as \(summary)")
                } else if let said = logs.said[app.name], app.says, goal == .running, !wereBothLost,
                    said.incarnation == UInt64(summary.incarnation ?? 0), listed < said.number
                {
                    wrong.append("\(app.name) said STATUS=\(said.number), listed is \(listed)")
                }
            }
            if wrong.isEmpty { return [] }
            usleep(10_000)
        } while Clock.monotonic() < end
        return wrong
    }

    /// Endings that the daemon brought about although the app did what it had to.
    private func reasons() throws -> [String] {
        var request = EventsRequest()
        request.since = reportsSince
        let events = try daemon.call(.events(request))["events"]?.arrayValue ?? []
        var wrong: [String] = []
        for event in try events.map({ try EventRecord(json: $0) }) {
            reportsSince = max(reportsSince, event.at + 1)
            guard event.kind == "exit", let reason = event.reason else { continue }
            switch reason {
            case "launch-deadline", "dependency-failed":
                // A READY that waited in the socket of a keeper and a torpord that are both gone is gone with them.
                if !wereBothLost { wrong.append("\(event.app ?? "") \(event.text)") }
            case "background-deadline", "watchdog", "unresponsive", "launch-failed":
                wrong.append("\(event.app ?? "") \(event.text)")
            case "signal" where event.text.contains("SIGTERM"):
                // Nobody sends that but torpord, and then it is why the app ended.
                wrong.append("\(event.app ?? "") \(event.text), which nobody asked for")
            default: break
            }
        }
        return wrong
    }
}
