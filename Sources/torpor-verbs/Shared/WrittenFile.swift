// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Configuration
import EverydayVerbs
import Linux

/// Texts for the user about a configuration file that a verb has written.
package enum WrittenFile {
    /// A text that says that the file was written, and what to do next. `origin`: what the file was made from; nil if
    /// the text need not name it.
    package static func text(_ file: String, origin: String? = nil) -> String {
        // These files belong to the system's service, which reloads them on request. A second torpord must not run
        // beside the service.
        let isOfService = ["/etc/torpor/torpor.toml", "/etc/torpor/conf.d"].contains {
            let path = ImportFiles.absolute(file)
            return path == $0 || path.hasPrefix($0 + "/")
        }
        let use: [String]
        if isOfService, Users.effectiveUID != 0 {
            use = ["torpor apply"]
        } else if isOfService || isDefault(file) {
            use = [hasSupervisor ? "torpor apply" : service ?? "torpord"]
        } else {
            use = hasSupervisor ? inclusion(of: file) : ["torpord --config \(ShellWord.quoted(file))"]
        }
        let steps = ["torpor check \(ShellWord.quoted(file))"] + use + ["torpor list"]
        return "\(Terminal.harmless(file)) is written\(origin.map { ", from \($0)" } ?? ""). Next:"
            + steps.map { "\n  " + $0 }.joined()
    }

    /// Whether torpord reads the file if no other is named.
    private static func isDefault(_ file: String) -> Bool {
        let own = DefaultPaths(environment: ThisProcess.variables, userID: Users.effectiveUID).configuration
        return ImportFiles.absolute(file) == ImportFiles.absolute(own)
    }

    /// The command that starts torpord as a service of the machine, or of this user; nil without systemd, or if its
    /// unit is not installed.
    private static var service: String? {
        let isOfUser = Users.effectiveUID != 0
        let unit = "systemd/\(isOfUser ? "user" : "system")/torpord.service"
        guard File.exists("/run/systemd/system"),
            ["/etc/", "/usr/local/lib/", "/usr/lib/", "/lib/"].contains(where: { File.exists($0 + unit) })
        else { return nil }
        return "systemctl \(isOfUser ? "--user " : "")enable --now torpord"
    }

    /// Whether a supervisor runs that would conflict with a second torpord of this user.
    private static var hasSupervisor: Bool {
        File.exists(ControlSocket.own) && (try? Manager(socket: ControlSocket.own, patience: .seconds(1))) != nil
    }

    /// How to make the running supervisor include the file. The file stays in its folder, so that its relative paths
    /// stay valid.
    private static func inclusion(of file: String) -> [String] {
        let path = ImportFiles.absolute(file)
        let line = "include = [\(Configuration.quoted(path))]"
        guard Users.effectiveUID == 0 else {
            let own = DefaultPaths(environment: ThisProcess.variables, userID: Users.effectiveUID).configuration
            return ["add \(line) to \(Terminal.harmless(own))", "torpor apply"]
        }
        // Suggest the name `shop` for /srv/shop/torpor.toml, and `other` for /srv/shop/other.toml.
        let parts = path.split(separator: "/").map(String.init)
        let stem = parts.last.map { $0.hasSuffix(".toml") ? String($0.dropLast(5)) : $0 } ?? ""
        let name = stem == "torpor" && parts.count > 1 ? parts[parts.count - 2] : stem
        let target = ShellWord.quoted("/etc/torpor/conf.d/\(name).toml")
        return ["echo \(ShellWord.quoted(line)) > \(target)", "torpor apply"]
    }
}
