// SPDX-License-Identifier: Apache-2.0

/// The keys, as help and `torpor top --help` tell them.
public enum TopHelp {
    /// Keys and what they do.
    public static let keys: [(keys: String, what: String)] = [
        ("↑ ↓ j k", "go to an app; PgUp, PgDn, Home, End likewise"),
        ("Enter i", "everything about it (‘torpor status’)"),
        ("t", "timeline: a lane an app; + and - from a minute to 24 hours"),
        ("l", "what it writes, as it comes; ← → show long lines"),
        ("e", "what happened; a: only to this app"),
        ("f b s", "to the foreground, to the background, suspend"),
        ("S x R", "start, stop, restart"),
        ("K", "force quit (asks first)"),
        ("H", "hold it in the background for 10 min; once more ends that"),
        ("Space", "mark, so that keys act on several; u unmarks all"),
        ("/", "only apps with a text in name or state; Esc ends it"),
        ("o O", "sort by name, state, memory, cpu, last event"),
        ("m", "sparklines of processor time, or of memory"),
        ("q Esc", "back; q in the list ends it, Ctrl-C everywhere"),
        ("?", "this"),
    ]

    /// The keys in one text, for `--help`.
    public static var text: String {
        keys.map { "\($0.keys): \($0.what)." }.joined(separator: " ")
    }

    /// The page.
    static var lines: [String] {
        keys.map { key in
            "  " + key.keys + String(repeating: " ", count: max(1, 10 - DisplayText.width(key.keys))) + key.what
        } + ["", "  States:"]
            + ShownState.allCases.map { state in "STATE\(state.rawValue)" }
    }
}
