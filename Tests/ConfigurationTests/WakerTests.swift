// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Configuration

@Suite("What wakes an app is known before it runs")
struct WakerTests {
    private static func app(_ keys: String) throws -> AppSpecification {
        let loaded = load("[apps.web]\nexec = [\"/bin/web\"]\n" + keys)
        return try #require(try loaded.get().apps.first)
    }

    @Test(
        "a oneshot app that a file launches again and again is warned of, unless it seems to remove the file",
        arguments: [
            ("/srv/x", "", true), ("/srv/x", ", wake = \"none\"", false), ("/srv/*.csv", "", false),
            ("/srv/done", "", false),
        ]
    )
    func lastingPath(path: String, keys: String, isWarnedOf: Bool) throws {
        let entry = "paths = [{ name = \"p\", exists = \"\(path)\"\(keys) }]\n"
        let app = "[apps.web]\nexec = [\"/bin/rm\", \"/srv/done\"]\n" + entry
        let text = "while \"\(path)\" exists, this oneshot app runs again each time it has ended"
        let warnings = try load(app + "type = \"oneshot\"\n").get().warnings
        #expect(warnings.contains { $0.message.hasPrefix(text) } == isWarnedOf, "\(warnings)")
        #expect(try load(app).get().warnings.allSatisfy { !$0.message.contains("oneshot") })
    }

    @Test(
        "each source counts, unless it is told not to wake the app",
        arguments: [
            ("sockets = [{ stream = \"8080\" }]", "sockets = [{ stream = \"8080\", wake = \"none\" }]"),
            (
                "timers = [{ name = \"t\", every = \"1h\" }]",
                "timers = [{ name = \"t\", every = \"1h\", wake = \"none\" }]"
            ),
            (
                "paths = [{ name = \"p\", exists = \"/srv/x\" }]",
                "paths = [{ name = \"p\", exists = \"/srv/x\", wake = \"none\" }]"
            ),
            ("topics = { news = { urgent = true } }", "topics = { news = { wake = \"none\" } }"),
            ("wake_on_connect = true", "wake_on_connect = false"),
            ("background_modes = [\"voip\"]", ""),
        ]
    )
    func sources(waking: String, silent: String) throws {
        let app = try Self.app(waking)
        #expect(app.isWokenByEvents)
        #expect(!app.wakers(connections: app.wakeOnConnect != .none ? ["connections"] : []).isEmpty)
        let other = try Self.app(silent)
        #expect(!other.isWokenByEvents && other.wakers().isEmpty, "\(other.wakers())")
    }
}
