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
