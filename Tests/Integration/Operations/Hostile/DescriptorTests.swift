// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// What an app does with descriptors that keep whoever closes them waiting.
@Suite("Descriptors that wait") struct DescriptorTests {
    private static func toml(_ keys: String = "") -> String {
        """
        [apps.evil]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        ready = "notify"
        launch_deadline = "5min"
        restart = "never"
        \(keys)
        [apps.web]
        exec = ["/bin/sleep", "1000"]
        launch = "on-demand"

        """
    }

    /// torpord answers and the keeper launches and reaps, both the same as before.
    private func expectUnharmed(_ daemon: Daemon, _ torpord: Int32, _ keeper: Int32) throws {
        try daemon.done(.start, "web")
        try daemon.done(.stop, "web")
        #expect(try daemon.torpord() == torpord && ProcFS.stat(torpord).parent == keeper)
    }

    private func attack(
        _ program: String,
        keys: String = "",
        environment: [String: String] = [:],
        _ body: (Daemon) throws -> Void
    ) throws {
        try withDaemon(Self.toml(keys), files: ["app.py": program], environment: environment) { daemon in
            let torpord = try daemon.torpord()
            let keeper = try ProcFS.stat(torpord).parent
            try body(daemon)
            try expectUnharmed(daemon, torpord, keeper)
        }
    }

    /// A file of the app's own file system: whoever closes it waits for ever, but for the app's main process. The server is
    /// a process of its own, so that its end lets go of all who wait.
    private static let silentFile = """
        import ctypes, struct, tp
        from tp import os
        libc = ctypes.CDLL(None, use_errno=True)
        user = os.getuid()
        if libc.unshare(0x10000000 | 0x20000) != 0:
            tp.notify("READY=1\\nSTATUS=no namespaces"); tp.wait()
        open("/proc/self/setgroups", "w").write("deny")
        open("/proc/self/uid_map", "w").write("0 %d 1" % user)
        open("/proc/self/gid_map", "w").write("0 %d 1" % os.getgid())
        device = os.open("/dev/fuse", os.O_RDWR)
        options = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % device
        if libc.mount(b"evil", b"/mnt", b"fuse", 6, options) != 0:
            tp.notify("READY=1\\nSTATUS=no mount"); tp.wait()
        main = os.getpid()

        def attributes(node):
            mode = 0o40755 if node == 1 else 0o100644
            return struct.pack("<6Q10I", node, 0, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

        def serve():
            while True:
                message = os.read(device, 1 << 20)
                _, code, unique, node, _, _, pid, _ = struct.unpack_from("<IIQQIIII", message)
                if code == 25 and pid != main:
                    continue
                error, body = 0, b""
                if code == 26: body = struct.pack("<IIIIHHIIHHI7I", 7, 31, 0, 0, 16, 12, 4096, 1, 0, 0, *[0] * 8)
                elif code == 1: body = struct.pack("<QQQQII", 2, 0, 0, 0, 0, 0) + attributes(2)
                elif code == 3: body = struct.pack("<QII", 0, 0, 0) + attributes(node)
                elif code == 14: body = struct.pack("<QII", 1, 0, 0)
                elif code in (2, 36, 42): continue
                elif code not in (18, 25): error = -38
                os.write(device, struct.pack("<IiQ", 16 + len(body), error, unique) + body)

        child = os.fork()
        if child == 0: serve()
        os.close(device)
        file = os.open("/mnt/file", os.O_RDWR)
        """

