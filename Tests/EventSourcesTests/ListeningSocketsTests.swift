// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Linux
import TestAddresses
import Testing

@testable import EventSources

@Suite("Sockets that are bound for apps", .serialized) struct ListeningSocketsTests {
    private static func web(_ address: String, _ more: String = "", app: String = "") -> String {
        """
        [apps.web]
        exec = ["/bin/true"]
        launch = "on-demand"
        \(app)
        [[apps.web.sockets]]
        name = "http"
        stream = "\(address)"
        \(more)
        """
    }

    @Test("are bound at the start and given to the keeper, and the first connection launches the app")
    func firstConnection() throws {
        let port = try TestPort()
        let events = try FakeEvents(real: Self.web(port.text))
        let socket = try #require(events.sockets("web").first?.descriptor)
        #expect(Array(events.host.held.values) == [[socket.raw]])
        #expect(events.shell.state("web") == .notRunning)
        let client = try port.connect()
        try events.wait(for: .background, of: "web")
        #expect(events.woken("web") == ["a connection at http (\(port.text))"])
        let served = try socket.accepted()
        #expect(try SocketFacts(served.raw).remote == SocketFacts(client.raw).local, "nobody took it from the app")
    }

    @Test("are left alone while the app runs, and a connection that waits when it falls asleep wakes it at once")
    func waitsAtSleep() throws {
        let port = try TestPort()
        let events = try FakeEvents(real: Self.web(port.text))
        try events.shell.start("web")
        let socket = try #require(events.sockets("web").first)
        #expect(socket.source == nil)
        _ = try port.connect()
        try #require(socket.descriptor).awaitInput()
        try events.pass(.seconds(1))
        #expect(events.woken("web") == [])
        try events.shell.request(.forceSuspend, "web")
        try events.wait("it was woken") { events.woken("web").count == 1 }
        #expect(events.shell.state("web") == .background)
        #expect(socket.source == nil)
    }

    @Test("that wake nobody tell once that hardly any room is left, and again only after the app has run")
    func nearlyFull() throws {
        let port = try TestPort()
        let events = try FakeEvents(real: Self.web(port.text, "wake = \"none\"\nbacklog = 5"))
        let socket = try #require(events.sockets("web").first?.descriptor)
        var clients: [Descriptor] = []
        func waiting() throws -> Int { try Int(Sockets.tcpBacklog(socket.raw).waiting) }
        func connect(until count: Int) throws {
            while clients.count < count { clients.append(try port.connect()) }
            try events.wait("\(count) connections wait") { try waiting() == count }
        }
        func told() -> [String] { events.shell.told(of: "web").filter { $0.contains("is nearly full") } }
        try connect(until: 3)
        #expect(told() == [])
        try connect(until: 4)
        #expect(told().count == 1 && told()[0].contains("4 connections wait at http"))
        try connect(until: 5)
        #expect(told().count == 1)
        #expect(events.shell.state("web") == .notRunning)
        try events.shell.start("web")
        try events.shell.request(.stop(.stopped), "web")
        try events.pass(.zero)
        #expect(told().count == 2)
    }

    @Test("of an app that was woken too often wake it when that is over, and never before") func storm() throws {
        let port = try TestPort()
        let app = "wake_storm = { limit = 1, window = \"10min\", hold = \"60s\" }\nevent_time = \"5s\""
        let events = try FakeEvents(real: Self.web(port.text, app: app))
        let socket = try #require(events.sockets("web").first?.descriptor)
        _ = try port.connect()
        try events.wait(for: .background, of: "web")
        _ = try socket.accepted()
        try events.shell.request(.forceSuspend, "web")
        try events.wait(for: .suspended, of: "web")
        let client = try port.connect()
        try socket.awaitInput()
        try events.pass(.seconds(59))
        #expect(events.shell.state("web") == .suspended)
        #expect(events.shell.told(of: "web").filter { $0.contains("wake_storm") }.count == 1)
        try events.pass(.seconds(1))
        #expect(events.shell.state("web") == .background)
        _ = client
    }

    @Test("of an app that a person stopped keep connections waiting, of which is told once") func stopped() throws {
        let port = try TestPort()
        let events = try FakeEvents(real: Self.web(port.text))
        let socket = try #require(events.sockets("web").first?.descriptor)
        try events.shell.start("web")
        try events.shell.request(.stop(.stopped), "web")
        let clients = try [port.connect(), port.connect()]
        try events.wait("it is told") { events.shell.told(of: "web").contains { $0.contains("is not woken") } }
        for _ in 0..<5 { try events.pass(.milliseconds(100)) }
        events.wakes.touched([events.shell.app("web")])
        try events.pass(.zero)
        #expect(events.shell.told(of: "web").filter { $0.contains("is not woken") }.count == 1)
        #expect(events.shell.state("web") == .notRunning)
        #expect(try Sockets.tcpBacklog(socket.raw).waiting == 2)
        _ = clients
    }

