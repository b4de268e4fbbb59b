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
