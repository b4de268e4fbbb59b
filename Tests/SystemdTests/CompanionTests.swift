// SPDX-License-Identifier: Apache-2.0

import TestMachine
import Testing

extension Booted {
    /// The packages beside Torpor's own, each with a service that is shut in as far as it goes.
    @Suite("The dashboard and the gateway", .serialized) struct CompanionTests {
        /// What a request over HTTP is answered, head and body; there is no client but bash in there.
        private static func http(
            _ machine: Container,
            _ place: String,
            _ headers: [String],
            body: String? = nil
        ) throws -> String {
            let parts = place.split(separator: " ")
            let port = parts[0]
            var lines = ["\(parts[1]) \(parts[2]) HTTP/1.1", "Host: 127.0.0.1:\(port)", "Connection: close"] + headers
            if let body { lines.append("Content-Length: \(body.utf8.count)") }
            try machine.write("/root/request", (lines + ["", body ?? ""]).joined(separator: "\r\n"))
            let script = "exec 3<>/dev/tcp/127.0.0.1/\(port) && cat /root/request >&3 && timeout 30 cat <&3"
            return try machine.done("bash -c '\(script)' | tr -d '\\r'")
        }

        private static func status(_ answer: String) -> String? {
            answer.split(separator: "\n").first?.split(separator: " ").dropFirst().first.map(String.init)
        }

        /// A machine with the apps, on which who is in the configuration may do what it says; as it was in the end.
        private static func withRights(
            _ rights: String,
            _ apps: String,
            package: String,
            _ unit: String,
            _ body: (Container) throws -> Void
        ) throws {
            let machine = try service(apps, start: false)
            let path = "/etc/torpor/torpor.toml"
            let before = try machine.read(path)
            defer {
                _ = try? machine.run(
                    "dpkg -P \(unit); rm -rf /etc/torpor/gateway* /etc/torpor/conf.d/* /etc/torpor/web.svg"
                )
                try? machine.write(path, before)
                _ = try? machine.run("systemctl stop torpord")
            }
            try machine.put(package, "/root/\(unit).deb")
            try machine.done("dpkg -i /root/\(unit).deb")
            #expect(try machine.run("systemctl is-enabled \(unit)").text == "disabled")
            try machine.write(path, before.replacing("\n[supervisor]\n", with: "\n[supervisor]\n\(rights)\n"))
            try machine.done("systemctl start torpord")
            try body(machine)
            try expectNothing(machine, "systemd-analyze verify --man=no \(unit).service 2>&1")
            try expectNothing(machine, "systemctl --failed --plain --no-legend")
            print(try machine.done("systemd-analyze security --no-pager \(unit) | tail -n 1"))
            // In its mount namespace nothing but itself can be executed.
            let other = try machine.run("nsenter --mount --target \(machine.mainPid(unit)) /bin/true 2>&1")
            #expect(!other.ok && other.text.contains("Permission denied"), "\(other.text)")
            try machine.done("systemctl stop \(unit)")
            #expect(try machine.done("systemctl show -P Result \(unit)") == "success")
        }

        @Test("torpor-web, as its unit runs it, shows apps to who has the token, and changes them where it may")
        func dashboard() throws {
            let apps = app("web", nil, "title = \"Shop\"\nicon = \"/etc/torpor/web.svg\"")
            let rights = "readers = [\"torpor\"]\noperators = [\"torpor\"]"
            try Self.withRights(rights, apps, package: webPackage, "torpor-web") { machine in
                try machine.write("/etc/torpor/web.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>")
                try machine.waitFor("web", in: "active")
                try machine.done("systemctl enable --now torpor-web")
                #expect(try machine.done("stat -c %U:%a /var/lib/torpor-web/token") == "torpor-web:600")
                let bearer = ["Authorization: Bearer \(try machine.done("cat /var/lib/torpor-web/token"))"]
                func get(_ path: String) throws -> String { try Self.http(machine, "7878 GET \(path)", bearer) }
                #expect(Self.status(try Self.http(machine, "7878 GET /api/v1/apps", [])) == "401")
                let apps = try get("/api/v1/apps")
                #expect(apps.contains("\"title\":\"Shop\"") && apps.contains("\"state\":\"active\""), "\(apps)")
                #expect(try get("/api/v1/apps/web/icon").contains("Content-Type: image/svg+xml"))
                let metrics = try get("/metrics")
                #expect(metrics.contains("torpor_app_state{"), "\(metrics.prefix(1000))")
                let verb = "7878 POST /api/v1/apps/web/suspend"
                let headers = bearer + ["X-Torpor-Request: 1", "Content-Type: application/json"]
                let done = try Self.http(machine, verb, headers, body: "{}")
                #expect(Self.status(done) == "200", "\(done)")
                #expect(try machine.letter(try #require(try machine.app("web").pid)) == "T")
                // systemd starts it again, and the token stays.
                let before = try machine.mainPid("torpor-web")
                try machine.done("systemctl kill -s KILL torpor-web")
                try machine.eventually("torpor-web is there again", within: 20) {
                    guard try machine.run("systemctl is-active torpor-web").text == "active" else { return false }
                    return try machine.mainPid("torpor-web") != before
                }
                #expect(try get("/api/v1/apps").contains("\"title\":\"Shop\""))
            }
        }

        @Test("torpor-gateway, as its unit runs it, posts what comes with a token and wakes the app")
        func gateway() throws {
            let keys = "background_modes = [\"remote-notification\"]\ntopics = { orders = \"all\" }"
            let rights = "posters = [\"torpor-gateway\"]"
            try Self.withRights(rights, app("shop", nil, keys), package: gatewayPackage, "torpor-gateway") { machine in
                let endpoint = "[gateway.http]\nlisten = \"127.0.0.1:8780\"\n"
                let token = "[[gateway.http.tokens]]\nname = \"ci\"\nsecret = \"ci\"\napps = [\"shop\"]\n"
                try machine.write("/etc/torpor/gateway.toml", endpoint + token)
                let secret = String(repeating: "7", count: 64)
                try machine.write("/etc/torpor/gateway-secrets/ci", secret)
                try machine.done("chmod 600 /etc/torpor/gateway-secrets/ci")
                try machine.waitFor("shop", in: "active")
                try machine.done("torpor background shop && torpor suspend shop && systemctl start torpor-gateway")
                let pid = try #require(try machine.app("shop").pid)
                #expect(try machine.letter(pid) == "T")
                func post(_ token: String) throws -> String {
                    let headers = [
                        "Authorization: Bearer \(token)", "Content-Type: application/json", "Content-Available: 1",
                    ]
                    return try Self.http(machine, "8780 POST /apps/shop/orders", headers, body: "{\"order\": 17}")
                }
                #expect(Self.status(try post("wrong")) == "401")
                #expect(try machine.letter(pid) == "T")
                let posted = try post(secret)
                #expect(Self.status(posted) == "202" && posted.contains("\"outcome\":\"woken\""), "\(posted)")
                try machine.eventually("the app runs") { try machine.letter(pid) != "T" }
                #expect(try machine.app("shop").pid == pid)
            }
        }
    }
}