    @Test(
        "A file whose close waits for ever is not stored, and holds nobody",
        .enabled(if: Users.effectiveUID == 0 && File.exists("/dev/fuse"), "needs root and FUSE")
    )
    func fuse() throws {
        let program =
            Self.silentFile
                + """

                memory = os.memfd_create("good")
                for round in range(3):
                    tp.notify("FDSTORE=1\\nFDNAME=evil", [file, memory])
                    tp.notify("FDSTOREREMOVE=1\\nFDNAME=evil", [file])
                tp.notify("STATUS=with one", [file])
                tp.notify("FDSTORE=1\\nFDNAME=good", [memory])
                tp.notify("READY=1\\nSTATUS=through")
                tp.wait()
                """
        let keys = "user = \"nobody\"\n"
        try attack(program, keys: keys) { daemon in
            try daemon.eventually("it came through") {
                let status = try daemon.summary("evil").status
                try #require(status?.hasPrefix("no ") != true, "the machine has \(status ?? "") for users")
                return status == "through"
            }
            try daemon.waitForEvent("evil", "refused 1 of its descriptors: only memory, pipes, sockets")
            // The process that has opened it is still closing it.
            try daemon.waitForEvent("evil", "closing one that it sent before blocks torpor-keeper --receive")
            try daemon.waitForEvent("evil", "closing one that it sent before still blocks torpor-keeper --receive")
        }
    }

    /// Whether such a file keeps waiting who lets go of it without closing it. Before Linux 6.16, FUSE copied the pages
    /// that were written back, and waited for no answer. The same version has SO_PASSRIGHTS.
    private static let letGoWaits =
        Users.effectiveUID == 0 && File.exists("/dev/fuse")
        && (try? Sockets.unix(.stream).withRaw { raw throws(Errno) in try Sockets.refuseDescriptors(raw) }) != nil

    /// The same file system, but the kernel gathers what is written (FUSE_WRITEBACK_CACHE), and nobody answers when it
    /// writes that back: whoever lets go of the file waits for ever, though it never opened it.
    private static let writtenBack =
        silentFile
        .replacing("if code == 25 and pid != main:", with: "if code in (4, 16, 20):")
        .replacing("7, 31, 0, 0, 16, 12,", with: "7, 31, 0, 1 << 16, 16, 12,")

    @Test(
        "A datagram with the last reference to a file that waits for ever holds nobody but what the app sends after it",
        .enabled(if: DescriptorTests.letGoWaits, "needs root, FUSE and Linux 6.16")
    )
    func writtenBack() throws {
        let program =
            Self.writtenBack
                + """

                import socket
                # Only the queue of this socket has the file, which was clean when it was closed.
                one, other = socket.socketpair()
                one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", file))])
                os.close(file)
                one.close()
                dirty = os.open("/mnt/file", os.O_RDWR)
                os.write(dirty, bytes(100))
                tp.notify("READY=1")
                tp.notify("STATUS=with it", [other.fileno()])
                other.close()
                tp.notify("STATUS=after it")
                tp.wait()
                """
        try attack(program, keys: "user = \"nobody\"\n") { daemon in
            try daemon.waitFor("evil", "active")
            try daemon.eventually("it was read") {
                let status = try daemon.summary("evil").status
                try #require(status?.hasPrefix("no ") != true, "the machine has \(status ?? "") for users")
                return status == "with it"
            }
            // Another process waits for the file, and torpord serves others.
            let keeper = try ProcFS.stat(try daemon.torpord()).parent
            func waits() throws -> Bool {
                try ProcFS.children(keeper).contains { (try? ProcFS.stat($0).comm) == "torpor-receive" }
            }
            try daemon.eventually("another process waits for it") { try waits() }
            try expectUnharmed(daemon, try daemon.torpord(), keeper)
            try daemon.eventually("what came after it is read") { try daemon.summary("evil").status == "after it" }
            #expect(try waits())
            try daemon.waitForEvent("evil", "its notifications waited: closing a descriptor that it sent")
            try daemon.done(.stop, "evil")
            try daemon.eventually("its end lets go of it") { try !waits() }
        }
    }

