// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Testing

extension TopTests {
    /// Runs with a daemon and a screen; neither leaves anything.
    static func withScreen(
        columns: Int = 80,
        rows: Int = 24,
        options: String = "",
        variables: String = "",
        toml: String = TopTests.toml,
        _ body: (Daemon, Screen) throws -> Void
    ) throws {
        guard Screen.isThere else {
            print("skipped: there is no /usr/bin/tmux here")
            return
        }
        try withDaemon(toml) { daemon throws in
            try daemon.waitFor("web", "active")
            let screen = try Screen(daemon, columns: columns, rows: rows, options: options, variables: variables)
            defer { screen.close() }
            try body(daemon, screen)
            screen.close()
        }
    }
}
