// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Foundation
import Linux
import LoginManager
import MockLogind
import Testing

/// A manager on a loop of its own, beside a mock of logind.
private struct World {
    let mock: MockLogind
    let loop: EventLoop
    let manager: LoginManager

    init(_ subject: LoginManager.Subject, _ prepare: (MockLogind) throws -> Void = { try $0.startLogind() }) throws {
        mock = try MockLogind()
        try prepare(mock)
        loop = try EventLoop()
        manager = LoginManager(loop, subject, address: mock.address)
    }

    /// Turns the loop until it is so.
    func eventually(
        _ what: String,
        within bound: Duration = .seconds(60),
        at location: SourceLocation = #_sourceLocation,
        _ isSo: () throws -> Bool
    ) throws {
        let end = loop.now + bound
        while try !isSo() {
            guard loop.now < end else {
                Issue.record("in vain: \(what); \(manager.state), \(manager.description)", sourceLocation: location)
                throw CancellationError()
            }
            try loop.runOnce(timeout: .milliseconds(5))
        }
    }

    func waitUntilKnown(at location: SourceLocation = #_sourceLocation) throws {
        try eventually("logind has said how it stands", at: location) { manager.state.isKnown }
    }

    /// All that the bus had for this side by now has come, and what was asked because of it is answered: the bus keeps
    /// the order, and twice somebody has come later who had to ask more.
    func settle() throws {
        for _ in 0..<2 {
            let later = LoginManager(loop, session(.seat("seat0")), address: mock.address)
            try eventually("one that came later knows all") { later.isThere && later.state.isKnown }
        }
    }
}

private let sleepOnly = LoginManager.Subject(sleep: true, session: nil)

private func session(_ choice: LoginManager.SessionChoice) -> LoginManager.Subject {
    LoginManager.Subject(sleep: false, session: choice)
}

@Suite(
    "What logind tells",
    .serialized,
    .enabled(if: MockLogind.obstacle == nil, "python3-dbusmock and dbus are needed: make deps")
)
struct LoginManagerTests {
    // MARK: Sleep

    @Test("The machine waits before it sleeps until it is let, and waits anew after it woke")
    func sleep() throws {
        let world = try World(sleepOnly)
        try world.waitUntilKnown()
        #expect(!world.manager.state.isAsleep)
        try world.eventually("there is an inhibitor") { try world.mock.inhibitors == 1 }

        var changes: [Bool] = []
        world.manager.onChange = { [weak manager = world.manager] in
            if let manager { changes.append(manager.state.isAsleep) }
        }
        try world.mock.sleep(true)
        try world.eventually("the machine is about to sleep") { world.manager.state.isAsleep }
        #expect(try world.mock.inhibitors == 1)
        world.manager.letSleep()
        try world.eventually("the machine may sleep") { try world.mock.inhibitors == 0 }

        try world.mock.sleep(false)
        try world.eventually("it woke") { !world.manager.state.isAsleep }
        try world.eventually("it waits again") { try world.mock.inhibitors == 1 }
        #expect(changes == [true, false])
    }

    @Test("When the machine sleeps at the latest is what logind says, less a margin")
    func latest() throws {
        let world = try World(sleepOnly) { try $0.startLogind(delay: .seconds(2)) }
        try world.waitUntilKnown()
        #expect(world.manager.sleepsAt == nil)
        try world.eventually("there is an inhibitor") { try world.mock.inhibitors == 1 }
        let before = world.loop.now
        try world.mock.sleep(true)
        try world.eventually("the machine is about to sleep") { world.manager.state.isAsleep }
        let time = try #require(world.manager.sleepsAt)
        #expect(time > before + .milliseconds(1700) && time < world.loop.now + .seconds(2))
        try world.mock.sleep(false)
        try world.eventually("it woke") { !world.manager.state.isAsleep }
        #expect(world.manager.sleepsAt == nil)
    }

