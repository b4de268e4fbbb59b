// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI

/// Programs of others that start and answer in a sandbox.
@Suite(
    "Programs in a sandbox",
    .enabled(if: Confinement.isAvailable() && Users.isRoot, "needs root, and a kernel with Landlock")
) struct SandboxedProgramTests {
    static let head = """
        [apps.web]
        ready = { http = "http://127.0.0.1:@P/", interval = "100ms", timeout = "5s" }
        launch_deadline = "60s"
        launch = "on-demand"
        restart = "never"
        data_folders = true
        sandbox = @M

        """

    /// The values of `sandbox`: what these programs need, code of strangers has too.
    static let modes = ["true", "\"agent\""]

    /// Runs a server in a sandbox until it answers; it may not read a file beside its own folder.
    static func serve(
        _ mode: String,
        _ keys: String,
        permissions: String = "",
        files: [String: String] = [:]
    ) throws {
        let port = try TestAddress.port()
        let network = "network = { purpose = \"Serves\", default = \"allow\", ports = [@P] }\n"
        let toml = (head + keys + "\n[apps.web.permissions]\n" + network + permissions + "\n")
            .replacingOccurrences(of: "@P", with: "\(port)").replacingOccurrences(of: "@M", with: mode)
        let files = files.mapValues { $0.replacingOccurrences(of: "@P", with: "\(port)") }
        try withDaemon(toml, files: files) { daemon throws in
            let reply = try daemon.verb(.start, "web")
            #expect(reply.ok, "\(reply) \(daemon.log.suffix(2000))")
            let pid = try #require(try daemon.summary("web").pid)
            #expect(try ProcFS.statusField(pid, "Seccomp") == "2")
            #expect(try ProcFS.statusField(pid, "NoNewPrivs") == "1")
        }
    }

    static func path(_ names: String...) -> String? { names.first { File.isExecutable($0) } }

    @Test("Python's server", arguments: modes)
    func python(_ mode: String) throws {
        let program = """
            import http.server, os, tempfile, threading, subprocess, json
            tempfile.TemporaryFile().write(b"x")
            assert subprocess.run(["/bin/echo", "x"], capture_output=True).stdout == b"x\\n"
            threading.Thread(target=lambda: None).start()
            try:
                open("@D/torpor.toml"); raise SystemExit("it reads what is root's")
            except PermissionError:
                pass
            class Handler(http.server.BaseHTTPRequestHandler):
                def do_GET(self):
                    self.send_response(200); self.end_headers()
            http.server.HTTPServer(("127.0.0.1", @P), Handler).serve_forever()
            """
        try Self.serve(
            mode,
            "exec = [\"/usr/bin/python3\", \"-S\", \"@D/app.py\"]",
            permissions: "\"files:@D/app.py:ro\" = { purpose = \"Itself\", default = \"allow\" }",
            files: ["app.py": program]
        )
    }

    @Test("Python's locks between processes are in /dev/shm, which an app has to ask for", arguments: modes)
    func locks(_ mode: String) throws {
        let program = """
            import multiprocessing, os, time
            try:
                lock = multiprocessing.Lock()
                child = multiprocessing.get_context("fork").Process(target=lock.acquire)
                child.start(); child.join()
                result = "held" if not lock.acquire(False) else "free"
            except OSError as error:
                result = str(error.errno)
            place = os.environ["TORPOR_STATE_DIRECTORY"] + "/"
            with open(place + "new", "w") as file: file.write(result)
            os.rename(place + "new", place + "result")
            time.sleep(1000)
            """
        let apps = [("closed", ""), ("open", "\"files:/dev/shm\" = { purpose = \"Locks\", default = \"allow\" }")]
        let toml = apps.map { name, permission in
            """
            [apps.\(name)]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            restart = "never"
            sandbox = \(mode)
            [apps.\(name).permissions]
            "files:@D/app.py:ro" = { purpose = "Itself", default = "allow" }
            \(permission)

            """
        }
        try withDaemon(toml.joined(), files: ["app.py": program]) { daemon throws in
            for (app, expected) in [("closed", "13"), ("open", "held")] {
                let path = daemon.directory + "/s/apps/\(app)/result"
                try daemon.eventually("\(app) has tried: \(daemon.log.suffix(1500))") { File.exists(path) }
                #expect(try File.readString(path) == expected, "\(app)")
            }
        }
    }

    @Test("Node", .enabled(if: path("/usr/bin/node") != nil, "needs /usr/bin/node"), arguments: modes)
    func node(_ mode: String) throws {
        let program = """
            const fs = require("fs"), http = require("http"), os = require("os"), path = require("path");
            fs.writeFileSync(path.join(os.tmpdir(), "x"), "x");
            try { fs.readFileSync("@D/torpor.toml"); process.exit(9); } catch (e) { if (e.code !== "EACCES") process.exit(8); }
            http.createServer((request, response) => response.end("yes")).listen(@P, "127.0.0.1");
            """
        try Self.serve(
            mode,
            "exec = [\"/usr/bin/node\", \"@D/app.js\"]",
            permissions: "\"files:@D/app.js:ro\" = { purpose = \"Itself\", default = \"allow\" }",
            files: ["app.js": program]
        )
    }

    @Test("nginx", .enabled(if: path("/usr/sbin/nginx") != nil, "needs /usr/sbin/nginx"), arguments: modes)
    func nginx(_ mode: String) throws {
        let configuration = """
            daemon off; master_process off; pid @D/s/data/web/tmp/pid; error_log stderr;
            events {}
            http {
              access_log off;
              client_body_temp_path @D/s/data/web/tmp/body; proxy_temp_path @D/s/data/web/tmp/proxy;
              fastcgi_temp_path @D/s/data/web/tmp/fastcgi; uwsgi_temp_path @D/s/data/web/tmp/uwsgi;
              scgi_temp_path @D/s/data/web/tmp/scgi;
              server { listen 127.0.0.1:@P; location / { return 200 "yes"; } }
            }
            """
        try Self.serve(
            mode,
            "exec = [\"/usr/sbin/nginx\", \"-e\", \"stderr\", \"-c\", \"@D/nginx.conf\"]",
            permissions: "\"files:@D/nginx.conf:ro\" = { purpose = \"Its configuration\", default = \"allow\" }",
            files: ["nginx.conf": configuration]
        )
    }
}
