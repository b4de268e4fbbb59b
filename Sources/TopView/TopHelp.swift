// SPDX-License-Identifier: Apache-2.0

/// The keys, for the help page and `torpor top --help`.
public enum TopHelp {
    /// Keys and what they do.
    public static let keys: [(keys: String, what: String)] = [
        ("↑ ↓ j k", "select an app; PgUp, PgDn, Home and End too"),
        ("Enter i", "show everything about it (‘torpor status’)"),
        ("t", "show the timeline; + and - zoom, from 1 minute to 24 hours"),
        ("l", "follow its output; ← → scroll long lines"),
        ("e", "show events; a: only those of this app"),
        ("f b s", "bring to the foreground, send to the background, suspend"),
        ("S x R", "start, stop, restart"),
        ("K", "force quit (asks first)"),
        ("H", "hold: no suspending for 10 min; press again to end it"),
        ("Space", "mark an app, so that keys act on several; u unmarks all"),
        ("/", "filter apps by name or state; Esc ends the filter"),
        ("o O", "sort by name, state, memory, cpu, last event"),
        ("m", "switch the sparklines between processor time and memory"),
        ("q Esc", "go back; q in the list quits, Ctrl-C quits anywhere"),
        ("?", "this help"),
    ]

    /// All keys in one paragraph, for `--help`.
    public static var text: String {
        keys.map { "\($0.keys): \($0.what)." }.joined(separator: " ")
    }

    /// The lines of the help page.
    static var lines: [String] {
        keys.map { key in
            "  " + key.keys + String(repeating: " ", count: max(1, 10 - DisplayText.width(key.keys))) + key.what
        } + ["", "  States:"]
            + ShownState.allCases.map { state in "STATE\(state.rawValue)" }
    }
}
