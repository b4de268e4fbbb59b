// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Lifecycle

@Suite("Apps that need an owner")
struct OwnerTests {
    static func bench(_ configure: (inout AppRules) -> Void = { _ in }) -> Bench {
        Bench { rules in
            rules.owner = .external
            configure(&rules)
        }
    }

    @Test(
        "Nothing launches one that is not owned",
        arguments: [
            Request.start(background: false), .start(background: true), .restart, .foreground, .background, .resume,
            .wake(Wake()), .wake(Wake(foreground: true)), .wake(Wake(overridesForceQuit: true)),
            .scene(SceneID(1), .active), .interrupt(begin: true),
        ]
    )
    func requests(request: Request) throws {
        var bench = Self.bench()
        #expect(bench.refusal(request)?.contains("is not owned by this machine") == true)
        for reason in LaunchReason.allCases {
            #expect(bench.machine.launch(foreground: true, reason: reason, now: bench.now).isEmpty)
        }
        #expect(bench.machine.goal == .notRunning && !bench.machine.isWaitingToLaunch)
    }

    @Test("A standby is launched to be suspended, and nothing wakes it until it is owned")
    func standby() throws {
        var bench = Self.bench()
        #expect(try bench.ask(.standby) == [.requestLaunch])
        #expect(bench.machine.permitLaunch(now: bench.now).count == 1)
        _ = bench.tell(.launched)
        // It first gets its background time.
        #expect(bench.advance(.seconds(5)) == [.stopProcesses])
        _ = bench.tell(.stopConfirmed)
        #expect(bench.machine.state == .suspended && bench.machine.standsBy && !bench.machine.isUp)
        #expect(bench.refusal(.wake(Wake())) != nil && bench.refusal(.resume) != nil)
        #expect(try bench.ask(.standby).isEmpty)
        #expect(try bench.ask(.own(until: nil)).isEmpty)
        #expect(try bench.ask(.wake(Wake())).first == .continueProcesses)
    }

    @Test("An owner that does not renew is told of the background, and suspended whatever keeps it awake")
    func expires() throws {
        var bench = Bench.attentive { $0.owner = .external }
        _ = try bench.ask(.own(until: bench.now + .seconds(90)))
        try bench.launch()
        _ = try bench.ask(.hold(reason: "looking", until: nil))
        #expect(bench.machine.nextDeadline == bench.now + .seconds(90))
        _ = try bench.ask(.own(until: bench.now + .seconds(120)))
        #expect(bench.advance(.seconds(90)).isEmpty && bench.machine.state == .active)
        #expect(bench.advance(.seconds(30)) == [.report(.ownershipExpired), .tell(.willResignActive)])
        #expect(!bench.machine.mayRun)
        _ = bench.tell(.answered(.willResignActive))
        #expect(bench.tell(.answered(.didEnterBackground)).last == .stopProcesses)
        _ = bench.tell(.stopConfirmed)
        #expect(bench.machine.state == .suspended)
    }

    @Test("The time of an owner goes on while a debugger is attached")
    func traced() throws {
        var bench = Self.bench()
        _ = try bench.ask(.own(until: bench.now + .seconds(10)))
        try bench.launch()
        _ = bench.tell(.traced(true))
        #expect(bench.machine.nextDeadline == bench.now + .seconds(10))
        #expect(bench.advance(.seconds(10)).first == .report(.ownershipExpired))
    }

    @Test("One that cannot be suspended is ended, and not restarted")
    func notStopped() throws {
        var bench = Self.bench { $0.restart = .always }
        _ = try bench.ask(.own(until: nil))
        try bench.launch()
        #expect(try bench.ask(.disown).last == .stopProcesses)
        #expect(bench.advance(.seconds(2)).contains(.signalStop))
        let ending = try bench.end(.signaled(15, coreDumped: false))
        #expect(ending.reason == .unresponsive && ending.next == .rest)
    }