    @Test("Who comes while the machine is about to sleep learns of it, and that it woke")
    func late() throws {
        let world = try World(sleepOnly) { try $0.startLogind(sleeping: true) }
        try world.waitUntilKnown()
        #expect(world.manager.state.isAsleep)
        try world.mock.sleep(false)
        try world.eventually("it woke") { !world.manager.state.isAsleep }
    }

    @Test("Who is told to follow nothing of sleep keeps the machine from nothing")
    func withoutSleep() throws {
        let world = try World(session(.seat("seat0")))
        try world.waitUntilKnown()
        #expect(try world.mock.inhibitors == 0)
        try world.mock.sleep(true)
        try world.settle()
        #expect(!world.manager.state.isAsleep)
    }

    @Test("Where no lock is given sleep is told of all the same, and a person learns why the machine does not wait")
    func refusal() throws {
        let world = try World(sleepOnly) { mock in
            try mock.startLogind()
            try mock.run(
                """
                def refuse(self, *words):
                    raise dbus.exceptions.DBusException('Permission denied', name=BUS + '.Error.AccessDenied')
                manager.AddMethod(MANAGER, 'Inhibit', 'ssss', 'h', refuse)
                """
            )
        }
        try world.waitUntilKnown()
        try world.eventually("it was refused") { world.manager.trouble?.contains("Permission denied") ?? false }
        try world.mock.sleep(true)
        try world.eventually("the machine is about to sleep") { world.manager.state.isAsleep }
        #expect(world.manager.sleepsAt == nil)
    }

    @Test("What somebody else on the bus sends in logind's name counts for nothing")
    func stranger() throws {
        let world = try World(LoginManager.Subject(sleep: true, session: .user(1000))) { mock in
            try mock.startLogind()
            try mock.run("add_session('c1', 1000)")
        }
        try world.waitUntilKnown()
        for words in [
            "OBJECT, MANAGER, 'PrepareForSleep', True", "OBJECT + '/session/c1', LOGIN + '.Session', 'Lock'",
            "'/org/freedesktop/DBus', BUS, 'NameOwnerChanged', LOGIN, manager.connection.get_unique_name(), ''",
        ] {
            #expect(try world.mock.run("as_stranger(\(words)); ret = len(clients())") == "1")
            try world.settle()
            #expect(!world.manager.state.isAsleep && !world.manager.state.isLocked && world.manager.trouble == nil)
        }
        // What logind itself says still counts.
        try world.mock.sleep(true)
        try world.eventually("the machine is about to sleep") { world.manager.state.isAsleep }
    }

    // MARK: Sessions

    @Test("A session is locked as its hint says, and as logind asks for it")
    func lock() throws {
        let world = try World(session(.id("c1"))) { mock in
            try mock.startLogind()
            try mock.run("add_session('c1', 1000)")
        }
        try world.waitUntilKnown()
        #expect(world.manager.state.session == "c1" && !world.manager.state.isLocked)
        let steps: [(String, Bool)] = [
            ("hint('c1', True)", true), ("hint('c1', False)", false), ("tell('c1', 'Lock')", true),
            ("tell('c1', 'Unlock')", false), ("tell('c1', 'Lock'); hint('c1', True)", true),
            ("hint('c1', False)", false),
        ]
        for (step, isLocked) in steps {
            try world.mock.run(step)
            try world.eventually("\(step) counts") { world.manager.state.isLocked == isLocked }
        }
    }

    @Test("A session that is locked already is found locked")
    func lockedBefore() throws {
        let world = try World(session(.user(1000))) { mock in
            try mock.startLogind()
            try mock.run("add_session('c1', 1000); hint('c1', True)")
        }
        try world.waitUntilKnown()
        #expect(world.manager.state.isLocked)
    }

