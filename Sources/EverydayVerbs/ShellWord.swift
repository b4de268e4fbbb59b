// SPDX-License-Identifier: Apache-2.0

package enum ShellWord {
    /// Quotes a path for a shell.
    package static func quoted(_ path: String) -> String {
        let isPlain = path.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && !"'\"\\$`&|;<>()*?[]{}~#!".utf8.contains($0) }
        return isPlain ? path : "'" + path.replacing("'", with: "'\\''") + "'"
    }
}
