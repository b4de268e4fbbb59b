// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestMachine
import Testing

extension Booted {
    @Suite("A user without rights", .serialized) struct IntruderTests {
        /// An app of that user, which attacks from within; its files are in a folder of its own.
        private static let evil = """
            [apps.evil]
            exec = ["/usr/local/bin/intruder", "30", "/run/torpor/io.torpor"]
            user = "nobody"
            ready = "notify"
            restart = "always"
            restart_backoff = { initial = "50ms", cap = "200ms", limit = 10000 }
            grace = "500ms"
            stdin = "/var/tmp/t/evil/in"
            stderr = "/var/tmp/t/evil/err"
            environment_file = "-/var/tmp/t/evil/env"

            """

        /// The container has no compiler.
        private func install(on machine: Container) throws {
            let program = NSTemporaryDirectory() + "intruder-\(UUID().uuidString)"
            defer { try? FileManager.default.removeItem(atPath: program) }
            let source = Sources.path("Tests/Support/Intruder/intruder.c")
            let compiler = try Process.run(
                URL(fileURLWithPath: "/usr/bin/cc"),
                arguments: ["-std=gnu11", "-O1", "-static", "-o", program, source]
            )
            compiler.waitUntilExit()
            try #require(compiler.terminationStatus == 0, "\(source) does not compile")
            try machine.put(program, "/usr/local/bin/intruder")
            try machine.done("chmod 755 /usr/local/bin/intruder; mkdir /var/tmp/t/evil; chown nobody /var/tmp/t/evil")
        }

        private func descriptors(_ machine: Container, _ pid: Int) throws -> Int {
            Int(try machine.done("ls /proc/\(pid)/fd | wc -l")) ?? .max
        }

        @Test("Floods, marks, links, descriptors and FUSE end nothing, replace nothing and gain nothing")
        func attacked() throws {
            let machine = try service(app("web") + Self.evil, start: false)
            try install(on: machine)
            let shadow = try machine.done("sha256sum /etc/shadow; ls -A /root")
            try machine.done("systemctl start torpord")
            try machine.waitFor("web", in: "active")
            let keeper = try machine.mainPid("torpord")
            let torpord = try #require(try machine.torpord(below: keeper))
            let before = try descriptors(machine, torpord)
            try expectUntouched(machine, ["web"]) {
                let outside = "/usr/local/bin/intruder 20 /run/torpor/io.torpor /var/tmp/t/evil"
                try machine.done("setpriv --reuid nobody --regid nogroup --clear-groups \(outside) >/dev/null 2>&1 &")
                for _ in 0..<8 {
                    // It may fail: its files are what the intruder has made of them.
                    try machine.run("torpor restart evil --timeout 5s")
                    try machine.done("torpor list")
                    // The manager of the machine is not held up either: it has copies of what the intruder stores.
                    try machine.done("timeout 20 systemctl is-active torpord")
                }
                // Between its words are bytes of zero, which grep's dot does not match.
                let isThere =
                    "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -q '[/]usr/local/bin/intruder 20'"
                try machine.eventually("the intruder has ended", within: 60) { try !machine.run(isThere).ok }
                try machine.done("torpor logs evil -n 100000 | grep -q 'has stored what lingers'")
                try machine.done("timeout 20 systemctl is-active torpord")
                try machine.done("torpor kill evil")
            }
            #expect(try machine.mainPid("torpord") == keeper)
            #expect(try machine.torpord(below: keeper) == torpord)
            #expect(try machine.done("sha256sum /etc/shadow; ls -A /root") == shadow)
            // A hundred may be stored for the app's next launch.
            try machine.eventually("descriptors are given back") { try descriptors(machine, torpord) <= before + 120 }
            try expectSupervised(machine, restarts: "web", stops: "web")
        }
    }
}
