// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// Programs of this machine in containers: they sleep between requests, and answer each of them.
@Suite(
    "Real programs in containers",
    .enabled(if: Podman.isThere, "podman, crun and gcc are needed"),
    .enabled(if: Users.isRoot, "cgroup v2 is mounted alone, which only root may")
)
struct RealProgramTests {
    enum Program: String, CaseIterable {
        case nginx, postgres, python, redis

        private static let database = ((try? File.list("/usr/lib/postgresql")) ?? []).sorted().last.map {
            "/usr/lib/postgresql/\($0)/bin"
        }

        var isThere: Bool {
            switch self {
            case .nginx: File.isExecutable("/usr/sbin/nginx")
            case .postgres: Self.database.map { File.isExecutable($0 + "/initdb") } ?? false
            case .python: File.isExecutable("/usr/bin/python3")
            case .redis: ["server", "cli"].allSatisfy { File.isExecutable("/usr/bin/redis-\($0)") }
            }
        }

        var port: Int { self == .postgres ? 5432 : 80 }
        var user: String { self == .postgres ? "65534:65534" : "0:0" }

        /// What a shell in the container runs, in a folder of its own.
        var command: String {
            switch self {
            case .nginx: "exec /usr/sbin/nginx -e stderr -p /work/ -c /work/nginx.conf"
            case .postgres:
                "set -e; \(Self.database ?? "")/initdb -D data -A trust --no-locale -N >/dev/null; "
                    + "echo host all all all trust >>data/pg_hba.conf; "
                    + "exec \(Self.database ?? "")/postgres -D data -k /work -c listen_addresses=0.0.0.0"
            case .python: "exec /usr/bin/python3 -m http.server 80"
            case .redis: "exec /usr/bin/redis-server --bind 0.0.0.0 --port 80 --protected-mode no --save ''"
            }
        }

        /// A request, and its answer.
        var request: (words: [String], answer: String) {
            switch self {
            case .nginx, .python: (["/usr/bin/curl", "-sS", "--max-time", "60", "http://127.0.0.1:8080/answer"], "42")
            case .postgres:
                (
                    [
                        "\(Self.database ?? "")/psql", "-h", "127.0.0.1", "-p", "8080", "-U", "nobody", "-d",
                        "postgres", "-Atc", "select 6 * 7",
                    ], "42\n"
                )
            case .redis: (redis(["eval", "redis.call('incr', 'asked') return 6 * 7", "0"]), "42\n")
            }
        }

        /// A command of redis-cli(1).
        func redis(_ words: [String]) -> [String] { ["/usr/bin/redis-cli", "-h", "127.0.0.1", "-p", "8080"] + words }
    }

    private static let nginx = """
        daemon off;
        user root;
        worker_processes 1;
        pid /work/nginx.pid;
        events {}
        http {
            access_log off;
            client_body_temp_path /work/1;
            proxy_temp_path /work/2;
            fastcgi_temp_path /work/3;
            uwsgi_temp_path /work/4;
            scgi_temp_path /work/5;
            server { listen 80; root /work; }
        }

        """
    /// A longer run: TORPOR_ROUNDS=200.
    private static let rounds = ThisProcess.environment("TORPOR_ROUNDS").flatMap { Int($0) } ?? 25

    @Test("Asleep and woken by a request again and again, no request fails", arguments: Program.allCases)
    func wakes(_ program: Program) throws {
        guard program.isThere else { return print("\(program) is not tested: it is not here") }
        let work = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: work) }
        try File.write(work + "/nginx.conf", Self.nginx)
        try File.write(work + "/answer", "42")
        chmod(work, 0o755)
        if program == .postgres { chown(work, 65534, 65534) }
        let machine = ["/bin", "/etc", "/lib", "/lib64", "/usr"].map { "\"\($0):\($0):ro\"" }.joined(separator: ", ")
        let toml = """
            [apps.web]
            exec = ["\(program.command)"]
            launch = "on-demand"
            launch_deadline = "1min"
            background_time = "1min"
            event_time = "1min"
            grace = "30s"
            wake_on_connect = true
            [apps.web.container]
            image = "localhost/small"
            entrypoint = ["/bin/sh", "-c"]
            directory = "/work"
            user = "\(program.user)"
            ports = ["127.0.0.1:8080:\(program.port)"]
            volumes = [\(machine), "\(work):/work"]

            """
        try withPodman(toml, hasNetwork: true) { daemon, podman throws in
            try daemon.done(.start, "web")
            let enter = ["/usr/bin/nsenter", "--target", "\(try daemon.livingKeeper())", "--net"]
            let (words, answer) = program.request
            try daemon.eventually("it answers") { try Spawn.run(enter + words).output == answer }
            let run = try daemon.summary("web").incarnation
            var asleep = 0
            for round in 0..<Self.rounds {
                try daemon.done(.suspend, "web")
                if try daemon.summary("web").state == "suspended" { asleep += 1 }
                let (code, output) = try Spawn.run(enter + words)
                #expect(code == 0 && output == answer, "round \(round): \(output)")
            }
            // The end of the last connection may have woken it before.
            #expect(asleep > Self.rounds / 2)
            #expect(try daemon.summary("web").incarnation == run)
            if program == .redis {
                // Each request was counted once, in memory that no sleep lost: redis writes no file here.
                #expect(try Spawn.run(enter + program.redis(["get", "asked"])).output == "\(Self.rounds + 1)\n")
            }
            try daemon.done(.stop, "web")
            #expect(try podman.containers(daemon).isEmpty)
        }
    }
}
