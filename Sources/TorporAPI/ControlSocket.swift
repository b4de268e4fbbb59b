// SPDX-License-Identifier: Apache-2.0

import Linux

/// Finds the control socket of a supervisor.
public enum ControlSocket {
    /// The path of the control socket of the machine's supervisor, which runs as root.
    public static let machines = "/run/torpor/io.torpor"

    /// The path that a program uses by default: `$TORPOR_MANAGER_SOCKET`, otherwise the socket of this user's own
    /// supervisor. If that socket does not exist, or if its directory belongs to another user, the path is that of the
    /// machine's supervisor.
    public static var found: String { search().path }

    /// The default path, and whether it is the path of the machine's supervisor only because this user's own supervisor
    /// does not run.
    public static func search() -> (path: String, isFallback: Bool) {
        if let path = ThisProcess.environment("TORPOR_MANAGER_SOCKET"), !path.isEmpty { return (path, false) }
        let own = own
        // Programs that cron, sudo or su starts have no XDG_RUNTIME_DIR, but their user may have a supervisor at the
        // usual place, which belongs to the user alone.
        let user = Users.effectiveUID
        if user != 0, ThisProcess.environment("XDG_RUNTIME_DIR") == nil, !File.exists(own) {
            let usual = Self.own(of: user, home: ThisProcess.environment("HOME") ?? "/")
            if (try? File.status(usual).uid) == user { return (usual, false) }
        }
        // Without XDG_RUNTIME_DIR, the directory of the socket is in /tmp, where another user may have created a
        // directory with its name.
        let owner = File.parent(of: own).flatMap { try? File.status($0) }?.uid
        let isOthers = owner.map { $0 != 0 && $0 != user } ?? false
        guard isOthers || !File.exists(own) && File.exists(machines) else { return (own, false) }
        return (machines, user != 0)
    }

    /// The path of the control socket of this user's own supervisor.
    public static var own: String {
        var environment: [String: String] = [:]
        for name in ["XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME", "RUNTIME_DIRECTORY"] {
            environment[name] = ThisProcess.environment(name)
        }
        return DefaultPaths(environment: environment, userID: Users.effectiveUID).runtime + "/io.torpor"
    }

    /// The path of the control socket of a user's own supervisor, for a program without that user's environment, such as
    /// one that PAM runs.
    public static func own(of user: UInt32, home: String) -> String {
        let environment = ["XDG_RUNTIME_DIR": "/run/user/\(user)", "HOME": home]
        return DefaultPaths(environment: environment, userID: user).runtime + "/io.torpor"
    }
}
