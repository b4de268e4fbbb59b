// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI

@Suite("Sockets that cannot be bound") struct SocketTroubleTests {
    private static func app(_ address: String, _ more: String = "") -> String {
        """
        [apps.web]
        \(SocketServer.exec)
        launch = "on-demand"
        \(more)
        sockets = [{ stream = "\(address)" }]
        """
    }

    @Test("an address in use is said, the app is not launched without it, and both mend themselves")
    func inUse() throws {
        let port = try TestAddress.port()
        let other = try Sockets.listenTCP(address: "127.0.0.1", port: port)
        try withDaemon(Self.app("127.0.0.1:\(port)", "restart = \"on-failure\""), files: SocketServer.files) { daemon in
            try daemon.waitForEvent("web", "cannot listen at 127.0.0.1:\(port): the address is in use")
            let result = try daemon.verb(.start, "web") { $0.wait = false }
            #expect(result.ok)
            try daemon.eventually("its launch was refused") {
                try daemon.events("web").contains { $0.kind == "exit" && $0.text.contains("the address is in use") }
            }
            other.close()
            try daemon.waitForEvent("web", "listens at 127.0.0.1:\(port) now")
            try daemon.waitFor("web", "active")
            #expect(try daemon.answer(daemon.connection(port, sending: "x"))?.text == "x")
        }
    }

    @Test("it is bound and wakes an app that nobody launches, as soon as the address is free")
    func becomesFree() throws {
        let port = try TestAddress.port()
        let other = try Sockets.listenTCP(address: "127.0.0.1", port: port)
        try withDaemon(Self.app("127.0.0.1:\(port)"), files: SocketServer.files) { daemon in
            try daemon.waitForEvent("web", "the address is in use")
            other.close()
            try daemon.waitForEvent("web", "listens at")
            #expect(try daemon.answer(daemon.connection(port, sending: "x"))?.text == "x")
        }
    }

    @Test("a socket that an app shuts down when it ends is bound anew for the next one", arguments: ["tcp", "unix"])
    func shutDown(kind: String) throws {
        let program = """
            import os, socket
            listener = socket.socket(fileno=3)
            peer, _ = listener.accept()
            text = peer.recv(100).decode()
            peer.send(("%d web %s" % (os.getpid(), text)).encode())
            peer.close()
            listener.shutdown(socket.SHUT_RDWR)
            """
        let port = try TestAddress.port()
        let address = kind == "tcp" ? "127.0.0.1:\(port)" : "@D/web.sock"
        let files = SocketServer.files.merging(["server.py": program]) { $1 }
        try withDaemon(Self.app(address, "restart = \"never\""), files: files) { daemon in
            var pids: Set<Int32> = []
            for round in 1...4 {
                let place = kind == "tcp" ? address : daemon.directory + "/web.sock"
                pids.insert(try daemon.ask("stream", place).pid)
                #expect(pids.count == round)
                try daemon.eventually("it has ended, and somebody listens") {
                    let isOver = try daemon.summary("web").pid == nil
                    let status = try daemon.status("web")
                    return isOver && status.sockets.allSatisfy { $0.trouble == nil }
                }
            }
            // Nobody was launched but for a connection.
            #expect(try daemon.events("web").filter { $0.text.contains("launched as process") }.count == 4)
        }
    }

    @Test("of an app that has failed clients are refused, until it is reset or started")
    func failed() throws {
        let port = try TestAddress.port()
        let toml = """
            [apps.web]
            exec = ["/bin/sh", "-c", "test -e @D/good && exec /usr/bin/python3 -S @D/server.py; exit 3"]
            restart = "on-failure"
            restart_backoff = { initial = "0s", limit = 1 }
            launch = "on-demand"
            sockets = [{ stream = "127.0.0.1:\(port)" }, { stream = "@D/web.sock" }]
            """
        try withDaemon(toml, files: SocketServer.files) { daemon in
            let waiting = try daemon.connection(port, sending: "x")
            try daemon.eventually("it was given up") { try daemon.summary("web").failed }
            // What waited is told too.
            try daemon.eventually("the connection is ended") {
                Descriptor.readiness(waiting.raw).contains(.hangup)
            }
            #expect(throws: (any Error).self) { _ = try daemon.connection(port, sending: "x") }
            #expect(!File.exists(daemon.directory + "/web.sock"))
            try daemon.waitForEvent("web", "no longer listens at 127.0.0.1:\(port), since it has failed")
            let status = try daemon.status("web")
            #expect(status.wokenBy.isEmpty)
            #expect(status.notWokenBy.contains("connections to 127.0.0.1:\(port) (it has failed)"))
            #expect(status.sockets.allSatisfy { $0.trouble?.contains("torpor reset web") == true })
            // Another torpord knows that too.
            try daemon.replaceTorpord()
            #expect(try daemon.status("web").sockets.allSatisfy { $0.trouble?.contains("torpor reset web") == true })
            #expect(throws: (any Error).self) { _ = try daemon.connection(port, sending: "x") }

            daemon.touch("good")
            try daemon.done(.reset, "web")
            try daemon.waitForEvent("web", "listens at 127.0.0.1:\(port) now")
            #expect(try daemon.answer(daemon.connection(port, sending: "x"))?.text == "x")
        }
    }

