// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing

/// A folder of its own for a test, removed with the last reference.
final class TemporaryFolder {
    let path: String
    init() throws {
        path = NSTemporaryDirectory() + "torpor-test-" + UUID().uuidString
        try File.makeDirectories(path)
    }
    deinit { try? File.removeTree(path) }
}

@Suite struct FileTests {
    @Test("The mode of what a symbolic link points to is not set where links are not followed")
    func modeOfLink() throws {
        let folder = NSTemporaryDirectory() + "tp-mode-\(ThisProcess.pid)"
        try File.makeDirectories(folder)
        defer { try? File.removeTree(folder) }
        try File.write(folder + "/file", "x")
        try File.setMode(folder + "/file", 0o600, followLinks: false)
        try File.link(folder + "/link", to: folder + "/file")
        #expect(throws: Errno.tooManySymbolicLinkLevels) {
            try File.setMode(folder + "/link", 0o666, followLinks: false)
        }
        #expect(try File.status(folder + "/file").mode == 0o600)
        try File.setMode(folder + "/link", 0o640)
        #expect(try File.status(folder + "/file").mode == 0o640)
    }

    @Test("what is written is read, and no more than the limit")
    func roundTrip() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/file"
        try File.write(path, "hello")
        #expect(try File.readString(path) == "hello")
        #expect(try File.readString(path, limit: 5) == "hello")
        #expect(throws: Errno(rawValue: EFBIG)) { try File.read(path, limit: 4) }
        try File.append(path, Array(" world".utf8))
        #expect(try File.readString(path) == "hello world")
        try File.replace(path, Array("new".utf8), mode: 0o600, sync: true)
        #expect(try File.readString(path) == "new")
        #expect(try File.status(path).mode == 0o600)
        #expect(try File.list(folder.path) == ["file"])
    }

    @Test("directories are made with those above, and removed with those below")
    func directories() throws {
        let folder = try TemporaryFolder()
        let deep = folder.path + "/a/b/c"
        try File.makeDirectories(deep)
        try File.makeDirectories(deep)
        try File.write(deep + "/x", "1")
        try File.link(deep + "/loop", to: folder.path)
        #expect(try File.readLink(deep + "/loop") == folder.path)
        try File.removeTree(folder.path + "/a")
        #expect(!File.exists(folder.path + "/a"))
        #expect(throws: Errno.noSuchFileOrDirectory) { try File.status(deep) }
        try File.write(folder.path + "/plain", "")
        #expect(throws: (any Error).self) { try File.makeDirectories(folder.path + "/plain/x") }
    }

    @Test(
        "the parent of a path is what a shell would say",
        arguments: [
            ("/a/b", "/a"), ("/a/b/", "/a"), ("/a", "/"), ("a/b", "a"), ("/a//b", "/a"),
        ]
    )
    func parents(path: String, parent: String) { #expect(File.parent(of: path) == parent) }

    @Test("a path of one part has no parent")
    func noParent() {
        #expect(File.parent(of: "a") == nil)
        #expect(File.parent(of: "") == nil)
    }

    @Test("a lock belongs to one open file")
    func locks() throws {
        let folder = try TemporaryFolder()
        let first = try File.open(folder.path + "/lock", [.readWrite, .create])
        let second = try File.open(folder.path + "/lock", [.readWrite])
        #expect(try Locks.tryLock(first.raw))
        #expect(try !Locks.tryLock(second.raw))
        first.close()
        #expect(try Locks.tryLock(second.raw))
    }

    @Test("a mapping shows what is in the memfd")
    func memory() throws {
        let file = try Memory.file(named: "test", size: 4096)
        let mapping = try Mapping(descriptor: file.raw, size: 4096, writable: true)
        mapping.bytes[7] = 42
        #expect(try File.read(file.raw, at: 7, maximum: 1) == [42])
    }

    @Test("a mapping without a file takes memory only for the pages that were written")
    func privateMemory() throws {
        let size = 4 * Memory.pageSize
        let mapping = Mapping(size: size)
        mapping.bytes[2 * Memory.pageSize] = 42
        var resident = [UInt8](repeating: 0, count: 4)
        try #require(mincore(mapping.bytes.baseAddress, size, &resident) == 0)
        #expect(resident.map { $0 & 1 } == [0, 0, 1, 0])
        #expect(mapping.bytes.count == size && mapping.bytes.count { $0 != 0 } == 1)
    }

    @Test("splicing moves bytes from a pipe into a file, and an empty pipe is no end")
    func splice() throws {
        let (read, write) = try Descriptor.pipe(nonBlocking: true)
        let file = try Memory.file(named: "test")
        #expect(try Splice.move(from: read.raw, to: file.raw, offset: 0, size: 100) == nil)
        _ = try Descriptor.write(write.raw, Array("abc".utf8))
        #expect(try Splice.waiting(read.raw) == 3)
        #expect(try Splice.move(from: read.raw, to: file.raw, offset: 0, size: 100) == 3)
        #expect(try File.read(file.raw, at: 0, maximum: 10) == Array("abc".utf8))
        write.close()
        #expect(try Splice.move(from: read.raw, to: file.raw, offset: 3, size: 100) == 0)
    }
}

