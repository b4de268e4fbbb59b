// SPDX-License-Identifier: Apache-2.0

import WireText

/// Adds remarks about files of tmpfiles.d(5) and sysusers.d(5) that have the name of a service. They make folders and
/// users that the service needs, and the import translates none of them.
struct SystemdFolders {
    /// Where systemd looks for such folders.
    private static let usual = ["/etc", "/run", "/usr/local/lib", "/usr/lib"]

    private let tree: SourceTree
    /// The names in folders, since most services ask about the same ones.
    private var listed: [String: Set<WireText>] = [:]

    init(_ tree: SourceTree) { self.tree = tree }

    mutating func add(_ unit: SystemdUnit, to program: inout ImportedProgram) {
        let file = unit.name.prefix { $0 != "@" } + ".conf"
        if let path = find(String(file), unit.isUser ? "user-tmpfiles.d" : "tmpfiles.d", of: unit) {
            program.remark(
                "\(path) makes files and folders for it: systemd does so at boot as before; where systemd does not run, "
                    + "make them with before_start"
            )
        }
        if !unit.isUser, let path = find(String(file), "sysusers.d", of: unit) {
            program.remark("\(path) makes a user or group for it: on another machine, create that first")
        }
    }

    /// The path of a file in one of the folders with this name; nil if there is none.
    private mutating func find(_ file: String, _ folder: String, of unit: SystemdUnit) -> String? {
        var places = Self.usual
        // The service may be in the files of a package, as in build/usr/lib/systemd/system.
        let parts = unit.path.split(separator: "/", omittingEmptySubsequences: false)
        if let end = parts.lastIndex(of: "systemd") {
            let own = parts[..<end].joined(separator: "/")
            if !places.contains(own) { places.insert(own, at: 0) }
        }
        for place in places where contains(file, "\(place)/\(folder)") { return "\(place)/\(folder)/\(file)" }
        return nil
    }

    private mutating func contains(_ file: String, _ folder: String) -> Bool {
        let names = listed[folder] ?? Set((tree.names(folder) ?? []).map(WireText.init))
        listed[folder] = names
        return names.contains(WireText(file))
    }
}
