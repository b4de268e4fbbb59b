// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// What the kernel denies to apps, by records at a socket in the kernel's place, and once by the kernel itself.
@Suite(
    "What the kernel denies to apps",
    .enabled(if: Confinement.version() >= 7 && Users.isRoot, "needs root, and a kernel with Landlock 7")
) struct DenialTests {
    private static func toml(_ keys: String = "") -> String {
        SandboxTests.app(
            "web",
            ["read:/etc/hostname"],
            """
            launch = "on-demand"
            sandbox = true
            \(keys)
            [apps.web.permissions]
            camera = { purpose = "Looks" }
            """
        )
    }

    /// The end of a socket at which torpord listens, in a folder that is there before torpord is.
    private final class Kernel {
        let folder = NSTemporaryDirectory() + "audit-\(ThisProcess.pid)-\(UInt32.random(in: 0 ... .max))"
        var environment: [String: String] { ["TORPOR_TEST_AUDIT": folder + "/socket"] }
        private var socket: Descriptor?

        init() throws { try File.makeDirectories(folder, mode: 0o700) }
        deinit { try? FileManager.default.removeItem(atPath: folder) }

        private func write(_ type: UInt16, _ fields: String, _ daemon: Daemon) throws {
            let text = Array("audit(1795962983.349:40): \(fields)".utf8)
            var bytes = withUnsafeBytes(of: UInt32(16 + text.count)) { Array($0) }
            bytes += withUnsafeBytes(of: type) { Array($0) } + [UInt8](repeating: 0, count: 10) + text
            if socket == nil {
                try daemon.eventually("torpord listens") { File.exists(self.folder + "/socket") }
                socket = try Sockets.connect(path: folder + "/socket", kind: .datagram)
            }
            #expect(try Sockets.send(socket!.raw, bytes, wait: true) != nil)
        }

        func deny(_ path: String, domain: String = "5a", _ daemon: Daemon) throws {
            try write(1423, "domain=\(domain) blockers=fs.read_file path=\"\(path)\" dev=\"vda\" ino=3", daemon)
        }

        func make(_ process: Int32, domain: String = "5a", _ daemon: Daemon) throws {
            let made = "domain=\(domain) status=allocated mode=enforcing pid=\(process) uid=0 "
            try write(1424, made + "exe=\"/usr/libexec/torpor-keeper\" comm=\"torpor-keeper\"", daemon)
        }
    }

    @Test(
        "A denial is an event, status and the metrics have it, also after torpord or its keeper has died",
        arguments: [Loss.killed, .keeper, .upgraded]
    )
    func told(_ loss: Loss) throws {
        let kernel = try Kernel()
        try withRecovery(Self.toml(), loss: loss, environment: kernel.environment) { daemon throws in
            try daemon.done(.start, "web")
            _ = try SandboxTests.results(daemon, "web")
            let pid = try #require(try daemon.summary("web").pid)
            try kernel.deny("/dev/video0", daemon)
            try kernel.make(Int32(pid), daemon)
            try daemon.waitForEvent("web", "may not read /dev/video0: camera is withheld until it is answered")
            let event = try #require(try daemon.events("web").last { $0.text.contains("/dev/video0") })
            #expect(event.kind == "permission" && event.details["permission"]?.stringValue == "camera")
            #expect(event.details["state"]?.stringValue == "asked")
            let sandbox = try daemon.status("web").sandbox
            #expect(sandbox?.denials == 1 && sandbox?.lastDenial?.text.contains("/dev/video0") == true)
            let metrics = try Spawn.run([Built.path("torpor"), "metrics", "--socket", daemon.socket]).output
            #expect(metrics.contains("torpor_app_denials_total{app=\"web\"} 1"))
            try daemon.lose(loss)
            try kernel.deny("/srv/x", daemon)
            let undeclared = "it declares no permission for that, such as files:/srv/x:ro"
            try daemon.waitForEvent("web", "may not read /srv/x: \(undeclared)")
            #expect(try daemon.summary("web").pid == pid)
        }
    }

    @Test("With on_denied = \"end\", what no permission is declared for ends the app as a failure")
    func end() throws {
        let kernel = try Kernel()
        let toml = Self.toml("on_denied = \"end\"")
        try withDaemon(toml, environment: kernel.environment) { daemon throws in
            try daemon.done(.start, "web")
            _ = try SandboxTests.results(daemon, "web")
            let pid = try #require(try daemon.summary("web").pid)
            try kernel.deny("/dev/video0", daemon)
            try kernel.make(Int32(pid), daemon)
            try daemon.waitForEvent("web", "may not read /dev/video0")
            #expect(try daemon.summary("web").state == "active")
            try kernel.deny("/srv/x", daemon)
            try daemon.waitFor("web", "not-running")
            #expect(try daemon.summary("web").lastExit?.reason == "no-purpose-string")
            let report = try #require(try daemon.reports("web").last)
            #expect(report.reason == "no-purpose-string" && report.text?.contains("/srv/x") == true)
        }
    }

    @Test("A launch asks the kernel to report, unless the app wants nothing reported", arguments: [true, false])
    func asked(_ isIgnored: Bool) throws {
        let kernel = try Kernel()
        let toml = Self.toml(isIgnored ? "on_denied = \"ignore\"" : "")
        try withDaemon(toml, environment: kernel.environment) { daemon throws in
            try daemon.done(.start, "web")
            _ = try SandboxTests.results(daemon, "web")
            #expect(File.exists(kernel.folder + "/socket") != isIgnored)
        }
    }

    /// Whether the kernel may be asked: it reports to everybody on the machine or to nobody.
    private static var mayUseAudit: Bool {
        ThisProcess.environment("TORPOR_TEST_AUDIT_KERNEL") != nil || (try? AuditRecords.isEnabled()) == true
    }

    @Test(
        "The kernel itself reports what it denies to an app, and to no other program",
        .enabled(if: mayUseAudit, "needs audit enabled, which is so for the whole machine: make test-audit")
    )
    func kernel() throws {
        for end in [false, true] {
            let toml = SandboxTests.app(
                "web",
                ["read:@D/a b", "connect:9", "signal:1", "list:/dev"],
                "launch = \"on-demand\"\nsandbox = true\n" + (end ? "on_denied = \"end\"\n" : "")
                    + "[apps.web.permissions]\nnetwork = { purpose = \"Why\", ports = [443], default = \"allow\" }\n"
            )
            try withDaemon(toml, files: ["a b": ""]) { daemon throws in
                try daemon.done(.start, "web") { $0.wait = false }
                let file = "read \(daemon.directory)/a b: it declares"
                for text in [file, "connect to TCP port 9: it declares", "signal process 1", "list /dev"] {
                    if !end || text.hasPrefix("read") { try daemon.waitForEvent("web", "may not \(text)") }
                }
                if end {
                    try daemon.waitFor("web", "not-running")
                    #expect(try daemon.summary("web").lastExit?.reason == "no-purpose-string")
                }
            }
        }
    }
}
