// SPDX-License-Identifier: Apache-2.0

import TorporAPI

/// The table `[supervisor]`. Missing values are replaced by defaults.
public struct SupervisorSpecification: Sendable, Hashable {
    /// The absolute path of the directory for sockets and FIFOs.
    public var runtimeDirectory: String
    /// The absolute path of the directory for data that survives a reboot.
    public var stateDirectory: String
    /// The absolute path of the directory for log files.
    public var logDirectory: String
    /// The absolute path of the directory against which relative paths of policies' libraries are resolved.
    public var policyDirectory: String
    /// The names of the policies that are loaded, in the order in which torpord asks them for advice.
    public var policies: [String] = []
    /// The groups whose members may read the status of apps, by name or number.
    public var readers: [String] = []
    /// The groups whose members may change apps, by name or number.
    public var operators: [String] = []
    /// The groups whose members may post to apps, by name or number.
    public var posters: [String] = []
    /// Groups whose members may only read the saved states of apps with `owner = "external"`, for example to copy the
    /// states to another machine.
    public var exporters: [String] = []
    /// The name of an app whose exit stops the supervisor, like the exit of a container's main process stops the
    /// container; `nil` for none.
    public var main: String?
    /// What torpord does if the machine is short of memory.
    public var memory = MemorySpecification()
    /// What happens to the apps when the supervisor is stopped.
    public var onExit: ExitRule = .terminate
    /// What happens to apps of a crashed supervisor if its records of these apps are lost or damaged.
    public var orphans: OrphanRule = .adopt
    /// Whether apps leave the foreground before the machine sleeps (suspend to memory or disk).
    public var sleep = true
    /// The login session whose lock takes apps out of the foreground.
    public var session: SessionRule = .auto
    /// The window manager that reports which window has the keyboard focus. The app of that window is moved to the
    /// foreground.
    public var focus: FocusRule = .none
    /// What interrupts apps in the foreground.
    public var interruptOn: [InterruptionSource] = [.alert]
    /// How long events are kept in the history; nil for no limit, so that only `historyMaxCount` and `historyMaxSize`
    /// limit the history.
    public var historyMaxAge: Duration? = .seconds(30 * 86_400)
    /// The maximum number of events that are kept in the history.
    public var historyMaxCount = 100_000
    /// The maximum size in bytes of the events that are kept in the history; one app has at most half of it. nil for no
    /// limit.
    public var historyMaxSize: UInt64? = 64 << 20
    /// The address of the gpsd that provides positions.
    public var gpsd = GPSAddress.usual
    /// The minimum value of `keep_alive` that an app may have.
    public var keepAliveMinimum: Duration = .seconds(600)
    /// How much of the filesystem with `stateDirectory` should stay free. If less is free, torpord removes caches of
    /// apps that are not running.
    public var minFree = FreeSpaceRule.part(0.05)
    /// The limits for the transfers of all apps together.
    public var transfers = SupervisorTransfers()
    /// What locks the protected data of apps.
    public var protection = SupervisorProtection()
    /// Whether torpord updates desktop entries when apps change. Only for a user's supervisor.
    public var desktopEntries = false
    /// Where and when alerts of apps are shown.
    public var alerts = AlertSpecification()
    /// The least severe level of messages that the supervisor logs.
    public var logLevel: LogLevel = .info

    /// Creates a specification with default values. The directories are those that systemd has set, otherwise those of
    /// root or of a user.
    ///
    /// - Parameters:
    ///   - environment: environment variables such as `RUNTIME_DIRECTORY`, `XDG_RUNTIME_DIR` and `HOME`.
    ///   - userID: the effective user. For 0, the directories are those of the system.
    public init(environment: [String: String], userID: UInt32) {
        let paths = DefaultPaths(environment: environment, userID: userID)
        self.runtimeDirectory = paths.runtime
        self.stateDirectory = paths.state
        self.logDirectory = paths.log
        self.policyDirectory = paths.policies
    }
}

/// The values of `on_exit`: what happens to the apps when the supervisor is stopped.
public enum ExitRule: String, Sendable, Hashable, CaseIterable {
    case terminate
    case leave
}

/// The values of `orphans`: what happens to apps of a crashed supervisor if its records of them are lost or damaged.
public enum OrphanRule: String, Sendable, Hashable, CaseIterable {
    case adopt
    case end
}

/// The values of `focus`: the window manager that reports which app has the keyboard focus.
public enum FocusRule: String, Sendable, Hashable, CaseIterable {
    case none
    /// The window manager Sway.
    case sway
    /// The window manager i3.
    case i3
}

/// The values of `interrupt_on`: what interrupts apps in the foreground.
public enum InterruptionSource: String, Sendable, Hashable, CaseIterable {
    /// A critical alert on the desktop.
    case alert
    /// A call, an alarm or the like: sound of another program that takes precedence over all other sound.
    case audio
}

/// The values of `session`: the login session whose lock takes apps out of the foreground.
public enum SessionRule: Sendable, Hashable {
    /// The session of the supervisor's user. For root, no session.
    case auto
    case none
    /// The active session at this seat, such as `seat0`.
    case seat(String)
    /// The session with this ID, as `loginctl` shows it.
    case id(String)

    /// Parses a value of `session`. Nil if the text is not valid. A seat's name begins with `seat` (sd-login(3)). A
    /// session's ID contains only letters and digits.
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

/// The values of `log_level`, from the least severe to the most severe.
public enum LogLevel: String, Sendable, Hashable, CaseIterable, Comparable {
    case debug
    case info
    case notice
    case warning
    case error

    /// Whether `left` is less severe than `right`.
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

/// The table `[policies.NAME]`: a policy, which is a shared library that decides about apps.
public struct PolicySpecification: Sendable, Hashable {
    /// The policy's name, as in `policies` of `[supervisor]`.
    public var name: String
    /// The path of the policy's shared library. A relative path is resolved against the policy directory.
    public var path: String
    /// The process in which the policy runs.
    public var isolation: PolicyIsolation = .process
    /// Whether torpord follows the policy's decisions.
    public var mode: PolicyMode = .decide
    /// The maximum time that the policy may take for an answer.
    public var deadline: Duration = .milliseconds(50)
    /// The policy's options, which are passed to the policy unchanged.
    public var options: [String: ConfigurationValue] = [:]

    /// Creates a policy without options that runs in a process of its own.
    public init(name: String, path: String) {
        self.name = name
        self.path = path
    }
}

/// The values of `isolation`: the process in which a policy runs.
public enum PolicyIsolation: String, Sendable, Hashable, CaseIterable {
    /// A process of the policy's own.
    case process
    /// The supervisor's process.
    case none
}

/// The values of `mode`: whether torpord follows a policy's decisions.
public enum PolicyMode: String, Sendable, Hashable, CaseIterable {
    /// torpord follows the policy's decisions, if its own rules allow them.
    case decide
    /// torpord only reports the policy's decisions in events.
    case advise
}

/// A value of a policy's option, or of a timer's payload. torpord passes it on unchanged.
public enum ConfigurationValue: Sendable, Hashable {
    case string(String)
    case integer(Int64)
    case double(Double)
    case boolean(Bool)
    /// A date, a time, or both, in the format of RFC 3339.
    case date(String)
    case array([ConfigurationValue])
    case table([String: ConfigurationValue])
}