    @Test(
        "While such a datagram waits, a notify socket that is made again does not keep torpord busy",
        .enabled(if: DescriptorTests.letGoWaits, "needs root, FUSE and Linux 6.16")
    )
    func renewed() throws {
        let program =
            Self.hiding
                + """

                hide(1)
                tp.notify("READY=1")
                with hiding.pop() as evil: tp.notify("STATUS=with it", [evil.fileno()])
                while not os.path.exists(tp.HERE + "/go"): tp.time.sleep(0.02)
                tp.notify("STATUS=after it")
                tp.wait()
                """
        try withDaemon(Self.toml("user = \"nobody\"\n"), files: ["app.py": program]) { daemon in
            try daemon.eventually("it was read") {
                let status = try daemon.summary("evil").status
                try #require(status?.hasPrefix("no ") != true, "the machine has \(status ?? "") for users")
                return status == "with it"
            }
            let torpord = try daemon.torpord()
            let before = try #require(Scheduling(torpord))
            try File.removeTree(daemon.runtime)
            try daemon.eventually("the socket is there again") {
                Sockets.isServed(path: daemon.runtime + "/apps/evil/notify", kind: .datagram)
            }
            daemon.touch("go")
            // That is read when the process that removes the datagram before it is given up, after ten seconds.
            try daemon.eventually("what came after it is read") {
                (try? daemon.summary("evil").status) == "after it"
            }
            let after = try #require(Scheduling(torpord))
            #expect(after.ran - before.ran < .seconds(4), "processor time, of up to ten seconds")
            try daemon.done(.stop, "evil")
        }
    }

    /// Sockets of which only the queue has such a file, which was clean when it was closed.
    private static let hiding =
        writtenBack
            + """

            import socket
            os.close(file)
            hiding = []
            def rights(number): return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", number))]
            def hide(count):
                for _ in range(count):
                    file = os.open("/mnt/file", os.O_RDWR)
                    one, other = socket.socketpair()
                    one.sendmsg([b"x"], rights(file))
                    os.close(file)
                    one.close()
                    hiding.append(other)
                os.write(os.open("/mnt/file", os.O_RDWR), bytes(100))
            """

    /// Children of the keeper that close what others must not close.
    private func closers(_ keeper: Int32) throws -> Int {
        try ProcFS.children(keeper).count { (try? ProcFS.stat($0).comm) == "torpor-closer" }
    }

    @Test(
        "A connection with the last reference to a file that waits for ever holds nobody, on a kernel that cannot refuse it",
        .enabled(if: DescriptorTests.letGoWaits, "needs root, FUSE and Linux 6.16")
    )
    func connections() throws {
        let program =
            Self.hiding
                + """

                hide(7)
                tp.notify("READY=1\\nSTATUS=ready")
                while not os.path.exists(tp.HERE + "/go"): tp.time.sleep(0.02)
                open_ones = []
                def send(variable, before=b"", flags=0, then=b""):
                    connection = socket.socket(socket.AF_UNIX)
                    connection.connect(os.environ[variable])
                    if before: connection.sendall(before)
                    with hiding.pop() as evil: connection.sendmsg([b"x"], rights(evil.fileno()), flags)
                    if then: connection.sendall(then)
                    open_ones.append(connection)
                for variable in ("TORPOR_MANAGER_SOCKET", "TORPOR_APP_SOCKET"):
                    send(variable)
                    # More than is read at once, so that the first connection is closed with the rest unread.
                    send(variable, before=bytes(100) + b"x" * 70000)
                    # Out of band.
                    send(variable, flags=socket.MSG_OOB, then=b"{")
                # Behind a call.
                send("TORPOR_APP_SOCKET", before=b'{"method":"io.torpor.App.Attach","more":true}' + bytes(1))
                open_ones.pop().close()
                tp.record("sent")
                tp.wait()
                """
        try attack(program, keys: "user = \"nobody\"\n", environment: ["TORPOR_TEST_OLD_KERNEL": "1"]) { daemon in
            try daemon.eventually("it is ready") {
                let status = try daemon.summary("evil").status
                try #require(status?.hasPrefix("no ") != true, "the machine has \(status ?? "") for users")
                return status == "ready"
            }
            let (torpord, keeper) = try (daemon.torpord(), ProcFS.stat(daemon.torpord()).parent)
            daemon.touch("rec.evil")
            try File.setMode(daemon.directory + "/rec.evil", 0o666)
            // torpord reads when the app has let go of all: otherwise the app might be the last.
            kill(torpord, SIGSTOP)
            defer { kill(torpord, SIGCONT) }
            daemon.touch("go")
            let end = Clock.monotonic() + Daemon.bound
            while daemon.records("evil") != ["sent"], Clock.monotonic() < end { usleep(5000) }
            #expect(daemon.records("evil") == ["sent"])
            kill(torpord, SIGCONT)
            try daemon.eventually("other processes wait for them") { try closers(keeper) > 0 }
            try expectUnharmed(daemon, torpord, keeper)
            #expect(try closers(keeper) <= 4, "one user keeps few of them busy")
            try daemon.done(.stop, "evil")
            try daemon.eventually("its end lets go of them") { try closers(keeper) == 0 }
        }
    }

