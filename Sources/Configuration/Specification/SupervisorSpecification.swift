// SPDX-License-Identifier: Apache-2.0

/// Everything that `[supervisor]` says, with every default filled in.
public struct SupervisorSpecification: Sendable, Hashable {
    /// The directory of sockets and FIFOs; absolute.
    public var runtimeDirectory: String
    /// The directory of what survives a reboot; absolute.
    public var stateDirectory: String
    /// The directory of log files; absolute.
    public var logDirectory: String
    /// The directory that paths of policies start from; absolute.
    public var policyDirectory: String
    /// Names of the policies to load, in the order in which they are asked.
    public var policies: [String] = []
    /// Names or numbers of the groups that may read.
    public var readers: [String] = []
    /// Names or numbers of the groups that may change apps.
    public var operators: [String] = []
    /// Names or numbers of the groups that may post to apps.
    public var posters: [String] = []
    /// The app whose exit ends the supervisor, like a container's main process.
    public var main: String?
    /// What is done when the machine is short of memory.
    public var memory = MemorySpecification()
    /// What a stop of the supervisor does to the apps.
    public var onExit: ExitRule = .terminate
    /// What happens to the processes of a supervisor that crashed, if nothing else manages them.
    public var orphans: OrphanRule = .adopt
    /// Whether apps leave the foreground before the machine sleeps.
    public var sleep = true
    /// The session whose lock takes apps out of the foreground.
    public var session: SessionRule = .auto
    /// Whose focus of the keyboard moves apps.
    public var focus: FocusRule = .none
    /// How long events are kept; nil: only `historyMaxCount` limits them.
    public var historyMaxAge: Duration? = .seconds(30 * 86_400)
    /// How many events are kept.
    public var historyMaxCount = 100_000
    /// The gpsd that positions come from.
    public var gpsd = GPSAddress.usual
    /// The least `keep_alive` that apps may have.
    public var keepAliveMinimum: Duration = .seconds(600)
    /// How much of the filesystem of `stateDirectory` should stay free: below it, caches of apps that do not run are
    /// removed.
    public var minFree = FreeSpaceRule.part(0.05)
    /// Limits of all apps' transfers together.
    public var transfers = SupervisorTransfers()
    /// Whether the desktop entries of the apps follow the configuration; only for a user's supervisor.
    public var desktopEntries = false
    /// Where and when alerts of apps are shown.
    public var alerts = AlertSpecification()
    /// The least severe messages that the supervisor logs.
    public var logLevel: LogLevel = .info

    /// The defaults for an environment: directories that systemd set, else those of root or of a user.
    ///
    /// - Parameters:
    ///   - environment: has `RUNTIME_DIRECTORY`, `XDG_RUNTIME_DIR`, `HOME` and the like.
    ///   - userID: the effective user; 0 gets the directories of the system.
    public init(environment: [String: String], userID: UInt32) {
        let paths = DefaultPaths(environment: environment, userID: userID)
        self.runtimeDirectory = paths.runtime
        self.stateDirectory = paths.state
        self.logDirectory = paths.log
        self.policyDirectory = paths.policies
    }
}

/// `on_exit`.
public enum ExitRule: String, Sendable, Hashable, CaseIterable {
    case terminate
    case leave
}

/// `orphans`.
public enum OrphanRule: String, Sendable, Hashable, CaseIterable {
    case adopt
    case end
}

/// `focus`.
public enum FocusRule: String, Sendable, Hashable, CaseIterable {
    case none
    /// Sway's.
    case sway
    /// i3's.
    case i3
}

/// `session`.
public enum SessionRule: Sendable, Hashable {
    /// The session of the supervisor's user; none for root.
    case auto
    case none
    /// The active session at this seat.
    case seat(String)
    /// The session with this ID.
    case id(String)

    /// Nil for anything else. Seats begin with `seat` (sd-login(3)); session IDs have only letters and digits.
    init?(_ text: String) {
        func consists(of more: String) -> Bool {
            text.unicodeScalars.allSatisfy {
                $0.isASCII && ($0.properties.isAlphabetic || ("0"..."9").contains($0))
                    || more.unicodeScalars.contains($0)
            }
        }
        switch text {
        case "auto": self = .auto
        case "none": self = .none
        case "": return nil
        default:
            if text.hasPrefix("seat"), consists(of: "-_") {
                self = .seat(text)
            } else if consists(of: "") {
                self = .id(text)
            } else {
                return nil
            }
        }
    }
}

/// `log_level`.
public enum LogLevel: String, Sendable, Hashable, CaseIterable, Comparable {
    case debug
    case info
    case notice
    case warning
    case error

    /// By severity.
    public static func < (left: LogLevel, right: LogLevel) -> Bool {
        left.severity < right.severity
    }

    private var severity: Int {
        switch self {
        case .debug: 0
        case .info: 1
        case .notice: 2
        case .warning: 3
        case .error: 4
        }
    }
}

/// One `[policies.NAME]`.
public struct PolicySpecification: Sendable, Hashable {
    /// The name in `[supervisor] policies`.
    public var name: String
    /// The shared library; relative to the policy directory unless absolute.
    public var path: String
    /// Where it runs.
    public var isolation: PolicyIsolation = .process
    /// Whether its advice is followed.
    public var mode: PolicyMode = .decide
    /// The longest time that an answer may take.
    public var deadline: Duration = .milliseconds(50)
    /// The options for the policy, as they are written.
    public var options: [String: ConfigurationValue] = [:]

    /// A policy without options in a process of its own.
    public init(name: String, path: String) {
        self.name = name
        self.path = path
    }
}

/// `isolation`.
public enum PolicyIsolation: String, Sendable, Hashable, CaseIterable {
    /// In a process of its own.
    case process
    /// In the supervisor.
    case none
}

/// `mode`.
public enum PolicyMode: String, Sendable, Hashable, CaseIterable {
    /// Its advice is followed if the rules allow it.
    case decide
    /// Its advice is only reported in events.
    case advise
}

/// A value whose meaning only the policy knows.
public enum ConfigurationValue: Sendable, Hashable {
    case string(String)
    case integer(Int64)
    case double(Double)
    case boolean(Bool)
    /// A date, a time or both, as RFC 3339 writes it.
    case date(String)
    case array([ConfigurationValue])
    case table([String: ConfigurationValue])
}

/// The default paths.
public struct DefaultPaths: Sendable, Hashable {
    /// Default of `runtime_directory`.
    public var runtime: String
    /// Default of `state_directory`.
    public var state: String
    /// Default of `log_directory`.
    public var log: String
    /// Default of `policy_directory`.
    public var policies = "/usr/lib/torpor/policies"
    /// The file that is read without `--config`.
    public var configuration: String

    /// The paths for an environment; those that systemd sets for a unit take precedence.
    ///
    /// If `RUNTIME_DIRECTORY` or another lists several, the first counts (systemd.exec(5)).
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
