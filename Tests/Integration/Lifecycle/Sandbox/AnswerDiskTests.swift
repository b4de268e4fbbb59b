// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Dispatch
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("Answers to apps on a full disk", .enabled(if: Users.isRoot, "only root can mount")) struct AnswerDiskTests {
    private static let toml = """
        [apps.door]
        exec = ["/bin/sleep", "1000"]
        launch = "on-demand"
        sandbox = true
        [apps.door.permissions]
        camera = { purpose = "Sees" }
        network = { purpose = "Asks" }
        gpu = { purpose = "Draws" }
        """

    private static func answer(_ socket: String, _ answer: PermissionVerdict, _ name: String) -> String {
        let request = AnswerPermissionsRequest(app: "door", names: [name], answer: answer)
        do {
            let client = try VarlinkClient(path: socket)
            _ = try client.call(ManagerRequest.answerPermissions(request).call, timeoutMilliseconds: 20_000)
            return "done"
        } catch {
            return "\(error)"
        }
    }

    private static func states(_ daemon: Daemon) throws -> [String] {
        try daemon.status("door").sandbox?.permissions.map { "\($0.name) \($0.state)" } ?? []
    }

    @Test("One that the disk refuses changes nothing, neither then nor when there is room again, and spoils no other")
    func full() throws {
        let script = "mkdir -p @D/s; mount -t tmpfs -o size=2m,mode=755 none @D/s && exec \"$@\""
        let daemon = try Daemon(Self.toml, wrapper: ["/usr/bin/unshare", "-m", "/bin/sh", "-ec", script, "sh"])
        try daemon.waitUntilItAnswers()
        let socket = daemon.socket
        #expect(Self.answer(socket, .allow, "gpu") == "done")
        let filler = "/proc/\(try daemon.livingTorpord())/root\(daemon.directory)/s/filler"
        // The disk takes what fits, and then nothing.
        _ = try Spawn.run(["/bin/dd", "if=/dev/zero", "of=\(filler)", "bs=4096"])
        let outcomes = Outcomes()
        DispatchQueue.concurrentPerform(iterations: 2) { number in
            outcomes.add(Self.answer(socket, .allow, number == 0 ? "camera" : "network"))
        }
        let refused = outcomes.all
        #expect(refused.count == 2 && refused.allSatisfy { $0.contains("nothing is changed") }, "\(refused)")
        #expect(Self.answer(socket, .deny, "gpu").contains("nothing is changed"))
        let before = ["camera asked", "gpu allowed", "network asked"]
        #expect(try Self.states(daemon) == before)
        try File.remove(filler)
        #expect(Self.answer(socket, .deny, "network") == "done")
        let after = ["camera asked", "gpu allowed", "network denied"]
        #expect(try Self.states(daemon) == after)
        try daemon.replaceTorpord()
        #expect(try Self.states(daemon) == after)
        try daemon.stop()
    }

    private final class Outcomes: @unchecked Sendable {
        private let lock = NSLock()
        private var outcomes: [String] = []

        var all: [String] { lock.withLock { outcomes } }

        func add(_ outcome: String) { lock.withLock { outcomes.append(outcome) } }
    }
}