    @Test("A user is followed from session to session, and has none at first and in the end")
    func user() throws {
        let world = try World(session(.user(1000)))
        try world.waitUntilKnown()
        #expect(world.manager.state.session == nil)
        #expect(world.manager.trouble == nil && world.manager.description == "no session")
        try world.mock.run("add_session('c1', 1000); hint('c1', True)")
        try world.eventually("the first is followed") { world.manager.state.session == "c1" }
        try world.eventually("it is locked") { world.manager.state.isLocked }
        // Another one, not locked, is what the user sees now; the first goes on being locked.
        try world.mock.run("add_session('c2', 1000)")
        try world.eventually("the second is followed") { world.manager.state.session == "c2" }
        try world.eventually("it is not locked") { !world.manager.state.isLocked }
        try world.mock.run("hint('c1', False); hint('c1', True)")
        try world.settle()
        #expect(!world.manager.state.isLocked)
        // Somebody else's is nobody's business here.
        try world.mock.run("add_session('c3', 1001); hint('c3', True)")
        try world.settle()
        #expect(world.manager.state.session == "c2" && !world.manager.state.isLocked)
        try world.mock.run("hint('c2', True)")
        try world.eventually("it is locked") { world.manager.state.isLocked }
        try world.mock.run("remove_session('c2', 1000)")
        try world.eventually("there is none") { world.manager.state.session == nil && !world.manager.state.isLocked }
    }

    @Test("A new session of somebody else does not undo a lock that only logind asked for")
    func otherSession() throws {
        let world = try World(session(.user(1000))) { mock in
            try mock.startLogind()
            try mock.run("add_session('c1', 1000)")
        }
        try world.waitUntilKnown()
        try world.mock.run("tell('c1', 'Lock')")
        try world.eventually("it is locked") { world.manager.state.isLocked }
        try world.mock.run("add_session('c9', 1009)")
        try world.settle()
        #expect(world.manager.state.isLocked)
    }

    @Test("A session that was named and is not there is said to be missing until it comes")
    func missing() throws {
        let world = try World(session(.id("c7")))
        try world.waitUntilKnown()
        #expect(world.manager.trouble == "no session is followed: there is no c7")
        try world.mock.run("add_session('c7', 1000); hint('c7', True)")
        try world.eventually("it is followed") { world.manager.state.isLocked && world.manager.trouble == nil }
    }

    @Test("A seat's session is the one in front")
    func seat() throws {
        let world = try World(session(.seat("seat0"))) { mock in
            try mock.startLogind()
            try mock.run("add_session('c1', 1000); add_session('c2', 1001); hint('c1', True)")
        }
        try world.waitUntilKnown()
        #expect(world.manager.state.session == "c2" && !world.manager.state.isLocked)
        #expect(world.manager.state.user == 1001)
        try world.mock.run("front('seat0', 'c1')")
        try world.eventually("the first is in front, and locked") {
            world.manager.state.session == "c1" && world.manager.state.isLocked
        }
        #expect(world.manager.state.user == 1000 && world.manager.state.isUsers)
        try world.mock.run(
            """
            add_session('c3', 120)
            change('/session/c3', 'Session', 'Class', 'greeter')
            front('seat0', 'c3')
            """
        )
        try world.eventually("a login screen is in front") { world.manager.state.user == 120 }
        #expect(world.manager.state.session == "c3" && !world.manager.state.isUsers)
        try world.mock.run("front('seat0', '')")
        try world.eventually("none is in front") { world.manager.state.session == nil && !world.manager.state.isLocked }
        #expect(world.manager.state.user == nil)
    }

    // MARK: What goes and comes back

    @Test("A logind that is started again is asked anew, and the machine goes on waiting in between")
    func logindRestarts() throws {
        let world = try World(LoginManager.Subject(sleep: true, session: .user(1000))) { mock in
            try mock.startLogind()
            try mock.run("add_session('c1', 1000); hint('c1', True)")
        }
        try world.waitUntilKnown()
        try world.eventually("there is an inhibitor") { try world.mock.inhibitors == 1 }
        try world.mock.run("stop_logind()")
        try world.eventually("it is gone") { world.manager.trouble != nil }
        #expect(world.manager.state.isLocked, "nobody has said that it was unlocked")
        #expect(try world.mock.inhibitors == 1)
        try world.mock.run("start_logind(sleeping=True); add_session('c1', 1000)")
        try world.eventually("what it says now counts") {
            world.manager.state.isAsleep && !world.manager.state.isLocked && world.manager.state.session == "c1"
        }
        try world.eventually("it waits, once") { try world.mock.inhibitors == 1 }
    }