    @Test("of an app that requires one that has failed clients are refused, until both are started")
    func missing() throws {
        let port = try TestAddress.port()
        let toml = """
            [apps.base]
            exec = ["/bin/sh", "-c", "test -e @D/good && exec /usr/bin/python3 -S @D/base.py; exit 3"]
            ready = "notify"
            restart = "on-failure"
            restart_backoff = { initial = "0s", limit = 1 }
            launch = "on-demand"
            [apps.web]
            exec = ["/usr/bin/python3", "-S", "@D/server.py"]
            requires = ["base"]
            launch = "on-demand"
            sockets = [{ stream = "127.0.0.1:\(port)" }]
            """
        var files = SocketServer.files
        files["base.py"] = "from tp import *\nnotify('READY=1')\nwait()\n"
        try withDaemon(toml, files: files) { daemon in
            let waiting = try daemon.connection(port, sending: "x")
            try daemon.eventually("it was given up") { try daemon.summary("base").failed }
            try daemon.eventually("the connection is ended") {
                Descriptor.readiness(waiting.raw).contains(.hangup)
            }
            let why = "no longer listens at 127.0.0.1:\(port), since base, which it requires, has failed"
            try daemon.waitForEvent("web", why)
            let status = try daemon.status("web")
            #expect(status.wokenBy.isEmpty)
            let words = "connections to 127.0.0.1:\(port) (it requires base, which has failed)"
            #expect(status.notWokenBy.contains(words), "\(status.notWokenBy)")
            try daemon.replaceTorpord()
            #expect(throws: (any Error).self) { _ = try daemon.connection(port, sending: "x") }
            #expect(try daemon.status("web").sockets.first?.trouble?.contains("torpor start web") == true)

            daemon.touch("good")
            try daemon.done(.start, "web")
            #expect(try daemon.answer(daemon.connection(port, sending: "x"))?.text == "x")
        }
    }

    @Test("who suspends an app for which something waits is told so, not that it could not be stopped")
    func suspendedAndWoken() throws {
        let port = try TestAddress.port()
        let toml = """
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            launch = "background"
            wake_storm = { limit = 0 }
            sockets = [{ stream = "127.0.0.1:\(port)" }]
            """
        try withDaemon(toml) { daemon in
            try daemon.waitFor("web", "background")
            let waiting = try daemon.connection(port, sending: "x")
            for _ in 0..<10 {
                let result = try daemon.verb(.suspend, "web")
                #expect(result.ok || result.error == "overtaken", "\(result)")
                try daemon.waitFor("web", "background")
            }
            withExtendedLifetime(waiting) {}
        }
    }

    @Test("what an earlier program left at a path is replaced, what somebody uses is not")
    func paths() throws {
        let toml =
            Self.app("@D/a.sock") + """

                [apps.used]
                \(SocketServer.exec)
                launch = "on-demand"
                sockets = [{ stream = "@D/used.sock" }]
                [apps.file]
                \(SocketServer.exec)
                launch = "on-demand"
                sockets = [{ stream = "@D/file.sock" }]
                """
        let daemon = try Daemon(
            "[apps.none]\nexec = [\"/bin/true\"]\nlaunch = \"on-demand\"",
            files: SocketServer.files
        )
        try daemon.waitUntilItAnswers()
        _ = try Sockets.listen(path: daemon.directory + "/a.sock").withRaw { $0 }
        let used = try Sockets.listen(path: daemon.directory + "/used.sock")
        try File.write(daemon.directory + "/file.sock", "mine")
        _ = try daemon.apply(toml)
        try daemon.waitForEvent("used", "another program listens there")
        try daemon.waitForEvent("file", "something that is not a socket is there: remove it")
        #expect(try daemon.ask("stream", daemon.directory + "/a.sock").text == "hello")
        #expect(try File.readString(daemon.directory + "/file.sock") == "mine")
        withExtendedLifetime(used) {}
        try daemon.stop()
    }

    @Test("a change leaves a socket open whose address stays, and one that leaves is closed")
    func apply() throws {
        let (kept, leaving) = (try TestAddress.port(), try TestAddress.port())
        func toml(_ backlog: Int, _ others: String) -> String {
            """
            [apps.web]
            \(SocketServer.exec)
            launch = "on-demand"
            sockets = [{ stream = "127.0.0.1:\(kept)", backlog = \(backlog), wake = "none" }\(others)]
            """
        }
        let more = ", { stream = \"127.0.0.1:\(leaving)\" }, { stream = \"@D/x.sock\" }"
        try withDaemon(toml(5, more), files: SocketServer.files) { daemon in
            let waiting = try daemon.connection(kept, sending: "kept")
            _ = try daemon.connection(leaving, sending: "x")
            try daemon.waitFor("web", "background")
            try daemon.done(.stop, "web")
            let second = try daemon.connection(kept, sending: "second")
            _ = try daemon.apply(toml(9, ""))
            // The keeper closes its own a moment later.
            try daemon.eventually("it is closed") { (try? daemon.connection(leaving, sending: "x")) == nil }
            #expect(!File.exists(daemon.directory + "/x.sock"))
            try daemon.done(.start, "web")
            #expect(try daemon.answer(waiting)?.text == "kept")
            #expect(try daemon.answer(second)?.text == "second")
            // With the app its sockets go.
            _ = try daemon.apply("[apps.other]\nexec = [\"/bin/true\"]\nlaunch = \"on-demand\"")
            try daemon.eventually("the socket is closed") { (try? daemon.connection(kept, sending: "x")) == nil }
        }
    }