    @Test("One that another process continues is stopped again, and ended at last")
    func continued() throws {
        var bench = Self.bench()
        _ = try bench.ask(.own(until: nil))
        try bench.launch()
        _ = try bench.ask(.disown)
        _ = bench.tell(.stopConfirmed)
        for _ in 1...3 {
            #expect(bench.tell(.foundRunning).last == .stopProcesses)
            _ = bench.tell(.stopConfirmed)
        }
        #expect(bench.tell(.foundRunning).contains(.signalStop))
        #expect(bench.machine.transition == .terminating)
    }

    @Test("Restarts end with the ownership: those that wait, and those of an app that is ending")
    func restarts() throws {
        var bench = Self.bench { $0.restart = .always }
        _ = try bench.ask(.own(until: nil))
        try bench.launch()
        #expect(try bench.end(crash).next != .rest)
        #expect(bench.machine.isWaitingToLaunch)
        _ = try bench.ask(.disown)
        #expect(!bench.machine.isWaitingToLaunch && bench.machine.nextDeadline == nil)
        _ = try bench.ask(.own(until: nil))
        try bench.launch()
        _ = try bench.ask(.restart)
        _ = try bench.ask(.disown)
        #expect(try bench.end(done).next == .rest)
        // A standby that crashes stays down too.
        _ = try bench.ask(.standby)
        bench.comeUp()
        #expect(try bench.end(crash).next == .rest)
    }

    @Test("A user may run one all the same, until it has ended")
    func forced() throws {
        var bench = Self.bench()
        _ = try bench.ask(.runUnowned)
        try bench.launch()
        #expect(bench.machine.state == .active && bench.machine.ownership == .forced)
        #expect(try bench.end(done).next == .rest)
        #expect(!bench.machine.mayRun)
        // A launch that was not begun is over too.
        _ = try bench.ask(.runUnowned)
        _ = try bench.ask(.start(background: false))
        _ = try bench.ask(.stop(.stopped))
        #expect(!bench.machine.mayRun)
    }

    @Test("A launch that was begun for the owner ends with the ownership; that of a standby goes on")
    func launching() throws {
        var bench = Self.bench()
        _ = try bench.ask(.own(until: nil))
        _ = try bench.ask(.start(background: false))
        _ = bench.machine.permitLaunch(now: bench.now)
        #expect(try bench.ask(.disown).isEmpty && bench.machine.transition == .terminating)
        #expect(bench.tell(.launched).contains(.signalStop))
        let ending = try bench.end(.signaled(15, coreDumped: false))
        #expect(ending.reason == .evicted && ending.next == .rest && !bench.machine.isStopped)
        _ = try bench.ask(.standby)
        _ = bench.machine.permitLaunch(now: bench.now)
        _ = try bench.ask(.disown)
        #expect(bench.machine.transition == .launching)
    }

    @Test("An ownership whose time is over counts no longer, even before its deadline is handled")
    func overdue() throws {
        var bench = Self.bench { $0.restart = .always }
        func owned() throws -> Bench {
            var bench = Self.bench { $0.restart = .always }
            _ = try bench.ask(.own(until: bench.now + .seconds(10)))
            try bench.launch()
            return bench
        }
        bench = try owned()
        try bench.suspend()
        bench.now += .seconds(10)
        #expect(bench.refusal(.wake(Wake()))?.contains("is not owned") == true && bench.refusal(.foreground) != nil)
        // It is owned anew, and not renewed.
        #expect(bench.refusal(.own(until: nil, renews: true))?.contains("nothing to renew") == true)
        #expect(bench.refusal(.own(until: nil)) == nil)

        bench = try owned()
        bench.now += .seconds(10)
        #expect(try bench.end(crash).next == .rest)
        #expect(!bench.machine.mayRun && bench.machine.nextDeadline == nil)

        // A launch that waits is not begun.
        bench = Self.bench()
        _ = try bench.ask(.own(until: bench.now + .seconds(10)))
        _ = try bench.ask(.start(background: false))
        bench.now += .seconds(10)
        #expect(bench.machine.permitLaunch(now: bench.now) == [.report(.ownershipExpired)])
        #expect(bench.machine.launch(foreground: true, reason: .boot, now: bench.now).isEmpty)
        #expect(!bench.machine.isAlive && !bench.machine.isWaitingToLaunch)
    }

