// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// What an app does that wants all there is.
@Suite("Greedy apps") struct GreedyAppTests {
    @Test("Descriptors that apps store leave torpord enough to answer, to launch, and to come back")
    func stores() throws {
        let program = """
            import tp
            for number in range(100):
                fd = tp.os.memfd_create("greedy")
                tp.notify("FDSTORE=1\\nFDNAME=n%d" % number, [fd])
                tp.os.close(fd)
            tp.notify("READY=1")
            tp.record("stored")
            tp.wait()
            """
        let greedy = (1...6).map { number in
            """
            [apps.greedy\(number)]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            ready = "notify"

            """
        }
        let toml = greedy.joined() + "[apps.web]\nexec = [\"/bin/sleep\", \"1000\"]\nlaunch = \"on-demand\"\n"
        let wrapper = ["/usr/bin/prlimit", "--nofile=512:512"]
        let daemon = try Daemon(toml, files: ["app.py": program], wrapper: wrapper)
        try daemon.waitUntilItAnswers()
        for number in 1...6 { try daemon.waitFor("greedy\(number)", "active") }
        let torpord = try daemon.torpord()
        #expect(try File.readString("/proc/\(torpord)/limits").contains("512                  512"))
        #expect((ProcFS.descriptorCount(torpord) ?? .max) < 384)
        try daemon.waitForEvent("greedy1", "its share of what the supervisor may open")
        try daemon.done(.start, "web")
        try daemon.done(.stop, "web")
        kill(torpord, SIGKILL)
        try daemon.eventually("another torpord runs") { ((try? daemon.torpord()) ?? torpord) != torpord }
        try daemon.waitUntilItAnswers()
        try daemon.done(.start, "web")
        // What was stored is still there.
        try daemon.done(.restart, "greedy1")
        let main = try #require(try daemon.summary("greedy1").pid)
        #expect(try ProcFS.environment(main, "LISTEN_FDS") == "18")
        try daemon.stop()
    }
}
