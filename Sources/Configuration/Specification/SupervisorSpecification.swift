// SPDX-License-Identifier: Apache-2.0

/// The values of `[supervisor]`, with every default filled in.
public struct SupervisorSpecification: Sendable, Hashable {
    /// The absolute path of the directory for sockets and FIFOs.
    public var runtimeDirectory: String
    /// The absolute path of the directory for data that survives a reboot.
    public var stateDirectory: String
    /// The absolute path of the directory for log files.
    public var logDirectory: String
    /// The absolute path of the directory from which relative paths of policies start.
    public var policyDirectory: String
    /// Names of the policies to load, in the order in which they are asked.
    public var policies: [String] = []
    /// Names or numbers of the groups whose members may read the status of apps.
    public var readers: [String] = []
    /// Names or numbers of the groups whose members may change apps.
    public var operators: [String] = []
    /// Names or numbers of the groups whose members may post to apps.
    public var posters: [String] = []
    /// The app whose exit ends the supervisor, like a container's main process.
    public var main: String?
    /// What torpord does when the machine is short of memory.
    public var memory = MemorySpecification()
    /// What a stop of the supervisor does to the apps.
    public var onExit: ExitRule = .terminate
    /// What happens to the apps of a supervisor that crashed, if nothing else manages them.
    public var orphans: OrphanRule = .adopt
    /// Whether apps leave the foreground before the machine sleeps (suspends to memory or disk).
    public var sleep = true
    /// The login session whose lock takes apps out of the foreground.
    public var session: SessionRule = .auto
    /// Whose focus of the keyboard moves apps.
    public var focus: FocusRule = .none
    /// What interrupts apps in the foreground.
    public var interruptOn: [InterruptionSource] = [.alert]
    /// How long events are kept; nil: only `historyMaxCount` limits them.
    public var historyMaxAge: Duration? = .seconds(30 * 86_400)
    /// The maximum number of events that are kept.
    public var historyMaxCount = 100_000
    /// The gpsd that provides positions.
    public var gpsd = GPSAddress.usual
    /// The minimum of `keep_alive` that an app may have.
    public var keepAliveMinimum: Duration = .seconds(600)
    /// How much of the filesystem of `stateDirectory` should stay free: if less is free, torpord removes caches of
    /// apps that do not run.
    public var minFree = FreeSpaceRule.part(0.05)
    /// Limits that apply to the transfers of all apps together.
    public var transfers = SupervisorTransfers()
    /// Whether the desktop entries of the apps follow the configuration; only for a user's supervisor.
    public var desktopEntries = false
    /// Where and when alerts of apps are shown.
    public var alerts = AlertSpecification()
    /// The least severe messages that the supervisor logs.
    public var logLevel: LogLevel = .info

    /// The defaults for an environment: the directories that systemd set, otherwise those of root or of a user.
    ///
    /// - Parameters:
    ///   - environment: the variables `RUNTIME_DIRECTORY`, `XDG_RUNTIME_DIR`, `HOME` and the like.
    ///   - userID: the effective user; 0 gets the directories of the system.
    public init(environment: [String: String], userID: UInt32) {
        let paths = DefaultPaths(environment: environment, userID: userID)
        self.runtimeDirectory = paths.runtime
        self.stateDirectory = paths.state
        self.logDirectory = paths.log
        self.policyDirectory = paths.policies
    }
}

/// The values of `on_exit`: what a stop of the supervisor does to the apps.
public enum ExitRule: String, Sendable, Hashable, CaseIterable {
    case terminate
    case leave
}

/// The values of `orphans`: what happens to the apps of a supervisor that crashed.
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

/// The values of `interrupt_on`: what interrupts apps in the foreground.
public enum InterruptionSource: String, Sendable, Hashable, CaseIterable {
    /// A critical alert on the desktop.
    case alert
    /// Sound of another program that comes before all other sound: a call, an alarm.
    case audio
}

/// `session`.
public enum SessionRule: Sendable, Hashable {
    /// The session of the supervisor's user; no session for root.
    case auto
    case none
    /// The active session at this seat.
    case seat(String)
    /// The session with this ID.
    case id(String)

    /// Nil if the text is no valid value. Seats begin with `seat` (sd-login(3)); session IDs contain only letters and
    /// digits.
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

/// The values of `log_level`.
public enum LogLevel: String, Sendable, Hashable, CaseIterable, Comparable {
    case debug
    case info
    case notice
    case warning
    case error

    /// Orders levels by severity.
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

/// The table `[policies.NAME]`.
public struct PolicySpecification: Sendable, Hashable {
    /// The policy's name, as in `[supervisor] policies`.
    public var name: String
    /// The path of the policy's shared library; relative to the policy directory unless absolute.
    public var path: String
    /// Where the policy runs.
    public var isolation: PolicyIsolation = .process
    /// Whether torpord follows the policy's advice.
    public var mode: PolicyMode = .decide
    /// The longest time that an answer may take.
    public var deadline: Duration = .milliseconds(50)
    /// The options that are passed to the policy as they are written.
    public var options: [String: ConfigurationValue] = [:]

    /// Creates a policy without options, which runs in a process of its own.
    public init(name: String, path: String) {
        self.name = name
        self.path = path
    }
}

/// The values of `isolation`: where a policy runs.
public enum PolicyIsolation: String, Sendable, Hashable, CaseIterable {
    /// In a process of its own.
    case process
    /// In the supervisor's process.
    case none
}

/// The values of `mode`: whether torpord follows a policy's advice.
public enum PolicyMode: String, Sendable, Hashable, CaseIterable {
    /// torpord follows the policy's advice if the rules allow it.
    case decide
    /// torpord only reports the policy's advice in events.
    case advise
}

/// A value of an option that only the policy understands, or of a timer's payload.
public enum ConfigurationValue: Sendable, Hashable {
    case string(String)
    case integer(Int64)
    case double(Double)
    case boolean(Bool)
    /// A date, a time or both, in the form of RFC 3339.
    case date(String)
    case array([ConfigurationValue])
    case table([String: ConfigurationValue])
}

/// The default paths of the supervisor.
public struct DefaultPaths: Sendable, Hashable {
    /// The default of `runtime_directory`.
    public var runtime: String
    /// The default of `state_directory`.
    public var state: String
    /// The default of `log_directory`.
    public var log: String
    /// The default of `policy_directory`.
    public var policies = "/usr/lib/torpor/policies"
    /// The configuration file that torpord reads without `--config`.
    public var configuration: String

    /// The paths for an environment; those that systemd sets for a unit take precedence.
    ///
    /// If `RUNTIME_DIRECTORY` or another variable lists several paths, the first is used (systemd.exec(5)).
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
