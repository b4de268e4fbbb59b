// SPDX-License-Identifier: Apache-2.0

import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Linux
import Permissions
import Testing
import TorporAPI

@testable import Supervisor

/// Holds what the next torpord gets.
private final class Keeping: DescriptorKeeping {
    var all: [String: [Descriptor]] = [:]
    let inheritance: InheritedDescriptors
    let isSuccessor: Bool

    init(after other: Keeping? = nil) {
        inheritance = other.map { InheritedDescriptors($0.all.map { ($0.key, $0.value) }) } ?? InheritedDescriptors()
        isSuccessor = other != nil
    }

    func hold(_ name: String, _ descriptor: Int32) { hold(name, [descriptor], replacing: true) }

    func hold(_ name: String, _ descriptors: [Int32], replacing: Bool) {
        all[name] = (replacing ? [] : all[name] ?? []) + descriptors.compactMap { try? Descriptor.duplicate($0) }
    }

    func release(_ name: String) { all[name] = nil }
}

/// An app in a sandbox whose process is this one, and a socket in the kernel's place.
private final class World {
    let shell: FakeShell
    let kernel: Descriptor
    let keeping: Keeping
    let watch: DenialWatch
    private let socket: Descriptor

    /// What a torpord leaves: the kernel's end, and what the keeper holds.
    typealias Left = (kernel: Descriptor, keeping: Keeping)

    init(_ keys: String = "", after left: Left? = nil, isStarted: Bool = true) throws {
        shell = try FakeShell(
            toml: """
                [apps.web]
                exec = ["/bin/true"]
                launch = "on-demand"
                restart = "never"
                sandbox = true
                \(keys)
                """
        )
        shell.hands.process = ThisProcess.pid
        let pair = try Sockets.pair(.datagram, nonBlocking: true)
        (kernel, socket) = (left?.kernel ?? pair.0, pair.1)
        keeping = Keeping(after: left?.keeping)
        let socket = socket
        watch = DenialWatch(shell.engine, shell.recorder, keeping) { () throws(Errno) in
            AuditRecords(taking: try Descriptor.duplicate(socket.raw))
        }
        watch.claim()
        shell.engine.add(watch)
        if isStarted { try start() }
        watch.begin()
    }

    func start() throws { try shell.start("web") }

    /// The kernel writes a record.
    func write(_ type: UInt16, _ fields: String) throws {
        let bytes = Self.record(type, "audit(1795962983.349:40): \(fields)")
        #expect(try Sockets.send(kernel.raw, bytes) != nil, "the socket is full")
    }

    static func record(_ type: UInt16, _ text: String) -> [UInt8] {
        var bytes = withUnsafeBytes(of: UInt32(16 + text.utf8.count)) { Array($0) }
        bytes += withUnsafeBytes(of: type) { Array($0) } + [UInt8](repeating: 0, count: 10) + text.utf8
        return bytes
    }

    func deny(_ path: String, domain: String = "a1") throws {
        try write(1423, "domain=\(domain) blockers=fs.read_file path=\"\(path)\" dev=\"vda\" ino=3")
    }

    func make(
        _ process: Int32 = ThisProcess.pid,
        domain: String = "a1",
        user: UInt32 = Users.effectiveUID,
        program: String = "/x/torpor-keeper"
    ) throws {
        let maker = "pid=\(process) uid=\(user) exe=\"\(program)\" comm=\"k\""
        try write(1424, "domain=\(domain) status=allocated mode=enforcing \(maker)")
    }

    /// Turns the loop, with its pauses, until it is so.
    func eventually(_ what: String, _ isSo: () -> Bool) throws {
        let end = Clock.monotonic() + .seconds(30)
        while !isSo() {
            try #require(Clock.monotonic() < end, "in vain: \(what): \(told)")
            try turn()
        }
    }

    func turn() throws {
        try shell.engine.loop.runOnce(timeout: .milliseconds(20))
        try shell.pass(.milliseconds(100))
    }

    /// Waits until all that was written so far is read.
    func settle() throws {
        let before = told.count
        try write(1423, "domain=a1 blockers=fs.read_file path=\"/mark\(before)\" dev=\"vda\" ino=3")
        try eventually("the mark is told") { self.told.contains { $0.contains("/mark\(before)") } }
    }

    var told: [String] { shell.told(of: "web").filter { $0.hasPrefix("permission: ") } }
}

