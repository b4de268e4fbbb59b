// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI

/// Apps of bundles: launched from what was signed, or not at all.
@Suite("Bundles of apps") struct BundleTests {
    static let python = """
        import http.server, os, socket, sys
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = open("page.txt").read().encode()
                self.send_response(200)
                self.end_headers()
                self.wfile.write(body)
            def log_message(self, *words):
                pass
        server = http.server.HTTPServer(("HOST", int(sys.argv[1])), Handler)
        place = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        place.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
        server.serve_forever()
        """

    /// The folder of a bundle, its key, and what the commands need.
    struct Maker {
        let daemon: Daemon

        init(_ daemon: Daemon) throws {
            self.daemon = daemon
            try File.makeDirectories(daemon.directory + "/keys")
            try run("bundle", "keygen", daemon.directory + "/keys/maker")
        }

        @discardableResult
        func run(_ words: String..., at location: SourceLocation = #_sourceLocation) throws -> String {
            let (status, output) = try Spawn.run(
                [Built.path("torpor")] + words,
                environment: ["HOME": daemon.directory]
            )
            #expect(status == 0, "\(words): \(output)", sourceLocation: location)
            return output
        }

        var places: [String] { ["--bundles", bundles, "--keys", daemon.directory + "/keys"] }
        var bundles: String { daemon.directory + "/s/bundles" }

        /// Builds, signs and installs a version.
        func install(_ version: String, app: String, _ files: [String: String], programs: Set<String> = []) throws {
            let folder = "\(daemon.directory)/made-\(version)"
            for (name, text) in files {
                try File.makeDirectories(File.parent(of: "\(folder)/\(name)") ?? "")
                try File.write("\(folder)/\(name)", text, mode: programs.contains(name) ? 0o755 : 0o644)
            }
            try File.write("\(folder)/manifest.toml", "name = \"notes\"\nversion = \"\(version)\"\n[app]\n" + app)
            let file = folder + ".torpor"
            try run("bundle", "build", folder, "--output", file)
            try run("bundle", "sign", file, "--key", daemon.directory + "/keys/maker.key")
            try run("install", file, places[0], places[1], places[2], places[3])
        }
    }

    static let toml = """
        [apps.web]
        bundle = "notes"
        launch = "on-demand"
        restart_backoff = { initial = "10ms" }

        """

    static func with(_ toml: String = toml, _ body: (Daemon, Maker) throws -> Void) throws {
        try withRecovery(toml) { daemon throws in try body(daemon, try Maker(daemon)) }
    }

    static func get(_ port: UInt16) throws -> String {
        let script =
            "import urllib.request as r; print(r.urlopen('http://\(TestAddress.host):\(port)/', timeout=20).read().decode())"
        return try Spawn.run(["/usr/bin/python3", "-c", script]).output
    }

    /// How the last launch was refused.
    static func refusal(_ daemon: Daemon) throws -> String {
        _ = try? daemon.verb(.start, "web")
        try daemon.waitFor("web", "not-running")
        return try daemon.events("web").last { $0.text.contains("could not be launched") }?.text ?? ""
    }

    @Test("A bundle that lacks the program that it names, or needs what nobody knows, is told at once")
    func lacking() throws {
        try Self.with { daemon, maker in
            let folder = daemon.directory + "/made"
            try File.makeDirectories(folder + "/bin")
            let manifest = "name = \"notes\"\nversion = \"1\"\nneeds = [\"potato\"]\n[app]\nexec = [\"bin/notes\"]\n"
            try File.write(folder + "/manifest.toml", manifest)
            let output = try maker.run("bundle", "build", folder, "--output", folder + ".torpor")
            #expect(output.contains("the bundle has no file bin/notes, which exec names: add it to \(folder)"))
            #expect(output.contains("this torpor does not know “potato”"))
            try File.write(folder + "/bin/notes", "", mode: 0o755)
            let more = try maker.run("bundle", "build", folder, "--output", folder + ".torpor")
            #expect(!more.contains("has no file"))
        }
    }

