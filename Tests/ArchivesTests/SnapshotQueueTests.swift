// SPDX-License-Identifier: Apache-2.0

import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Processes
import Testing

@testable import Archives

@Suite("How many snapshots are taken at once") struct SnapshotQueueTests {
    /// So many apps, all of which entered the background in one moment.
    private func crowd(_ count: Int, _ more: String = "") throws -> FakeArchives {
        let archives = try FakeArchives(
            ["web": "instances = \(count)\nsnapshot = [\"shot\"]\nbackground_time = \"60s\"\n\(more)"]
        )
        for app in archives.shell.engine.apps { try archives.shell.request(.start(background: true), app.name) }
        try archives.shell.engine.loop.settle()
        return archives
    }

    @Test("Sixteen; the next one's turn comes when one is over, in their order") func sixteen() throws {
        let archives = try crowd(20)
        let names = archives.shell.engine.apps.map(\.name)
        #expect(archives.host.commands.map(\.app) == Array(names[..<16]))
        try archives.host.commands[3].end("x")
        try archives.shell.engine.loop.settle()
        #expect(archives.host.commands.map(\.app) == Array(names[..<17]))
        for number in 4..<8 { try archives.host.commands[number].end("x", .success(.exited(1))) }
        try archives.shell.engine.loop.settle()
        #expect(archives.host.commands.map(\.app) == names)
    }

    @Test("Those that leave the background give their places back, and those that waited lose theirs") func leave()
        throws
    {
        let archives = try crowd(40)
        let names = archives.shell.engine.apps.map(\.name)
        // All that are under way, and the first four that wait.
        for name in names[..<20] { try archives.shell.request(.foreground, name) }
        try archives.shell.engine.loop.settle()
        #expect(archives.host.commands.map(\.app) == Array(names[..<16] + names[20..<36]))
        for number in 16..<32 { try archives.host.commands[number].end("x") }
        try archives.shell.engine.loop.settle()
        #expect(archives.host.commands.map(\.app).suffix(4) == names[36...])
    }

    @Test("When the time of all of them is up all places are free, also of those that had waited") func timeIsUp()
        throws
    {
        let archives = try crowd(20)
        try archives.shell.pass(.seconds(5))
        #expect(!archives.host.commands.contains { $0.isRead }, "nobody waits for one any more")
        let before = archives.host.commands.count
        for app in archives.shell.engine.apps { archives.shell.engine.deliver(.showsNew, to: app.id) }
        try archives.shell.pass(.seconds(1))
        #expect(archives.host.commands.count == before + 16)
        for command in archives.host.commands where command.isRead { try command.end("x") }
        try archives.shell.engine.loop.settle()
        #expect(archives.host.commands.count == before + 20)
    }

    @Test("One that is over for two reasons gives its place back once") func once() throws {
        let archives = try crowd(20)
        // It fails, and its app leaves the background.
        try archives.host.commands[0].end("", .success(.exited(1)))
        try archives.host.commands[0].end("", .success(.exited(1)))
        try archives.shell.request(.foreground, archives.host.commands[0].app)
        try archives.shell.engine.loop.settle()
        #expect(archives.host.commands.count == 17)
    }
}
