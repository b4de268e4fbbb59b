// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Lifecycle

@Suite("What has ended for good")
struct OverTests {
    private let second = Duration.seconds(1)

    private func running(_ rules: AppRules = AppRules()) -> AppMachine {
        var machine = AppMachine(rules: rules)
        _ = machine.launch(foreground: true, reason: .boot, now: .zero)
        _ = machine.permitLaunch(now: .zero)
        _ = machine.handle(.launched, now: .zero)
        return machine
    }

    private func end(_ machine: inout AppMachine, _ cause: ExitCause) {
        _ = machine.handle(.mainExited(cause), now: second)
        _ = machine.handle(.allGone, now: second)
    }

    @Test("an app that was never launched, runs or is about to run again has not")
    func notYet() throws {
        var machine = AppMachine(rules: AppRules())
        #expect(!machine.isOver)
        machine = running()
        #expect(!machine.isOver)
        _ = machine.handle(.mainExited(.exited(code: 1)), now: second)
        #expect(!machine.isOver, "its rest is still there")
        _ = machine.handle(.allGone, now: second)
        #expect(machine.isWaitingToLaunch && !machine.isOver)
        _ = try machine.request(.restart, now: second)
        #expect(!machine.isOver)
    }

    @Test("one that is done, gave up, or was stopped or force-quit by a person has")
    func ended() throws {
        var machine = running()
        end(&machine, .exited(code: 0))
        #expect(machine.isOver)

        var rules = AppRules()
        rules.restart = .never
        machine = running(rules)
        end(&machine, .signaled(11, coreDumped: true))
        #expect(machine.isOver)

        rules.restart = .onFailure
        rules.backoff.limit = 0
        machine = running(rules)
        end(&machine, .exited(code: 1))
        #expect(machine.failed && machine.isOver)

        for request in [Request.stop(.stopped), .forceQuit] {
            machine = running()
            end(&machine, .exited(code: 1))
            _ = try machine.request(request, now: second)
            #expect(machine.isOver, "while it waited to be launched again")
            machine = running()
            _ = try machine.request(request, now: second)
            #expect(!machine.isOver)
            end(&machine, .signaled(15, coreDumped: false))
            #expect(machine.isOver)
            _ = try machine.request(.start(background: false), now: second)
            #expect(!machine.isOver)
        }
    }

    @Test("one that was put away to come back on demand has not")
    func putAway() throws {
        var machine = running()
        _ = try machine.request(.suspend, now: second)
        _ = machine.handle(.stopConfirmed, now: second)
        end(&machine, .signaled(9, coreDumped: false))
        #expect(machine.lastEnding == .evicted && !machine.isOver)

        var rules = AppRules()
        rules.exitsOnSuspend = true
        machine = running(rules)
        _ = try machine.request(.background, now: second)
        end(&machine, .exited(code: 0))
        #expect(machine.lastEnding == .exitsOnSuspend && !machine.isOver)
    }

    @Test("one whose requirement does not come up has; one that waits for those that require it has not")
    func amongOthers() throws {
        var rules = AppRules()
        rules.restart = .never
        rules.readiness = .notify
        var coordinator = try Coordinator([
            AppDefinition(name: "db", rules: rules), AppDefinition(name: "web", requires: ["db"]),
        ])
        _ = coordinator.launch([(0, true), (1, true)], now: .zero)
        #expect(!coordinator.isOver(1))
        _ = coordinator.handle(.launchFailed, of: 0, now: second)
        #expect(coordinator.isOver(0) && coordinator.isOver(1))

        coordinator = try Coordinator([
            AppDefinition(name: "db"), AppDefinition(name: "web", requires: ["db"]),
        ])
        _ = coordinator.launch([(0, true), (1, true)], now: .zero)
        for app in [0, 1] { _ = coordinator.handle(.launched, of: app, now: .zero) }
        _ = try coordinator.request(.restart, of: 0, now: second)
        _ = coordinator.handle(.mainExited(.exited(code: 0)), of: 0, now: second)
        _ = coordinator.handle(.allGone, of: 0, now: second)
        #expect(!coordinator.isOver(0), "its restart waits for web to be gone")
    }
}
