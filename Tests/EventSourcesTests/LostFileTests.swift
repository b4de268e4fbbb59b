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

@Suite("Unix sockets whose file is gone") struct LostFileTests {
    private let folder: TestFolder
    private let toml: String

    init() throws {
        folder = try TestFolder()
        let keys = "launch = \"on-demand\"\nsockets = [{ stream = \"\(folder("s"))\" }]"
        toml = "[apps.web]\nexec = [\"/bin/true\"]\n\(keys)\n"
    }

    @Test("Of an app that runs they are named, and bound again when it has ended") func running() throws {
        let events = try FakeEvents(real: toml)
        let (web, sockets) = (events.shell.app("web"), events.wakes.sockets)
        try events.shell.start("web")
        let old = try #require(events.sockets("web").first?.descriptor)
        try File.remove(folder("s"))
        sockets.seekLostFiles()
        try events.wait("it is missed") { sockets.trouble(of: web) != nil }
        #expect(sockets.trouble(of: web)?.contains("‘torpor restart web’ binds it again") == true)
        #expect(sockets.unreached(of: web).count == 1 && sockets.unbound(of: web) == sockets.unreached(of: web))
        #expect(events.sockets("web").first?.descriptor === old, "the app has that one")
        // It may be that another program only had it in another place for a while.
        let other = try Sockets.listen(path: folder("s"))
        sockets.seekLostFiles()
        try events.wait("something is there") { sockets.trouble(of: web) == nil }
        other.close()
        try File.remove(folder("s"))
        sockets.seekLostFiles()
        try events.wait("it is missed again") { sockets.trouble(of: web) != nil }
        events.shell.engine.deliver(.mainExited(.exited(code: 0)), to: web.id)
        try events.wait("it is bound again") { File.exists(folder("s")) }
        #expect(sockets.trouble(of: web) == nil && sockets.unreached(of: web).isEmpty)
        _ = try Sockets.connect(path: folder("s"))
    }

    @Test("What was found of a socket does not count for the one that was bound in its place")
    func boundInBetween() throws {
        let first = try FakeEvents(real: toml, isStarted: false)
        let name = try #require(first.wakes.sockets.held.first?.name)
        let old = try #require(first.sockets("web").first?.descriptor)
        let events = try FakeEvents(real: toml, left: [(name: name, descriptors: [try old.duplicate()])])
        let (web, sockets) = (events.shell.app("web"), events.wakes.sockets)
        try events.wait("files were looked up at the start") { !sockets.isSeeking }
        let disk = DispatchSemaphore(value: 0)
        sockets.findLost = { files in
            disk.wait()
            return LostFiles(gone: files, missing: files)
        }
        try events.shell.start("web")
        sockets.seekLostFiles()
        let socket = try #require(sockets.sockets(of: web).first)
        let file = socket.file
        socket.take(try old.duplicate())
        #expect(socket.file == file, "the files look the same")
        disk.signal()
        try events.wait("the answer is in") { !sockets.isSeeking }
        #expect(sockets.unreached(of: web).isEmpty)
        _ = first
    }
}