    @Test("The bus may come late, be killed, and come back at the same place")
    func busRestarts() throws {
        let world = try World(LoginManager.Subject(sleep: true, session: .user(1000))) { try $0.run("stop_bus()") }
        try world.loop.runOnce(timeout: .zero)
        #expect(!world.manager.state.isKnown)
        for round in 0..<3 {
            try world.mock.run("start_bus(); start_logind(); add_session('c1', 1000); hint('c1', True)")
            try world.eventually("it is connected, round \(round)") {
                world.manager.trouble == nil && world.manager.state.isLocked
            }
            try world.eventually("the machine waits") { try world.mock.inhibitors == 1 }
            try world.mock.run("stop_bus()")
            try world.eventually("the bus is gone") { world.manager.trouble != nil }
        }
    }

    @Test("When nobody answers for five seconds nothing is the case")
    func absence() throws {
        let world = try World(LoginManager.Subject(sleep: true, session: .user(1000))) { mock in
            try mock.startLogind(sleeping: true)
            try mock.run("add_session('c1', 1000); hint('c1', True)")
        }
        try world.waitUntilKnown()
        #expect(world.manager.state.isLocked && world.manager.state.isAsleep)
        try world.mock.run("stop_bus()")
        let before = world.loop.now
        try world.eventually("nothing is the case") {
            !world.manager.state.isLocked && !world.manager.state.isAsleep
        }
        #expect(world.loop.now - before > .seconds(4))
        #expect(world.manager.state.isKnown)
    }

    @Test("Without a bus nothing wakes the process once that is known")
    func noBus() throws {
        let loop = try EventLoop()
        let manager = LoginManager(loop, sleepOnly, address: "unix:path=/run/torpor-no-such-folder/bus")
        let end = loop.now + .seconds(15)
        while !manager.state.isKnown, loop.now < end { try loop.runOnce(timeout: .seconds(1)) }
        #expect(!manager.state.isAsleep && !manager.state.isLocked && manager.state.session == nil)
        #expect(manager.trouble?.contains("/run/torpor-no-such-folder/bus") ?? false)
        var wakes = 0
        loop.afterWake = { wakes += 1 }
        try loop.runOnce(timeout: .seconds(2))
        #expect(wakes == 1, "it woke for something other than the end of the wait")
    }

    @Test("A bus that refuses, as one that is being stopped does, is tried again, and brings nobody down")
    func refusing() throws {
        let folder = NSTemporaryDirectory() + "tp-refusing-\(UInt64.random(in: 0..<(1 << 53)))"
        try File.makeDirectory(folder)
        defer { try? File.removeTree(folder) }
        let loop = try EventLoop()
        for _ in 0..<3 {
            // There, and nobody listens any more.
            try Sockets.listen(path: folder + "/bus").close()
            let manager = LoginManager(loop, sleepOnly, address: "unix:path=\(folder)/bus")
            for _ in 0..<3 { try loop.runOnce(timeout: .milliseconds(10)) }
            #expect(manager.trouble != nil && !manager.isThere)
            try File.remove(folder + "/bus")
            let listener = try Sockets.listen(path: folder + "/bus")
            let end = loop.now + .seconds(10)
            while try !Descriptor.wait(listener.raw, timeout: .zero), loop.now < end {
                try loop.runOnce(timeout: .milliseconds(10))
            }
            let tried = try #require(try Sockets.accept(listener.raw), "it is not tried again")
            // And gives it up.
            tried.close()
            try loop.runOnce(timeout: .seconds(10))
            #expect(manager.trouble != nil && !manager.isThere)
            listener.close()
            try File.remove(folder + "/bus")
        }
    }

    @Test("An address that would have to be waited for is refused with a sentence", arguments: ["tcp:host=a", "x", ""])
    func address(_ address: String) throws {
        let manager = LoginManager(try EventLoop(), sleepOnly, address: address)
        #expect(manager.trouble?.contains("is not the address of a Unix socket") ?? false)
    }
}
