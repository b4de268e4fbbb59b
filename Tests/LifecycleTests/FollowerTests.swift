// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

@Suite("A launch that waits for the end of a removed app")
struct FollowerTests {
    /// The app `old` was removed, and its process takes its time. The app `new` takes its place, and requires `job`,
    /// which has done its work already.
    private static func fleet() throws -> Fleet {
        var once = AppRules()
        once.restart = .never
        var fleet = try Fleet([AppDefinition(name: "old")])
        fleet.settle(fleet.coordinator.launch([(0, true)], now: fleet.now))
        var new = AppChange(AppDefinition(name: "new", requires: ["job"]), launchesNew: true)
        new.follows = ["old"]
        let job = AppChange(AppDefinition(name: "job", rules: once))
        fleet.log = []
        let actions = try fleet.coordinator.reconfigure([new, job], now: fleet.now)
        fleet.settle(actions.filter { $0.app != 0 })
        fleet.tell(.mainExited(.exited(code: 0)), "job")
        #expect(fleet.takeLog("launch") == ["job"] && fleet.coordinator.blockers(fleet.id("new")) == ["old"])
        return fleet
    }

    @Test("launches only the app when the removed one is gone, and not again what has done its work for it")
    func once() throws {
        var fleet = try Self.fleet()
        fleet.tell(.mainExited(.signaled(15, coreDumped: false)), "old")
        #expect(fleet.coordinator.takeForgotten() == [0])
        fleet.settle(fleet.coordinator.launchFollowers(now: fleet.now))
        #expect(fleet.takeLog("launch") == ["new"])
        // The next launch is another one.
        try fleet.ask(.restart, "new")
        #expect(fleet.takeLog("launch").sorted() == ["job", "new"])
    }

    @Test("launches what the app requires by another configuration, too")
    func requiresOthers() throws {
        var fleet = try Self.fleet()
        let changes = [
            AppChange(AppDefinition(name: "new", requires: ["other"])), AppChange(AppDefinition(name: "other")),
        ]
        fleet.settle(try fleet.coordinator.reconfigure(changes, now: fleet.now).filter { $0.app != 0 })
        #expect(fleet.takeLog("launch") == ["other"])
    }

    @Test("waits under the next torpord even if something launches the app only then, and the reason is known")
    func onDemand() throws {
        var fleet = try Fleet([AppDefinition(name: "old")])
        fleet.settle(fleet.coordinator.launch([(0, true)], now: fleet.now))
        var new = AppChange(AppDefinition(name: "new"))
        new.follows = ["old"]
        fleet.settle(try fleet.coordinator.reconfigure([new], now: fleet.now).filter { $0.app != 0 })
        fleet.log = []
        fleet.coordinator = try Record.again(fleet.coordinator, [fleet.id("new")])
        fleet.settle(fleet.coordinator.carryOn(shuttingDown: false, now: fleet.now))
        #expect(!fleet.coordinator.awaitsOrphans(0))
        try fleet.ask(.start(background: false), "new")
        #expect(fleet.takeLog("launch") == [] && fleet.coordinator.awaitsOrphans(0))
        fleet.settle(fleet.coordinator.orphansAreGone(now: fleet.now))
        #expect(fleet.takeLog("launch") == ["new"] && !fleet.coordinator.awaitsOrphans(0))
    }

    @Test("waits under each next torpord, until what was left of the removed one is gone")
    func takenOver() throws {
        var fleet = try Self.fleet()
        var places = ["new", "job"].map { fleet.id($0) }
        for _ in 0..<2 {
            fleet.coordinator = try Record.again(fleet.coordinator, places)
            places = [0, 1]
            fleet.settle(fleet.coordinator.carryOn(shuttingDown: false, now: fleet.now))
            #expect(fleet.takeLog("launch") == [])
        }
        fleet.settle(fleet.coordinator.orphansAreGone(now: fleet.now))
        #expect(fleet.takeLog("launch") == ["new"])
        fleet.coordinator = try Record.again(fleet.coordinator, places)
        #expect(fleet.coordinator.orphansAreGone(now: fleet.now) == [])
    }
}
