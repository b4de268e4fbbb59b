// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Linux
import Testing

@testable import EventSources

@Suite("Sockets of apps, when the configuration or torpord is another one", .serialized) struct SocketChangesTests {
    private static func web(_ sockets: String..., more: String = "") -> String {
        """
        [apps.web]
        exec = ["/bin/true"]
        sockets = [\(sockets.map { "{ \($0) }" }.joined(separator: ", "))]
        \(more)
        """
    }

    @Test("A socket whose address stays is not closed, whatever else of it changes; one that leaves is")
    func identity() throws {
        let folder = try TestFolder()
        let events = try FakeEvents(real: Self.web("stream = \"\(folder("a"))\"", "stream = \"\(folder("b"))\""))
        let before = events.sockets("web").compactMap(\.descriptor)
        let client = try Sockets.connect(path: folder("a"))
        let next = "name = \"x\", stream = \"\(folder("a"))\", backlog = 7, mode = \"0600\""
        try events.configure(Self.web("stream = \"\(folder("c"))\"", next))
        let after = events.sockets("web").compactMap(\.descriptor)
        #expect(after.count == 2 && after[1] === before[0])
        #expect(try before[0].accepted().raw > 0, "the connection waited on")
        #expect(try File.status(folder("a")).mode & 0o777 == 0o600)
        #expect(!File.exists(folder("b")) && File.exists(folder("c")))
        #expect(Set(events.host.held.values.flatMap { $0 }) == Set(after.map(\.raw)))
        _ = client
    }

    @Test("A second configuration that says the same binds nothing anew") func sameAgain() throws {
        let folder = try TestFolder()
        let toml = Self.web("stream = \"\(folder("a"))\"")
        let events = try FakeEvents(real: toml)
        let first = try #require(events.sockets("web").first?.descriptor)
        let inode = try File.status(folder("a")).inode
        try events.configure(toml)
        events.wakes.configure()
        #expect(events.sockets("web").first?.descriptor === first)
        #expect(try File.status(folder("a")).inode == inode)
    }

    @Test("An app that runs by an older configuration keeps its sockets until it goes by the new one")
    func runsOn() throws {
        let folder = try TestFolder()
        let events = try FakeEvents(real: Self.web("stream = \"\(folder("old"))\""))
        let web = events.shell.app("web")
        try events.shell.start("web")
        web.next = try FakeShell(toml: Self.web("stream = \"\(folder("new"))\"")).configuration.apps[0]
        events.wakes.configure()
        #expect(File.exists(folder("old")) && File.exists(folder("new")))
        web.specification = try #require(web.next)
        web.next = nil
        events.wakes.touched([web])
        #expect(!File.exists(folder("old")) && File.exists(folder("new")))
        let passed = try events.wakes.sockets.passed(to: web)
        #expect(try passed.map { try SocketFacts($0.descriptor).local } == [folder("new")])
    }

    @Test("An address that overlaps the old one is bound as soon as the old socket is closed, at the next launch")
    func overlaps() throws {
        let port = try TestPort()
        let wide = "0.0.0.0:\(port.number)"
        let events = try FakeEvents(real: Self.web("stream = \"\(port.text)\""))
        let web = events.shell.app("web")
        try events.shell.start("web")
        // torpor-keeper has a copy, and gives it up only some time after torpord has.
        let old = try #require(events.sockets("web").first?.descriptor)
        let copy = try old.duplicate()
        web.next = try FakeShell(toml: Self.web("stream = \"\(wide)\"")).configuration.apps[0]
        events.wakes.configure()
        let new = try #require(events.sockets("web").first)
        #expect(new.descriptor == nil && new.trouble?.contains("still runs with \(port.text)") == true)
        #expect(events.shell.told(of: "web").allSatisfy { !$0.contains("cannot listen") })
        #expect(events.wakes.sockets.trouble(of: web) == nil)
        _ = try port.connect()
        web.specification = try #require(web.next)
        web.next = nil
        let passed = try events.wakes.sockets.passed(to: web)
        #expect(try passed.map { try SocketFacts($0.descriptor).local } == [wide])
        _ = try port.connect()
        // And back, while it does not run.
        let second = try #require(events.sockets("web").first?.descriptor).duplicate()
        try events.configure(Self.web("stream = \"\(port.text)\""))
        let last = try #require(events.sockets("web").first)
        #expect(last.descriptor != nil && last.trouble == nil, "\(last.trouble ?? "")")
        _ = (copy, second)
    }

    @Test("An address that one app gives up is another's at once, without waiting for the next try")
    func handedOver() throws {
        let port = try TestPort()
        let toml = ["a", "b"].map { name in
            "[apps.\(name)]\nexec = [\"/bin/true\"]\nsockets = [{ stream = \"\(port.text)\" }]\n"
        }
        // The configuration that is read next has it at another place.
        let events = try FakeEvents(real: toml[0] + "[apps.b]\nexec = [\"/bin/true\"]")
        try events.configure(toml[1])
        let set = try #require(events.wakes.sockets.sets[events.shell.app("b").id])
        #expect(set.isTroubled)
        try events.remove("a")
        #expect(!set.isTroubled && set.retryAt == nil)
        _ = try port.connect()
        try events.wait(for: .background, of: "b")
    }

    /// Whether a copy of a socket, as a process may have kept it, hears nothing any more of who connects.
    private func isDeaf(_ copy: Descriptor) -> Bool {
        !Descriptor.readiness(copy.raw).isDisjoint(with: ListeningSocket.shutDown)
    }

