// SPDX-License-Identifier: Apache-2.0

import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Linux
import Processes
import Testing

@testable import EventSources

@Suite("Sockets that cannot be copied", .serialized) struct SocketPollTests {
    private func number(_ socket: Descriptor) throws -> UInt32 {
        UInt32(truncatingIfNeeded: try File.status(descriptor: socket.raw).inode)
    }

    private func tree() throws -> ProcessTree {
        let main = try Identity(of: ThisProcess.pid)
        // Apps of other supervisors on this machine may have the same name.
        let table = ProcessTable(manager: "/nonexistent/io.torpor")
        return ProcessTree(tag: AppTag(app: "web", incarnation: 1), main: main, pidfd: try main.open(), table: table)
    }

    @Test("are looked at twice a second, for each app its own, with what waited before") func looks() throws {
        let events = try FakeEvents(real: "")
        let poll = SocketPoll(events.shell.engine.loop)
        let (one, other) = (try TestPort(), try TestPort())
        let listeners = [try one.listen(), try other.listen()]
        let numbers = try listeners.map(number)
        var looks: [[(waiting: Int?, before: Int?)]] = [[], []]
        for app in 0...1 {
            poll.add(app, [numbers[app]], at: []) { queues, before in
                #expect(Set(queues.keys) == [numbers[app]])
                looks[app].append((queues[numbers[app]]?.unread, before?[numbers[app]]?.unread))
            }
        }
        try events.wait("both were looked at") { looks.allSatisfy { $0.count == 1 } }
        #expect(looks[0][0].waiting == 0 && looks[0][0].before == nil)
        let client = try other.connect()
        try listeners[1].awaitInput()
        let next = try #require(events.shell.time.next)
        #expect(next - events.shell.time.now >= .milliseconds(500))
        try events.wait("both were looked at again", passing: .milliseconds(500)) { looks.allSatisfy { $0.count >= 2 } }
        #expect(looks[0][1].waiting == 0 && looks[0][1].before == 0)
        #expect(looks[1][1].waiting == 1 && looks[1][1].before == 0)
        _ = client
    }

    @Test("of an app that runs again meanwhile are told of no more, nor are those before of one that sleeps anew")
    func removed() throws {
        let events = try FakeEvents(real: "")
        let poll = SocketPoll(events.shell.engine.loop)
        let listener = try TestPort().listen()
        var (first, second, firsts) = (0, 0, 0)
        poll.add(0, [try number(listener)], at: []) { _, _ in first += 1 }
        // The look is under way, or already over.
        try events.shell.engine.loop.pass(.zero)
        let toldBefore = first
        poll.remove(0)
        poll.add(0, [try number(listener)], at: []) { _, before in
            second += 1
            if before == nil { firsts += 1 }
        }
        try events.wait("the second one was told twice", passing: .milliseconds(500)) { second >= 2 }
        #expect(first == toldBefore && firsts == 1)
        poll.remove(0)
        let told = second
        var asked: SocketPoll.Queues?
        poll.ask([try number(listener)], at: []) { asked = $0 }
        try events.wait("it is answered", passing: .seconds(1)) { asked != nil }
        #expect(second == told && asked?.count == 1)
    }

    @Test("are asked for by the ports of those that torpord bound, where not even their numbers are known")
    func byPort() throws {
        let events = try FakeEvents(real: "")
        let poll = SocketPoll(events.shell.engine.loop)
        let port = try TestPort()
        let listener = try port.listen()
        let client = try port.connect()
        let served = try listener.accepted()
        try Descriptor.writeAll(client.raw, [1, 2, 3])
        try served.awaitInput()
        var asked: SocketPoll.Queues?
        poll.ask([], at: [UInt64(port.number)]) { asked = $0 }
        try events.wait("it is answered") { asked != nil }
        #expect(Set(asked?.keys.map { $0 } ?? []) == Set(try [listener, served].map(number)))
        #expect(asked?[try number(served)]?.unread == 3)
        var isEmpty = false
        poll.ask([], at: []) { isEmpty = $0.isEmpty }
        #expect(isEmpty, "nothing is asked for nothing")
    }

    @Test("have numbers, as all others, and those of a search that was given up are never told of") func numbers()
        throws
    {
        let events = try FakeEvents(real: "")
        let loop = events.shell.engine.loop
        let listener = try TestPort().listen()
        let (pair, far) = try Sockets.pair(.stream)
        var found: Set<UInt32>?
        let finder = SocketFinder(try tree(), loop, obstacle: .notPermitted) { found = $0.numbers }
        finder.find()
        try events.wait("they are found") { found != nil }
        #expect(found?.isSuperset(of: try [listener, pair, far].map(number)) == true)
        #expect(finder.copies.isEmpty && finder.obstacle == .notPermitted)
        var isTold = false
        let other = SocketFinder(try tree(), loop) { _ in isTold = true }
        other.find()
        // What a short search has found is told before anybody could give it up.
        isTold = false
        other.cancel()
        try events.pass(.seconds(1))
        other.find()
        try events.pass(.seconds(1))
        #expect(!isTold)
    }

    @Test("are copied each once, however many descriptors there are of it, and not those that can have no news")
    func copies() throws {
        let events = try FakeEvents(real: "")
        let port = try TestPort()
        let listener = try port.listen()
        let again = try (0..<40).map { _ in try listener.duplicate() }
        let idle = try Sockets.unix(.stream)
        var finder: SocketFinder? = SocketFinder(try tree(), events.shell.engine.loop) { _ in }
        finder?.find()
        try events.pass(.zero)
        let copies = finder?.takeCopies() ?? []
        #expect(try copies.count { try $0.inode == number(listener) } == 1)
        #expect(try !copies.contains { try $0.inode == number(idle) })
        #expect(finder?.takeCopies().isEmpty == true, "they are whoever's who took them")
        finder = nil
        #expect(copies.allSatisfy { Descriptor.isOpen($0.descriptor.raw) })
        _ = again
    }
}
