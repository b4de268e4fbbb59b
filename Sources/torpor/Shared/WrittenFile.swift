// SPDX-License-Identifier: Apache-2.0

import CommandLinePages

/// What to tell the user about a configuration that a verb has written.
package enum WrittenFile {
    /// Says that the file exists and what to do next. `origin`: what it was made from, if worth saying.
    package static func text(_ file: String, origin: String? = nil) -> String {
        // The system's service reloads these files on request; no second torpord may run beside it.
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

    /// Quotes a path for a shell.
    static func quoted(_ path: String) -> String {
        let isPlain = path.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && !"'\"\\$`&|;<>()*?[]{}~#!".utf8.contains($0) }
        return isPlain ? path : "'" + path.replacing("'", with: "'\\''") + "'"
    }
}