    @Test("A web app in Python runs from its bundle, a new version after apply, and the one before after a rollback")
    func python() throws {
        let port = try TestAddress.port()
        try Self.with { daemon, maker in
            func install(_ version: String) throws {
                try maker.install(
                    version,
                    app:
                        "exec = [\"/usr/bin/python3\", \"-S\", \"app.py\", \"\(port)\"]\nready = \"notify\"\ndata_folders = true",
                    [
                        "app.py": Self.python.replacing("HOST", with: TestAddress.host),
                        "page.txt": "page of \(version)",
                        "first-launch/welcome": "from \(version)",
                    ]
                )
            }
            try install("1.0")
            try daemon.apply()
            try daemon.done(.start, "web")
            #expect(try Self.get(port).contains("page of 1.0"))
            let status = try daemon.status("web")
            #expect(status.bundle == "notes 1.0")
            #expect(["by the kernel", "at launch"].contains(status.bundleVerified))
            #expect(try File.readString(daemon.directory + "/s/data/web/library/welcome") == "from 1.0")
            try install("2.0")
            // Not before the next launch.
            #expect(try Self.get(port).contains("page of 1.0"))
            try daemon.apply { $0.restart = true }
            try daemon.eventually("2.0 is served") { (try? Self.get(port).contains("page of 2.0")) ?? false }
            #expect(try daemon.status("web").bundle == "notes 2.0")
            try maker.run("rollback", "notes", maker.places[0], maker.places[1], maker.places[2], maker.places[3])
            try daemon.apply { $0.restart = true }
            try daemon.eventually("1.0 is served") { (try? Self.get(port).contains("page of 1.0")) ?? false }
        }
    }

    @Test("nginx runs from a bundle", .enabled(if: File.isExecutable("/usr/sbin/nginx"), "needs nginx"))
    func nginx() throws {
        let port = try TestAddress.port()
        try Self.with { daemon, maker in
            let configuration = """
                daemon off;
                \(Users.isRoot ? "user root;" : "")
                pid \(daemon.directory)/nginx.pid;
                error_log stderr;
                events {}
                http {
                    access_log off;
                    client_body_temp_path \(daemon.directory)/body;
                    proxy_temp_path \(daemon.directory)/proxy;
                    fastcgi_temp_path \(daemon.directory)/fastcgi;
                    uwsgi_temp_path \(daemon.directory)/uwsgi;
                    scgi_temp_path \(daemon.directory)/scgi;
                    server {
                        listen \(TestAddress.host):\(port);
                        root \(maker.bundles)/notes/current/site;
                    }
                }
                """
            try maker.install(
                "1.0",
                app: "exec = [\"bin/serve\"]\nready = { tcp = \"\(TestAddress.host):\(port)\" }",
                [
                    "bin/serve": "#!/bin/sh\nexec /usr/sbin/nginx -c \"$PWD/nginx.conf\"\n",
                    "nginx.conf": configuration,
                    "site/index.html": "by nginx",
                ],
                programs: ["bin/serve"]
            )
            File.allowTraversal(daemon.directory)
            try daemon.apply()
            try daemon.done(.start, "web")
            #expect(try Self.get(port).contains("by nginx"))
        }
    }

    static let sleeper = ["bin/app": "#!/bin/sh\nexec sleep 1000\n", "data": "text"]