    @Test("A renewal is refused if there is nothing to renew")
    func renewal() throws {
        var bench = Self.bench()
        #expect(bench.refusal(.own(until: .seconds(200), renews: true)) != nil)
        _ = try bench.ask(.runUnowned)
        #expect(bench.refusal(.own(until: .seconds(200), renews: true)) != nil)
        _ = try bench.ask(.own(until: .seconds(110)))
        #expect(try bench.ask(.own(until: .seconds(200), renews: true)).isEmpty)
        #expect(bench.machine.ownedUntil == .seconds(200))
    }

    @Test("One that is disowned while a user has it restarted does not count as stopped")
    func restarted() throws {
        var bench = Self.bench()
        _ = try bench.ask(.own(until: nil))
        try bench.launch()
        _ = try bench.ask(.restart)
        _ = try bench.ask(.disown)
        #expect(try bench.end(done).next == .rest)
        #expect(!bench.machine.isStopped && bench.machine.lastEnding == .evicted)
        _ = try bench.ask(.own(until: nil))
        #expect(bench.refusal(.wake(Wake())) == nil)
        // A stop is a stop, whoever owns the app.
        try bench.launch()
        _ = try bench.ask(.stop(.stopped))
        _ = try bench.ask(.disown)
        _ = try bench.end(done)
        #expect(bench.machine.isStopped)
    }

    @Test("Who owned it is forgotten when its rules ask for no owner")
    func rules() throws {
        var bench = Self.bench()
        let external = bench.machine.rules
        _ = try bench.ask(.own(until: .seconds(500)))
        bench.machine.take(AppRules())
        bench.machine.take(external)
        #expect(!bench.machine.mayRun && bench.machine.nextDeadline == nil)
    }

    @Test("The time that the machine has slept counts")
    func slept() throws {
        var fleet = try Self.pair()
        try fleet.ask(.own(until: fleet.now + .seconds(60)), "db")
        try fleet.ask(.start(background: false), "db")
        fleet.coordinator.shortenOwnership(of: fleet.id("db"), by: .seconds(50))
        #expect(fleet.coordinator.nextDeadline(fleet.id("db")) == fleet.now + .seconds(10))
    }

    private static func pair() throws -> Fleet {
        var rules = AppRules()
        rules.owner = .external
        return try Fleet([
            AppDefinition(name: "db", rules: rules), AppDefinition(name: "web", requires: ["db"]),
        ])
    }

    @Test("Those that require it end with it, do not count as stopped, and come back with it")
    func dependentsComeBack() throws {
        var fleet = try Self.pair()
        try fleet.ask(.own(until: nil), "db")
        try fleet.ask(.start(background: false), "web")
        #expect(fleet.state("web") == .active)
        try fleet.ask(.disown, "db")
        try fleet.ask(.stop(.evicted), "db")
        #expect(fleet.coordinator.isEverythingGone)
        #expect(fleet.takeLog("ended evicted") == ["web", "db"])
        #expect(!fleet.coordinator.machine(fleet.id("web")).isStopped)
        try fleet.ask(.own(until: nil), "db")
        try fleet.ask(.start(background: false), "db")
        #expect(fleet.state("web") == .active)
        // Unless a user stops them.
        try fleet.ask(.disown, "db")
        try fleet.ask(.stop(.evicted), "db")
        try fleet.ask(.stop(.stopped), "web")
        try fleet.ask(.own(until: nil), "db")
        try fleet.ask(.start(background: false), "db")
        #expect(fleet.state("web") == .notRunning)
    }

