// SPDX-License-Identifier: Apache-2.0

import CommandLinePages

/// What is said of a configuration that a verb has written.
package enum WrittenFile {
    /// That it is there, and what to do next. `origin`: what it was made of, if that is to be said.
    package static func text(_ file: String, origin: String? = nil) -> String {
        // What the service reads counts when it is told to read it again; beside it no other torpord may run.
        let isOfService = ["/etc/torpor/torpor.toml", "/etc/torpor/conf.d"].contains {
            let path = ImportFiles.absolute(file)
            return path == $0 || path.hasPrefix($0 + "/")
        }
        return """
            \(Terminal.harmless(file)) is written\(origin.map { ", from \($0)" } ?? ""). Next:
              torpor check \(quoted(file))
              \(isOfService ? "torpor apply" : "torpord --config \(quoted(file))")
              torpor list
            """
    }

    /// As a word for a shell.
    static func quoted(_ path: String) -> String {
        let isPlain = path.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && !"'\"\\$`&|;<>()*?[]{}~#!".utf8.contains($0) }
        return isPlain ? path : "'" + path.replacing("'", with: "'\\''") + "'"
    }
}
