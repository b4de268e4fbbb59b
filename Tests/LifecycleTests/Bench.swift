// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

/// One machine on a virtual clock, for tests that say step by step what happens.
struct Bench {
    var machine: AppMachine
    var now: Duration = .seconds(100)

    init(seed: UInt64 = 1, _ configure: (inout AppRules) -> Void = { _ in }) {
        var rules = AppRules()
        configure(&rules)
        machine = AppMachine(rules: rules, seed: seed)
    }

    /// Apps that answer every message and say when they are ready.
    static func attentive(_ configure: (inout AppRules) -> Void = { _ in }) -> Bench {
        Bench { rules in
            rules.answeredMessages = Set(Message.allCases)
            rules.readiness = .notify
            configure(&rules)
        }
    }

    mutating func ask(_ request: Request) throws -> [Action] {
        try machine.request(request, now: now)
    }

    mutating func tell(_ event: AppEvent) -> [Action] {
        machine.handle(event, now: now)
    }

    /// The machine's sentence for a request that it refuses, `nil` when it does not refuse it.
    mutating func refusal(_ request: Request) -> String? {
        let before = machine
        do {
            _ = try machine.request(request, now: now)
            return nil
        } catch {
            // A refused request changes nothing.
            return "\(machine.phaseDescription)" == "\(before.phaseDescription)" ? error.description : "changed"
        }
    }

    mutating func advance(_ time: Duration) -> [Action] {
        now += time
        return machine.handle(.deadline, now: now)
    }

    /// The kinds of deadlines that are armed, and how long each has left.
    var armed: [DeadlineKind: Duration] {
        Dictionary(machine.deadlines.map { ($0.kind, $0.at - now) }, uniquingKeysWith: min)
    }

    /// Launches and answers until the app is where it was asked to be.
    mutating func launch(background: Bool = false) throws {
        _ = try ask(.start(background: background))
        comeUp()
    }

    /// Carries out a launch that waits.
    mutating func comeUp() {
        _ = machine.permitLaunch(now: now)
        _ = tell(.launched)
        _ = tell(.ready)
        answerEverything()
    }

    mutating func suspend() throws {
        _ = try ask(.suspend)
        answerEverything()
        _ = tell(.stopConfirmed)
    }

    mutating func answerEverything() {
        for _ in 0..<4 {
            for message in Message.allCases { _ = tell(.answered(message)) }
        }
    }

    /// Ends the main process and everything else, and returns what the machine made of it.
    mutating func end(_ cause: ExitCause) throws -> Ending {
        _ = tell(.mainExited(cause))
        let ending = tell(.allGone).ending
        return try #require(ending)
    }
}

extension AppMachine {
    /// What a refused request must leave alone.
    var phaseDescription: String {
        "\(state) \(String(describing: transition)) \(goal) \(goalGeneration) \(interruptions) \(deadlines)"
    }
}

extension [Action] {
    var ending: Ending? {
        for case .ended(let ending) in self { return ending }
        return nil
    }
}

let crash = ExitCause.exited(code: 1)
let done = ExitCause.exited(code: 0)
