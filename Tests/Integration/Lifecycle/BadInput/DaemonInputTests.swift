// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("What a daemon may be given from outside") struct DaemonInputTests {
    static let toml = """
        [apps.web]
        exec = ["/bin/sleep", "1000"]
        """

    @Test("A second torpord on the same directory is refused and names the first")
    func second() throws {
        try withDaemon(Self.toml) { daemon throws in
            let (code, output) = try Spawn.run([Built.path("torpord"), "--config", daemon.directory + "/torpor.toml"])
            #expect(code != 0)
            #expect(output.contains("\(daemon.pid)"), "\(output)")
            #expect(output.contains("another torpord"), "\(output)")
            #expect(try daemon.list().count == 1)
        }
    }

    @Test("A directory too long for a socket is refused in a sentence")
    func longPath() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let long = folder + "/" + String(repeating: "x", count: 120)
        let toml = """
            [supervisor]
            runtime_directory = "\(long)"
            state_directory = "\(folder)/s"
            log_directory = "\(folder)/l"
            """
        try File.write(folder + "/torpor.toml", toml)
        let (code, output) = try Spawn.run([Built.path("torpord"), "--config", folder + "/torpor.toml"])
        #expect(code != 0)
        #expect(output.contains("107"), "\(output)")
        #expect(output.contains("socket"), "\(output)")
    }

    @Test(
        "A directory that another user has made is refused, and the command does not ask there",
        .enabled(if: Users.isRoot, "another user is needed, and only root can make files of another")
    )
    func othersDirectory() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try File.makeDirectories(folder + "/r/torpor")
        chown(folder + "/r/torpor", 65534, 65534)
        try File.write(folder + "/torpor.toml", Self.toml)
        let words = ["--config", folder + "/torpor.toml"]
        let place = ["RUNTIME_DIRECTORY": folder + "/r/torpor", "HOME": folder]
        let (code, output) = try Spawn.run([Built.path("torpord")] + words, environment: place)
        #expect(code != 0 && output.contains("belongs to user 65534"), "\(output)")
        let impostor = try Sockets.listen(path: folder + "/r/torpor/io.torpor")
        _ = try Spawn.run([Built.path("torpor"), "list"], environment: place)
        #expect(try Sockets.accept(impostor.raw) == nil)
    }

    @Test("A configuration that is wrong starts nothing and says everything that is wrong")
    func wrong() throws {
        let (code, output) = try LaunchFailureTests.check(
            "[apps.a]\nexec = [\"/bin/true\"]\nrestrat = \"never\"\ngrace = \"soon\"\n[apps.b]\nrequires = [\"nobody\"]\n"
        )
        #expect(code == 2)
        for word in ["restrat", "restart", "grace", "nobody", "exec is missing"] {
            #expect(output.contains(word), "\(word) in \(output)")
        }
    }

    /// A raw connection.
    private func open(_ daemon: Daemon) throws -> Descriptor { try Sockets.connect(path: daemon.socket) }

    /// Writes what is taken at once or within the bound; false when the other side has closed.
    private func write(_ socket: Descriptor, _ bytes: [UInt8]) -> Bool {
        (try? Sockets.send(socket.raw, bytes, wait: true)) == bytes.count
    }

    @Test("Garbage, half a message and a client that never reads cost nobody else an answer")
    func clients() throws {
        try withDaemon(Self.toml) { daemon throws in
            try daemon.waitFor("web", "active")
            let garbage = try open(daemon)
            _ = write(garbage, [UInt8](repeating: 0xff, count: 1000) + [0])
            let half = try open(daemon)
            _ = write(half, Array(#"{"method":"io.torpor.Manager.Li"#.utf8))
            let deep = try open(daemon)
            _ = write(deep, [UInt8](repeating: UInt8(ascii: "["), count: 50_000) + [0])
            let wrong = try open(daemon)
            _ = write(wrong, Array(#"{"method":"io.torpor.Manager.Stop","parameters":{"apps":"web"}}"#.utf8) + [0])
            #expect(try daemon.summary("web").state == "active")

            // Never reads: asks for more and more.
            let deaf = try open(daemon)
            let call = Array(#"{"method":"io.torpor.Manager.Status","parameters":{"app":"web"}}"#.utf8) + [0]
            try Descriptor.setNonBlocking(deaf.raw)
            for _ in 0..<2_000 where !write(deaf, call) { break }
            #expect(try daemon.summary("web").state == "active")
            try daemon.done(.restart, "web")
            for client in [garbage, half, deep, wrong, deaf] { client.close() }
            #expect(try daemon.summary("web").state == "active")
        }
    }

    @Test("A message of 100 MiB is refused before it is taken in, while another client is served")
    func huge() throws {
        try withDaemon(Self.toml) { daemon throws in
            let pid = try daemon.torpord()
            let client = try open(daemon)
            let chunk = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 20)
            var sent = 0
            while sent < 100, write(client, chunk) {
                sent += 1
                if sent % 20 == 0 { #expect(try daemon.list().count == 1) }
            }
            #expect(sent < 100, "nobody refused it")
            client.close()
            #expect(try daemon.list().count == 1)
            #expect(try daemon.torpord() == pid)
            let peak = try ProcFS.statusField(pid, "VmHWM").flatMap { Int($0.split(separator: " ")[0]) } ?? 0
            #expect(peak < 100_000, "it grew to \(peak) KiB")
        }
    }

    @Test("A client that goes away in the midst of a verb leaves the verb to be carried out")
    func goneClient() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            ready = { file = "@D/go", interval = "10ms" }
            launch_deadline = "1min"
            """
        try withDaemon(toml) { daemon throws in
            let client = try open(daemon)
            _ = write(
                client,
                Array(#"{"method":"io.torpor.Manager.Start","parameters":{"apps":["web"]},"more":true}"#.utf8) + [0]
            )
            try daemon.eventually("it is launched") { try daemon.summary("web").transition == "launching" }
            client.close()
            try File.write(daemon.directory + "/go", "")
            try daemon.waitFor("web", "active")
        }
    }

    @Test("Many clients at once are each answered")
    func many() throws {
        try withDaemon(Self.toml) { daemon throws in
            var clients: [VarlinkClient] = []
            for _ in 0..<100 { clients.append(try daemon.connect()) }
            for client in clients.reversed() {
                let reply = try client.call(ManagerRequest.list.call, timeoutMilliseconds: 10_000)
                #expect(reply["apps"]?.arrayValue?.count == 1)
            }
        }
    }
}