    @Test("wake apps only after the first unlock where they say so, and then at once") func firstUnlock() throws {
        let port = try TestPort()
        let events = try FakeEvents(real: Self.web(port.text, app: "before_first_unlock = \"none\"")) { _, host in
            host.isBeforeFirstUnlock = true
        }
        let client = try port.connect()
        try #require(events.sockets("web").first?.descriptor).awaitInput()
        try events.pass(.seconds(10))
        #expect(events.shell.state("web") == .notRunning)
        events.host.isBeforeFirstUnlock = false
        events.wakes.lookAgain()
        try events.wait(for: .background, of: "web")
        _ = client
    }

    @Test("are tried again ever more seldom where the address is in use, of which is told once; then they listen")
    func addressInUse() throws {
        let port = try TestPort()
        let other = try port.listen()
        let events = try FakeEvents(real: Self.web(port.text))
        let web = events.shell.app("web")
        func told(_ text: String) -> Int { events.shell.told(of: "web").filter { $0.contains(text) }.count }
        #expect(told("cannot listen at http (\(port.text)): the address is in use") == 1)
        #expect(events.wakes.sockets.trouble(of: web)?.contains("in use") == true)
        #expect(throws: LaunchError.self) { try events.wakes.sockets.passed(to: web) }
        let set = try #require(events.wakes.sockets.sets[web.id])
        var delays: [Duration] = []
        for _ in 0..<10 {
            let at = try #require(set.retryAt)
            delays.append(at - events.shell.time.now)
            try events.pass(delays[delays.count - 1])
        }
        #expect(delays.prefix(4) == [.milliseconds(250), .milliseconds(500), .seconds(1), .seconds(2)])
        #expect(delays.max() == .seconds(60) && delays.last == .seconds(60))
        #expect(told("cannot listen") == 1)
        other.close()
        try events.pass(.seconds(60))
        #expect(told("listens at http (\(port.text)) now") == 1)
        #expect(events.wakes.sockets.trouble(of: web) == nil && set.retryAt == nil)
        #expect(events.host.held.count == 1)
    }

    @Test("of an app that has failed are closed, so that clients are refused, and are bound again by a reset")
    func failed() throws {
        let port = try TestPort()
        let app = "restart = \"on-failure\"\nrestart_backoff = { limit = 1 }"
        let events = try FakeEvents(real: Self.web(port.text, app: app))
        let web = events.shell.app("web")
        try events.shell.start("web")
        for _ in 0..<2 {
            events.shell.engine.deliver(.mainExited(.exited(code: 1)), to: web.id)
            events.shell.engine.deliver(.allGone, to: web.id)
            try events.pass(.seconds(1))
        }
        #expect(events.shell.engine.machine(web.id).failed)
        #expect(throws: Errno.connectionRefused) { try port.connect() }
        #expect(events.host.held == [:])
        try events.pass(.seconds(600))
        #expect(throws: Errno.connectionRefused) { try port.connect() }
        try events.shell.request(.reset, "web")
        _ = try port.connect()
        #expect(events.host.held.count == 1)
    }

    @Test("are passed in the order of the configuration, blocking or not as that says") func passed() throws {
        let folder = try TestFolder()
        let toml = """
            [apps.web]
            exec = ["/bin/true"]
            sockets = [
                { name = "b", stream = "\(folder("b"))", non_blocking = true },
                { name = "a", datagram = "\(folder("a"))" },
            ]
            """
        let events = try FakeEvents(real: toml)
        let passed = try events.wakes.sockets.passed(to: events.shell.app("web"))
        #expect(passed.map(\.name) == ["b", "a"])
        #expect(try passed.map { try Descriptor.isNonBlocking($0.descriptor) } == [true, false])
        #expect(try passed.map { try SocketFacts($0.descriptor).local } == [folder("b"), folder("a")])
    }

