// SPDX-License-Identifier: Apache-2.0

import Engine
import EngineHarness
import EventLoop
import Glibc
import Linux
import Testing

@testable import EventSources

@Suite("Waiting for data of a node") struct NodeWatchTests {
    private final class Scene {
        let folder: TestFolder
        let events: FakeEvents
        var heard = 0
        var kept: [Int32] = []
        var watch: NodeWatch!

        init(_ node: (TestFolder) throws -> String, taking descriptor: Descriptor? = nil) throws {
            folder = try TestFolder()
            events = try FakeEvents(real: "")
            let node = try node(folder)
            let loop = events.shell.engine.loop
            watch = NodeWatch(
                loop,
                BackgroundWorker(loop, named: "nodes"),
                node,
                taking: descriptor,
                keep: { [unowned self] in self.kept.append($0) }
            ) { [unowned self] in self.heard += 1 }
        }

        func opened() throws {
            try events.wait("it is open") { watch.descriptor != nil }
        }
    }

    /// TIOCGPTN and TIOCSPTLCK.
    private static let (number, lock): (UInt, UInt) = (0x8004_5430, 0x4004_5431)

    private static func fifo(_ folder: TestFolder) throws -> String {
        try File.makeFIFO(folder("fifo"))
        return folder("fifo")
    }

    @Test("says once when there is something to read, reads nothing of it, and says so again when it is asked again")
    func once() throws {
        let scene = try Scene(Self.fifo)
        scene.watch.wait()
        try scene.opened()
        try scene.events.pass(.seconds(1))
        #expect(scene.heard == 0 && scene.watch.isWaiting)
        let writer = try File.open(scene.folder("fifo"), [.write])
        try Descriptor.writeAll(writer.raw, [1, 2])
        try scene.events.wait("it is heard") { scene.heard == 1 }
        try scene.events.pass(.seconds(1))
        #expect(scene.heard == 1 && !scene.watch.isWaiting)
        scene.watch.wait()
        try scene.events.wait("it is heard again") { scene.heard == 2 }
        let reader = try File.open(scene.folder("fifo"), .nonBlocking)
        #expect(try Descriptor.read(reader.raw, maximum: 10) == [1, 2])
    }

    @Test("keeps a FIFO open while nobody waits, so that what comes with its last writer is there") func keptOpen()
        throws
    {
        let scene = try Scene(Self.fifo)
        scene.watch.wait()
        try scene.opened()
        #expect(scene.kept == [try #require(scene.watch.descriptor).raw])
        scene.watch.rest()
        let writer = try File.open(scene.folder("fifo"), [.write])
        try Descriptor.writeAll(writer.raw, [1])
        writer.close()
        try scene.events.pass(.seconds(1))
        #expect(scene.heard == 0)
        scene.watch.wait()
        try scene.events.wait("it is heard") { scene.heard == 1 }
        #expect(scene.kept.count == 1)
    }

    @Test("goes on with what an earlier torpord had opened, and with what came to it") func taken() throws {
        let folder = try TestFolder()
        let path = try Self.fifo(folder)
        let earlier = try File.openNode(path)
        try Descriptor.writeAll(earlier.raw, [1])
        let scene = try Scene({ _ in path }, taking: earlier)
        scene.watch.wait()
        try scene.events.wait("it is heard") { scene.heard == 1 }
        #expect(scene.watch.descriptor === earlier && scene.kept == [])
    }

    @Test(
        "that nobody asks for any more before it is open does not wait, and one that is asked again does",
        arguments: [true, false]
    )
    func restsWhileOpening(isAskedAgain: Bool) throws {
        let scene = try Scene(Self.fifo)
        scene.watch.wait()
        scene.watch.rest()
        if isAskedAgain { scene.watch.wait() }
        try scene.opened()
        let writer = try File.open(scene.folder("fifo"), [.write])
        try Descriptor.writeAll(writer.raw, [1])
        try scene.events.pass(.seconds(1))
        #expect(scene.heard == (isAskedAgain ? 1 : 0))
        #expect(!scene.watch.isWaiting)
    }

    @Test("says why it cannot wait, and tries again when it is asked again") func trouble() throws {
        let scene = try Scene({ $0("missing") })
        scene.watch.wait()
        try scene.events.wait("it has trouble") { scene.watch.trouble != nil }
        #expect(
            scene.watch.trouble
                == "\(scene.folder("missing")) cannot be watched for data: \(Errno.noSuchFileOrDirectory)"
        )
        #expect(!scene.watch.isWaiting)
        try File.makeFIFO(scene.folder("missing"))
        scene.watch.wait()
        try scene.opened()
        #expect(scene.watch.trouble == nil && scene.watch.isWaiting)
        let regular = try Scene { folder in
            try File.write(folder("file"), "x")
            return folder("file")
        }
        regular.watch.wait()
        try regular.events.wait("it has trouble") { regular.watch.trouble != nil }
        #expect(!regular.watch.isWaiting, "a file has always something to read")
    }

    @Test("hears whole lines of a terminal, and is done with one whose other side is gone") func terminal() throws {
        let side = try File.open("/dev/ptmx", [.readWrite])
        var (number, isLocked): (Int32, Int32) = (0, 0)
        try #require(ioctl(side.raw, Self.number, &number) == 0 && ioctl(side.raw, Self.lock, &isLocked) == 0)
        let name = "/dev/pts/\(number)"
        let scene = try Scene({ _ in name })
        scene.watch.wait()
        try scene.opened()
        #expect(scene.kept.count == 1)
        try Descriptor.writeAll(side.raw, Array("half a line".utf8))
        try scene.events.pass(.seconds(1))
        #expect(scene.heard == 0)
        try Descriptor.writeAll(side.raw, Array("\n".utf8))
        try scene.events.wait("it is heard") { scene.heard == 1 }
        let reader = try File.openNode(name)
        _ = try Descriptor.read(reader.raw, maximum: 100)
        scene.watch.wait()
        side.close()
        try scene.events.wait("it is done") { scene.watch.descriptor == nil }
        #expect(scene.heard == 1)
        scene.watch.wait()
        #expect(!scene.watch.isWaiting)
    }
}
