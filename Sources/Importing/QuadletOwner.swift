// SPDX-License-Identifier: Apache-2.0

/// The user whose podman runs a Quadlet unit, determined from the unit's path.
struct QuadletOwner {
    private enum Kind {
        /// The unit belongs to root, who runs the units of the machine, or to the user who imports it.
        case own
        case user(String)
        case unknown(String)
    }

    private var kind = Kind.own
    /// The values of specifiers that depend on the user; nil if they are not known here.
    private(set) var specifiers: [Character: String?] = [:]

    init(path: String, tree: SourceTree) {
        if let begin = path.firstRange(of: "/containers/systemd/users/") {
            let rest = path[begin.upperBound...].split(separator: "/")
            let folder = rest.count > 1 ? String(rest[0]) : ""
            for name in "hSCLEtuU" { specifiers[name] = .some(nil) }
            guard let id = UInt32(folder) else {
                kind = .unknown("it is a unit of every user: import it as one user, or write an app with user for each")
                return
            }
            kind = .user("\(id)")
            specifiers["U"] = "\(id)"
            specifiers["t"] = "/run/user/\(id)"
        } else if let begin = path.firstRange(of: "/.config/containers/systemd/") {
            let home = String(path[..<begin.lowerBound])
            let name = home == "/root" ? "root" : SourceTree.lastPart(home)
            let caller = tree.variables["USER"]
            // sudo may leave HOME unchanged. Then HOME is the home of another user although the caller is root.
            if home == tree.variables["HOME"], caller != "root" || name == "root" { return }
            for name in "tU" { specifiers[name] = .some(nil) }
            specifiers["h"] = home
            specifiers["S"] = home + "/.local/state"
            specifiers["C"] = home + "/.cache"
            specifiers["L"] = home + "/.local/state/log"
            specifiers["E"] = home + "/.config"
            let isUsual = home == "/root" || SourceTree.folder(home) == "/home"
            guard isUsual else {
                specifiers["u"] = .some(nil)
                kind = .unknown("it is a unit of the user whose home is \(home): import it as that user")
                return
            }
            kind = .user(name)
            specifiers["u"] = name
        }
    }

    func add(to program: inout ImportedProgram) {
        switch kind {
        case .own: break
        case .user(let name): program["user"] = .string(name)
        case .unknown(let reason): program.cannot(reason)
        }
    }
}
