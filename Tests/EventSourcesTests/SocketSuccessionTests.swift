// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import Foundation
import Lifecycle
import Linux
import Testing

@testable import EventSources

@Suite("Sockets that go to another app or to the next torpord", .serialized) struct SocketSuccessionTests {
    private static func app(_ name: String, _ keys: String) -> String {
        "[apps.\(name)]\nexec = [\"/bin/true\"]\n\(keys)\n"
    }

    @Test("A Unix socket goes to the app that takes the place of a removed one, with its queue, but into no sandbox")
    func unix() throws {
        for isSandboxed in [false, true] {
            let folder = try TestFolder()
            let stream = "sockets = [{ stream = \"\(folder("s"))\""
            let events = try FakeEvents(real: Self.app("new", "") + Self.app("old", stream + " }]"))
            let old = events.shell.app("old")
            try events.shell.start("old")
            events.shell.hands.isIdle = [old.id]
            try events.leave("old")
            let keys = stream + ", mode = \"0600\" }]" + (isSandboxed ? "\nsandbox = true" : "")
            try events.configure(Self.app("new", keys))
            let heir = try #require(events.sockets("new").first)
            #expect(heir.descriptor == nil && heir.trouble?.contains("old, which is removed") == true)
            #expect(events.shell.told(of: "new").allSatisfy { !$0.contains("cannot listen") })
            let before = try #require(events.sockets("old").first?.descriptor)
            let client = try Sockets.connect(path: folder("s"))
            events.shell.hands.isIdle = []
            events.shell.engine.deliver(.mainExited(.exited(code: 0)), to: old.id)
            try events.pass(.zero)
            let socket = try #require(heir.descriptor)
            #expect((socket === before) == !isSandboxed)
            #expect(Array(events.host.held.keys) == [heir.heldName])
            #expect(try File.status(folder("s")).mode & 0o777 == 0o600)
            if isSandboxed {
                #expect(!Descriptor.readiness(client.raw).isDisjoint(with: ListeningSocket.shutDown))
                _ = try Sockets.connect(path: folder("s"))
            }
            _ = try socket.accepted()
        }
    }

    @Test("What an earlier torpord bound for an app that was removed since goes to the one that takes its place")
    func ofRemoved() throws {
        let port = try TestPort()
        let keys = "sockets = [{ stream = \"\(port.text)\" }]"
        let first = try FakeEvents(real: Self.app("old", keys), isStarted: false)
        let name = try #require(first.wakes.sockets.held.first?.name)
        let old = try #require(first.sockets("old").first?.descriptor)
        let client = try port.connect()
        func left() throws -> [(name: String, descriptors: [Descriptor])] { [(name, [try old.duplicate()])] }
        let events = try FakeEvents(real: Self.app("new", keys), left: left(), isStarted: false) { _, host in
            host.leftApps = ["old"]
        }
        let socket = try #require(events.sockets("new").first)
        let descriptor = try #require(socket.descriptor)
        #expect(try File.status(descriptor: descriptor.raw).inode == File.status(descriptor: old.raw).inode)
        #expect(events.host.held == [socket.heldName: [descriptor.raw]])
        _ = try descriptor.accepted()
        // A process of another user would accept the connections of the app.
        let others = try FakeEvents(real: Self.app("new", keys), left: left(), isStarted: false) { _, host in
            host.leftApps = ["old"]
            host.areUsersSame = false
        }
        #expect(others.sockets("new").first?.descriptor == nil)
        // One that is still configured keeps its own.
        let both = Self.app("new", keys) + Self.app("old", "")
        let other = try FakeEvents(real: both, left: left()) { _, host in host.leftApps = ["old"] }
        #expect(other.sockets("new").first?.descriptor == nil)
        // No process of an app that has ended can say whose it was.
        let ended = try FakeEvents(real: Self.app("new", keys), left: left(), isStarted: false)
        #expect(ended.sockets("new").first?.descriptor == nil)
        _ = (client, first)
    }

