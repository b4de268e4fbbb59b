// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Supervisor

@Suite("The pulse of torpor-desktop") struct HelperPulseTests {
    private var rules = PulseRules()
    private let start = Duration.seconds(1000)

    init() {
        rules.started(at: start)
        let number = rules.greeted(at: start)
        #expect(number == nil)
    }

    @Test("is not taken while there is nothing to watch and nothing was asked of it")
    func quiet() {
        #expect(rules.deadline == nil)
    }

    @Test("is taken after each command, one question at a time")
    mutating func commands() {
        let first = rules.commanded(at: start)
        let during = [rules.commanded(at: start), rules.commanded(at: start)]
        #expect(first == 1 && during == [nil, nil] && rules.deadline == start + PulseRules.patience)
        // The question came before two commands.
        let (second, third) = (rules.heard(1, at: start), rules.heard(2, at: start))
        #expect(second == 2 && third == nil && rules.deadline == nil)
        let repeated = [rules.heard(2, at: start), rules.heard(9, at: start)]
        #expect(repeated == [nil, nil] && rules.deadline == nil)
    }

    @Test("is missed when two questions have no answer in time; an answer to either is enough")
    mutating func silence() {
        for isAnswered in [true, false] {
            let now = start + .seconds(isAnswered ? 0 : 100)
            let first = rules.commanded(at: now) ?? 0
            let early = rules.passed(at: now + .seconds(9))
            let again = rules.passed(at: now + .seconds(10))
            #expect(early == nil && again == .ask(number: first + 1) && rules.deadline == now + .seconds(20))
            if isAnswered {
                let other = [rules.heard(first - 1, at: now), rules.heard(first + 2, at: now)]
                #expect(other == [nil, nil] && rules.deadline != nil)
                _ = rules.heard(first, at: now + .seconds(15))
                #expect(rules.deadline == nil)
            } else {
                let end = rules.passed(at: now + .seconds(20))
                #expect(end == .giveUp)
                rules.stopped()
                #expect(rules.deadline == nil)
            }
        }
    }

    @Test("is not missed because torpord itself was stopped")
    mutating func late() {
        _ = rules.commanded(at: start)
        let steps = [100, 200, 210].map { rules.passed(at: start + .seconds($0)) }
        #expect(steps == [.ask(number: 2), .ask(number: 3), .giveUp])
        rules.started(at: start)
        let starting = [200, 259, 260].map { rules.passed(at: start + .seconds($0)) }
        #expect(starting == [nil, nil, .giveUp])
    }

    @Test("is taken once in five minutes while there is something to watch, if nothing else was heard")
    mutating func watch() {
        rules.hasWatch = true
        #expect(rules.deadline == start + .seconds(300))
        rules.reported(at: start + .seconds(200))
        let early = rules.passed(at: start + .seconds(300))
        #expect(early == nil && rules.deadline == start + .seconds(500))
        let asked = rules.passed(at: start + .seconds(500))
        #expect(asked == .ask(number: 1))
        _ = rules.heard(1, at: start + .seconds(501))
        #expect(rules.deadline == start + .seconds(801))
        rules.hasWatch = false
        #expect(rules.deadline == nil)
    }

    @Test("begins with the answer to hello, for which a helper has a minute")
    mutating func beginning() {
        rules.started(at: start)
        let command = rules.commanded(at: start)
        #expect(command == nil && rules.deadline == start + .seconds(60))
        let asked = rules.greeted(at: start + .seconds(50))
        #expect(asked == 1 && rules.deadline == start + .seconds(60))
        rules.started(at: start)
        let end = rules.passed(at: start + .seconds(60))
        #expect(end == .giveUp)
        rules.stopped()
        let none = [rules.commanded(at: start), rules.greeted(at: start), rules.heard(1, at: start)]
        #expect(none == [nil, nil, nil] && rules.deadline == nil)
    }
}