    @Test("with a file are bound anew before a launch with other permissions, and nothing waits there")
    func outdated() throws {
        let folder = try TestFolder()
        let toml = """
            [apps.web]
            exec = ["/bin/true"]
            sockets = [{ stream = "\(folder("a"))" }, { datagram = "\(folder("b"))" }]
            """
        let events = try FakeEvents(real: toml)
        let app = events.shell.app("web")
        let before = try events.sockets("web").map { try #require($0.descriptor) }
        let client = try Sockets.connect(path: folder("a"))
        let sender = try Sockets.connect(path: folder("b"), kind: .datagram)
        try Sockets.send(sender.raw, [1])
        events.wakes.sockets.closeOutdated(of: app)
        #expect(!Descriptor.readiness(client.raw).isDisjoint(with: ListeningSocket.shutDown))
        let passed = try events.wakes.sockets.passed(to: app)
        #expect(passed.count == 2 && before.count == 2)
        for (_, descriptor) in passed { #expect(!Descriptor.readiness(descriptor).contains(.readable)) }
        for (socket, old) in zip(events.sockets("web"), before) { #expect(socket.descriptor !== old) }
        _ = try Sockets.connect(path: folder("a"))
    }

    @Test("that the app shuts down are bound anew when it has ended, and left as they are while it lives")
    func shutDown() throws {
        let port = try TestPort()
        let events = try FakeEvents(real: Self.web(port.text))
        try events.shell.start("web")
        let socket = try #require(events.sockets("web").first)
        let first = try #require(socket.descriptor)
        try Sockets.shutdownReading(first.raw)
        try events.shell.request(.forceSuspend, "web")
        try events.wait(for: .suspended, of: "web")
        #expect(socket.descriptor === first)
        try events.evict("web")
        try events.wait("it is bound anew") { socket.descriptor.map { $0 !== first } ?? false }
        #expect(Array(events.host.held.values) == [[try #require(socket.descriptor).raw]])
        _ = try port.connect()
        try events.wait(for: .background, of: "web")
    }

    @Test("that are shut down before a launch are bound anew for it") func shutDownBeforeLaunch() throws {
        let port = try TestPort()
        let events = try FakeEvents(real: Self.web(port.text, "wake = \"none\""), isStarted: false)
        let first = try #require(events.sockets("web").first?.descriptor)
        try Sockets.shutdownReading(first.raw)
        let passed = try events.wakes.sockets.passed(to: events.shell.app("web"))
        #expect(!events.sockets("web")[0].isShutDown)
        _ = try port.connect()
        try Descriptor(owning: Descriptor.duplicate(passed[0].descriptor).take()).awaitInput()
    }

    // MARK: Launches that serve nobody

    private struct Unserved {
        let port: TestPort
        let events: FakeEvents
        let socket: ListeningSocket
        let descriptor: Descriptor

        init() throws {
            port = try TestPort()
            let app = "restart_backoff = { initial = \"1s\" }\nevent_time = \"60s\""
            events = try FakeEvents(real: ListeningSocketsTests.web(port.text, app: app))
            socket = try #require(events.sockets("web").first)
            descriptor = try #require(socket.descriptor)
        }

        var launches: UInt32 { events.shell.engine.machine(0).incarnation }
        var unserved: SocketSet.Unserved? { events.wakes.sockets.sets[0]?.unserved }
        var told: Int {
            events.shell.told(of: "web").filter { $0.contains("without accepting the connection") }.count
        }

        func launched() throws {
            try events.wait(for: .background, of: "web")
            try events.pass(.zero)
        }

        func end() throws {
            events.shell.engine.deliver(.mainExited(.exited(code: 0)), to: 0)
            try events.pass(.zero)
        }

        /// A connection comes, and torpord has heard of it if it listens for connections.
        func connect() throws -> Descriptor {
            let before = try Sockets.tcpBacklog(descriptor.raw).waiting
            let client = try port.connect()
            try events.wait("it waits") { try Sockets.tcpBacklog(descriptor.raw).waiting > before }
            for _ in 0..<3 { try events.pass(.zero) }
            return client
        }

        /// So many runs accept nothing.
        func fail(_ runs: Int) throws {
            for _ in 0..<runs {
                try launched()
                try end()
            }
        }

        func staysEnded(for time: Duration) throws {
            try events.pass(time)
            for _ in 0..<5 { try events.pass(.zero) }
            #expect(events.shell.state("web") == .notRunning)
        }
    }

    @Test("of an app that ends without accepting launch it twice more at once, and then after growing delays")
    func unserved() throws {
        let web = try Unserved()
        let client = try web.connect()
        try web.fail(2)
        for (number, delay) in [1, 2, 4].enumerated() {
            try web.launched()
            #expect(web.launches == number + 3)
            // More that come do not hide it.
            let more = try web.connect()
            try web.end()
            #expect(web.told == number + 1)
            try web.staysEnded(for: .seconds(delay) - .milliseconds(1))
            try web.events.pass(.milliseconds(1))
            withExtendedLifetime(more) {}
        }
        try web.launched()
        // This run takes a connection, and leaves one that comes meanwhile.
        let served = try web.descriptor.accepted()
        let next = try web.connect()
        try web.end()
        try web.launched()
        #expect(web.launches == 7 && web.told == 3)
        withExtendedLifetime((client, served, next)) {}
    }

    @Test("of an app whose launch is refused launch it again after growing delays, too") func neverLaunched() throws {
        let web = try Unserved()
        web.events.shell.hands.isIdle = [0]
        let client = try web.connect()
        for run in 1...6 {
            try web.events.wait("it is to be launched") { web.launches == run }
            web.events.shell.engine.deliver(.launchRefused, to: 0)
            try web.events.pass(.zero)
            #expect(web.told == max(0, run - 2))
            if run > 2 { try web.events.pass(.seconds(1 << (run - 3))) }
        }
        withExtendedLifetime(client) {}
    }

    @Test("of an app that accepts one connection in each run launch it at once, however many come meanwhile")
    func onePerRun() throws {
        let web = try Unserved()
        var open = [try web.connect()]
        for run in 1...8 {
            try web.launched()
            #expect(web.launches == run)
            open.append(try web.descriptor.accepted())
            for _ in 0..<(run % 3 + 1) { open.append(try web.connect()) }
            try web.end()
            #expect(web.unserved?.until == nil)
        }
        #expect(web.told == 0)
    }

    @Test("are watched while the app runs only until it accepts one, or its run has lasted long enough")
    func countedBriefly() throws {
        for lasts in [false, true] {
            let web = try Unserved()
            let client = try web.connect()
            try web.launched()
            #expect(web.socket.source == nil, "the first run costs nothing")
            try web.end()
            try web.launched()
            #expect(web.socket.source != nil)
            let served = lasts ? nil : try web.descriptor.accepted()
            if lasts { try web.events.pass(.seconds(10)) }
            let next = try web.port.connect()
            try web.events.wait("it is watched no longer") { web.socket.source == nil }
            #expect(web.unserved?.count == 0)
            try web.end()
            try web.launched()
            #expect(web.launches == 3 && web.told == 0)
            withExtendedLifetime((client, served, next)) {}
        }
    }

    @Test("wake a suspended app at once, although connections launch it only later") func unservedAsleep() throws {
        let web = try Unserved()
        let client = try web.connect()
        try web.fail(3)
        try web.staysEnded(for: .milliseconds(999))
        #expect(web.unserved?.until != nil)
        // The app is launched for another reason.
        try web.events.shell.start("web")
        #expect(web.unserved?.until == nil && web.unserved?.count == 3)
        try web.events.shell.request(.forceSuspend, "web")
        try web.events.wait("it was woken") { web.events.shell.state("web") == .background }
        #expect(web.launches == 4)
        withExtendedLifetime(client) {}
    }

    @Test("launch an app at once again after a launch for another reason that served") func servedOtherwise() throws {
        let web = try Unserved()
        let client = try web.connect()
        try web.fail(3)
        let app = web.events.shell.app("web")
        _ = try web.events.wakes.sockets.passed(to: app)
        try web.events.shell.start("web")
        try web.events.pass(.zero)
        let served = try web.descriptor.accepted()
        try web.end()
        #expect(web.unserved?.count == 0)
        let next = try web.connect()
        try web.launched()
        #expect(web.launches == 5)
        withExtendedLifetime((client, served, next)) {}
    }

    @Test(
        "of an app whose end was asked for, or that ends with torpord, are not delayed for that",
        arguments: [TerminationReason.evicted, .stopped, .shutdown]
    )
    func endedOnRequest(_ reason: TerminationReason) throws {
        let web = try Unserved()
        let client = try web.connect()
        try web.fail(2)
        try web.launched()
        if reason == .shutdown {
            web.events.shell.engine.isEnding = true
            try web.end()
        } else {
            try web.events.shell.request(.stop(reason), "web")
        }
        try web.events.pass(.zero)
        #expect(web.unserved?.until == nil && web.told == 0)
        if reason == .evicted {
            try web.launched()
            #expect(web.launches == 4)
        } else {
            try web.staysEnded(for: .seconds(60))
        }
        withExtendedLifetime(client) {}
    }

    @Test("that cannot be bound wake nobody, until they can") func unbound() throws {
        let port = try TestPort()
        let other = try port.listen()
        let events = try FakeEvents(real: Self.web(port.text))
        let app = events.shell.app("web")
        #expect(events.wakes.sockets.unbound(of: app).count == 1)
        #expect(!app.specification.isWokenByEvents(exceptAt: events.wakes.sockets.unbound(of: app)))
        #expect(app.specification.wakers(exceptAt: events.wakes.sockets.unbound(of: app)) == [])
        other.close()
        try events.pass(.seconds(60))
        #expect(events.wakes.sockets.unbound(of: app) == [])
        #expect(app.specification.isWokenByEvents(exceptAt: []))
    }
}
