import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// Users who cannot be found, and directories of users that do not answer.
@Suite(
    "Whom apps run as",
    .enabled(if: Users.effectiveUID == 0, "another user is needed, and only root can become one")
)
struct AccountTests {
    private static func toml(_ keys: String) -> String {
        """
        [apps.web]
        exec = ["sleep", "1000"]
        launch = "on-demand"
        restart = "never"
        \(keys)
        [apps.other]
        exec = ["/bin/sleep", "1000"]
        launch = "on-demand"

        """
    }

    @Test("A number without an entry runs with the group that is named for it, and without one not at all")
    func number() throws {
        try withDaemon(Self.toml("user = \"4242421\"\n")) { daemon in
            let result = try daemon.verb(.start, "web")
            #expect(!result.ok)
            let message = result.message ?? ""
            #expect(message.contains("4242421 has no entry in the user database") && message.contains("set group"))
        }
        try withDaemon(Self.toml("user = \"4242421\"\ngroup = \"4242422\"\n")) { daemon in
            try daemon.done(.start, "web")
            let main = try #require(try daemon.summary("web").pid)
            #expect(try ProcFS.statusField(main, "Uid") == "4242421\t4242421\t4242421\t4242421")
            #expect(try ProcFS.statusField(main, "Gid") == "4242422\t4242422\t4242422\t4242422")
            #expect(try ProcFS.statusField(main, "Groups")?.trimmingCharacters(in: .whitespaces) == "4242422")
        }
    }

    /// A daemon that sees a user database of its own, which the test can take away.
    private func withDatabase(_ keys: String, _ body: (Daemon, Int32) throws -> Void) throws {
        let wrapper = ["/usr/bin/unshare", "--mount", "--propagation", "private"]
        let daemon = try Daemon(Self.toml(keys), wrapper: wrapper)
        try daemon.waitUntilItAnswers()
        let torpord = try daemon.torpord()
        try body(daemon, torpord)
        #expect(try daemon.torpord() == torpord)
        try daemon.stop()
    }

    /// Mounts something where only torpord and its apps see it.
    private func mount(_ words: [String], _ torpord: Int32) throws {
        let run = try Spawn.run(["/usr/bin/nsenter", "--target", "\(torpord)", "--mount"] + words)
        #expect(run.code == 0, "\(words): \(run.output)")
    }

    @Test("An app whose user is not to be found any more does not run as root", .enabled(if: Namespaces.areAllowed))
    func gone() throws {
        // Nobody is known without the database too (nss-systemd(8)).
        try withDatabase("user = \"daemon\"\n") { daemon, torpord in
            try daemon.done(.start, "web")
            let main = try #require(try daemon.summary("web").pid)
            #expect(try ProcFS.statusField(main, "Uid")?.hasPrefix("1\t") == true)
            try File.write(daemon.directory + "/passwd", "root:x:0:0:root:/root:/bin/sh\n")
            try mount(["/bin/mount", "--bind", daemon.directory + "/passwd", "/etc/passwd"], torpord)
            let result = try daemon.verb(.restart, "web")
            #expect(!result.ok)
            #expect(result.message?.contains("there is no user daemon, or it cannot be looked up now") == true)
        }
    }

    @Test(
        "A directory of users that does not answer holds one launch, which can be taken back, and nobody else",
        .enabled(if: Namespaces.areAllowed)
    )
    func silent() throws {
        try withDatabase("user = \"nobody\"\nlaunch_deadline = \"5min\"\n") { daemon, torpord in
            // Who reads it waits until somebody writes.
            let silent = daemon.directory + "/passwd"
            try File.makeFIFO(silent)
            try mount(["/bin/mount", "--bind", silent, "/etc/passwd"], torpord)
            try daemon.done(.start, "web") { $0.wait = false }
            try daemon.eventually("its user is looked up") {
                try ProcFS.tasks(torpord).contains { task in
                    (try? File.readString("/proc/\(torpord)/task/\(task)/comm")) == "launches\n"
                }
            }
            for _ in 0..<3 {
                try daemon.done(.start, "other")
                try daemon.done(.stop, "other")
            }
            // Taken back, asked for again, taken back before it has begun, and asked for again.
            for _ in 0..<2 {
                try daemon.done(.stop, "web")
                #expect(try daemon.summary("web").state == "not-running")
                try daemon.done(.start, "web") { $0.wait = false }
            }
            try mount(["/bin/umount", "--lazy", "/etc/passwd"], torpord)
            // The lookup that still waits for its open. It reads nothing: glibc closes a database that cannot be sought in.
            try File.open(silent, .write).close()
            try daemon.waitFor("web", "active")
            #expect(try daemon.events("web").count { $0.text.hasPrefix("launched as process") } == 1)
            let main = try #require(try daemon.summary("web").pid)
            #expect(try ProcFS.statusField(main, "Uid")?.hasPrefix("65534\t") == true)
        }
    }
}