    @Test("A dependent does not wait for a standby, but comes up when that is owned")
    func dependentOfStandby() throws {
        var fleet = try Self.pair()
        try fleet.ask(.standby, "db")
        fleet.now += .seconds(5)
        fleet.tell(.deadline, "db")
        #expect(fleet.state("db") == .suspended)
        try fleet.ask(.start(background: false), "web")
        #expect(!fleet.coordinator.machine(fleet.id("web")).isWaitingToLaunch)
        #expect(fleet.log.contains("web ended dependency-failed"))
        try fleet.ask(.own(until: nil), "db")
        try fleet.ask(.foreground, "db")
        #expect(fleet.state("db") == .active && fleet.state("web") == .active)
    }

    @Test("The end of an ownership ends no shutdown, and takes back no stop")
    func shutdown() throws {
        var fleet = try Self.pair()
        try fleet.ask(.own(until: nil), "db")
        try fleet.ask(.start(background: false), "web")
        // The stop of db waits for web, which has not ended yet.
        let first = fleet.coordinator.shutDown(now: fleet.now)
        let disowned = try fleet.coordinator.request(.disown, of: fleet.id("db"), now: fleet.now)
        fleet.settle(first + disowned)
        #expect(fleet.coordinator.isEverythingGone)
    }

    @Test("An app without the key is owned by nobody else")
    func withoutKey() throws {
        var bench = Bench()
        #expect(bench.machine.mayRun)
        #expect(bench.refusal(.own(until: nil))?.contains("owner = \"external\"") == true)
        try bench.launch()
        #expect(try bench.ask(.disown).isEmpty && bench.machine.state == .active)
    }

    @Test("The ownership and its end survive in a record; an older record owns nothing", arguments: Ownership.allCases)
    func record(ownership: Ownership) throws {
        var bench = Self.bench()
        bench.machine.ownership = ownership
        bench.machine.ownedUntil = ownership == .owned ? .seconds(190) : nil
        var bytes = [UInt8](repeating: 0, count: AppMachine.wakeBytes)
        bytes.withUnsafeMutableBytes {
            var writer = RecordWriter($0)
            bench.machine.encodeWake(into: &writer)
            #expect(writer.count == AppMachine.wakeBytes && !writer.isOverfull)
        }
        for (length, expected) in [(bytes.count, ownership), (bytes.count - 9, Ownership.none)] {
            var other = Self.bench()
            bytes[..<length].withUnsafeBytes {
                var reader = RecordReader($0)
                other.machine.restoreWake(from: &reader)
            }
            #expect(other.machine.ownership == expected)
            #expect(other.machine.ownedUntil == (expected == .owned ? .seconds(190) : nil))
        }
    }

    @Test("A dependent does not launch what it requires and is not owned here, and comes up when that is")
    func dependents() throws {
        var rules = AppRules()
        rules.owner = .external
        let coordinator = try Coordinator([
            AppDefinition(name: "db", rules: rules), AppDefinition(name: "web", requires: ["db"]),
        ])
        let web = try #require(coordinator.id(of: "web"))
        let db = try #require(coordinator.id(of: "db"))
        let refused = try coordinator.request(.start(background: false), of: web, now: .zero).map(\.action)
        #expect([Action](refused).ending?.reason == .dependencyFailed)
        #expect(!coordinator.machine(db).isWaitingToLaunch)
        #expect(throws: RequestError.self) { try coordinator.request(.restart, of: db, now: .zero) }
        #expect(throws: RequestError.self) { try coordinator.advise(.goal(.active), of: db, now: .zero) }
        _ = try coordinator.request(.own(until: nil), of: db, now: .zero)
        let launches = try coordinator.request(.start(background: false), of: db, now: .zero)
        #expect(launches.contains { $0.app == db })
        _ = coordinator.handle(.launched, of: db, now: .zero)
        #expect(coordinator.machine(web).transition == .launching)
    }
}
