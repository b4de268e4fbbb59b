// SPDX-License-Identifier: Apache-2.0

import Linux

/// Where a supervisor's control socket is.
public enum ControlSocket {
    /// That of the machine's supervisor.
    public static let machines = "/run/torpor/io.torpor"

    /// The socket that a program uses when none is named: `$TORPOR_MANAGER_SOCKET`, else that of this user's supervisor,
    /// else, where that is not there or its directory is another user's, the machine's.
    public static var found: String {
        if let path = ThisProcess.environment("TORPOR_MANAGER_SOCKET"), !path.isEmpty { return path }
        var environment: [String: String] = [:]
        for name in ["XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME", "RUNTIME_DIRECTORY"] {
            environment[name] = ThisProcess.environment(name)
        }
        let user = SupervisorSpecification(environment: environment, userID: Users.effectiveUID)
        let own = user.runtimeDirectory + "/io.torpor"
        // Without XDG_RUNTIME_DIR it is in /tmp, where anybody may have made it.
        let owner = (try? File.status(user.runtimeDirectory))?.uid
        if let owner, owner != 0, owner != Users.effectiveUID { return machines }
        return !File.exists(own) && File.exists(machines) ? machines : own
    }
}
