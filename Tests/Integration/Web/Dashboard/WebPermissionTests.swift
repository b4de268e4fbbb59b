// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("The dashboard and permissions") struct WebPermissionTests {
    @Test("shows what an app asks for and why, and answers it, only for the app that the path names")
    func permissions() throws {
        let toml = """
            [apps.door]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            sandbox = true
            [apps.door.permissions]
            camera = { purpose = { default = "Who is there", de = "Wer da ist" } }
            "files:/srv:ro" = { purpose = "Reads" }

            """
        try withDaemon(toml + Apps.sleeper("other")) { daemon in
            let web = try WebFixture(daemon)
            defer { web.end() }
            func infos(_ app: String) throws -> [PermissionInfo] {
                let answer = try web.ask("/api/v1/apps/\(app)/permissions")
                #expect(answer.status == 200)
                return try (answer.json["permissions"]?.arrayValue ?? []).map { try PermissionInfo(json: $0) }
            }
            #expect(try infos("door").map { "\($0.name) \($0.state)" } == ["camera asked", "files:/srv:ro asked"])
            #expect(try infos("door").first?.purposes["de"] == "Wer da ist" && infos("other").isEmpty)
            for (path, body, status) in [
                ("other", "{\"name\":\"camera\",\"answer\":\"allow\"}", 409),
                ("no", "{\"name\":\"camera\",\"answer\":\"allow\"}", 404),
                ("door", "{\"name\":\"gpu\",\"answer\":\"allow\"}", 409),
                ("door", "{\"name\":\"camera\",\"answer\":\"perhaps\"}", 400),
                ("door", "{\"answer\":\"allow\"}", 400), ("door", "{\"name\":\"camera\"}", 400),
                ("door", "{\"name\":\"camera\",\"answer\":\"allow\",\"by\":\"me\"}", 400),
            ] as [(String, String, Int)] {
                #expect(try web.post("/api/v1/apps/\(path)/permissions", body).status == status, "\(path) \(body)")
            }
            #expect(try infos("door").allSatisfy { $0.state == "asked" })
            for (answer, state) in [("allow", "allowed"), ("deny", "denied"), ("reset", "asked")] {
                let body = "{\"name\":\"files:/srv:ro\",\"answer\":\"\(answer)\"}"
                #expect(try web.post("/api/v1/apps/door/permissions", body).status == 200)
                #expect(try infos("door").map(\.state) == ["asked", state])
            }
            #expect(try web.ask("/permissions.js").status == 200)
        }
    }
}
