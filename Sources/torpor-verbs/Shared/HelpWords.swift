// SPDX-License-Identifier: Apache-2.0

import WireText

/// Maps words that other tools use to Torpor's words for the same thing.
enum HelpWords {
    /// For each word, the terms of Torpor to search for too, in this order. Keys of the configuration come first.
    static let ours: [String: [String]] = [
        "autorestart": ["restart"],
        "autostart": ["launch"],
        "backoff": ["restart_backoff"],
        "cgroup": ["resources"],
        "compose": ["container", "podman", "import"],
        "core": ["limits", "core dump"],
        "core dump": ["limits"],
        "core file": ["limits", "core dump"],
        "coredump": ["limits", "core dump"],
        "crash": ["restart", "on_failure", "torpor report"],
        "cron": ["timers", "calendar"],
        "crontab": ["timers", "calendar"],
        "cwd": ["directory"],
        "depends_on": ["requires", "after"],
        "docker": ["podman", "compose", "container", "import"],
        "env": ["environment"],
        "environment variable": ["environment", "environment_file"],
        "event listener": ["on_failure", "after_stop"],
        "eventlistener": ["on_failure", "after_stop"],
        "health check": ["health", "ready"],
        "healthcheck": ["health", "ready"],
        "http server": ["dashboard", "torpor-web"],
        "idle": ["background_time", "suspend"],
        "inet_http_server": ["dashboard", "torpor-web"],
        "liveness": ["health"],
        "log rotation": ["log_max_size", "log_max_files", "log_max_age"],
        "logrotate": ["log_max_size", "log_max_files", "log_max_age"],
        "max_memory_restart": ["memory_limit"],
        "onfailure": ["on_failure"],
        "oom": ["memory_limit", "memory"],
        "oom killer": ["memory_limit", "memory"],
        "orphan": ["orphans"],
        "out of memory": ["memory_limit", "memory"],
        "readiness": ["ready"],
        "reload": ["apply", "signals"],
        "retry": ["restart_backoff"],
        "rotate": ["log_max_size", "log_max_files", "log_max_age"],
        "schedule": ["timers", "calendar"],
        "socket activation": ["sockets"],
        "startsecs": ["stable_after"],
        "stopwaitsecs": ["grace"],
        "swap": ["page_out_after"],
        "ulimit": ["limits"],
        "web interface": ["dashboard", "torpor-web"],
        "web ui": ["dashboard", "torpor-web"],
        "workdir": ["directory"],
        "working directory": ["directory"],
        "zombie": ["reap"],
    ]

    /// The phrases to search for: the text itself, then Torpor's words for the same thing.
    static func phrases(for text: String) -> [String] {
        let phrase = HelpText.words(of: text).joined(separator: " ")
        // Plurals match too: `crashes` finds the entry `crash`.
        let found = ours.first { entry in
            HelpText.words(of: entry.key).joined(separator: " ") == phrase
                || HelpText.isSame(HelpText.words(of: text), as: HelpText.words(of: entry.key))
        }
        return [text] + (found?.value ?? [])
    }
}

/// Compares and prepares texts for the search.
enum HelpText {
    /// The words of a text in lower case. `memory_limit` counts as two words.
    static func words(of text: some StringProtocol) -> [String] {
        text.lowercased().utf8.split { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), 0x80...: false
            default: true
            }
        }.map { String(wire: $0) }
    }

    /// Whether two words are equal, or one is a plural or an inflected form of the other: `crash` and `crashes`.
    static func isSame(_ word: String, as wanted: String) -> Bool {
        if word == wanted { return true }
        guard min(word.utf8.count, wanted.utf8.count) >= 3 else { return false }
        let (short, long) = word.utf8.count < wanted.utf8.count ? (word, wanted) : (wanted, word)
        if long.hasPrefix(short) {
            let rest = long.utf8.dropFirst(short.utf8.count)
            let ending = String(wire: rest)
            if ["s", "es", "d", "ed", "ing"].contains(ending) { return true }
            // The last letter of the shorter word may be doubled: `swapped` and `swapping` match `swap`.
            return rest.first == short.utf8.last && ["ed", "ing"].contains(String(ending.dropFirst()))
        }
        return short.hasSuffix("y") && ["ies", "ied"].contains { long == String(short.dropLast()) + $0 }
    }

    static func isSame(_ words: some Collection<String>, as wanted: [String]) -> Bool {
        words.count == wanted.count && zip(words, wanted).allSatisfy { isSame($0, as: $1) }
    }

    /// The index of the first place in `words` where the wanted words follow each other; nil if there is none.
    static func place(of wanted: [String], in words: [String]) -> Int? {
        guard let first = wanted.first, words.count >= wanted.count else { return nil }
        return (0...(words.count - wanted.count)).first { start in
            isSame(words[start], as: first) && isSame(words[start..<(start + wanted.count)], as: wanted)
        }
    }

    /// A line of Markdown as plain text, without markup.
    static func plain(_ text: some StringProtocol) -> String {
        var result = ""
        var rest = Substring(text)
        while let character = rest.first {
            rest = rest.dropFirst()
            switch character {
            case "`", "*": continue
            case "]" where rest.first == "(":
                guard let end = rest.firstIndex(of: ")") else { continue }
                rest = rest[rest.index(after: end)...]
            case "[" where rest.contains("]("), "!" where rest.first == "[": continue
            case "|": result += " "
            default: result.append(character)
            }
        }
        return result.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
    }

    /// The part of a text around the wanted words, cut to a number of columns.
    static func excerpt(_ text: String, around wanted: [String], columns: Int) -> String {
        guard text.count > columns else { return text }
        let parts = text.split(separator: " ").map(String.init)
        let place = parts.indices.first { index in
            HelpText.place(of: Array(wanted.prefix(1)), in: words(of: parts[index])) != nil
        }
        var start = 0
        // Start so that the found word is in the first half of the excerpt.
        if let place, parts[...place].joined(separator: " ").count > columns - 1 {
            start = place
            var width = 0
            while start > 0, width + parts[start - 1].count + 1 < columns / 2 {
                width += parts[start - 1].count + 1
                start -= 1
            }
        }
        let shown = (start > 0 ? "…" : "") + parts[start...].joined(separator: " ")
        return shown.count > columns ? shown.prefix(columns - 1) + "…" : shown
    }
}
