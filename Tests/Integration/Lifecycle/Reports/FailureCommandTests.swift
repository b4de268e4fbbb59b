// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("Commands of on_failure") struct FailureCommandTests {
    /// Writes a line about the failure that the command is told. The first argument says which command it is.
    private static let tell = """
        last=$(echo "$TORPOR_LAST_OUTPUT" | tail -n 1)
        ending="$TORPOR_EXIT_REASON $TORPOR_EXIT_STATUS $TORPOR_NEXT"
        echo "$1: $TORPOR_APP $TORPOR_INCARNATION $ending|$TORPOR_FAILURE|$last" >>"${0%/*}/told"
        """

    private static func told(_ daemon: Daemon) -> [String] {
        let text = (try? File.readString(daemon.directory + "/told")) ?? ""
        return text.components(separatedBy: "\n").filter { !$0.isEmpty }
    }

    @Test("run once for an app that is given up, and at each failure if they want; one that fails stops no other")
    func givenUp() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sh", "-c", "echo run $TORPOR_INCARNATION; exit 3"]
            launch = "on-demand"
            log = "file"
            restart_backoff = { initial = "1ms", limit = 2 }
            on_failure = [
                ["/bin/sh", "-c", "exit 7"],
                ["/bin/sh", "@D/tell.sh", "once"],
                { command = ["/bin/sh", "@D/tell.sh", "each"], each = true },
            ]
            [apps.later]
            exec = ["/bin/sh", "-c", "exit 5"]
            launch = "on-demand"
            restart_backoff = { initial = "1h", cap = "1h" }
            on_failure = [
                ["/bin/sh", "@D/tell.sh", "once"],
                { command = ["/bin/sh", "@D/tell.sh", "each"], each = true },
            ]
            """
        try withDaemon(toml, files: ["tell.sh": Self.tell]) { daemon in
            _ = try daemon.verb(.start, "web")
            try daemon.eventually("all commands ran: \(Self.told(daemon))") {
                let last = "each: web 3 exit-failure 3 give-up|web exited with status 3"
                return Self.told(daemon).contains { $0.hasPrefix(last) }
            }
            let told = Self.told(daemon)
            #expect(told.filter { $0.hasPrefix("once: ") }.count == 1, "\(told)")
            let once = try #require(told.first { $0.hasPrefix("once: web 3 exit-failure 3 give-up|") })
            #expect(once.contains("it was restarted too often") && once.hasSuffix("|run 3"), "\(once)")
            _ = try daemon.verb(.start, "later")
            try daemon.eventually("the failure before a restart is told: \(Self.told(daemon))") {
                Self.told(daemon).contains { $0.hasPrefix("each: later 1 exit-failure 5 restart|later exited") }
            }
            #expect(!Self.told(daemon).contains { $0.hasPrefix("once: later") }, "\(Self.told(daemon))")
            try daemon.waitForEvent("web", "on_failure command /bin/sh failed with exit status 7")
            #expect(try daemon.summary("web").failed)
        }
    }

    @Test("run for an app that is not to be restarted or cannot be launched, and for no end that is no failure")
    func kinds() throws {
        let toml = """
            [defaults]
            launch = "on-demand"
            restart = "never"
            on_failure = ["/bin/sh", "@D/tell.sh", "x"]
            [apps.done]
            exec = ["/bin/true"]
            type = "oneshot"
            [apps.stopped]
            exec = ["/bin/sh", "-c", "trap 'exit 5' TERM; while :; do sleep 1; done"]
            [apps.never]
            exec = ["/bin/sh", "-c", "exit 4"]
            [apps.missing]
            exec = ["@D/missing"]
            """
        try withDaemon(toml, files: ["tell.sh": Self.tell]) { daemon in
            try daemon.done(.start, "done")
            try daemon.done(.start, "stopped")
            try daemon.done(.stop, "stopped")
            _ = try daemon.verb(.start, "never")
            _ = try daemon.verb(.start, "missing")
            try daemon.eventually("both failures are told: \(Self.told(daemon))") { Self.told(daemon).count >= 2 }
            let told = Self.told(daemon).sorted()
            #expect(told.count == 2, "\(told)")
            #expect(told.first?.hasPrefix("x: missing 1 launch-failed  rest|missing ") == true, "\(told)")
            let never = "x: never 1 exit-failure 4 rest|never exited with status 4"
            #expect(told.last?.hasPrefix(never) == true, "\(told)")
        }
    }

    @Test("hold nothing up, are killed at their deadline, and end with their app")
    func bounded() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sh", "-c", "test -e @D/good || exit 1; exec sleep 1000"]
            launch = "on-demand"
            restart = "never"
            on_failure = [
                { command = ["/bin/sleep", "1000"], deadline = "20ms" },
                { command = ["/bin/sh", "-c", "echo $$ >@D/pid; exec sleep 1000"], deadline = "1h" },
            ]
            """
        try withDaemon(toml) { daemon in
            _ = try daemon.verb(.start, "web")
            try daemon.waitForEvent("web", "on_failure command /bin/sleep ")
            var pid: Int32?
            try daemon.eventually("the second command runs") {
                let text = (try? File.readString(daemon.directory + "/pid")) ?? ""
                pid = Int32(text.trimmingCharacters(in: .whitespacesAndNewlines))
                return pid != nil
            }
            try File.write(daemon.directory + "/good", "")
            try daemon.done(.start, "web")
            let command = try #require(pid)
            #expect(File.exists("/proc/\(command)"))
            try daemon.apply("")
            try daemon.eventually("the command of a removed app is gone") { !File.exists("/proc/\(command)") }
        }
    }

    /// A command that does not end when it is killed, as one that hangs in the kernel: until its child lets go of it, the
    /// kernel tells its end only to that, which traces it (ptrace(2)). The argument says which command it is.
    private static let hang = """
        import ctypes, os, sys, time
        folder = os.path.dirname(os.path.abspath(__file__))
        libc, own = ctypes.CDLL(None), os.getpid()
        libc.prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER, for Yama
        if os.fork() == 0:
            os.setsid()
            result = libc.ptrace(0x4206, own, None, None)  # PTRACE_SEIZE
            with open(folder + "/new." + sys.argv[1], "w") as file: file.write(str(own if result == 0 else 0))
            os.rename(folder + "/new." + sys.argv[1], folder + "/traced." + sys.argv[1])
            while os.path.exists(folder) and not os.path.exists(folder + "/go"): time.sleep(0.01)
            os._exit(0)
        time.sleep(1000)
        """

    @Test("that were killed and do not end no longer keep those of other apps from running")
    func hanging() throws {
        let web = """
            [defaults]
            launch = "on-demand"
            restart = "never"
            [apps.web]
            exec = ["/bin/false"]
            on_failure = ["/bin/sh", "@D/tell.sh", "x"]

            """
        // Only root can run an app as another user.
        let other = """
            [apps.other]
            exec = ["/bin/false"]
            user = "nobody"
            on_failure = ["/bin/false"]

            """
        let hung = (0..<8).map { index in
            """
            [apps.hung\(index)]
            exec = ["/bin/false"]
            on_failure = [{ command = ["/usr/bin/python3", "-S", "@D/hang.py", "\(index)"], deadline = "1h" }]

            """
        }
        let toml = web + (Users.isRoot ? other : "") + hung.joined()
        try withDaemon(toml, files: ["tell.sh": Self.tell, "hang.py": Self.hang]) { daemon in
            defer { try? File.write(daemon.directory + "/go", "") }
            for index in 0..<8 { _ = try daemon.verb(.start, "hung\(index)") }
            func traced() -> [Int32] {
                (0..<8).compactMap { Int32((try? File.readString(daemon.directory + "/traced.\($0)")) ?? "") }
            }
            try daemon.eventually("all places are taken") { traced().count == 8 }
            let pids = traced()
            // Some containers forbid ptrace.
            guard !pids.contains(0) else { return }
            _ = try daemon.verb(.start, "web")
            try daemon.eventually("it has failed") { try daemon.summary("web").lastExit?.reason == "exit-failure" }
            if Users.isRoot {
                _ = try daemon.verb(.start, "other")
                try daemon.waitForEvent("other", "on_failure command /bin/false failed with exit status 1")
            }
            #expect(Self.told(daemon).isEmpty)
            // Their commands are killed, but all of them are still there.
            try daemon.apply(web)
            try daemon.eventually("its command runs") { !Self.told(daemon).isEmpty }
            #expect(pids.allSatisfy { File.exists("/proc/\($0)") })
            try File.write(daemon.directory + "/go", "")
            try daemon.eventually("they are gone") { !pids.contains { File.exists("/proc/\($0)") } }
        }
    }
}
