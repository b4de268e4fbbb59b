// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
package import Testing
import TorporAPI

/// The ways in which torpord goes and another one comes.
package enum Loss: String, CaseIterable, CustomTestStringConvertible {
    /// SIGKILL, as the kernel's OOM killer does it.
    case killed
    /// SIGSEGV.
    case crashed
    /// It does not move any more, and its keeper takes it away.
    case stuck
    /// SIGKILL to the keeper.
    case keeper
    /// SIGKILL to both, and somebody starts torpord anew.
    case both
    /// It makes way for the program on disk.
    case upgraded

    package var testDescription: String { rawValue }
}

/// Runs a scenario with a daemon whose torpord and keeper may be lost, and stops it in the end.
///
/// In the configuration `@B` is the folder of the programs.
package func withRecovery(
    _ toml: String,
    files: [String: String] = [:],
    loss: Loss? = nil,
    environment: [String: String] = [:],
    at location: SourceLocation = #_sourceLocation,
    _ body: (Daemon) throws -> Void
) throws {
    var toml = toml.replacingOccurrences(of: "@B", with: Built.folder)
    var environment = ["SWIFT_BACKTRACE": "enable=no"].merging(environment) { $1 }
    if loss == .stuck {
        // A loop at rest is not watched: it must have something to do. On a busy machine one that is not stuck may wait
        // long for a processor.
        environment["TORPOR_LOOP_WATCHDOG_MS"] = "2000"
        toml += """

            [apps.tick]
            exec = ["/bin/sleep", "1000"]
            log = "null"

            """
    }
    let daemon = try Daemon(toml, files: files, environment: environment, nested: true)
    try daemon.waitUntilItAnswers(at: location)
    try body(daemon)
    try daemon.endEverything(at: location)
}

extension Daemon {
    /// The keeper, by /proc: it is not always the one that was started.
    package func livingKeeper() throws -> Int32 {
        let look = Census(folder: directory).look()
        guard let keeper = look.keepers.first(where: { one in !look.keepers.contains { $0.pid == one.parent } }) else {
            throw Trouble("no keeper lives")
        }
        return keeper.pid
    }

    /// torpord, by /proc.
    package func livingTorpord() throws -> Int32 {
        let keeper = try livingKeeper()
        guard let torpord = Census(folder: directory).look().torpords.first(where: { $0.parent == keeper }) else {
            throw Trouble("no torpord lives below the keeper")
        }
        return torpord.pid
    }

    /// Takes torpord away; `whileAway` runs while nobody is there (after an upgrade was asked for, while it goes on). Comes
    /// back when another one answers.
    package func lose(
        _ loss: Loss,
        at location: SourceLocation = #_sourceLocation,
        _ whileAway: () throws -> Void = {}
    ) throws {
        let keeper = try livingKeeper()
        let torpord = try livingTorpord()
        switch loss {
        case .killed, .crashed:
            // The keeper rests meanwhile, or the next one would be there at once.
            kill(keeper, SIGSTOP)
            kill(torpord, loss == .killed ? SIGKILL : SIGSEGV)
            try eventually("torpord is dead", at: location) { !Truth.isAlive(torpord) }
            try whileAway()
            kill(keeper, SIGCONT)
        case .stuck:
            try waitFor("tick", "active", at: location)
            let tick = processes(of: "tick")
            kill(torpord, SIGSTOP)
            try eventually("torpord is stopped", at: location) { Truth.isStopped(torpord) }
            try whileAway()
            for pid in tick { kill(pid, SIGKILL) }
        case .keeper:
            kill(torpord, SIGSTOP)
            kill(keeper, SIGKILL)
            try eventually("the keeper is dead", at: location) { !Truth.isAlive(keeper) }
            try whileAway()
            kill(torpord, SIGCONT)
        case .both:
            // The keeper rests until torpord is dead: else either would be quick enough to have another one started.
            kill(keeper, SIGSTOP)
            kill(torpord, SIGKILL)
            kill(keeper, SIGKILL)
            try eventually("both are dead", at: location) { !Truth.isAlive(keeper) && !Truth.isAlive(torpord) }
            try whileAway()
            try startAgain()
        case .upgraded:
            kill(torpord, SIGUSR2)
            try whileAway()
        }
        try eventually("another torpord runs (\(loss))", at: location) {
            guard let now = try? livingTorpord() else { return false }
            return now != torpord
        }
        try eventually("it answers", at: location) { (try? list()) != nil }
    }

    /// SIGTERM to the keeper, and nothing may be left.
    package func endEverything(at location: SourceLocation = #_sourceLocation) throws {
        kill(try livingKeeper(), SIGTERM)
        try eventually("everything is gone", at: location) {
            _ = reap()
            return Truth.processes(marked: directory).isEmpty
        }
        expectNothingLeft(at: location)
    }

    /// What torpor-test-app wrote down as a voice of an incarnation.
    package func truth(_ app: String, _ incarnation: Int = 1, voice: Character = "m") throws -> TruthFile {
        guard let file = TruthFile(folder: directory + "/t", name: "\(app).\(incarnation).\(voice)") else {
            throw Trouble("\(app) has no record of its incarnation \(incarnation), voice \(voice)")
        }
        return file
    }

    /// Every line that a torpor-test-app wrote until now stands in its log, exactly once and in order.
    package func expectWholeLog(
        _ app: String,
        _ incarnation: Int = 1,
        at location: SourceLocation = #_sourceLocation
    ) throws {
        let written = try truth(app, incarnation).accepted
        var tail = LogTail(path: directory + "/l/\(app).log")
        var checker = LogChecker(app: app)
        let voice = LogChecker.Voice(incarnation: UInt64(incarnation), letter: "m")
        try eventually("\(app)'s log has its \(written) lines", at: location) {
            checker.take(try tail.read())
            return checker.last[voice] ?? 0 >= written
        }
        #expect(checker.problems == [], sourceLocation: location)
        #expect(written > 0, "it has written nothing that could be missing", sourceLocation: location)
        #expect(try truth(app, incarnation).wrongs == [], sourceLocation: location)
    }

    /// What it takes from `begin` until it is so.
    package func time(
        since begin: Duration,
        until what: String,
        at location: SourceLocation = #_sourceLocation,
        _ isSo: () throws -> Bool
    ) throws -> Duration {
        try eventually(what, at: location, isSo)
        return Clock.monotonic() - begin
    }
}
