// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// What somebody on the machine does who has no rights here.
@Suite("Strangers") struct StrangerTests {
    private static let isRoot = Users.effectiveUID == 0
    private static let onlyRoot: Comment = "another user is needed, and only root can become one"

    /// Bytes.
    private static func resident(_ pid: Int32) throws -> UInt64 {
        try ProcFS.stat(pid).residentPages * UInt64(sysconf(Int32(_SC_PAGESIZE)))
    }

    private static func connect() -> String {
        """
        def connect():
            s = socket.socket(socket.AF_UNIX)
            s.connect(SOCKET)
            s.settimeout(60)
            return s

        """
    }

    @Test("A method's name of combining marks, or of flags, holds nobody up")
    func marks() throws {
        try withDaemon(Apps.sleeper("web")) { daemon in
            try daemon.waitFor("web", "active")
            let torpord = try daemon.torpord()
            for unit in ["\u{301}\u{323}", "\u{1f1e6}"] {
                let long = String(repeating: unit, count: 120_000)
                for call in [
                    "{\"method\":\"a\(long)\"}", "{\"a\(long)\":1,\"b\(long)\":2,\"method\":\"x\"}",
                    "{\"method\":\"io.torpor.Manager.Status\",\"parameters\":{\"name\":\"\(long)\"}}",
                ] {
                    let client = try Sockets.connect(path: daemon.socket)
                    try Descriptor.writeAll(client.raw, Array(call.utf8) + [0])
                    #expect(try daemon.status("web").summary.state == "active")
                }
            }
            #expect(try daemon.torpord() == torpord)
        }
    }

