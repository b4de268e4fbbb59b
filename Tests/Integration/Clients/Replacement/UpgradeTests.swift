// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("torpor upgrade") struct UpgradeTests {
    private static let toml = """
        [apps.count]
        exec = ["/usr/bin/python3", "-S", "@D/count.py"]
        log_max_size = "64KiB"
        log_max_files = 1000
        [apps.web]
        exec = ["/bin/sleep", "1000"]
        [apps.idle]
        exec = ["/bin/sleep", "1000"]
        launch = "on-demand"
        """
    private static let files = [
        "count.py": """
        import os, sys, tp
        number = 0
        while not os.path.exists(tp.HERE + "/enough"):
            for _ in range(20):
                sys.stdout.write("line %d\\n" % number)
                number += 1
            sys.stdout.flush()
            tp.time.sleep(0.01)
        sys.stdout.write("end\\n")
        sys.stdout.flush()
        tp.wait()
        """
    ]

    @Test("again and again: no app is touched, no line is lost, and who waits goes on waiting")
    func again() throws {
        try withDaemon(Self.toml, files: Self.files) { daemon throws in
            try daemon.waitFor("count", "active")
            try daemon.done(.suspend, "web")
            let before = try daemon.list()
            let logs = try Client(daemon, "logs", "-f", "-n", "1000000", "count")
            let wait = try Client(daemon, "wait", "web", "--for", "active")
            for round in 1...10 {
                let upgrade = try Client(daemon, "upgrade")
                #expect(try upgrade.finish(daemon) == 0, "\(upgrade.output)")
                let sentence = upgrade.output.replacing(/in [0-9]+ ms/, with: "in N ms")
                let version = TorporVersion.text
                let expected =
                    "torpord \(version) → \(version) (instance \(round) → \(round + 1)) in N ms, 2 apps untouched\n"
                #expect(sentence == expected)
            }
            let after = try daemon.list()
            #expect(after.map(\.pid) == before.map(\.pid) && after.map(\.state) == before.map(\.state))
            #expect(after.map(\.incarnation) == before.map(\.incarnation))
            #expect(wait.reap() == nil)
            try daemon.done(.foreground, "web")
            #expect(try wait.finish(daemon) == 0)
            daemon.touch("enough")
            // On a busy machine there are many lines by now.
            try daemon.eventually("the last line comes", within: .seconds(180)) { logs.output.hasSuffix("\nend\n") }
            let wrong = logs.lines.dropLast().enumerated().first { $0.element != "line \($0.offset)" }
            #expect(wrong == nil, "the first that is not where it belongs")
        }
    }

    @Test("two at once: one is carried out, the other refused with a sentence")
    func two() throws {
        try withDaemon(Self.toml, files: Self.files) { daemon throws in
            let old = try daemon.torpord()
            // Both lie there when it goes on.
            kill(old, SIGSTOP)
            let message = ManagerRequest.upgrade.call.json.serialised() + [0]
            let sockets = try (0..<2).map { _ in try Sockets.connect(path: daemon.socket) }
            for socket in sockets { _ = try Sockets.send(socket.raw, message, wait: true) }
            kill(old, SIGCONT)
            let replies = try sockets.map { socket in
                var framer = MessageFramer()
                while true {
                    if let message = try framer.next() {
                        return try UpgradeReply(json: VarlinkResponse(json: JSON.parse(message)).parameters)
                    }
                    guard try Descriptor.wait(socket.raw, timeout: Daemon.bound),
                        let bytes = try Descriptor.read(socket.raw, maximum: 4_096), !bytes.isEmpty
                    else { throw Trouble("no reply came") }
                    framer.append(bytes[...])
                }
            }
            #expect(replies.count { $0.ok } == 1)
            let refusal = replies.first { !$0.ok }?.message
            #expect(refusal == "an upgrade is under way already: wait until it is done")
            try daemon.eventually("the next one runs") { (try? daemon.torpord()).map { $0 != old } ?? false }
            try daemon.waitUntilItAnswers()
        }
    }

    @Test("a program that is not there is not upgraded to, and the one that runs goes on")
    func noProgram() throws {
        // A copy that can be taken away.
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for name in ["torpord", "torpor-keeper"] {
            try Spawn.lock.withLock {
                try copyProgram(Built.path(name), to: folder + "/" + name)
            }
        }
        let daemon = try Daemon(Self.toml, files: Self.files, program: folder + "/torpord")
        try daemon.waitUntilItAnswers()
        let pid = try daemon.torpord()
        try FileManager.default.removeItem(atPath: folder + "/torpord")
        let upgrade = try Client(daemon, "upgrade")
        #expect(try upgrade.finish(daemon) == 1)
        #expect(upgrade.output.hasPrefix("torpor: there is no program at \(folder)/torpord to upgrade to"))
        #expect(try daemon.torpord() == pid)
        try daemon.stop()
    }
}