@Suite("What the kernel denies to apps", .enabled(if: Landlock.version >= 7, "needs a kernel with Landlock 7"))
struct DenialWatchTests {
    @Test("is told with the permission that lacks, whichever comes first, the launch or the record")
    func told() throws {
        for isStarted in [true, false] {
            let world = try World(
                """
                [apps.web.permissions]
                camera = { purpose = "Looks" }
                "files:/srv:ro" = { purpose = "Reads", default = "deny" }
                """,
                isStarted: isStarted
            )
            if !isStarted {
                // Another app has run, so torpord listens.
                try world.start()
                try world.shell.request(.stop(.stopped), "web")
                try world.deny("/dev/video1", domain: "b1")
                try world.make(domain: "b1")
                try world.eventually("an app that has ended is told of") { world.told.count == 1 }
                #expect(world.shell.told(of: "web").contains { $0.contains("/dev/video1") })
                try world.start()
            }
            try world.deny("/dev/video0")
            try world.make()
            try world.deny("/srv/a")
            try world.deny("/home/x")
            try world.eventually("all are told") { world.told.count >= (isStarted ? 3 : 4) }
            let told = world.told.suffix(3)
            let first = "may not read /dev/video0: camera is withheld until it is answered"
            #expect(told.first?.contains(first) == true, "\(told)")
            #expect(told.contains("permission: may not read /srv/a: files:/srv:ro is denied"), "\(told)")
            let last = "it declares no permission for that, such as files:/home/x:ro"
            #expect(told.last == "permission: may not read /home/x: \(last)")
            #expect(world.shell.app("web").denials?.last?.text.contains("/home/x") == true)
            #expect(world.shell.state("web") == .active)
        }
    }

    @Test("is not told of processes that no app has started, nor of what an app denies itself")
    func strangers() throws {
        let world = try World()
        try world.deny("/a", domain: "c1")
        try world.make(1, domain: "c1")
        try world.deny("/b", domain: "c2")
        try world.make(domain: "c2", program: "/opt/web/itself")
        // Of another user, who had the number of the process before, and may call a program as the keeper is called.
        try world.deny("/e", domain: "c4")
        try world.make(domain: "c4", user: Users.effectiveUID + 1)
        try world.deny("/e", domain: "c4")
        try world.deny("/c", domain: "c3")
        try world.write(1424, "domain=c3 status=deallocated denials=1")
        for number in 0..<300 {
            try world.deny("/d", domain: "d\(number)")
            for _ in 0..<(number % 50 == 0 ? 3 : 0) { try world.turn() }
        }
        try world.make()
        try world.settle()
        #expect(world.told.count == 1, "\(world.told)")
    }

    @Test("floods neither the events nor torpord")
    func flood() throws {
        let world = try World()
        try world.make()
        try world.settle()
        var sent = 0
        for round in 0..<20 {
            for number in 0..<50 {
                try world.deny("/flood\(round * 50 + number)")
                sent += 1
            }
            try world.turn()
            try world.turn()
            try world.turn()
        }
        try world.eventually("all are counted") { world.shell.app("web").denials?.ledger.total == sent + 1 }
        #expect(world.told.count <= 2 * 20)
        try world.shell.pass(.seconds(60))
        try world.deny("/last")
        try world.eventually("the next minute tells how many were not told") {
            world.told.last?.contains("more were denied and not told") ?? false
        }
    }

    @Test("ends an app where the configuration says so, if it declares nothing of the kind")
    func end() throws {
        let world = try World(
            """
            on_denied = "end"
            [apps.web.permissions]
            camera = { purpose = "Looks" }
            """
        )
        try world.make()
        try world.deny("/dev/video0")
        try world.write(1423, "domain=a1 blockers=scope.signal opid=1 ocomm=\"systemd\"")
        try world.eventually("both are told") { world.told.count == 2 }
        #expect(world.shell.state("web") == .active)
        try world.deny("/home/x")
        try world.eventually("it is ended") { world.shell.engine.machine(0).lastEnding == .noPurposeString }
        // The next run is another one.
        try world.start()
        try world.deny("/home/y")
        try world.eventually("the record is told of the run before") { world.told.contains { $0.contains("/home/y") } }
        #expect(world.shell.state("web") == .active)
    }

    @Test("is asked for by no app that does not want it")
    func ignored() throws {
        let world = try World("on_denied = \"ignore\"")
        #expect(world.keeping.all.isEmpty)
        #expect(world.watch.check == nil)
    }

    @Test("waits for the next torpord, which knows whose it is")
    func successor() throws {
        let left: World.Left
        do {
            let world = try World()
            try world.make()
            try world.settle()
            left = (world.kernel, world.keeping)
        }
        let text = "audit(1.2:3): domain=a1 blockers=fs.read_file path=\"/between\""
        #expect(try Sockets.send(left.kernel.raw, World.record(1423, text)) != nil)
        let next = try World(after: left)
        try next.deny("/after")
        try next.eventually("both are told") { next.told.count == 2 }
        #expect(next.told[0].contains("/between") && next.told[1].contains("/after"))
    }
}
