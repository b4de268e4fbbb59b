import Foundation
import Linux
import PolicyLibraries
import Testing
import TorporAPI

@Suite("The policies that ship, in the daemon") struct ShippedPoliciesTests {
    /// A configuration that uses one of them, from a folder that nobody else can write to.
    private func toml(_ name: String, _ lines: String, apps: String) throws -> String {
        let folder = try Libraries.makeFolder("shipped")
        let library = "lib\(name.capitalized)Policy.so"
        try copyProgram(Built.path(library), to: folder + "/" + library)
        return Governed.toml([(name, "path = \"\(folder)/\(library)\"\ndeadline = \"5s\"\n" + lines)], apps: apps)
    }

    private static let apps =
        Governed.sleeper("a", "background_time = \"100ms\"")
        + Governed.sleeper("b", "background_time = \"100ms\"\nlaunch = \"on-demand\"")

    @Test(
        "Mobile keeps one app in front and suspends the other, in a process of its own and in torpord's",
        arguments: ["process", "none"]
    )
    func mobile(_ isolation: String) throws {
        try withDaemon(toml("mobile", "isolation = \"\(isolation)\"", apps: Self.apps)) { daemon throws in
            try daemon.waitForPolicy("mobile", "is there") { $0.state == "ready" }
            try daemon.waitFor("a", "active")
            try daemon.done(.start, "b")
            try daemon.waitFor("a", "suspended")
            let a = try #require(daemon.processes(of: "a").first)
            #expect(try ProcFS.stat(a).state == "T")
            let told = try daemon.policyEvents("a")
            #expect(
                told == [
                    "is sent to background: 1 app may be in the foreground, and b came after it (mobile)",
                    "is sent to suspended: its time in the background is used up (mobile)",
                ]
            )
            try daemon.done(.foreground, "a")
            try daemon.waitFor("b", "suspended")
            #expect(try daemon.summary("a").state == "active")
            let policy = try daemon.policy("mobile")
            #expect(policy.refused == 0 && policy.failures == 0 && policy.taken == 4)
        }
    }

    @Test("Mobile suspends what was overdue before its advice was taken")
    func overdue() throws {
        try withDaemon(toml("mobile", "mode = \"advise\"", apps: Self.apps)) { daemon throws in
            try daemon.waitForPolicy("mobile", "is there") { $0.state == "ready" }
            try daemon.waitFor("a", "active")
            try daemon.done(.background, "a")
            try daemon.waitForEvent("a", "would say that a is sent to suspended")
            #expect(try daemon.summary("a").state == "background")
            try daemon.apply(toml("mobile", "", apps: Self.apps))
            try daemon.waitFor("a", "suspended")
        }
    }
}