@Suite struct DescriptorTests {
    @Test("a descriptor closes with its last reference, and not after it was taken")
    func ownership() throws {
        var (read, write): (Descriptor?, Descriptor?) = try Descriptor.pipe()
        let number = try #require(read?.raw)
        read = nil
        #expect(!Descriptor.isOpen(number))
        let taken = try #require(write?.take())
        write = nil
        #expect(Descriptor.isOpen(taken))
        Descriptor(owning: taken).close()
        #expect(!Descriptor.isOpen(taken))
    }
}

@Suite struct SocketTests {
    @Test("a datagram says who sent it and brings descriptors")
    func datagrams() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/socket"
        let receiver = try Sockets.bindDatagram(path: path)
        let nothing = try Sockets.receive(receiver.raw, maximum: 10)
        #expect(nothing == nil, "nothing waits")
        let sender = try Sockets.connect(path: path, kind: .datagram)
        let (read, write) = try Descriptor.pipe()
        try Sockets.send(sender.raw, Array("READY=1".utf8), descriptors: [write.raw, read.raw])
        let message = try #require(try Sockets.receive(receiver.raw, maximum: 100))
        #expect(message.bytes == Array("READY=1".utf8))
        #expect(message.sender?.pid == ThisProcess.pid)
        #expect(message.sender?.uid == Users.effectiveUID)
        #expect(message.descriptors.count == 2)
        #expect(!message.dataTruncated && !message.controlTruncated)
        _ = try Descriptor.write(message.descriptors[0].raw, [7])
        #expect(try Descriptor.read(read.raw, maximum: 10) == [7])
    }

    @Test("what is too long is cut and says so, and surplus descriptors are closed")
    func truncation() throws {
        let (one, two) = try Sockets.pair(.sequenced)
        let (read, write) = try Descriptor.pipe()
        try Sockets.send(one.raw, [1, 2, 3], descriptors: [write.raw, write.raw])
        let message = try #require(try Sockets.receive(two.raw, maximum: 2, maximumDescriptors: 1))
        #expect(message.bytes == [1, 2] && message.dataTruncated)
        #expect(message.descriptors.count == 1 && message.controlTruncated)
        message.descriptors[0].close()
        write.close()
        #expect(try Descriptor.wait(read.raw, timeout: .seconds(60)), "all copies of the writing end are closed")
        #expect(try Descriptor.read(read.raw, maximum: 1) == [])
    }

    @Test("a connection shows who connected, groups too")
    func peers() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/socket"
        let listener = try Sockets.listen(path: path)
        let nobody = try Sockets.accept(listener.raw)
        #expect(nobody == nil, "nobody waits")
        let client = try Sockets.connect(path: path)
        let server = try #require(try Sockets.accept(listener.raw))
        let peer = try Sockets.peer(server.raw)
        #expect(peer.pid == ThisProcess.pid && peer.uid == Users.effectiveUID && peer.gid == Users.effectiveGID)
        client.close()
        #expect(try Sockets.receive(server.raw, maximum: 10)?.bytes == [])
        #expect(throws: Errno.self) {
            try Sockets.connect(path: folder.path + "/" + String(repeating: "x", count: 120))
        }
        #expect(throws: Errno.connectionRefused) {
            listener.close()
            _ = try Sockets.connect(path: path)
        }
    }

    @Test("a TCP connection to a closed port ends with an error, to an open one without")
    func tcp() throws {
        let listener = try Sockets.listenTCP(address: "127.0.0.1", port: 0)
        #expect(throws: Errno.invalidArgument) { try Sockets.connectTCP(address: "localhost", port: 80) }
        let port = try Sockets.port(listener.raw)
        let open = try Sockets.connectTCP(address: "127.0.0.1", port: port)
        #expect(try Descriptor.wait(open.raw, writable: true, timeout: .seconds(60)))
        #expect(Sockets.pendingError(open.raw) == nil)
        // A bound socket that does not listen: nobody else gets the port meanwhile.
        let closed = try Sockets.listenTCP(address: "127.0.0.1", port: 0)
        let closedPort = try Sockets.port(closed.raw)
        #expect(shutdown(closed.raw, Int32(SHUT_RDWR)) == 0)
        let refused = try Sockets.connectTCP(address: "127.0.0.1", port: closedPort)
        #expect(try Descriptor.wait(refused.raw, writable: true, timeout: .seconds(60)))
        #expect(Sockets.pendingError(refused.raw) == .connectionRefused)
    }
}

