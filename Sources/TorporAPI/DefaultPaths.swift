// SPDX-License-Identifier: Apache-2.0

/// The default paths of a supervisor.
public struct DefaultPaths: Sendable, Hashable {
    /// The default of `runtime_directory`.
    public var runtime: String
    /// The default of `state_directory`.
    public var state: String
    /// The default of `log_directory`.
    public var log: String
    /// The default of `policy_directory`.
    public var policies = "/usr/lib/torpor/policies"
    /// The path of the configuration file that torpord reads if `--config` is not given.
    public var configuration: String

    /// Determines the default paths from the environment. Variables that systemd sets for a unit take precedence.
    ///
    /// If a variable such as `RUNTIME_DIRECTORY` contains a list of paths, the first path is used (systemd.exec(5)).
    public init(environment: [String: String], userID: UInt32) {
        func variable(_ name: String) -> String? {
            guard let value = environment[name], value.hasPrefix("/") else { return nil }
            return value
        }
        func unit(_ name: String) -> String? {
            variable(name)?.split(separator: ":").first.map(String.init)
        }
        if userID == 0 {
            runtime = unit("RUNTIME_DIRECTORY") ?? "/run/torpor"
            state = unit("STATE_DIRECTORY") ?? "/var/lib/torpor"
            log = unit("LOGS_DIRECTORY") ?? "/var/log/torpor"
            configuration = (unit("CONFIGURATION_DIRECTORY") ?? "/etc/torpor") + "/torpor.toml"
        } else {
            let home = variable("HOME") ?? "/"
            let base = home == "/" ? "" : home
            let stateHome = (variable("XDG_STATE_HOME") ?? base + "/.local/state") + "/torpor"
            runtime =
                unit("RUNTIME_DIRECTORY")
                ?? variable("XDG_RUNTIME_DIR").map { $0 + "/torpor" } ?? "/tmp/torpor-\(userID)"
            state = unit("STATE_DIRECTORY") ?? stateHome
            log = unit("LOGS_DIRECTORY") ?? stateHome + "/log"
            let configurationHome = variable("XDG_CONFIG_HOME") ?? base + "/.config"
            configuration = (unit("CONFIGURATION_DIRECTORY") ?? configurationHome + "/torpor") + "/torpor.toml"
        }
    }
}