    @Test("A changed bundle does not run, is not restarted, and the sentence names the file")
    func changed() throws {
        try Self.with { daemon, maker in
            try maker.install("1.0", app: "exec = [\"bin/app\"]", Self.sleeper, programs: ["bin/app"])
            try daemon.apply()
            try daemon.done(.start, "web")
            try daemon.done(.stop, "web")
            let place = maker.bundles + "/notes/1.0"
            func refused(_ sentence: String, at location: SourceLocation = #_sourceLocation) throws {
                let text = try Self.refusal(daemon)
                #expect(text.contains(sentence), "\(text)", sourceLocation: location)
                let summary = try daemon.summary("web")
                #expect(summary.state == "not-running" && summary.transition == nil, sourceLocation: location)
            }
            // A byte flipped, and the time of change as it was.
            let time = try File.status(place + "/bin/app").modifiedNanoseconds
            try File.replace(place + "/bin/app", Array("#!/bin/sh\nexec sleep 1001\n".utf8), mode: 0o755)
            var times = [timespec(), timespec()]
            for index in 0..<2 {
                times[index] = timespec(tv_sec: Int(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000))
            }
            #expect(utimensat(AT_FDCWD, place + "/bin/app", times, 0) == 0)
            try refused("bin/app is not what was signed")
            try File.replace(place + "/bin/app", Array("#!/bin/sh\nexec sleep 1000\n".utf8), mode: 0o755)
            try File.write(place + "/added", "")
            try refused("added is not in the manifest")
            try File.remove(place + "/added")
            try File.setMode(place + "/data", 0o666)
            try refused("data has the mode 666")
            try File.setMode(place + "/data", 0o644)
            // The manifest that torpord has read is not the one that is there.
            let manifest = try File.read(place + "/manifest.toml")
            try File.replace(place + "/manifest.toml", Array("name = 1\n".utf8) + manifest)
            try refused("manifest.toml is not what was signed")
            try File.replace(place + "/manifest.toml", manifest)
            try File.rename(daemon.directory + "/keys/maker.pub", daemon.directory + "/keys/maker.off")
            try refused("not trusted here")
            try File.rename(daemon.directory + "/keys/maker.off", daemon.directory + "/keys/maker.pub")
            try daemon.done(.start, "web")
        }
    }

    @Test("What only keeps torpor-verify from working is tried again")
    func passing() throws {
        let folder = try Daemon.makeFolder()
        defer { try? File.removeTree(folder) }
        let toml = Self.toml.replacing("restart_backoff", with: "restart = \"always\"\nrestart_backoff")
        try withRecovery(toml, environment: ["TORPOR_VERIFY": folder + "/verify"]) { daemon throws in
            let maker = try Maker(daemon)
            try maker.install("1.0", app: "exec = [\"bin/app\"]", Self.sleeper, programs: ["bin/app"])
            // First as if there were no descriptors left, then killed as by a lack of memory, then as it is.
            let script = """
                #!/bin/sh
                echo >>\(folder)/tries
                case $(wc -l <\(folder)/tries) in
                1) echo "Too many open files" >&2; exit 3 ;;
                2) kill -9 $$ ;;
                esac
                exec \(Built.path("torpor-verify")) "$@"
                """
            try Spawn.lock.withLock { try File.replace(folder + "/verify", Array(script.utf8), mode: 0o755) }
            try daemon.apply()
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.waitFor("web", "active")
            #expect(try File.readString(folder + "/tries").utf8.count == 3)
            let texts = try daemon.events("web").map(\.text)
            #expect(texts.contains { $0.contains("Too many open files") }, "\(texts)")
            #expect(texts.contains { $0.contains("was killed by SIGKILL") }, "\(texts)")
        }
    }

    @Test("A new version that ends at once is replaced by the one before after two launches, and that is told")
    func putBack() throws {
        let toml = Self.toml.replacing("restart_backoff", with: "restart = \"always\"\nrestart_backoff")
        try Self.with(toml) { daemon, maker in
            try maker.install("1.0", app: "exec = [\"bin/app\"]", Self.sleeper, programs: ["bin/app"])
            try daemon.apply()
            try daemon.done(.start, "web")
            let failing = ["bin/app": "#!/bin/sh\necho launched from 2.0\nexit 1\n", "data": "text"]
            try maker.install("2.0", app: "exec = [\"bin/app\"]\ntitle = \"Second\"", failing, programs: ["bin/app"])
            try daemon.apply {
                $0.restart = true
                $0.wait = false
            }
            try daemon.eventually("1.0 runs again") {
                let status = try daemon.status("web")
                return status.bundle == "notes 1.0" && status.summary.state == "active" && status.bundlePutBack == "2.0"
            }
            let texts = try daemon.events("web").map(\.text)
            #expect(texts.count { $0.contains("version 1.0 was put back") } == 1, "\(texts)")
            let log = try File.readString(daemon.directory + "/l/web.log")
            #expect(log.split(separator: "\n").count { $0.contains("launched from 2.0") } == 2, "\(log)")
            #expect(try maker.run("bundle", "list", "--bundles", maker.bundles).contains("2.0 (failed)"))
            let (_, doctor) = try Spawn.run([Built.path("torpor"), "doctor", "--socket", daemon.socket])
            #expect(doctor.contains("bundle notes") && doctor.contains("2.0 did not come up"), "\(doctor)")
            // The next one that comes up counts.
            try maker.install("3.0", app: "exec = [\"bin/app\"]", Self.sleeper, programs: ["bin/app"])
            try daemon.apply { $0.restart = true }
            try daemon.eventually("3.0 has come up") { File.exists(maker.bundles + "/notes/.ready-3.0") }
            #expect(try daemon.status("web").bundle == "notes 3.0")
            #expect(try daemon.status("web").bundlePutBack == nil)
        }
    }