    @Test("A Unix socket of a removed app has the mode, owner, links and backlog of the one that gets it")
    func settingsOfRemoved() throws {
        let folder = try TestFolder()
        let stream = "stream = \"\(folder("s"))\""
        let before = "sockets = [{ \(stream), mode = \"0666\", backlog = 9 }]"
        let first = try FakeEvents(real: Self.app("old", before), isStarted: false)
        let name = try #require(first.wakes.sockets.held.first?.name)
        let old = try #require(first.sockets("old").first?.descriptor)
        if Users.effectiveUID == 0 { #expect(chown(folder("s"), 54_321, 54_321) == 0) }
        func taken(_ more: String) throws -> FakeEvents {
            let keys = "sockets = [{ \(stream), mode = \"0600\", backlog = 5\(more) }]"
            let left = [(name: name, descriptors: [try old.duplicate()])]
            return try FakeEvents(real: Self.app("new", keys), left: left, isStarted: false) { _, host in
                host.leftApps = ["old"]
            }
        }
        // While its owner is unknown, the socket would be open to others than the configuration says.
        let unknown = try taken(", owner = \"no-such-user-of-torpor\"")
        #expect(unknown.sockets("new").first?.descriptor == nil)
        let events = try taken(", symlinks = [\"\(folder("link"))\"]")
        let socket = try #require(events.sockets("new").first)
        let descriptor = try #require(socket.descriptor)
        #expect(try File.status(descriptor: descriptor.raw).inode == File.status(descriptor: old.raw).inode)
        let file = try File.status(folder("s"))
        #expect(file.mode & 0o777 == 0o600 && file.uid == Users.effectiveUID && file.gid == Users.effectiveGID)
        #expect(try File.readLink(folder("link")) == folder("s"))
        #expect(socket.backlog?.most == 5)
        _ = first
    }

    @Test("A file of which it is unknown whether torpord has bound it is not removed") func unknownFile() throws {
        let folder = try TestFolder()
        let socket = try Sockets.listen(path: folder("s"))
        let status = try File.status(folder("s"))
        // The kernel's socket diagnostics know no file of this one.
        let other = try TestPort().listen()
        #expect(!SocketFile(of: other, at: folder("s")).isOwn(status))
        #expect(!SocketFile(of: other, at: folder("s")).isGone)
        #expect(SocketFile(of: socket, at: folder("s")).isOwn(status))
        #expect(SocketFile(boundTo: folder("s"))?.isOwn(status) == true)
    }

    @Test("While a lookup of the sockets' files hangs, no more than one other waits, whatever is applied")
    func hangingLookups() throws {
        let folder = try TestFolder()
        let keys = "launch = \"on-demand\"\nsockets = [{ stream = \"\(folder("s"))\" }]"
        let events = try FakeEvents(real: Self.app("web", keys))
        let (counts, disk) = (Monitor<[Int]>([]), DispatchSemaphore(value: 0))
        events.wakes.sockets.findLost = { files in
            counts.withLock { $0.append(files.count) }
            disk.wait()
            return LostFiles(gone: files, missing: files)
        }
        let first = try #require(events.sockets("web").first?.descriptor)
        events.wakes.configure()
        try events.wait("a lookup hangs") { counts.withLock { $0 } == [1] }
        for _ in 0..<5 { events.wakes.configure() }
        disk.signal()
        try events.wait("the other hangs") { counts.withLock { $0 } == [1, 1] }
        let second = try #require(events.sockets("web").first?.descriptor)
        #expect(first !== second)
        disk.signal()
        try events.wait("the second answer counts") { events.sockets("web").first?.descriptor !== second }
        #expect(counts.withLock { $0 } == [1, 1])
        // The answers are in, so a question begins a lookup at once.
        events.wakes.configure()
        try events.wait("it is looked up again") { counts.withLock { $0 } == [1, 1, 1] }
        disk.signal()
    }

    @Test("A file that another program has put there while torpord was away is left alone") func replaced() throws {
        let folder = try TestFolder()
        let keys = "launch = \"on-demand\"\nsockets = [{ stream = \"\(folder("s"))\" }]"
        let first = try FakeEvents(real: Self.app("web", keys), isStarted: false)
        let name = try #require(first.wakes.sockets.held.first?.name)
        let old = try #require(first.sockets("web").first?.descriptor)
        let device = try Sockets.file(of: old.raw).device
        try File.remove(folder("s"))
        let other = try Sockets.listen(path: folder("s"))
        let left = [(name: name, descriptors: [try old.duplicate()])]
        let events = try FakeEvents(real: Self.app("web", keys), left: left)
        // Some filesystems show other numbers than the kernel's socket diagnostics.
        guard try File.status(folder("s")).device == device else { return }
        try events.wait("the file is missed") { events.sockets("web").first?.descriptor == nil }
        #expect(events.sockets("web").first?.trouble == "another program listens there")
        events.wakes.sockets.closeAll()
        _ = try Sockets.connect(path: folder("s"))
        _ = (first, other)
    }

    @Test("An app that fails again and again at a shared port is known to fail under the next torpord too")
    func knownToFail() throws {
        let port = try TestPort()
        let keys = """
            restart = "always"
            restart_backoff = { initial = "1s", factor = 1, jitter = 0 }
            sockets = [{ stream = "\(port.text)", reuse_port = true }]
            """
        let toml = Self.app("a", keys) + Self.app("b", keys)
        func fail(_ shell: FakeShell) throws {
            for name in ["a", "b"] { try shell.start(name) }
            let a = shell.app("a").id
            shell.engine.deliver(.mainExited(.exited(code: 1)), to: a)
            try shell.pass(.seconds(1))
            shell.engine.deliver(.mainExited(.exited(code: 1)), to: a)
            try shell.pass(.zero)
        }
        let first = try FakeEvents(real: toml)
        try fail(first.shell)
        #expect(first.sockets("a").first?.descriptor == nil)
        let record = [UInt8](unsafeUninitializedCapacity: ListeningSockets.recordBytes) { buffer, count in
            var writer = RecordWriter(UnsafeMutableRawBufferPointer(buffer))
            first.wakes.sockets.encode(first.shell.app("a"), into: &writer)
            count = writer.count
        }
        let shell = try FakeShell(toml: toml)
        let host = FakeEventHost(shell)
        let wakes = Wakes(shell.engine, shell.recorder, host)
        try fail(shell)
        wakes.takeOver()
        record.withUnsafeBytes { memory in
            var reader = RecordReader(memory)
            wakes.sockets.restore(shell.app("a"), from: &reader)
        }
        wakes.begin()
        let socket = try #require(wakes.sockets.sockets(of: shell.app("a")).first)
        #expect(socket.descriptor != nil && socket.isWithheld == true)
        wakes.sockets.closeAll()
        withExtendedLifetime(host) {}
    }
}
