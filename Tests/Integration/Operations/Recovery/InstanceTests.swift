// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Linux
import Testing
import TorporAPI

@Suite("Recovery: instances that count from another number than 1") struct InstanceTests {
    private static func toml(first: Int) -> String {
        """
        [apps.worker]
        exec = ["\(Built.path("torpor-test-app"))"]
        instances = 2
        instance_first = \(first)
        """
    }

    @Test("The next torpord finds each, and a changed first number is one that comes and one that goes")
    func found() throws {
        try withDaemon(Self.toml(first: 0)) { daemon throws in
            let names = ["worker@0", "worker@1"]
            for name in names { try daemon.waitFor(name, "active") }
            #expect(try daemon.list().map(\.name) == names)
            let pids = try names.map { try daemon.summary($0).pid }
            for (name, number) in zip(names, ["0", "1"]) {
                let pid = try #require(daemon.processes(of: name).first)
                #expect(try ProcFS.environment(pid, "TORPOR_INSTANCE") == number)
            }
            try daemon.replaceTorpord()
            #expect(try names.map { try daemon.summary($0).pid } == pids)

            _ = try daemon.apply(Self.toml(first: 1))
            try daemon.waitFor("worker@2", "active")
            try daemon.eventually("worker@0 is gone") { try daemon.list().map(\.name) == ["worker@1", "worker@2"] }
            #expect(try daemon.summary("worker@1").pid == pids[1])
        }
    }
}