    @Test("A request has so many patterns at most, as each is compared with every app; names may be many")
    func patterns() throws {
        try withDaemon(Apps.sleeper("web")) { daemon in
            try daemon.waitFor("web", "active")
            func names(_ patterns: [String]) throws -> [String?] {
                try (daemon.call(.listOf(patterns))["apps"]?.arrayValue ?? []).map { $0["name"]?.stringValue }
            }
            #expect(try names([String](repeating: "web", count: 10_000)) == ["web"])
            #expect(try names([String](repeating: "w*", count: 64)) == ["web"])
            #expect {
                try names([String](repeating: "w*", count: 65))
            } throws: { error in
                guard case .service(let name, let parameters) = error as? VarlinkClientError else { return false }
                return name == VarlinkErrorName.invalidParameter && parameters["parameter"] == "apps"
            }
            // No name has as many bytes.
            #expect(throws: VarlinkClientError.self) { try names([String(repeating: "*", count: 200)]) }
        }
    }

    @Test("Who may ask nothing is told so, without a look at what it sends", .enabled(if: isRoot, onlyRoot))
    func unread() throws {
        try withDaemon(Apps.sleeper("web")) { daemon in
            let program = """
                s = connect()
                s.sendall(b"\\xff\\xfe this is no message, and it does not end")
                text = b""
                while True:
                    part = s.recv(65536)
                    if not part:
                        break
                    text += part
                print(text.decode())
                """
            let answer = try Stranger(Self.connect() + program, daemon).waitForEnd()
            #expect(answer.contains("io.torpor.Manager.NotPermitted"))
            #expect(answer.contains("readers, operators or posters"))
        }
    }

    @Test(
        "A thousand connections of one stranger shut nobody out, and halves of messages take no memory",
        .enabled(if: isRoot, onlyRoot)
    )
    func flood() throws {
        try withDaemon(Apps.sleeper("web")) { daemon in
            try daemon.waitFor("web", "active")
            let torpord = try daemon.torpord()
            _ = try daemon.status("web")
            let before = try Self.resident(torpord)
            let program = """
                import resource
                resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
                held, sent = [], 0
                for number in range(1100):
                    s = connect()
                    s.setblocking(False)
                    held.append(s)
                for s in held:
                    try:
                        for _ in range(64):
                            sent += s.send(b" " * 16384)
                    except OSError:
                        pass
                print("ready", flush=True)
                time.sleep(1000)
                """
            let stranger = try Stranger(Self.connect() + program, daemon)
            defer { stranger.end() }
            try stranger.waitUntilReady()
            for _ in 0..<20 { #expect(try daemon.status("web").summary.state == "active") }
            #expect(try Self.resident(torpord) < before + (48 << 20))
            #expect(try daemon.torpord() == torpord)
        }
    }

    @Test("Nobody but its own user can open the lock", .enabled(if: isRoot, onlyRoot))
    func lock() throws {
        try withDaemon(Apps.sleeper("web")) { daemon in
            let status = try File.status(daemon.runtime + "/lock")
            #expect(status.mode & 0o777 == 0o600 && status.uid == 0)
            let program = """
                try:
                    os.open(os.path.dirname(SOCKET) + "/lock", os.O_RDONLY)
                    print("opened")
                except PermissionError:
                    print("refused")
                """
            #expect(try Stranger(program, daemon).waitForEnd().contains("refused"))
        }
    }

    @Test("A lock of an earlier version, for which a stranger waited, is replaced", .enabled(if: isRoot, onlyRoot))
    func looseLock() throws {
        try withRecovery(Apps.sleeper("web")) { daemon in
            try daemon.waitFor("web", "active")
            let path = daemon.runtime + "/lock"
            var stranger: Stranger?
            defer { stranger?.end() }
            try daemon.lose(.both) {
                try File.remove(path)
                try File.write(path, "999999999\n", mode: 0o644)
                stranger = try Stranger(
                    "import fcntl\nlock = os.open(os.path.dirname(SOCKET) + '/lock', os.O_RDONLY)\n"
                        + "fcntl.flock(lock, fcntl.LOCK_EX)\nprint('ready', flush=True)\ntime.sleep(1000)",
                    daemon
                )
                try stranger?.waitUntilReady()
            }
            #expect(try File.status(path).mode & 0o777 == 0o600)
            // And so it is in the hands of whoever comes next.
            try daemon.lose(.both)
            try daemon.waitFor("web", "active")
        }
    }

    @Test("A process of another user that bears an app's name is not taken for the app", .enabled(if: isRoot, onlyRoot))
    func impostor() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            """
        try withRecovery(toml) { daemon in
            let impostor = try Stranger(
                "print('ready', flush=True)\ntime.sleep(1000)",
                daemon,
                environment: [
                    "TORPOR_APP": "web", "TORPOR_INCARNATION": "7", "TORPOR_MANAGER_SOCKET": daemon.socket,
                ]
            )
            defer { impostor.end() }
            try impostor.waitUntilReady()
            // Without the files of the runtime directory it is by their environment that processes are found.
            try daemon.lose(.both) { try File.removeTree(daemon.runtime) }
            let summary = try daemon.summary("web")
            #expect(summary.state == "not-running" && summary.pid == nil)
            try daemon.done(.start, "web")
            #expect(daemon.processes(of: "web").count == 1)
            try daemon.done(.kill, "web")
            #expect(Truth.isAlive(impostor.pid))
        }
    }
}

/// A program of the user nobody's, who is in no group that the configuration names.
private final class Stranger {
    let pid: Int32
    private let output: String

    init(_ program: String, _ daemon: Daemon, environment: [String: String] = [:]) throws {
        chmod(daemon.directory, 0o755)
        chmod(daemon.runtime, 0o755)
        output = daemon.directory + "/stranger.\(UInt32.random(in: 0...(.max)))"
        pid = try Spawn.start(
            [
                "/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-S", "-c",
                "import socket, os, sys, time\nSOCKET = \"\(daemon.socket)\"\n" + program,
            ],
            environment: environment,
            output: output
        )
    }

    var text: String { (try? File.readString(output)) ?? "" }

    func waitUntilReady() throws {
        let end = Clock.monotonic() + Daemon.bound
        while !text.contains("ready") {
            guard Clock.monotonic() < end, Truth.isAlive(pid) else {
                throw Trouble("the stranger came to nothing: \(text)")
            }
            usleep(2_000)
        }
    }

    func waitForEnd() throws -> String {
        let end = Clock.monotonic() + Daemon.bound
        var status: Int32 = 0
        while waitpid(pid, &status, WNOHANG) == 0 {
            guard Clock.monotonic() < end else { throw Trouble("the stranger does not end: \(text)") }
            usleep(2_000)
        }
        guard status == 0 else { throw Trouble("the stranger failed: \(text)") }
        return text
    }

    func end() {
        kill(pid, SIGKILL)
        var status: Int32 = 0
        waitpid(pid, &status, 0)
    }
}
