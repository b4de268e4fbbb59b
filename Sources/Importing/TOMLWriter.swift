// SPDX-License-Identifier: Apache-2.0

import WireText

extension ImportedConfiguration {
    /// The configuration as the text of a torpor.toml, with remarks as comments.
    public var toml: String {
        var text = head
        let common = commonKeys
        if !common.isEmpty {
            text += "\n[defaults]\n"
            for (key, value) in common { text += Self.line(key, value) }
        }
        for program in programs {
            text += "\n" + (program.isTranslated ? app(program, without: common.map(\.key)) : Self.comment(of: program))
        }
        return text
    }

    private var head: String {
        var text =
            "# \(kind.title), read by ‘torpor import’ from "
            + Self.harmless(LeftOutKeys.list([source] + others)) + ".\n"
        text = text.prefix(2) + text.dropFirst(2).prefix(1).uppercased() + text.dropFirst(3)
        for remark in remarks { text += Self.wrapped(remark.text) }
        if translatedCount == 0 { text += "# It has no program that can become an app.\n" }
        return text
    }

    /// The order in which the keys of an app are written.
    static let order = [
        "title", "type", "exec", "directory", "user", "group", "supplementary_groups", "umask", "nice",
        "environment_file",
        "stdin", "instances", "instance_first", "launch", "ready", "launch_deadline", "requires", "after",
        "before_start", "after_stop", "on_failure",
        "restart", "restart_backoff", "stable_after", "success_exit_status", "stop_signal", "kill_mode", "grace",
        "watchdog", "watchdog_signal", "notify_access", "wake_on_connect", "sockets", "timers", "paths", "memory_limit",
        "priority", "evict",
        "resources", "limits", "log", "stderr", "log_max_size", "log_max_files", "tags", "environment",
    ]

    /// Keys that have the same value in all apps, if there are several apps. Such keys are written only once, in
    /// `[defaults]`.
    private var commonKeys: [(key: String, value: TOMLValue)] {
        let apps = programs.filter(\.isTranslated)
        guard apps.count > 1, let first = apps.first else { return [] }
        let shared = [
            "directory", "umask", "environment_file", "restart", "restart_backoff", "stable_after",
            "success_exit_status", "stop_signal", "kill_mode", "grace", "log", "log_max_size", "log_max_files",
        ]
        return shared.compactMap { key in
            guard let value = first.keys[key], apps.allSatisfy({ $0.keys[key] == value }) else { return nil }
            return (key, value)
        }
    }

    private func app(_ program: ImportedProgram, without common: [String]) -> String {
        var text = ""
        for remark in program.remarks { text += Self.wrapped("\(program.appName): \(remark.text)") }
        text += "[apps.\(TOMLValue.key(program.appName))]\n"
        var tables = ""
        let names = Self.order + program.keys.keys.filter { !Self.order.contains($0) }.sorted()
        for key in names where !common.contains(key) {
            guard let value = program.keys[key] else { continue }
            if case .table(let members) = value, key == "container" || value.text.count + key.count > 100 {
                tables += "\n[apps.\(TOMLValue.key(program.appName)).\(TOMLValue.key(key))]\n"
                for (name, value) in members { tables += Self.line(TOMLValue.key(name), value) }
            } else {
                text += Self.line(key, value)
            }
        }
        for (key, value) in program.refused { text += "# \(key) = \(value.text)\n" }
        return text + tables
    }

    private static func line(_ key: String, _ value: TOMLValue) -> String {
        "\(key) = \(value.text(after: key))\n"
    }

    private static func comment(of program: ImportedProgram) -> String {
        var text = ""
        for remark in program.remarks { text += wrapped("\(program.appName): \(remark.text)") }
        return text + "# [apps.\(TOMLValue.key(program.appName))]\n"
    }

    /// A sentence as a comment that is wrapped into lines.
    static func wrapped(_ sentence: String) -> String {
        var text = ""
        var line = "#"
        for word in harmless(sentence).split(separator: " ") {
            if line.count > 1, line.count + word.count + 1 > 118 {
                text += line + "\n"
                line = "#  "
            }
            line += " " + word
        }
        return text + line + "\n"
    }

    /// The text without control characters, which a comment must not contain.
    static func harmless(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            result.unicodeScalars.append(scalar.steersTerminals ? " " : scalar)
        }
        return result
    }
}
