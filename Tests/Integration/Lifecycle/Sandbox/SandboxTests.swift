// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI

/// Apps that may do only what they were allowed: the kernel is asked, not torpord.
@Suite(
    "Sandboxes",
    .enabled(if: Confinement.isAvailable() && Users.isRoot, "needs root, and a kernel with Landlock")
) struct SandboxTests {
    /// An app that tries accesses and writes down the results; `@D` and `@B` as elsewhere.
    static func app(_ name: String, _ words: [String], _ keys: String) -> String {
        let list = (["@D/s/apps/\(name)/result"] + words + ["stay"]).map { "\"\($0)\"" }.joined(separator: ", ")
        return """
            [apps.\(name)]
            exec = ["\(Built.path("sandbox-probe"))", \(list)]
            restart = "never"
            \(keys)


            """
    }

    /// The results by the word; waits until they are there.
    static func results(_ daemon: Daemon, _ name: String, _ file: String? = nil) throws -> [String: Int] {
        let path = file ?? daemon.directory + "/s/apps/\(name)/result"
        try daemon.eventually("\(name) has tried all: \(daemon.log.suffix(1500))") { File.exists(path) }
        var results: [String: Int] = [:]
        for line in try File.readString(path).split(separator: "\n") {
            let parts = line.split(separator: "=")
            results[parts[0].replacingOccurrences(of: daemon.directory, with: "@D")] = Int(parts[1])
        }
        return results
    }

    enum Setting: String, CaseIterable {
        case none, files, readOnly, net, ports, tty, all, denied, agent

        func keys(_ port: UInt16) -> String {
            let allow = "purpose = \"Why\", default = \"allow\""
            let permissions =
                switch self {
                case .none, .agent: ""
                case .files: "\"files:@D/srv\" = { \(allow) }\n\"files:@D/gone\" = { \(allow) }"
                case .readOnly: "\"files:@D/sr*:ro\" = { \(allow) }"
                case .net: "network = { \(allow) }"
                case .ports: "network = { \(allow), ports = [\(port)] }"
                case .tty: "tty = { \(allow) }"
                case .all: "\"files:/\" = { \(allow) }"
                case .denied:
                    "\"files:@D/srv\" = { purpose = \"Why\" }\nnetwork = { purpose = \"Why\", default = \"deny\" }"
                }
            let mode = self == .agent ? "\"agent\"" : "true"
            return "sandbox = \(mode)\n[apps.\(rawValue).permissions]\n\(permissions)"
        }
    }

    /// The sockets of this test, at which processes outside the sandbox listen.
    struct Outside {
        let port: UInt16
        let other: UInt16
        let free: UInt16
        let name: String
        let pid: Int32
    }

    static func words(_ outside: Outside, _ name: String) -> [String] {
        [
            "read:/etc/passwd", "write:/etc/passwd", "read:/proc/self/status", "list:/usr", "create:/usr/x-of-a-test",
            "exec:/bin/true", "exec:@D/srv/program", "read:@D/srv/file", "write:@D/srv/file", "list:@D/srv",
            "create:@D/srv/new", "mkdir:@D/srv/folder", "truncate:@D/srv/file", "stat:@D/srv/file",
            "chmod:@D/srv/file", "move:@D/srv/file", "create:@D/s/apps/\(name)/new",
            "mkdir:@D/s/apps/\(name)/folder", "create:@D/r/new", "read:/dev/null", "write:/dev/null", "list:/dev",
            "terminal:/dev/ptmx", "unix:@D/r/io.torpor",
            "abstract:\(outside.name)", "signal:\(outside.pid)", "tcp", "udp", "tcp6", "family:16", "family:17",
            "family:38", "connect:\(outside.port)", "connect:\(outside.other)", "bind:\(outside.free)", "ring",
            "module", "unshare:10000000", "clone:10000000", "keyctl", "mount:/", "chroot:/",
            "trace:\(outside.pid)", "schedule:\(outside.pid)", "read:/proc/\(outside.pid)/environ",
            "read:/proc/\(outside.pid)/maps", "read:/proc/kcore", "read:/proc/kmsg",
        ]
    }

    private static let eperm = 1
    private static let eacces = 13
    private static let exdev = 18

    /// The errno that must come; nil where it depends on the machine.
    static func expected(_ word: String, _ setting: Setting, _ version: Int, _ outside: Outside) -> Int? {
        let isOpen = setting == .all
        let net = [.net, .ports].contains(setting)
        func only(_ settings: Setting...) -> Int { isOpen || settings.contains(setting) ? 0 : eacces }
        switch word {
        case "read:/etc/passwd", "read:/proc/self/status", "list:/usr", "exec:/bin/true", "read:/dev/null",
            "write:/dev/null", "stat:@D/srv/file", "chmod:@D/srv/file", "unix:@D/r/io.torpor", "family:16":
            return 0
        case "write:/etc/passwd", "create:/usr/x-of-a-test", "create:@D/r/new", "list:/dev": return only()
        case "exec:@D/srv/program", "read:@D/srv/file", "list:@D/srv": return only(.files, .readOnly)
        case "write:@D/srv/file", "create:@D/srv/new", "mkdir:@D/srv/folder": return only(.files)
        case "truncate:@D/srv/file": return version < 3 ? 0 : only(.files)
        case "move:@D/srv/file": return version < 2 && only(.files) == 0 ? exdev : only(.files)
        case "terminal:/dev/ptmx": return only(.tty)
        case "abstract:" + outside.name, "signal:\(outside.pid)": return version < 6 ? 0 : eperm
        case "tcp", "udp": return net ? 0 : eacces
        // Perhaps there is no IPv6, or root may make no raw sockets here.
        case "tcp6", "family:17": return net ? nil : eacces
        // AF_ALG is no network.
        case "family:38": return eacces
        case "connect:\(outside.port)": return net ? 0 : eacces
        case "connect:\(outside.other)", "bind:\(outside.free)":
            return setting == .net || (setting == .ports && version < 4) ? 0 : eacces
        // Landlock refuses to change mounts, and to trace what is outside, whatever is allowed.
        case "ring", "module", "mount:/", "trace:\(outside.pid)": return eperm
        case "read:/proc/\(outside.pid)/environ", "read:/proc/\(outside.pid)/maps": return eacces
        case "read:/proc/kcore", "read:/proc/kmsg": return File.exists(String(word.dropFirst(5))) ? eperm : nil
        // Without the filter, that is up to the capabilities of both (cap_task_setnice() in security/commoncap.c).
        case "schedule:\(outside.pid)", "unshare:10000000", "clone:10000000", "keyctl", "chroot:/":
            return setting == .agent ? eperm : nil
        default: return word.contains(":@D/s/apps/") ? 0 : nil
        }
    }

    static func listening() throws -> (descriptor: Descriptor, port: UInt16) {
        let port = try TestAddress.port()
        return (try Sockets.listenTCP(address: "127.0.0.1", port: port), port)
    }

    @Test("Each kind of access under each set of permissions has the errno of the table", arguments: 1...7)
    func table(_ version: Int) throws {
        guard version <= Confinement.version() else {
            return print("skipped: this kernel has Landlock \(Confinement.version()), not \(version)")
        }
        let (one, other) = (try Self.listening(), try Self.listening())
        let name = "torpor-sandbox-\(ThisProcess.pid)-\(version)"
        let abstract = try Sockets.listen(path: "@" + name)
        let outside = Outside(
            port: one.port,
            other: other.port,
            free: try TestAddress.port(),
            name: name,
            pid: ThisProcess.pid
        )
        let apps = Setting.allCases.map {
            Self.app($0.rawValue, Self.words(outside, $0.rawValue), "launch = \"on-demand\"\n" + $0.keys(outside.port))
        }
        try withDaemon(apps.joined(), environment: ["TORPOR_TEST_LANDLOCK": "\(version)"]) { daemon throws in
            try Self.makeFiles(daemon)
            for setting in Setting.allCases {
                try daemon.done(.start, setting.rawValue)
                let results = try Self.results(daemon, setting.rawValue)
                for word in Self.words(outside, setting.rawValue) {
                    guard let expected = Self.expected(word, setting, version, outside) else { continue }
                    #expect(results[word] == expected, "\(setting) \(word), Landlock \(version)")
                }
                let pid = try #require(try daemon.summary(setting.rawValue).pid)
                #expect(try ProcFS.statusField(pid, "NoNewPrivs") == "1")
                #expect(try ProcFS.statusField(pid, "Seccomp") == "2")
                // NET_ADMIN, SYS_RAWIO, SYS_ADMIN, SYS_NICE, SYS_RESOURCE, AUDIT_CONTROL, SYSLOG, AUDIT_READ, PERFMON.
                let field = try #require(try ProcFS.statusField(pid, "CapPrm"))
                let capabilities = try #require(UInt64(field, radix: 16))
                for number: UInt64 in [12, 17, 21, 23, 24, 30, 34, 37, 38] {
                    #expect(capabilities >> number & 1 == 0, "\(number)")
                }
            }
            #expect(try daemon.events("files").contains { $0.text.contains("/gone is not there") })
        }
        withExtendedLifetime((one, other, abstract)) {}
    }

    static func makeFiles(_ daemon: Daemon) throws {
        try File.makeDirectories(daemon.directory + "/srv/sub")
        try File.write(daemon.directory + "/srv/file", "x")
        try File.write(daemon.directory + "/srv/program", "#!/bin/sh\nexit 0\n", mode: 0o755)
        chmod(daemon.directory + "/srv/program", 0o755)
    }

    @Test("Without Landlock no app is launched that needs it; one that only has no network is")
    func withoutLandlock() throws {
        let apps =
            Self.app("none", ["tcp"], "launch = \"on-demand\"\n" + Setting.none.keys(0))
            + Self.app("all", ["tcp", "write:/etc/passwd"], "launch = \"on-demand\"\n" + Setting.all.keys(0))
        try withDaemon(apps, environment: ["TORPOR_TEST_LANDLOCK": "0"]) { daemon throws in
            #expect(try daemon.verb(.start, "none").ok == false)
            try daemon.waitForEvent("none", "this kernel has no Landlock")
            #expect(try daemon.reports("none").last?.reason == "launch-failed")
            #expect(!File.exists(daemon.directory + "/s/apps/none/result"))
            try daemon.done(.start, "all")
            #expect(try Self.results(daemon, "all") == ["tcp": 13, "write:/etc/passwd": 0])
        }
    }

    @Test("Checks run inside; before_start and after_stop outside")
    func commands() throws {
        let probe = Built.path("sandbox-probe")
        let apps = Self.app(
            "web",
            ["read:@D/srv/file"],
            """
            launch = "on-demand"
            sandbox = true
            before_start = ["\(probe)", "@D/before", "read:@D/srv/file", "tcp"]
            after_stop = ["\(probe)", "@D/after", "read:@D/srv/file", "tcp"]
            ready = { command = ["\(probe)", "@D/s/apps/web/ready", "read:@D/srv/file", "tcp"], timeout = "30s" }
            health = { command = ["\(probe)", "@D/s/apps/web/health", "read:@D/srv/file", "tcp"], interval = "100ms" }
            """
        )
        try withDaemon(apps) { daemon throws in
            try Self.makeFiles(daemon)
            try daemon.done(.start, "web")
            let (inside, outside) = (["read:@D/srv/file": 13, "tcp": 13], ["read:@D/srv/file": 0, "tcp": 0])
            #expect(try Self.results(daemon, "web", daemon.directory + "/before") == outside)
            #expect(try Self.results(daemon, "web", daemon.directory + "/s/apps/web/ready") == inside)
            #expect(try Self.results(daemon, "web", daemon.directory + "/s/apps/web/health") == inside)
            try daemon.done(.stop, "web")
            #expect(try Self.results(daemon, "web", daemon.directory + "/after") == outside)
        }
    }

    @Test(
        "An app stays confined whoever dies, and the next run is confined too",
        arguments: [Loss.killed, .keeper, .both]
    )
    func losses(_ loss: Loss) throws {
        let apps = Self.app("web", ["tcp"], "sandbox = true")
        try withRecovery(apps, loss: loss) { daemon throws in
            try daemon.waitFor("web", "active")
            _ = try Self.results(daemon, "web")
            let pid = try #require(try daemon.summary("web").pid)
            try daemon.lose(loss)
            #expect(try daemon.summary("web").pid == pid)
            #expect(try ProcFS.statusField(pid, "Seccomp") == "2")
            try File.remove(daemon.directory + "/s/apps/web/result")
            try daemon.done(.stop, "web")
            try daemon.done(.start, "web")
            #expect(try Self.results(daemon, "web") == ["tcp": 13])
        }
    }

    @Test("A symlink that the app's user could have made opens nothing, and the app is not launched")
    func symlink() throws {
        let apps = Self.app(
            "web",
            ["read:/etc/passwd"],
            """
            launch = "on-demand"
            user = "nobody"
            sandbox = true
            [apps.web.permissions]
            "files:@D/own/link/x" = { purpose = "Why", default = "allow" }
            """
        )
        try withDaemon(apps) { daemon throws in
            let own = daemon.directory + "/own"
            try File.makeDirectories(own)
            try File.link(own + "/link", to: "/")
            try File.setOwner(own, uid: 65534, gid: 65534)
            #expect(try daemon.verb(.start, "web").ok == false)
            try daemon.waitForEvent("web", "link is a symlink in a folder that users may write to")
        }
    }

    @Test("Standard error is opened through no link that leads out, also where app and keeper are one user")
    func errorLink() throws {
        let apps = Self.app("web", ["tcp"], "launch = \"on-demand\"\nsandbox = true\nstderr = \"@D/own/errors\"")
        try withDaemon(apps) { daemon throws in
            let own = daemon.directory + "/own"
            try File.makeDirectories(own)
            try File.link(own + "/errors", to: daemon.directory + "/outside")
            #expect(try daemon.verb(.start, "web").ok == false)
            #expect(!File.exists(daemon.directory + "/outside"))
            try File.remove(own + "/errors")
            try daemon.done(.start, "web")
            _ = try Self.results(daemon, "web")
            let pid = try #require(try daemon.summary("web").pid)
            #expect(try File.readLink("/proc/\(pid)/fd/2") == own + "/errors")
        }
    }

    @Test("A keeper that is older launches other apps, but none in a sandbox")
    func olderKeeper() throws {
        let apps =
            Self.app("web", ["tcp"], "launch = \"on-demand\"\nsandbox = true")
            + Self.app("plain", ["tcp"], "launch = \"on-demand\"")
        let mark = try Daemon.makeFolder()
        defer { try? File.removeTree(mark) }
        let environment = ["TORPOR_KEEPER_TEST_OLD": mark + "/old", "TORPOR_RESTART_DELAY_CAP_MS": "0"]
        try File.write(mark + "/old", "")
        try withDaemon(apps, environment: environment) { daemon throws in
            try daemon.done(.start, "plain")
            #expect(try Self.results(daemon, "plain") == ["tcp": 0])
            #expect(try daemon.verb(.start, "web").ok == false)
            try daemon.waitForEvent("web", "the keeper is older than torpord")
            try File.remove(mark + "/old")
            try daemon.replaceTorpord()
            try daemon.done(.start, "web")
            #expect(try Self.results(daemon, "web") == ["tcp": 13])
        }
    }
}