    @Test("Two installs leave the running version, and status shows that, also after torpord was killed")
    func runningVersion() throws {
        try withKilledDaemon(Self.toml) { daemon throws in
            let maker = try Maker(daemon)
            func install(_ version: String) throws {
                try maker.install(version, app: "exec = [\"bin/app\"]", Self.sleeper, programs: ["bin/app"])
            }
            try install("1.0")
            try daemon.apply()
            try daemon.done(.start, "web")
            for version in ["2.0", "3.0"] {
                try install(version)
                try daemon.apply()
            }
            #expect(File.exists(maker.bundles + "/notes/1.0/bin/app"))
            #expect(try daemon.status("web").bundle == "notes 1.0")
            try daemon.killTorpord()
            try daemon.waitUntilItAnswers()
            let status = try daemon.status("web")
            #expect(status.bundle == "notes 1.0")
            #expect(["by the kernel", "at launch"].contains(status.bundleVerified))
            try daemon.done(.stop, "web")
            try daemon.done(.start, "web")
            #expect(try daemon.status("web").bundle == "notes 3.0")
        }
    }

    @Test(
        "Without a sandbox of its own the bundle gets the machine's, reads itself, and hooks get nothing of its manifest"
    )
    func confined() throws {
        guard KernelRelease.landlock > 0 else { return print("skipped: this kernel has no Landlock") }
        try Self.with { daemon, maker in
            let probe = """
                import os, socket
                words = [open(os.path.dirname(__file__) + "/data").read()]
                try:
                    open("\(daemon.directory)/secret").read()
                    words.append("secret")
                except PermissionError:
                    words.append("closed")
                print(" ".join(words + [os.environ["FROM_BUNDLE"]]), flush=True)
                import time
                time.sleep(1000)
                """
            try File.write(daemon.directory + "/secret", "s")
            try File.makeDirectories(daemon.directory + "/place")
            let app = """
                exec = ["/usr/bin/python3", "-S", "app.py"]
                environment = { FROM_BUNDLE = "yes" }
                [app.permissions]
                "files:\(daemon.directory)" = { purpose = "everything", default = "allow" }
                """
            let directory = maker.bundles + "/notes/1.0"
            try maker.install(
                "1.0",
                app: app.replacing("app.py", with: directory + "/app.py"),
                ["app.py": probe, "data": "text"]
            )
            let hook = "[\"/bin/sh\", \"-c\", \"echo hook=$FROM_BUNDLE,$PWD >\(daemon.directory)/hook\"]"
            try daemon.apply(
                "[defaults]\nsandbox = true\n" + Self.toml
                    + "directory = \"\(daemon.directory)/place\"\nbefore_start = [\(hook)]\n"
            )
            try daemon.done(.start, "web")
            let log = daemon.directory + "/l/web.log"
            try daemon.eventually("it has said what it reaches") {
                ((try? File.readString(log)) ?? "").contains("text closed yes")
            }
            #expect(try File.readString(daemon.directory + "/hook") == "hook=,\(daemon.directory)/place\n")
        }
    }