@Suite struct ProcTests {
    @Test("a name with blanks and parentheses does not shift the fields")
    func parsing() throws {
        let line =
            "42 (a) b (c) S 1 43 44 0 -1 4194560 1 2 3 4 100 200 300 400 20 0 5 0 98765 1000 77 18446744073709551615"
        let stat = try #require(Array(line.utf8).withUnsafeBytes { ProcessStat(parsing: $0) })
        #expect(stat.pid == 42 && stat.comm == "a) b (c" && stat.state == "S")
        #expect(stat.parent == 1 && stat.group == 43 && stat.session == 44)
        #expect(stat.flags == 4_194_560 && !stat.isExiting)
        #expect(stat.userTicks == 100 && stat.systemTicks == 200)
        #expect(stat.childUserTicks == 300 && stat.childSystemTicks == 400)
        #expect(stat.threads == 5 && stat.startTime == 98765 && stat.residentPages == 77)
        #expect(stat.processor == -1, "the line ends before it")
    }

    @Test("the processor of a process is field 39")
    func processor() throws {
        let line = "42 (a) S 1 43 44 0 -1 0 1 2 3 4 100 200 300 400 20 0 5 0 98765 1000 77 "
        let rest = "18446744073709551615 26 27 28 29 30 31 32 33 34 35 36 37 -1 7 0 0 0\n"
        let stat = try #require(Array((line + rest).utf8).withUnsafeBytes { ProcessStat(parsing: $0) })
        #expect(stat.processor == 7)
        let own = try ProcFS.stat(ThisProcess.pid).processor
        #expect(own >= 0)
    }

    @Test(
        "what is no stat line is refused",
        arguments: ["", "1", "1 (", "1 (x)", "1 (x) S", "1 (x) S 1 2 3", "x (y) S 1"]
    )
    func garbage(line: String) { #expect(Array(line.utf8).withUnsafeBytes { ProcessStat(parsing: $0) } == nil) }

    @Test("this process is found, with its threads, command line and environment")
    func own() throws {
        let stat = try ProcFS.stat(ThisProcess.pid)
        #expect(stat.pid == ThisProcess.pid && stat.parent == ThisProcess.parent && stat.residentPages > 0)
        #expect(try ProcFS.tasks(ThisProcess.pid).contains(ThisProcess.pid))
        #expect(try ProcFS.allPids().contains(ThisProcess.pid))
        #expect(try !ProcFS.cmdline(ThisProcess.pid).isEmpty)
        #expect(try ProcFS.tracerPid(ThisProcess.pid) == 0)
        #expect(try ProcFS.environment(ThisProcess.pid, "PATH") != nil)
        #expect(throws: Errno.noSuchFileOrDirectory) { try ProcFS.stat(Int32.max) }
    }
}

@Suite struct SignalTests {
    @Test(
        "signals are found by every way of naming them",
        arguments: [
            ("SIGUSR1", 10), ("USR1", 10), ("usr1", 10), ("10", 10), ("SIGTERM", 15), ("SIGRTMIN", 34), ("RTMIN+2", 36),
            ("SIGRTMAX", 64), ("SIGRTMAX-1", 63),
        ]
    )
    func names(name: String, number: Int) { #expect(Signal.number(named: name) == Int32(number)) }

    @Test("what is no signal is refused", arguments: ["", "SIG", "0", "-1", "65", "99999999999", "RTMIN+99", "NOPE"])
    func refused(name: String) { #expect(Signal.number(named: name) == nil) }

    @Test("a number gives the name that gives the number")
    func roundTrip() {
        for number in Int32(1)...64 where ![32, 33].contains(number) {
            #expect(Signal.number(named: Signal.name(number)) == number)
        }
        #expect(Signal.name(10) == "SIGUSR1")
    }
}

@Suite struct UserTests {
    @Test("root is found by name and number, nobody by nonsense")
    func lookup() {
        #expect(Users.lookup("root")?.uid == 0)
        #expect(Users.lookup("0")?.name == "root")
        #expect(Users.lookup("no such user") == nil)
        #expect(Users.group("root") == 0)
        #expect(Users.group("no such group") == nil)
        #expect(Users.groups(of: "root", primary: 0).contains(0))
    }
}

@Suite struct ClockTests {
    @Test("a time stamp is ISO 8601 with milliseconds")
    func timestamp() {
        #expect(TimeStamp.string(microseconds: 0) == "1970-01-01T00:00:00.000Z")
        #expect(TimeStamp.string(microseconds: 1_767_225_599_007_000) == "2025-12-31T23:59:59.007Z")
    }

    @Test("microseconds of a duration are bounded, not trapped")
    func microseconds() {
        #expect(Duration.milliseconds(3).microseconds == 3000)
        #expect(Duration.seconds(Int64.max).microseconds == .max)
        #expect(Duration.seconds(Int64.min).microseconds == .min)
    }
}