    @Test(
        "Such a connection whose call is still answered holds no torpord that is killed or replaced",
        .enabled(if: DescriptorTests.letGoWaits, "needs root, FUSE and Linux 6.16"),
        arguments: [SIGKILL, SIGUSR2]
    )
    func unread(signal: Int32) throws {
        let program =
            Self.hiding
                + """

                hide(1)
                call = b'{"method":"io.torpor.Manager.Events","parameters":{"follow":true},"more":true}'
                reply = b'"error"'
                # It is refused until its group is known to be one of readers.
                while b'"error"' in reply:
                    connection = socket.socket(socket.AF_UNIX)
                    connection.connect(os.environ["TORPOR_MANAGER_SOCKET"])
                    connection.sendall(call + bytes(1))
                    reply = connection.recv(1)
                    while reply and not reply.endswith(bytes(1)): reply += connection.recv(65536)
                # Nothing more is read until the call is answered, which it never is.
                with hiding.pop() as evil: connection.sendmsg([b"x"], rights(evil.fileno()))
                tp.notify("READY=1\\nSTATUS=sent")
                tp.wait()
                """
        let toml = "readers = [\"nogroup\"]\n" + Self.toml("user = \"nobody\"\n")
        let environment = ["TORPOR_TEST_OLD_KERNEL": "1"]
        try withDaemon(toml, files: ["app.py": program], environment: environment) { daemon in
            try daemon.eventually("it has sent it") {
                let status = try daemon.summary("evil").status
                try #require(status?.hasPrefix("no ") != true, "the machine has \(status ?? "") for users")
                return status == "sent"
            }
            let old = try daemon.torpord()
            let keeper = try ProcFS.stat(old).parent
            kill(old, signal)
            try daemon.eventually("another torpord runs") { (try? daemon.torpord()).map { $0 != old } ?? false }
            try daemon.waitUntilItAnswers()
            try expectUnharmed(daemon, try daemon.torpord(), keeper)
            #expect(try daemon.summary("evil").status == "sent")
            // What waits is torpord's own exit, or the process that has the connection from it.
            if signal == SIGUSR2 { try daemon.eventually("torpor-closer has it") { try closers(keeper) == 1 } }
            #expect(File.exists("/proc/\(old)") == (signal == SIGKILL))
            try daemon.done(.stop, "evil")
            try daemon.eventually("its end lets go of it") { try closers(keeper) == 0 && !File.exists("/proc/\(old)") }
        }
    }

    /// A connection with unsent data that lingers for an hour.
    private static let lingering = """
        import socket, struct, tp
        listener = socket.create_server(("127.0.0.1", 0))
        def connection():
            one = socket.create_connection(listener.getsockname())
            other, _ = listener.accept()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
            one.setblocking(False)
            try:
                while True: one.send(bytes(65536))
            except BlockingIOError:
                pass
            return one.detach(), other
        others = []
        # Whoever exits does not linger: so the app itself never closes one last.
        def send(text):
            one, other = connection()
            others.append(other)
            heard, bell = tp.os.pipe()
            child = tp.os.fork()
            if child == 0:
                tp.os.read(heard, 1)
                tp.notify(text, [one])
                tp.os._exit(0)
            tp.os.close(one)
            tp.os.write(bell, b"1")
            tp.os.waitpid(child, 0)
            for end in (heard, bell): tp.os.close(end)
        """