    @Test("another address at the same port replaces the old one", arguments: ["restarted", "stopped", "kept"])
    func overlapping(way: String) throws {
        let port = try TestAddress.port()
        let narrow = "\(TestAddress.host):\(port)"
        let wide = "0.0.0.0:\(port)"
        try withDaemon(Self.app(narrow), files: SocketServer.files) { daemon in
            let first = try daemon.ask("stream", narrow).pid
            if way == "stopped" { try daemon.done(.stop, "web") }
            let reply = try daemon.apply(Self.app(wide)) { $0.restart = way == "restarted" }
            #expect(reply.apps.allSatisfy { $0.ok }, "\(reply.lines)")
            if way == "kept" {
                // The running app still has the old one.
                #expect(try daemon.ask("stream", narrow).pid == first)
                #expect(try daemon.status("web").sockets.first?.trouble?.contains("still runs with \(narrow)") == true)
                try daemon.done(.restart, "web")
            }
            // A user has stopped it, so that no connection launches it.
            if way == "stopped" { try daemon.done(.start, "web") }
            let second = try daemon.ask("stream", narrow).pid
            #expect(second != first)
            #expect(try daemon.ask("stream", "127.0.0.1:\(port)").pid == second)
            #expect(try daemon.status("web").sockets.map(\.address) == [wide])
            #expect(try !daemon.events().contains { $0.text.contains("cannot listen") })
        }
    }

    @Test("apply says that a new address is in use") func applied() throws {
        let (port, busy) = (try TestAddress.port(), try TestAddress.port())
        let other = try Sockets.listenTCP(address: TestAddress.host, port: busy)
        try withDaemon(Self.app("\(TestAddress.host):\(port)"), files: SocketServer.files) { daemon in
            let reply = try daemon.apply(Self.app("\(TestAddress.host):\(busy)"))
            #expect(reply.apps.map(\.error) == ["not-launchable"])
            let sentence = ", but it cannot listen at \(TestAddress.host):\(busy): the address is in use"
            #expect(reply.lines.first?.contains(sentence) == true, "\(reply.lines)")
            other.close()
            try daemon.waitForEvent("web", "listens at")
        }
    }

    @Test("an app that listens by itself, and gets the address in sockets, is told to be restarted")
    func ownListener() throws {
        let port = try TestAddress.port()
        let program = """
            import os, socket, tp
            if "LISTEN_FDS" in os.environ:
                tp.record("passed")
            else:
                listener = socket.create_server(("\(TestAddress.host)", \(port)))
                tp.record("bound")
            tp.wait()
            """
        func app(_ more: String) -> String { "[apps.web]\n\(Scripts.python)\"@D/web.py\"]\n\(more)\n" }
        try withDaemon(app(""), files: ["web.py": program]) { daemon in
            try daemon.waitForRecord("web", "bound")
            let lines = try daemon.apply(app("sockets = [{ stream = \"\(TestAddress.host):\(port)\" }]")).lines
            let own = "if web itself listens there, ‘torpor restart web’ gives it over"
            #expect(lines.first?.contains("sockets") == true, "\(lines)")
            try daemon.waitForEvent("web", own)
            try daemon.done(.restart, "web")
            try daemon.waitForRecord("web", "passed")
        }
    }

    @Test("apply --restart leaves an app running whose new address another process has")
    func occupied() throws {
        let port = try TestAddress.port()
        let narrow = "\(TestAddress.host):\(port)"
        // Another address of the same port: only a socket on all addresses cannot listen beside it.
        let other = try Sockets.listenTCP(address: "127.0.0.1", port: port)
        try withDaemon(Self.app(narrow), files: SocketServer.files) { daemon in
            let first = try daemon.ask("stream", narrow).pid
            let reply = try daemon.apply(Self.app("0.0.0.0:\(port)")) { $0.restart = true }
            #expect(reply.apps.map(\.error) == ["not-launchable"])
            #expect(reply.lines.first?.contains("cannot listen at 0.0.0.0:\(port): the address is in use") == true)
            #expect(try daemon.ask("stream", narrow).pid == first)
            other.close()
            try daemon.done(.restart, "web")
            #expect(try daemon.ask("stream", "127.0.0.1:\(port)").pid != first)
        }
    }
}
