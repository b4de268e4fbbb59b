// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
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
        let events = try FakeEvents(real: Self.app("new", keys), left: left(), isStarted: false)
        let socket = try #require(events.sockets("new").first)
        let descriptor = try #require(socket.descriptor)
        #expect(try File.status(descriptor: descriptor.raw).inode == File.status(descriptor: old.raw).inode)
        #expect(events.host.held == [socket.heldName: [descriptor.raw]])
        _ = try descriptor.accepted()
        // A process of another user would accept the connections of the app.
        let others = try FakeEvents(real: Self.app("new", keys), left: left(), isStarted: false) { _, host in
            host.areUsersSame = false
        }
        #expect(others.sockets("new").first?.descriptor == nil)
        // One that is still configured keeps its own.
        let both = Self.app("new", keys) + Self.app("old", "")
        let other = try FakeEvents(real: both, left: left())
        #expect(other.sockets("new").first?.descriptor == nil)
        _ = (client, first)
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