    @Test("A connection that lingers holds nobody: dropped unread, stored and let go of, stored twice")
    func lingering() throws {
        let program =
            Self.lingering
                + """

                for round in range(5):
                    send("STATUS=round %d" % round)
                    send("FDSTORE=1\\nFDNAME=lingers")
                    tp.notify("FDSTOREREMOVE=1\\nFDNAME=lingers")
                for round in range(5): send("FDSTORE=1\\nFDNAME=kept")
                tp.notify("FDSTOREREMOVE=1\\nFDNAME=kept")
                tp.notify("READY=1\\nSTATUS=through")
                tp.wait()
                """
        try attack(program) { daemon in
            try daemon.waitFor("evil", "active")
            #expect(try daemon.summary("evil").status == "through")
        }
    }

    @Test("One that lingers in the queue of a Unix socket holds nobody when that socket is bound again or removed")
    func queued() throws {
        let program =
            Self.lingering
                + """

                path = tp.HERE + "/sock"
                def queue():
                    one, other = connection()
                    others.append(other)
                    with socket.socket(socket.AF_UNIX) as client:
                        client.connect(path)
                        client.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, tp.array.array("i", [one]))])
                queue()
                tp.record("queued")
                tp.notify("READY=1")
                tp.wait()
                """
        let keys = "sockets = [{ stream = \"@D/sock\" }]"
        try attack(program, keys: keys) { daemon in
            for round in 1...3 {
                try daemon.waitFor("evil", "active")
                #expect(daemon.records("evil").count == round)
                // The next launch binds the socket again, and closes the old one.
                try File.remove(daemon.directory + "/sock")
                try daemon.done(.restart, "evil")
            }
            try daemon.waitFor("evil", "active")
            try daemon.apply("[apps.web]\nexec = [\"/bin/sleep\", \"1000\"]\nlaunch = \"on-demand\"")
            try daemon.eventually("it is removed") { try daemon.list().map(\.name) == ["web"] }
        }
    }

    @Test("The process that opens them keeps no capability but one, and only the system calls that it needs")
    func confined() throws {
        let program = """
            import time, tp
            tp.notify("READY=1")
            while True:
                tp.notify("FDSTORE=1\\nFDNAME=one", [tp.os.memfd_create("one")])
                tp.notify("FDSTOREREMOVE=1\\nFDNAME=one")
                time.sleep(0.05)
            """
        try attack(program) { daemon in
            let keeper = try ProcFS.stat(try daemon.torpord()).parent
            var fields: [String] = []
            try daemon.eventually("it runs confined") {
                for child in try ProcFS.children(keeper) {
                    guard (try? ProcFS.statusField(child, "Name")) == "torpor-receive" else { continue }
                    fields = ["NoNewPrivs", "Seccomp", "CapEff", "CapPrm", "CapInh"].map { name in
                        (try? ProcFS.statusField(child, name)) ?? ""
                    }
                }
                return fields.prefix(2) == ["1", "2"] && !fields.contains("")
            }
            for field in fields.dropFirst(2) {
                let capabilities = try #require(UInt64(field, radix: 16))
                // CAP_SYS_RESOURCE has the number 24.
                #expect(capabilities & ~(1 << 24) == 0, "\(field)")
            }
        }
    }

    @Test("What an app sends as the last thing before it ends is stored")
    func atItsEnd() throws {
        let program = """
            import tp
            tp.record("names " + tp.os.environ.get("LISTEN_FDNAMES", "none"))
            if "LISTEN_FDS" in tp.os.environ:
                tp.notify("READY=1")
                tp.wait()
            for number in range(20):
                tp.notify("FDSTORE=1\\nFDNAME=n%d" % number, [tp.os.memfd_create("last")])
            tp.os._exit(1)
            """
        let toml = Self.toml().replacing("restart = \"never\"", with: "restart = \"on-failure\"")
        try withDaemon(toml, files: ["app.py": program]) { daemon in
            try daemon.waitFor("evil", "active")
            let names = (0..<20).map { "n\($0)" }.joined(separator: ":")
            #expect(daemon.records("evil") == ["names none", "names \(names)"])
        }
    }
}
