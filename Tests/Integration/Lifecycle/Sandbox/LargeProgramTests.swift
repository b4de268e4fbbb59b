// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI

/// A database and a browser: programs of many processes, which use more of the kernel than a server does.
@Suite(
    "Large programs in a sandbox",
    .enabled(if: Confinement.isAvailable() && Users.isRoot, "needs root, and a kernel with Landlock")
) struct LargeProgramTests {
    static let head = """
        user = "nobody"
        launch = "on-demand"
        restart = "never"
        launch_deadline = "60s"
        data_folders = true
        sandbox = true

        """

    /// What every user may read, but nothing in a sandbox.
    static let secret = "withheld from sandboxes"

    /// Starts an app and waits until it is ready, which takes long on a loaded machine.
    static func start(_ app: String, _ daemon: Daemon) throws {
        try daemon.done(.start, app) { $0.wait = false }
        try daemon.waitFor(app, "active")
        let pid = try #require(try daemon.summary(app).pid)
        #expect(try ProcFS.statusField(pid, "NoNewPrivs") == "1")
        #expect(try ProcFS.statusField(pid, "Seccomp_filters") == "1")
    }

    /// Words that make a command the user nobody's.
    static let asNobody = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

    // MARK: PostgreSQL

    /// The folder of the newest PostgreSQL's programs, where Debian's packages have it.
    static let postgres: String? = {
        let versions = ((try? File.list("/usr/lib/postgresql")) ?? []).compactMap { Int($0) }.sorted(by: >)
        return versions.map { "/usr/lib/postgresql/\($0)/bin" }.first {
            File.isExecutable($0 + "/initdb") && File.isExecutable($0 + "/psql")
        }
    }()

    @Test(
        "PostgreSQL makes a database, answers by its socket and keeps its rows, but reads no file of others",
        .enabled(if: postgres != nil, "needs the package postgresql: make test installs it"),
        arguments: SandboxedProgramTests.modes
    )
    func database(_ mode: String) throws {
        let programs = try #require(Self.postgres)
        let toml = """
            [apps.db]
            exec = ["/bin/sh", "@D/db.sh"]
            stop_signal = "SIGINT"
            ready = { command = ["\(programs)/pg_isready", "-q", "-h", "@D/s/data/db/tmp"], interval = "200ms" }
            \(Self.head.replacing("sandbox = true", with: "sandbox = \(mode)"))
            [apps.db.permissions]
            "files:@D/db.sh:ro" = { purpose = "How it starts", default = "allow" }
            """
        // Nothing is synced: the machine of a test does not lose its power.
        let script = """
            set -e
            data=$TORPOR_DOCUMENTS/db
            [ -f "$data/PG_VERSION" ] || \(programs)/initdb --auth=peer --no-locale --no-sync -D "$data"
            exec \(programs)/postgres -F -D "$data" -k "$TMPDIR" -c listen_addresses=
            """
        try withDaemon(toml, files: ["db.sh": script, "secret": Self.secret]) { daemon throws in
            func query(_ words: String...) throws -> (code: Int32, output: String) {
                let psql = [programs + "/psql", "-XqtA", "-h", daemon.directory + "/s/data/db/tmp", "-d", "postgres"]
                return try Spawn.run(Self.asNobody + psql + words.flatMap { ["-c", $0] })
            }
            try Self.start("db", daemon)
            #expect(try query("create table t as select generate_series(1, 1000) n").code == 0)
            // Workers share memory with the server that asked them.
            let plan = try query(
                "set parallel_setup_cost = 0; set parallel_tuple_cost = 0; set min_parallel_table_scan_size = 0",
                "explain (analyze, costs off, timing off) select sum(n) from t"
            )
            #expect(plan.output.contains("Workers Launched: "), "\(plan.output)")
            #expect(!plan.output.contains("Workers Launched: 0"), "\(plan.output)")

            let file = try query("select pg_read_file('\(daemon.directory)/secret')")
            #expect(file.code != 0 && file.output.contains("Permission denied"), "\(file.output)")
            let program = try query(
                "create temp table s (line text)",
                "copy s from program 'cat \(daemon.directory)/secret'"
            )
            #expect(program.code != 0 && program.output.contains("exit code 1"), "\(program.output)")

            try daemon.done(.stop, "db")
            try daemon.waitFor("db", "not-running")
            try Self.start("db", daemon)
            #expect(try query("select sum(n) from t").output == "500500\n")
        }
    }

    // MARK: Chromium

    static let chromium = "/usr/bin/chromium"

    /// Whether the user nobody may make the namespaces of which a browser makes its own sandbox.
    static func hasNamespaces() throws -> Bool {
        let words = ["/usr/bin/unshare", "--user", "--net", "--pid", "--fork", "/bin/true"]
        return try Spawn.run(asNobody + words).code == 0
    }

    /// A server at `@P` of a page whose script asks for another page; the server notes that one.
    static let page = """
        [apps.page]
        exec = ["/usr/bin/python3", "-S", "@D/page.py"]
        ready = { http = "http://127.0.0.1:@P/ready", interval = "100ms" }
        launch = "on-demand"

        """

    static let server = """
        import http.server
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path.startswith("/sum"): open("@D" + self.path, "w").close()
                self.send_response(200); self.send_header("Content-Type", "text/html"); self.end_headers()
                self.wfile.write(b"<p id=x></p><script>x.textContent = 'sum ' + (20 + 22);"
                    b"if (location.pathname == '/') fetch('/sum-' + (20 + 22))</script>")
        http.server.ThreadingHTTPServer(("127.0.0.1", @P), Handler).serve_forever()
        """

    /// A browser as an app.
    static func browser(_ name: String, _ arguments: [String], _ permissions: String) -> String {
        let profile = "@D/s/data/\(name)/documents"
        let words = [chromium, "--headless", "--disable-dev-shm-usage", "--user-data-dir=\(profile)/profile"]
        return """
            [apps.\(name)]
            exec = [\((words + arguments).map { "\"\($0)\"" }.joined(separator: ", "))]
            environment = { HOME = "\(profile)" }
            \(head)
            [apps.\(name).permissions]
            \(permissions)

            """
    }

    static func withBrowsers(_ apps: String, _ body: (Daemon) throws -> Void) throws {
        let (port, other) = (try TestAddress.port(), try TestAddress.port())
        func filled(_ text: String) -> String {
            text.replacingOccurrences(of: "@P", with: "\(port)").replacingOccurrences(of: "@Q", with: "\(other)")
        }
        try withDaemon(
            filled(page + apps),
            files: ["page.py": filled(server), "secret.html": "<p>\(secret)</p>"]
        ) { daemon throws in
            try daemon.done(.start, "page")
            try body(daemon)
        }
    }

    @Test(
        "Chromium shows a page with the network alone, and no file of others",
        .enabled(if: File.isExecutable(chromium), "needs the package chromium: make test installs it")
    )
    func chromiumAlone() throws {
        let network = "network = { purpose = \"Loads pages\", default = \"allow\", ports = [@P] }"
        let pages = ["web": "http://127.0.0.1:@P/", "peek": "file://@D/secret.html"]
        let apps = pages.map { Self.browser($0.key, ["--no-sandbox", "--dump-dom", $0.value], network) }
        try Self.withBrowsers(apps.joined()) { daemon throws in
            func output(_ app: String) -> String {
                (try? File.readString(daemon.directory + "/l/\(app).log")) ?? ""
            }
            for app in pages.keys { try daemon.done(.start, app) }
            try daemon.eventually("the page is shown: \(output("web").suffix(2000))") {
                output("web").contains(">sum 42</p>")
            }
            try daemon.eventually("the file is withheld: \(output("peek").suffix(2000))") {
                output("peek").contains("ERR_ACCESS_DENIED")
            }
            #expect(!output("peek").contains(Self.secret))
        }
    }

    @Test(
        "Chromium's own sandbox works in ours, if it may write to /proc",
        .enabled(if: File.isExecutable(chromium), "needs the package chromium: make test installs it"),
        .enabled(if: try hasNamespaces(), "needs user namespaces that any user may make")
    )
    func chromiumWithin() throws {
        let permissions = """
            network = { purpose = "Loads pages", default = "allow", ports = [@P, @Q] }
            "files:/proc" = { purpose = "Its own sandbox", default = "allow" }
            """
        let app = Self.browser("web", ["--remote-debugging-port=@Q", "http://127.0.0.1:@P/"], permissions)
        try Self.withBrowsers(app) { daemon throws in
            try Self.start("web", daemon)
            try daemon.eventually("a script of the page has run") { File.exists(daemon.directory + "/sum-42") }
            let browser = try #require(try daemon.summary("web").pid)
            let outer = Self.namespaces(browser)
            // A renderer has the filter of the app until it makes its own.
            try daemon.eventually("every renderer is in a sandbox of its own") {
                let renderers = Self.descendants(browser).filter { pid in
                    ((try? ProcFS.cmdline(pid)) ?? []).joined(separator: " ").contains("--type=renderer")
                }
                return !renderers.isEmpty
                    && renderers.allSatisfy { pid in
                        let inner = Self.namespaces(pid)
                        let filters = (try? ProcFS.statusField(pid, "Seccomp_filters")).flatMap { $0 }
                        return inner.count == 3 && inner.isDisjoint(with: outer) && filters == "2"
                    }
            }
        }
    }

    /// The processes below one. The browser overwrites the environment of its processes, by which others are found.
    static func descendants(_ pid: Int32) -> [Int32] {
        let children = (try? ProcFS.children(pid)) ?? []
        return children + children.flatMap { descendants($0) }
    }

    /// The namespaces of a process that separate it from users, networks and processes.
    static func namespaces(_ pid: Int32) -> Set<String> {
        Set(["user", "net", "pid"].compactMap { try? File.readLink("/proc/\(pid)/ns/\($0)") })
    }
}
