// SPDX-License-Identifier: Apache-2.0

import Policies
import Testing
import TorporPolicyABI

@Suite("The example in C")
struct ExampleTests {
    /// Built with nothing but gcc and the header.
    private func library(_ workshop: Workshop) throws -> String {
        let library = workshop.folder + "/libBatteryPolicy.so"
        let built = try workshop.run(
            "gcc",
            [
                "-O2", "-Wall", "-Wextra", "-Werror", "-std=gnu11", "-shared", "-fPIC",
                "-I\(Workshop.kit)/Sources/TorporPolicyABI/include", "-o", library,
                Workshop.kit + "/examples/battery.c",
            ]
        )
        try #require(built.status == 0, "\(built.output)")
        return library
    }

    @Test("built with plain gcc it says who waits while the battery is low")
    func asked() throws {
        let workshop = try Workshop()
        let bench = try PolicyBench(library: library(workshop), options: ["tag": "heavy", "below": 30])
        #expect(bench.description.name == "battery")
        #expect(bench.description.needs == 1 << 3)
        #expect(bench.description.options.map(\.key) == ["tag", "below"])
        bench.add("index", tags: ["batch", "heavy"])
        bench.add("build", .active, tags: ["heavy"])
        bench.add("mail", .active)
        bench.view.system.power = UInt32(TORPOR_POWER_BATTERY)
        bench.view.system.battery = 30
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == ["ask again in 60 s"])
        #expect(try bench.ask(TORPOR_EVENT_LAUNCH, "index", reason: TORPOR_LAUNCH_AT_BOOT.rawValue) == [])

        bench.view.system.battery = 29
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["build → background", "ask again in 60 s"])
        #expect(bench.reasons[0] == "the battery has less than 30%")
        #expect(
            try bench.ask(TORPOR_EVENT_LAUNCH, "index", reason: TORPOR_LAUNCH_AT_BOOT.rawValue)
                == ["index is delayed by 300 s"]
        )
        #expect(try bench.ask(TORPOR_EVENT_LAUNCH, "index", reason: TORPOR_LAUNCH_BY_USER.rawValue) == [])
        #expect(try bench.ask(TORPOR_EVENT_LAUNCH, "mail", reason: TORPOR_LAUNCH_AT_BOOT.rawValue) == [])

        bench.view.system.power = UInt32(TORPOR_POWER_MAINS)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["ask again in 60 s"])
    }

    @Test("its options are checked as those of a policy in Swift are")
    func options() throws {
        let workshop = try Workshop()
        let library = try library(workshop)
        #expect(
            PolicyBench.complaint(library: library, ["below": 0])
                == "below must be a whole number from 1 to 100: it is 0"
        )
        #expect(PolicyBench.complaint(library: library, ["tag": 1]) == "tag must be a string of less than 64 bytes")
        #expect(
            PolicyBench.complaint(library: library, ["tga": "x"])
                == "tga is not an option of this policy: there are below, tag"
        )
    }
}
