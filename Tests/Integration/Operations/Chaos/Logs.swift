// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux

/// Holds the logs of the whole fleet against what the apps themselves wrote down.
final class Logs {
    private struct One: Hashable {
        let app: String
        let voice: LogChecker.Voice
    }

    private let fleet: Fleet
    private let records: String
    private var tails: [String: LogTail] = [:]
    private var checkers: [String: LogChecker] = [:]
    /// Processes that ended and whose lines are all accounted for.
    private var finished: Set<One> = []
    /// Incarnations that ended while nobody held their output: what they wrote last may be missing.
    private var excused: Set<One> = []
    /// Lines that are missing for that reason.
    private(set) var lost: UInt64 = 0
    /// Incarnations that lost some.
    private(set) var losers = 0
    private(set) var incarnations = 0
    private(set) var storedBack: UInt64 = 0
    /// The last STATUS of each app's living incarnation.
    private(set) var said: [String: (incarnation: UInt64, number: UInt64)] = [:]

    var lines: Int { checkers.values.reduce(0) { $0 + $1.lines } }

    init(_ fleet: Fleet, _ daemon: Daemon) {
        self.fleet = fleet
        records = daemon.directory + "/t"
        for app in fleet.apps {
            tails[app.name] = LogTail(path: daemon.directory + "/l/\(app.name).log")
            checkers[app.name] = LogChecker(app: app.name)
        }
    }

    /// Keeper and torpord are gone together and somebody is there again: whatever ended until now may have ended while
    /// nobody held its output.
    func excuseTheDead(_ look: Census.Look) {
        for one in names() where !look.lives(one.app, one.voice.incarnation) { excused.insert(one) }
    }

    private func names() -> [One] {
        ((try? File.list(records)) ?? []).compactMap { name in
            guard let (app, voice, again) = TruthFile.parse(name: name), !again else { return nil }
            return One(app: app, voice: voice)
        }
    }

    /// What is wrong, in words; waits for a moment for what is still on its way.
    func problems(_ census: Census, within bound: Duration = .seconds(60)) throws -> [String] {
        var problems: [String] = []
        // Who lives, then what they wrote, then what the logs have: in this order nothing can seem to be missing.
        let look = census.look()
        var open: [TruthFile] = []
        said = [:]
        for name in try File.list(records) {
            guard let (app, voice, again) = TruthFile.parse(name: name) else { continue }
            let one = One(app: app, voice: voice)
            if again || finished.contains(one) {
                problems.append("incarnation \(voice.incarnation) of \(app) was started twice")
                for wrong in TruthFile(folder: records, name: name)?.wrongs ?? [] { problems.append("\(app) \(wrong)") }
                continue
            }
            guard let record = TruthFile(folder: records, name: name) else {
                // It may have been killed before it had written a line.
                if !look.lives(app, voice.incarnation) { try? File.remove(records + "/" + name) }
                continue
            }
            for wrong in record.wrongs { problems.append("\(app), incarnation \(voice.incarnation), \(wrong)") }
            if look.lives(app, voice.incarnation), voice.letter == "m" {
                said[app] = (voice.incarnation, record.statusNumber)
            }
            open.append(record)
        }
        problems += try hold(open, look, within: bound)
        return problems
    }

    private func hold(_ records: [TruthFile], _ look: Census.Look, within bound: Duration) throws -> [String] {
        let end = Clock.monotonic() + bound
        var open = records
        while true {
            for app in fleet.apps {
                if let bytes = try tails[app.name]?.read(), !bytes.isEmpty { checkers[app.name]?.take(bytes) }
            }
            open = open.filter { missing($0) > 0 }
            // Nothing more will come of those that nobody held.
            let waits = open.contains { !excused.contains(One(app: $0.app, voice: $0.voice)) }
            if !waits || Clock.monotonic() >= end { break }
            usleep(5_000)
        }
        var problems: [String] = []
        for record in open {
            let count = missing(record)
            let one = One(app: record.app, voice: record.voice)
            if excused.contains(one) {
                lost += count
                losers += 1
            } else {
                let who = "\(record.app) \(record.voice.incarnation) \(record.voice.letter)"
                let state = look.lives(record.app, record.voice.incarnation) ? "lives" : "ended"
                problems.append("\(who): \(count) lines are missing at the end of \(record.accepted), it \(state)")
            }
        }
        for record in records where !look.lives(record.app, record.voice.incarnation) { finish(record) }
        return problems + checkers.values.flatMap(\.problems)
    }

    private func missing(_ record: TruthFile) -> UInt64 {
        checkers[record.app]?.missing(record.voice, accepted: record.accepted, attempted: attemptedNow(record)) ?? 0
    }

    /// A living process goes on while we look.
    private func attemptedNow(_ record: TruthFile) -> UInt64 {
        let name = "\(record.app).\(record.voice.incarnation).\(record.voice.letter)"
        return TruthFile(folder: records, name: name)?.attempted ?? record.attempted
    }

    private func finish(_ record: TruthFile) {
        let one = One(app: record.app, voice: record.voice)
        finished.insert(one)
        excused.remove(one)
        storedBack += record.storedBack
        if record.voice.letter == "m" { incarnations += 1 }
        try? File.remove(records + "/\(record.app).\(record.voice.incarnation).\(record.voice.letter)")
    }
}