    @Test("An app of another user gets a socket of its own, not one that a process of the former app may still have")
    func otherUser() throws {
        let port = try TestPort()
        let toml = ["a", "b"].map { name in
            "[apps.\(name)]\nexec = [\"/bin/true\"]\nsockets = [{ stream = \"\(port.text)\" }]\n"
        }
        let events = try FakeEvents(real: toml[0] + "[apps.b]\nexec = [\"/bin/true\"]\nuser = \"nobody\"")
        let copy = try #require(events.sockets("a").first?.descriptor).duplicate()
        try events.configure(toml[1] + "user = \"nobody\"\n")
        try events.remove("a")
        let its = try #require(events.sockets("b").first?.descriptor)
        #expect(try File.status(descriptor: its.raw).inode != File.status(descriptor: copy.raw).inode)
        #expect(isDeaf(copy))
        _ = try port.connect()
        try events.wait(for: .background, of: "b")
    }

    @Test("An app that is launched as another user gets new sockets", arguments: [false, true])
    func newUser(hasFile: Bool) throws {
        let (port, folder) = (try TestPort(), try TestFolder())
        let address = hasFile ? folder("a") : port.text
        let events = try FakeEvents(real: Self.web("stream = \"\(address)\""))
        let web = events.shell.app("web")
        func inode() throws -> UInt64 {
            let passed = try events.wakes.sockets.passed(to: web)
            return try File.status(descriptor: passed[0].descriptor).inode
        }
        let first = try inode()
        #expect(try inode() == first)
        let copy = try #require(events.sockets("web").first?.descriptor).duplicate()
        web.specification.user = "nobody"
        let second = try inode()
        #expect(second != first && isDeaf(copy))
        #expect(try inode() == second)
        #expect(events.host.held.values.flatMap { $0 } == events.sockets("web").compactMap(\.descriptor?.raw))
    }

    @Test("What an earlier torpord bound is gone on with, and the connections that wait there")
    func takenOver() throws {
        let port = try TestPort()
        let toml = Self.web("stream = \"\(port.text)\"")
        let first = try FakeEvents(real: toml, isStarted: false)
        let name = try #require(first.wakes.sockets.held.first?.name)
        let old = try #require(first.sockets("web").first?.descriptor)
        let left = [(name, [try old.duplicate()])]
        let inode = try File.status(descriptor: old.raw).inode
        let client = try port.connect()
        let events = try FakeEvents(real: toml, left: left)
        let socket = try #require(events.sockets("web").first?.descriptor)
        #expect(try File.status(descriptor: socket.raw).inode == inode)
        try events.wait(for: .background, of: "web")
        #expect(
            events.woken("web") == ["a connection at 0 (\(port.text))".replacing("0 (\(port.text))", with: port.text)]
        )
        _ = (client, first)
    }

    @Test("Where the keeper is lost too, an app that runs has its sockets, and they are taken back from it")
    func takenBack() throws {
        let port = try TestPort()
        let its = try port.listen()
        let inode = try File.status(descriptor: its.raw).inode
        let events = try FakeEvents(real: Self.web("stream = \"\(port.text)\"")) { shell, _ in try shell.start("web") }
        let socket = try #require(events.sockets("web").first?.descriptor)
        #expect(try File.status(descriptor: socket.raw).inode == inode && socket.raw != its.raw)
        #expect(events.host.held.values.first == [socket.raw])
        #expect(events.shell.told(of: "web").allSatisfy { !$0.contains("cannot listen") })
    }

    @Test("Nothing is bound, and nothing of an app closed, before it is known which apps run") func notYet() throws {
        let folder = try TestFolder()
        let shell = try FakeShell(toml: Self.web("stream = \"\(folder("a"))\""))
        let host = FakeEventHost(shell)
        let wakes = Wakes(shell.engine, shell.recorder, host)
        wakes.takeOver()
        #expect(!File.exists(folder("a")))
        wakes.begin()
        #expect(File.exists(folder("a")))
        wakes.sockets.closeAll()
        #expect(!File.exists(folder("a")))
    }

    @Test("New connections wait while the app is inactive, where its socket is for people") func withheld() throws {
        let port = try TestPort()
        let events = try FakeEvents(real: Self.web("stream = \"\(port.text)\", user = true"))
        let socket = try #require(events.sockets("web").first)
        try events.shell.start("web")
        #expect(events.shell.state("web") == .active)
        #expect(socket.isWithheld == false)
        try events.shell.request(.interrupt(begin: true), "web")
        #expect(events.shell.state("web") == .inactive)
        #expect(socket.isWithheld == true)
        try events.shell.request(.interrupt(begin: false), "web")
        _ = try port.connect()
        try #require(socket.descriptor).awaitInput()
        // What is for people no more lets everybody in at once.
        try events.shell.request(.interrupt(begin: true), "web")
        try events.configure(Self.web("stream = \"\(port.text)\", user = false"))
        #expect(socket.isWithheld == false)
    }

    @Test("Whoever is to own a socket and cannot be found keeps it from being bound, until he can be")
    func unknownOwner() throws {
        let folder = try TestFolder()
        let toml = Self.web("stream = \"\(folder("a"))\", owner = \"nobody-of-torpor\"", more: "launch = \"on-demand\"")
        let events = try FakeEvents(real: toml)
        #expect(!File.exists(folder("a")))
        #expect(events.shell.told(of: "web").contains { $0.contains("there is no user nobody-of-torpor") })
        try events.configure(Self.web("stream = \"\(folder("a"))\", owner = \"\(Users.effectiveUID)\""))
        // It is looked up beside the loop, at the next try.
        try events.wait("it is bound", passing: .milliseconds(250)) { File.exists(folder("a")) }
        #expect(try File.status(folder("a")).uid == Users.effectiveUID)
    }
}
