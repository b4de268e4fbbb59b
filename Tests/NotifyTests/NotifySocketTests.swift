// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing

@testable import Notify

/// A folder that goes with the test.
final class Folder {
    let path: String
    init() {
        path = NSTemporaryDirectory() + "torpor-notify-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
        try! FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
    deinit { try? FileManager.default.removeItem(atPath: path) }
}

@Suite struct NotifySocketTests {
    private let folder = Folder()
    private var path: String { folder.path + "/notify" }

    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    /// One datagram, from a socket of its own.
    private func send(_ bytes: [UInt8], to path: String, descriptors: [Int32] = []) throws {
        let socket = try Sockets.connect(path: path, kind: .datagram)
        try Sockets.send(socket.raw, bytes, descriptors: descriptors, wait: true)
    }

    @Test("a datagram comes with the kernel's word on who sent it")
    func credentials() throws {
        let socket = try NotifySocket(path: SharedPath(path))
        #expect(socket.receive() == nil)
        try send(bytes("READY=1\nSTATUS=up"), to: path)
        let received = try #require(socket.receive())
        #expect(received.message.ready && received.message.status == "up")
        #expect(received.pid == getpid() && received.uid == getuid() && received.gid == getgid())
        #expect(socket.receive() == nil)
    }

    @Test("another process is told apart by its pid")
    func otherProcess() throws {
        let python = "/usr/bin/env"
        let socket = try NotifySocket(path: SharedPath(path))
        let child = Process()
        child.executableURL = URL(fileURLWithPath: python)
        child.arguments = [
            "python3", "-c",
            "import socket,sys; s=socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.sendto(b'WATCHDOG=1', sys.argv[1])",
            path,
        ]
        try child.run()
        #expect(try Descriptor.wait(socket.descriptor.raw, timeout: .seconds(20)))
        let received = try #require(socket.receive())
        #expect(received.message.watchdogPing && received.pid == child.processIdentifier)
        child.waitUntilExit()
    }

    @Test("systemd-notify --ready is answered: its barrier is closed when handled")
    func systemdNotify() throws {
        guard let tool = ["/usr/bin/systemd-notify", "/bin/systemd-notify"].first(where: File.isExecutable)
        else {
            print("skipped: systemd-notify is not installed (package systemd)")
            return
        }
        let socket = try NotifySocket(path: SharedPath(path))
        let child = Process()
        child.executableURL = URL(fileURLWithPath: tool)
        child.arguments = ["--ready", "--status=hello"]
        child.environment = ["NOTIFY_SOCKET": path]
        let begun = Clock.monotonic()
        try child.run()
        var ready = false
        var barrier = false
        while !(ready && barrier), Clock.monotonic() - begun < .seconds(20) {
            _ = try Descriptor.wait(socket.descriptor.raw, timeout: .seconds(1))
            while let received = socket.receive() {
                if received.message.ready { ready = true }
                if received.message.barrier {
                    barrier = true
                }
            }
            if !child.isRunning { break }
        }
        child.waitUntilExit()
        #expect(ready)
        // It waits 5 s for its barrier, and fails then.
        #expect(child.terminationStatus == 0)
    }

    @Test("that descriptors came along is told, and none is opened")
    func descriptors() throws {
        let socket = try NotifySocket(path: SharedPath(path))
        let before = openDescriptors()
        for count in [0, 1, 2, 253] {
            let files = try (0..<count).map { _ in try Memory.file(named: "notify-test") }
            try send(bytes("FDSTORE=1\nFDNAME=db"), to: path, descriptors: files.map(\.raw))
            let open = openDescriptors()
            let received = try #require(socket.receive())
            #expect(received.hasDescriptors == (count > 0) && received.message.warnings.isEmpty)
            #expect(openDescriptors() == open)
        }
        #expect(openDescriptors() == before)
    }

    @Test("a barrier's descriptor is closed as soon as the datagram is let go, and never opened here")
    func barrier() throws {
        let socket = try NotifySocket(path: SharedPath(path))
        let pipe = try Descriptor.pipe()
        try send(bytes("BARRIER=1"), to: path, descriptors: [pipe.write.raw])
        pipe.write.close()
        #expect(try !Descriptor.wait(pipe.read.raw, timeout: .zero))
        let before = openDescriptors()
        let received = try #require(socket.peek())
        #expect(received.message.barrier && received.hasDescriptors && received.message.warnings.isEmpty)
        #expect(openDescriptors() == before)
        #expect(try !Descriptor.wait(pipe.read.raw, timeout: .zero))
        socket.drop(received)
        // The end of the pipe: the last writer is gone.
        #expect(try Descriptor.wait(pipe.read.raw, timeout: .seconds(60)))
        #expect(try Descriptor.read(pipe.read.raw, maximum: 1) == [])
    }

