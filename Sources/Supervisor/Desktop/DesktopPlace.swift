// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Linux

/// The user in whose session torpor-desktop runs, and the variables by which it finds the programs of that session.
struct DesktopPlace: Hashable, Sendable {
    let user: UInt32
    /// The environment variables of the session. Variables of torpord's own environment are among them only if the
    /// session's user is the user that torpord runs as.
    let variables: [String: String]

    /// The variables of torpord's own session that the helper gets.
    private static let own = [
        "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "HOME", "I3SOCK", "LANG", "PIPEWIRE_REMOTE", "PIPEWIRE_RUNTIME_DIR",
        "SWAYSOCK", "TORPOR_PW_DUMP", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR",
    ]
    /// Variables that are set in a desktop session. If torpord runs as root and has one of them, it was started in a
    /// desktop session of root, as on some kiosks.
    private static let signs = ["DBUS_SESSION_BUS_ADDRESS", "I3SOCK", "SWAYSOCK", "WAYLAND_DISPLAY"]

    /// - Parameters:
    ///   - session: `[supervisor] session`.
    ///   - sessionUser: the user of that session, if logind has said so.
    ///   - own: torpord's own user.
    ///   - environment: the environment variables of torpord itself.
    /// - Returns: nil if there is no session.
    init?(
        _ session: SessionRule,
        sessionUser: UInt32?,
        own: UInt32,
        environment: (String) -> String?
    ) {
        guard Self.obstacle(session, sessionUser: sessionUser, own: own, environment: environment) == nil else {
            return nil
        }
        user = session.isNamed ? sessionUser ?? own : own
        var variables = ["PATH": "/usr/local/bin:/usr/bin:/bin", "XDG_RUNTIME_DIR": "/run/user/\(user)"]
        if user == own {
            for name in Self.own { if let value = environment(name) { variables[name] = value } }
        }
        if variables["DBUS_SESSION_BUS_ADDRESS"] == nil {
            variables["DBUS_SESSION_BUS_ADDRESS"] = "unix:path=\(variables["XDG_RUNTIME_DIR"] ?? "")/bus"
        }
        self.variables = variables
    }

    /// Why there is no session, and what to do about it, as a sentence; nil if there is one.
    static func obstacle(
        _ session: SessionRule,
        sessionUser: UInt32?,
        own: UInt32,
        environment: (String) -> String?
    ) -> String? {
        let place: String
        switch session {
        case .auto, .none:
            guard own == 0, !signs.contains(where: { environment($0) != nil }) else { return nil }
            return "torpord runs as root, which has no session: write session = \"seat0\" in [supervisor], for the "
                + "session of the user at the screen"
        case .seat(let name): place = "at \(name)"
        case .id(let name): place = "with the ID \(name)"
        }
        guard let sessionUser else { return "logind knows no session \(place) (session in [supervisor])" }
        // Only root can start a helper as another user.
        guard own != 0, sessionUser != own else { return nil }
        return "the session \(place) is that of user \(sessionUser), and torpord runs as user \(own): have user "
            + "\(sessionUser) start it, or root"
    }

    /// The user and groups that torpor-keeper sets for the helper. `.some(nil)` if the helper keeps those of torpord;
    /// nil if the user does not exist. May block on a network directory.
    func credentials() -> (uid: UInt32, gid: UInt32, groups: [UInt32])?? {
        guard user != Users.effectiveUID else { return .some(nil) }
        guard let entry = Users.lookup(uid: user) else { return nil }
        return (entry.uid, entry.gid, Users.groups(of: entry.name, primary: entry.gid))
    }
}

extension SessionRule {
    /// Whether the configuration names the session, by its seat or ID.
    fileprivate var isNamed: Bool {
        switch self {
        case .auto, .none: false
        case .seat, .id: true
        }
    }
}
