// SPDX-License-Identifier: Apache-2.0

import Configuration
import Lifecycle
import Linux
import Processes
import Testing

@testable import Supervisor

@Suite("An app's share of the machine") struct AppProfileTests {
    @Test("Where nothing is configured it is the state's own")
    func usual() {
        let app = AppSpecification(name: "web")
        #expect(app.profile(in: .active) == StateProfile(of: .active))
        #expect(app.profile(in: .background) == StateProfile(of: .background))
    }

    @Test("What is configured replaces what the state has, and only that")
    func configured() {
        var app = AppSpecification(name: "web")
        var profile = ResourceProfile()
        profile.cpuWeight = 50
        app.resources[.background] = profile
        var expected = StateProfile(of: .background)
        expected.cpuWeight = 50
        #expect(app.profile(in: .background) == expected)
        #expect(app.profile(in: .suspended) == StateProfile(of: .suspended))

        profile.ioWeight = 200
        profile.oomScoreAdjust = -5
        profile.timerSlack = .seconds(1)
        app.resources[.background] = profile
        (expected.ioWeight, expected.oomScoreAdjust, expected.timerSlack) = (200, -5, .seconds(1))
        #expect(app.profile(in: .background) == expected)
    }

    @Test("An app that sets no limit of tasks has the machine's default, which \"unlimited\" turns off")
    func tasks() throws {
        var app = AppSpecification(name: "web")
        let room = try #require(TaskRoom.ofOneApp)
        #expect(app.appLimits == AppLimits(tasks: room, isDefaultOfTasks: true))
        for (limit, expected) in [(7, 7), (.max, nil)] as [(UInt64, UInt64?)] {
            app.limits = [ResourceLimit(name: "tasks", resource: ResourceLimit.tasks, soft: limit, hard: limit)]
            #expect(app.appLimits == AppLimits(tasks: expected))
        }
    }
}
