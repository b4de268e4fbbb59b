// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import PolicyLibraries
import TestAddresses
import Testing

@Suite("The policy Server, and clients whose traffic the kernel does not report") struct UntracedClientTests {
    private static let server = """
        import socket, sys
        if sys.argv[1] == "unix":
            s = socket.socket(socket.AF_UNIX)
            s.bind(sys.argv[2])
            s.listen()
            while True:
                c = s.accept()[0]
                c.recv(1)
                c.sendall(b"x")
                c.close()
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(("127.0.0.1", int(sys.argv[2])))
        while True: s.sendto(b"x", s.recvfrom(1)[1])
        """

    private static let client = """
        import socket, sys, time
        while True:
            isUnix = sys.argv[1] == "unix"
            c = socket.socket(socket.AF_UNIX) if isUnix else socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            c.settimeout(5)
            try:
                c.connect(sys.argv[2] if isUnix else ("127.0.0.1", int(sys.argv[2])))
                c.send(b"x")
                c.recv(1)
            except OSError:
                pass
            c.close()
            time.sleep(0.05)
        """

    @Test("An app that its clients wake as soon as it sleeps comes back to the foreground", arguments: ["unix", "udp"])
    func comesBack(kind: String) throws {
        let folder = try Libraries.makeFolder("untraced")
        try copyProgram(Built.path("libServerPolicy.so"), to: folder + "/libServerPolicy.so")
        try Self.server.write(toFile: folder + "/server.py", atomically: false, encoding: .utf8)
        let address = kind == "unix" ? folder + "/s" : "\(try TestAddress.port())"
        let policy = """
            path = "\(folder)/libServerPolicy.so"
            deadline = "5s"
            options = { idle_after = "1s", idle_cpu = "50%", suspend = true }
            """
        let app = """
            [apps.web]
            exec = ["/usr/bin/python3", "\(folder)/server.py", "\(kind)", "\(address)"]
            wake_on_connect = true
            background_time = "200ms"
            event_time = "2s"
            log = "null"

            """
        let client = Process()
        client.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        client.arguments = ["-c", Self.client, kind, address]
        try client.run()
        defer {
            // The test's threads block other signals, and a process that they start inherits that.
            kill(client.processIdentifier, SIGKILL)
            client.waitUntilExit()
        }
        try withDaemon(Governed.toml([("server", policy)], apps: app)) { daemon throws in
            try daemon.eventually("it comes back") {
                try daemon.policyEvents("web").contains { $0.contains("it is in use again: a client woke it ") }
            }
            try daemon.waitFor("web", "active")
        }
    }
}
