// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Configuration
import Linux

/// What to tell the user about a configuration that a verb has written.
package enum WrittenFile {
    /// Says that the file exists and what to do next. `origin`: what it was made from, if worth saying.
    package static func text(_ file: String, origin: String? = nil) -> String {
        // The system's service reloads these files on request; no second torpord may run beside it.
        let isOfService = ["/etc/torpor/torpor.toml", "/etc/torpor/conf.d"].contains {
            let path = ImportFiles.absolute(file)
            return path == $0 || path.hasPrefix($0 + "/")
        }
        let use =
            isOfService
            ? ["torpor apply"] : hasSupervisor ? inclusion(of: file) : ["torpord --config \(quoted(file))"]
        let steps = ["torpor check \(quoted(file))"] + use + ["torpor list"]
        return "\(Terminal.harmless(file)) is written\(origin.map { ", from \($0)" } ?? ""). Next:"
            + steps.map { "\n  " + $0 }.joined()
    }

    /// Whether a supervisor runs that a second torpord of this user would collide with.
    private static var hasSupervisor: Bool {
        File.exists(ControlSocket.own) && (try? Manager(socket: ControlSocket.own, patience: .seconds(1))) != nil
    }

    /// How the supervisor that runs already comes to read the file where it is, so that its relative paths stay valid.
    private static func inclusion(of file: String) -> [String] {
        let path = ImportFiles.absolute(file)
        let line = "include = [\(Configuration.quoted(path))]"
        guard Users.effectiveUID == 0 else {
            let own = DefaultPaths(environment: ThisProcess.variables, userID: Users.effectiveUID).configuration
            return ["add \(line) to \(Terminal.harmless(own))", "torpor apply"]
        }
        // `shop` of /srv/shop/torpor.toml, `other` of /srv/shop/other.toml.
        let parts = path.split(separator: "/").map(String.init)
        let stem = parts.last.map { $0.hasSuffix(".toml") ? String($0.dropLast(5)) : $0 } ?? ""
        let name = stem == "torpor" && parts.count > 1 ? parts[parts.count - 2] : stem
        return ["echo \(quoted(line)) > \(quoted("/etc/torpor/conf.d/\(name).toml"))", "torpor apply"]
    }

    /// Quotes a path for a shell.
    static func quoted(_ path: String) -> String {
        let isPlain = path.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && !"'\"\\$`&|;<>()*?[]{}~#!".utf8.contains($0) }
        return isPlain ? path : "'" + path.replacing("'", with: "'\\''") + "'"
    }
}