    @Test("a datagram longer than 64 KiB is read to there and says so; random ones do no harm")
    func longAndRandom() throws {
        let socket = try NotifySocket(path: SharedPath(path))
        try send(bytes("READY=1\nSTATUS=" + String(repeating: "x", count: 100_000)), to: path)
        let received = try #require(socket.receive())
        #expect(received.message.ready && received.message.warnings.contains { $0.contains("longer than") })
        var random = Seeded(state: 1)
        for _ in 0..<500 {
            let noise = (0..<Int.random(in: 1...300, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            try send(noise, to: path)
            #expect(socket.receive() != nil)
        }
    }

    @Test("a datagram that was only looked at is still there")
    func peeking() throws {
        let socket = try NotifySocket(path: SharedPath(path))
        for number in 0..<8 { try send(bytes("STATUS=\(number)"), to: path) }
        // What was only looked at is still there.
        #expect(socket.peek()?.message.status == "0")
        #expect((0..<8).map { _ in socket.receive()?.message.status } == (0..<8).map { "\($0)" })
        #expect(socket.peek() == nil)
    }

    @Test("two datagrams with the same bytes and descriptors are told apart")
    func equal() throws {
        let socket = try NotifySocket(path: SharedPath(path))
        let file = try Memory.file(named: "notify-test")
        for _ in 0..<2 { try send(bytes("FDSTORE=1"), to: path, descriptors: [file.raw]) }
        let first = try #require(socket.peek())
        let again = try #require(socket.peek())
        #expect(first.sent != nil && first.sent == again.sent && first.hasDescriptors)
        socket.drop(first)
        let second = try #require(socket.receive())
        #expect(second.message == first.message && second.sent != nil && second.sent != first.sent)
    }

    @Test("a torpord of an earlier version still gets the senders from the socket")
    func earlierVersion() throws {
        let socket = try NotifySocket(path: SharedPath(path))
        let file = try Memory.file(named: "notify-test")
        let buffer = Mapping(size: 100)
        for descriptors in [[], [file.raw]] {
            try send(bytes("READY=1"), to: path, descriptors: descriptors)
            #expect(socket.peek() != nil)
            // As that version reads: with room for the sender, and for nothing else.
            let read = try Sockets.receiveMessage(
                socket.descriptor.raw,
                into: buffer.bytes,
                maximumDescriptors: 0,
                leaving: true
            )
            #expect(read?.sender != nil)
            #expect(socket.receive() != nil)
        }
    }

    @Test("a path that is too long is a sentence that says what to do")
    func longPath() {
        let long = folder.path + "/" + String(repeating: "n", count: 120)
        do {
            _ = try NotifySocket(path: SharedPath(long))
            Issue.record("bound a path of \(long.utf8.count) bytes")
        } catch {
            #expect(error.description.contains("107") && error.description.contains("runtime_directory"))
        }
    }

    @Test("a socket left behind is replaced, a file is not")
    func leftBehind() throws {
        let first = try NotifySocket(path: SharedPath(path))
        let second = try NotifySocket(path: SharedPath(path))
        try send(bytes("READY=1"), to: path)
        #expect(second.receive() != nil && first.receive() == nil)
        let file = folder.path + "/file"
        #expect(FileManager.default.createFile(atPath: file, contents: Data()))
        #expect(throws: NotifySocketError.self) { try NotifySocket(path: SharedPath(file)) }
    }

    private func openDescriptors() -> Int {
        // What other tests open would disturb the count: only the memory files of this one count.
        let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return all.filter {
            (try? File.readLink("/proc/self/fd/\($0)"))?.hasPrefix("/memfd:notify-test") ?? false
        }.count
    }
}

@Suite struct FDStoreTests {
    private func message(_ fields: [NotifyField]) -> NotifyMessage { NotifyMessage(fields: fields) }

    @Test("descriptors are kept in order with their names, and the same open file once")
    func keeps() throws {
        var store = FDStore()
        let a = try Memory.file(named: "a")
        let b = try Memory.file(named: "b")
        #expect(store.apply(message([.fdStore, .fdName("db")]), [a]).added.map(\.name) == ["db"])
        #expect(store.apply(message([.fdStore]), [b, try a.duplicate()]).added.map(\.name) == ["stored"])
        #expect(store.names == "db:stored" && store.entries.map(\.poll) == [true, true])
        let gone = store.apply(message([.fdStoreRemove, .fdName("db")]), [])
        #expect(gone.removed.map(\.name) == ["db"] && store.names == "stored")
        #expect(store.apply(message([.fdStoreRemove, .fdName("db")]), []).warnings.count == 1)
    }

    @Test("two openings of one file are two, and FDPOLL=0 is remembered")
    func sameInode() throws {
        var store = FDStore()
        let first = try File.open("/dev/null", .readWrite)
        let second = try File.open("/dev/null", .readWrite)
        let change = store.apply(message([.fdStore, .fdPoll(false)]), [first, second])
        #expect(change.added.count == 2 && !change.added[0].poll)
    }

    @Test("the hundred-and-first is refused with a sentence")
    func limit() throws {
        var store = FDStore()
        let many = try (0..<101).map { try Memory.file(named: "m\($0)") }
        let change = store.apply(message([.fdStore]), many)
        #expect(change.added.count == 100 && change.warnings.count == 1 && store.entries.count == 100)
        store.remove(store.entries[3])
        #expect(store.entries.count == 99)
    }
}
