// SPDX-License-Identifier: Apache-2.0

/// Everything that `[supervisor]` says, with every default filled in.
public struct SupervisorSpecification: Sendable, Hashable {
    /// Where sockets and FIFOs are; absolute.
    public var runtimeDirectory: String
    /// What outlives a boot; absolute.
    public var stateDirectory: String
    /// Where log files are; absolute.
    public var logDirectory: String
    /// Where the paths of policies begin; absolute.
    public var policyDirectory: String
    /// Names of the policies to load, first asked first.
    public var policies: [String] = []
    /// Names or numbers of the groups that may look.
    public var readers: [String] = []
    /// Names or numbers of the groups that may change.
    public var operators: [String] = []
    /// Names or numbers of the groups that may post to apps.
    public var posters: [String] = []
    /// The app with which the supervisor ends, as a container does with its main process.
    public var main: String?
    /// What is done when the machine is short of memory.
    public var memory = MemorySpecification()
    /// What a stop of the supervisor does to the apps.
    public var onExit: ExitRule = .terminate
    /// What happens to processes of a lost supervisor that nobody else answers for.
    public var orphans: OrphanRule = .adopt
    /// Whether apps leave the foreground before the machine sleeps.
    public var sleep = true
    /// The session with which apps leave the foreground when it is locked.
    public var session: SessionRule = .auto
    /// How long events are kept; nil for as long as `historyMaxCount` allows.
    public var historyMaxAge: Duration? = .seconds(30 * 86_400)
    /// How many events are kept.
    public var historyMaxCount = 100_000
    /// Where gpsd is, of which positions are heard.
    public var gpsd = GPSAddress.usual
    /// The shortest `keep_alive` that apps may have.
    public var keepAliveMinimum: Duration = .seconds(600)
    /// How much of the filesystem of `stateDirectory` is to be free: below it caches of apps that do not run go.
    public var minFree = FreeSpaceRule.part(0.05)
    /// How much all apps together transfer at a time.
    public var transfers = SupervisorTransfers()
    /// The least severe messages that the supervisor logs.
    public var logLevel: LogLevel = .info

    /// The defaults for a process environment: the directories of root or of a user, those of systemd before them.
    ///
    /// - Parameters:
    ///   - environment: what `RUNTIME_DIRECTORY`, `XDG_RUNTIME_DIR`, `HOME` and the like are taken from.
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

/// `session`.
public enum SessionRule: Sendable, Hashable {
    /// The session in which the supervisor's user sits; none for root's.
    case auto
    case none
    /// The one in front at this seat.
    case seat(String)
    /// The one of this identifier.
    case id(String)

    /// Nil when it is none of these. Seats begin with `seat` (sd-login(3)); identifiers have letters and digits alone.
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
    /// The name that `[supervisor] policies` says.
    public var name: String
    /// The shared library; relative to the policy directory unless absolute.
    public var path: String
    /// Where it runs.
    public var isolation: PolicyIsolation = .process
    /// Whether its advice is taken.
    public var mode: PolicyMode = .decide
    /// The longest time that an answer may take.
    public var deadline: Duration = .milliseconds(50)
    /// What the policy is given, as it is written.
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
    /// Its advice is taken where the rules allow.
    case decide
    /// Its advice is told in events, and not taken.
    case advise
}

/// A value of which only a policy knows what it means.
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

/// Where things are when nothing says otherwise.
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

    /// The paths for a process environment; those that systemd gives a unit win.
    ///
    /// `RUNTIME_DIRECTORY` and its like may list several, of which the first counts (systemd.exec(5)).
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