    @Test("An app whose bundle is missing keeps no other app from running")
    func missing() throws {
        try Self.with(Self.toml + Apps.sleeper("other")) { daemon, maker in
            try daemon.waitFor("other", "active")
            #expect(try Self.refusal(daemon).contains("notes is not installed"))
            try maker.install("1.0", app: "exec = [\"bin/app\"]", Self.sleeper, programs: ["bin/app"])
            try daemon.apply()
            try daemon.done(.start, "web")
        }
    }

    @Test("What was installed since torpord read the manifest does not run before an apply")
    func otherManifest() throws {
        try Self.with { daemon, maker in
            try maker.install("1.0", app: "exec = [\"bin/app\"]", Self.sleeper, programs: ["bin/app"])
            try daemon.apply()
            try maker.run("uninstall", "notes", "--bundles", maker.bundles)
            #expect(try Self.refusal(daemon).contains("no longer installed"))
            try maker.install("1.0", app: "exec = [\"bin/app\", \"more\"]", Self.sleeper, programs: ["bin/app"])
            #expect(try Self.refusal(daemon).contains("not the one that torpord has read"))
            try daemon.apply()
            try daemon.done(.start, "web")
        }
    }

    @Test("An uninstall with --purge removes the data too, and nothing while the app runs")
    func purge() throws {
        try Self.with { daemon, maker in
            let app = "exec = [\"bin/app\"]\ndata_folders = true"
            try maker.install("1.0", app: app, Self.sleeper, programs: ["bin/app"])
            try daemon.apply()
            try daemon.done(.start, "web")
            let data = daemon.directory + "/s/data/web"
            try File.write(data + "/documents/letter", "text")
            let words = [
                Built.path("torpor"), "uninstall", "notes", "--purge", "--bundles", maker.bundles, "--socket",
                daemon.socket,
            ]
            let (refused, why) = try Spawn.run(words)
            #expect(refused == 1 && why.contains("torpor stop web"), "\(why)")
            #expect(File.exists(data + "/documents/letter") && File.exists(maker.bundles + "/notes/1.0"))
            try daemon.done(.stop, "web")
            let (code, output) = try Spawn.run(words)
            #expect(code == 0 && output.contains("the data of web is removed"), "\(output)")
            #expect(!File.exists(data + "/documents/letter") && !File.exists(maker.bundles + "/notes"))
        }
    }

    @Test("torpord is killed while torpor-verify works: the next one verifies again, and launches")
    func killedWhileVerifying() throws {
        let folder = try Daemon.makeFolder()
        defer { try? File.removeTree(folder) }
        let environment = ["TORPOR_VERIFY": folder + "/verify", "TORPOR_RESTART_DELAY_CAP_MS": "0"]
        try withDaemon(Self.toml, environment: environment) { daemon throws in
            let maker = try Maker(daemon)
            try maker.install("1.0", app: "exec = [\"bin/app\"]", Self.sleeper, programs: ["bin/app"])
            let script = """
                #!/bin/sh
                echo $$ >>\(daemon.directory)/verifying
                while [ ! -e \(daemon.directory)/go ]; do sleep 0.02; done
                exec \(Built.path("torpor-verify")) "$@"
                """
            // A process that is made meanwhile would hold the program open for writing for a moment.
            try Spawn.lock.withLock { try File.replace(folder + "/verify", Array(script.utf8), mode: 0o755) }
            try daemon.apply()
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.eventually("torpor-verify works") { File.exists(daemon.directory + "/verifying") }
            let first = try File.readString(daemon.directory + "/verifying").split(separator: "\n")
            try daemon.killTorpord()
            try daemon.waitUntilItAnswers()
            try File.write(daemon.directory + "/go", "")
            try daemon.waitFor("web", "active")
            let all = try File.readString(daemon.directory + "/verifying").split(separator: "\n")
            #expect(all.count > first.count)
            for pid in all.compactMap({ Int32($0) }) {
                try daemon.eventually("\(pid) is gone") { !File.exists("/proc/\(pid)") }
            }
        }
    }
}

extension File {
    /// nginx's workers run as another user, who must reach the site.
    fileprivate static func allowTraversal(_ path: String) {
        for folder in [path, path + "/s"] { try? File.setMode(folder, 0o755) }
    }
}
