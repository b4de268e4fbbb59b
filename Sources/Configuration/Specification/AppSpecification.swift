// SPDX-License-Identifier: Apache-2.0

public import Lifecycle
public import Permissions

/// Everything that the configuration says about one app, checked and with every default filled in.
///
/// The keys are those of docs/interfaces.md. Apps with equal settings share one copy of them in memory; only what
/// usually differs between apps is stored for each.
@dynamicMemberLookup
public struct AppSpecification: Sendable, Hashable {
    /// The app's name; an instance is called `TEMPLATE@NUMBER`, a scene `TEMPLATE@NAME`.
    public var name: String
    /// The name under `[apps]`. It differs from ``name`` for an instance and a scene.
    public var template: String
    /// The number of an instance, from `instance_first`; `nil` if the app has no `instances`.
    public var instance: Int?
    /// The name of a scene among those of its template; `nil` if it is not a scene.
    public var scene: String?
    /// The program and its arguments; empty only for a container that runs the command of its image.
    public var exec: [String] = []
    /// The bundle that the program is in; nil for one that is installed otherwise.
    public var bundle: BundleReference?
    /// The sockets that the app gets, in this order.
    public var sockets: [SocketSpecification] = []
    private static let usual = Shared(AppSettings())
    @usableFromInline var settings: Shared<AppSettings>
    private var presented: Shared<AppPresentation>?
    private var contained: Shared<ContainerSpecification>?
    private var confined: Shared<Sandbox>?

    /// Creates a specification with only a name.
    public init(name: String) {
        self.name = name
        self.template = name
        settings = Self.usual
    }

    /// What users see of the app besides its name.
    public var presentation: AppPresentation {
        get { presented?.value ?? AppPresentation() }
        set { presented = newValue == AppPresentation() ? nil : Shared(newValue) }
    }

    /// The container in which podman runs the app; `nil` for an app without one.
    public var container: ContainerSpecification? {
        get { contained?.value }
        set { contained = newValue.map(Shared.init) }
    }

    /// What the app may do, if it runs in a sandbox.
    public var sandbox: Sandbox {
        get { confined?.value ?? Sandbox() }
        set { confined = newValue == Sandbox() ? nil : Shared(newValue) }
    }

    /// Reads and writes a field of ``AppSettings``.
    @inlinable
    public subscript<T>(dynamicMember path: any WritableKeyPath<AppSettings, T> & Sendable) -> T {
        get { settings.value[keyPath: path] }
        _modify { yield &settings.value[keyPath: path] }
    }

    /// Reads and writes a field of ``AppOutput``.
    @inlinable
    public subscript<T>(dynamicMember path: any WritableKeyPath<AppOutput, T> & Sendable) -> T {
        get { settings.value.output[keyPath: path] }
        _modify { yield &settings.value.output[keyPath: path] }
    }

    /// Reads and writes a field of ``AppEvents``.
    @inlinable
    public subscript<T>(dynamicMember path: any WritableKeyPath<AppEvents, T> & Sendable) -> T {
        get { settings.value.events[keyPath: path] }
        _modify { yield &settings.value.events[keyPath: path] }
    }
}

extension AppSpecification {
    /// The name of the app's container; `nil` for an app without one. It cannot be the name of a scene or an
    /// instance, since that contains an @, which podman does not allow.
    public var containerName: String? {
        self.container.map { $0.name ?? "torpor-" + self.name.split(separator: "@").joined(separator: ".") }
    }

    /// How a running app is checked: by `health`, or else by the health check of its container.
    public var check: HealthSpecification? { self.health ?? self.container?.health }

    /// How torpord finds out that the app is ready: by `ready`, or else by the health check of its container, at
    /// least once a second.
    public var readiness: ReadySpecification {
        guard self.ready == .exec, let container = self.container, container.isReadyByHealth,
            var probe = container.health?.probe
        else { return self.ready }
        probe.interval = min(probe.interval, .seconds(1))
        return .probe(probe)
    }

    /// Whether READY=1 reports that the app is ready: sent by the app, or by the program that has started its
    /// container.
    public var isReadyByNotify: Bool {
        switch self.readiness {
        case .notify: true
        case .exec: self.container != nil
        case .delegate, .probe: false
        }
    }

    /// Whether the app is an instance or a scene of ``template``.
    public var isOneOfTemplate: Bool { instance != nil || scene != nil }

    /// The limits that each process of the app starts with.
    public var processLimits: [ResourceLimit] { self.limits.filter { $0.resource != ResourceLimit.tasks } }

    /// How many processes and threads the app may have at once; `nil` for no limit.
    public var taskLimit: UInt64? {
        self.limits.first { $0.resource == ResourceLimit.tasks }.flatMap { $0.soft == .max ? nil : $0.soft }
    }
}

/// The part of a specification that many apps have in common. `rules` contains what the app's state machine needs.
public struct AppSettings: Sendable, Hashable {
    /// The working directory; absolute.
    public var directory: String?
    /// The user to run as, by name or number.
    public var user: String?
    /// The group to run as, by name or number.
    public var group: String?
    /// Supplementary groups, by name or number; `nil` means those of the user.
    public var supplementaryGroups: [String]?
    /// Environment variables in addition to those that every app gets.
    public var environment: [String: String] = [:]
    /// Files of environment variables, read before each launch. A later file overrides an earlier one, and
    /// `environment` overrides all files.
    public var environmentFiles: [EnvironmentFileReference] = []
    /// The file mode creation mask, 0 to 0o777.
    public var umask: UInt32?
    /// The nice value, −20 to 19.
    public var nice: Int32?
    /// Whether and how the supervisor launches the app at its own start.
    public var launch: LaunchMode = .foreground
    /// How torpord finds out that the app is ready, and that it is healthy.
    var checks = Checks()
    /// Names of the apps (instances, never templates) that must be ready before this app is started, and are stopped
    /// after it.
    public var requires: [String] = []
    /// Names of the apps (instances, never templates) that are started before this app, if they are started at all.
    public var after: [String] = []
    /// What the app's state machine needs.
    public var rules = AppRules()
    /// The number of the signal that asks the app to terminate.
    public var stopSignal: Int32 = 15
    /// The processes that get `stopSignal`.
    public var killMode: ProcessSelection = .all
    /// The number of the signal that ends an app after a missed heartbeat.
    public var watchdogSignal: Int32 = 6
    /// How the app is suspended: by a signal or by its cgroup.
    public var suspendWith: SuspendMethod = .signal
    /// The messages that the app receives as a signal.
    public var signals: [Message: Int32] = [:]
    /// The processes whose sd_notify messages torpord accepts.
    public var notifyAccess: ProcessSelection = .all
    /// Names by which verbs select the app: `tag:demo`.
    public var tags: [String] = []
    /// Resource limits, sorted by name: those of each process (setrlimit(2)), and the number of processes of the app.
    public var limits: [ResourceLimit] = []
    /// Commands that run before each launch, one after the other; if one fails, the launch fails.
    public var beforeStart: [HookCommand] = []
    /// Commands that run after each exit.
    public var afterStop: [HookCommand] = []
    /// Overrides of the resource profiles of states; a missing value means the default of the state.
    public var resources: [AppState: ResourceProfile] = [:]
    /// The maximum size of a state archive in bytes; `nil` for no limit.
    public var stateLimit: UInt64? = 16 << 20
    /// Where the app's snapshots come from; `nil` if the supervisor takes none.
    public var snapshot: SnapshotSpecification?
    /// The folders for the app's data.
    public var data = DataFolderSpecification()
    /// The absolute paths of files whose locks keep the app from being suspended, whether it holds a lock or waits
    /// for one.
    public var sharedResources: [String] = []
    /// How much memory the app may use, in bytes: it is terminated when it uses more; `nil` for no limit.
    public var memoryLimit: UInt64?
    /// How much memory torpord frees before it launches the app, in bytes.
    public var memoryNeeded: UInt64?
    /// The priority, −1000 to 1000: apps with a lower one are evicted first.
    public var priority = 0
    /// How long the app is in `suspended` before its memory is paged out; `nil` for never.
    public var pageOutAfter: Duration?
    /// Absolute paths of folders in memory (tmpfs), whose files torpord removes when memory is short.
    public var purgeable: [String] = []
    /// Whether torpord may terminate the app even while it is active, as the last step against a memory shortage.
    public var lastResort = false
    /// The settings that users can change, in the order in which they are written.
    public var declaredSettings: [SettingDeclaration] = []
    /// The table `scenes` of a template, and of each of its scenes.
    public var scenes: SceneSpecification?
    /// The table `scenes` of an app with scenes inside; `nil` for other apps.
    public var innerScenes: SceneSpecification?
    /// The files in which the app gets its settings.
    public var settingsFormat: SettingsFormat = .json
    /// Where the app's output goes.
    public var output = AppOutput()
    /// The events that notify and wake the app.
    public var events = AppEvents()

    /// The defaults.
    public init() {}
}

/// The events that notify and wake an app; a part of ``AppSettings``.
public struct AppEvents: Sendable, Hashable {
    /// The background modes whose events launch the app after a force quit.
    public var wakeAfterForceQuit: [String] = ["location"]
    /// Whether events may launch the app before the user first unlocks the session.
    public var beforeFirstUnlock: UnlockRule = .all
    /// The app's background modes, sorted by name, without repetitions.
    public var backgroundModes: [BackgroundMode] = []
    /// Bluetooth devices that notify and wake the app; needs the mode `bluetooth-central`.
    public var bluetooth: [BluetoothTrigger] = []
    /// The positions that notify and wake the app; they need the mode `location`.
    public var location = LocationSpecification()
    /// How the app is woken by a connection to a socket that it has opened itself.
    public var wakeOnConnect: WakeManner = .none
    /// What becomes of its clients' open connections when the app is suspended.
    public var suspendedConnections: SuspendedConnections = .keep
    /// How long a client that waits for the app's answer keeps the app from being suspended; `nil` for no limit.
    public var answerTime: Duration? = .seconds(300)
    /// How long the app is in `suspended` before it is woken to keep its connections open; `nil` for never.
    public var keepAlive: Duration?

    /// Files and directories that notify and wake the app.
    public var paths: [PathTrigger] = []
    /// Devices that notify and wake the app.
    public var devices: [DeviceTrigger] = []
    /// Files whose changes the app receives as `settingsDidChange`; absolute paths or glob(7) patterns.
    public var settingsFiles: [String] = []
    /// Files whose changes the app receives as `identityDidChange`; absolute paths or glob(7) patterns.
    public var identityFiles: [String] = []
    /// The changes of the machine of which the app is notified.
    public var notifications: [NotificationTopic] = NotificationTopic.usual
    /// The minimum interval between checks for new content, for an app with the background mode `fetch`.
    public var fetchInterval: Duration = .seconds(900)
    /// Timers that wake the app.
    public var timers: [TimerSpecification] = []

    /// How the app receives messages, by topic. A topic may be a pattern with `*` and `?`.
    public var topics: [String: TopicRule] = [:]
    /// The apps that may post messages to the app: names, patterns or `tag:NAME`.
    public var acceptsFrom: [String] = []
    /// How many messages may be queued for the app.
    public var mailboxLimit = 1_000
    /// How many bytes of messages may be queued for the app; `nil` for no limit.
    public var mailboxSize: UInt64? = 1 << 20
    /// After how many runs that received a message and crashed torpord stops delivering the message.
    public var mailAttempts = 3
    /// The rules for transfers, which run for the app while it is suspended.
    public var transfers = TransferSpecification()
    /// Network resources that torpord checks for the app while it is suspended.
    public var subscriptions: [SubscriptionSpecification] = []
    /// The URLs and files that the app opens, and those that it may ask other apps to open.
    public var opening = OpeningSpecification()
    /// How often events may wake it.
    public var wakeStorm = WakeStormRules()

    /// The defaults.
    public init() {}
}

/// The values of `suspended_connections`: what becomes of clients' open connections when the app is suspended.
public enum SuspendedConnections: String, Sendable, Hashable, CaseIterable {
    /// They stay open: a client that sends something waits until the app runs, or wakes it.
    case keep
    /// Those on which nobody waits are shut down, so that clients see their end instead of silence.
    case close
}

/// The values of `launch`: whether and how the supervisor launches the app at its own start.
public enum LaunchMode: String, Sendable, Hashable, CaseIterable {
    /// At the supervisor's start, into the foreground.
    case foreground
    /// At the supervisor's start, into the background.
    case background
    /// When a request or event needs it.
    case onDemand = "on-demand"
}

/// The values of `ready` and `health`.
struct Checks: Sendable, Hashable {
    var ready: ReadySpecification = .exec
    var health: HealthSpecification?
}

extension AppSettings {
    /// How torpord finds out that the app is ready.
    public var ready: ReadySpecification {
        get { checks.ready }
        set { checks.ready = newValue }
    }

    /// How a running app is checked; `nil` for not at all.
    public var health: HealthSpecification? {
        get { checks.health }
        set { checks.health = newValue }
    }
}

/// The values of `ready`: how torpord finds out that an app is ready.
public enum ReadySpecification: Sendable, Hashable {
    /// The app is ready as soon as its program was executed.
    case exec
    /// The app is ready when it sends READY=1.
    case notify
    /// The app is ready when its delegate has answered the launch messages.
    case delegate
    /// The app is ready when a probe by the supervisor succeeds.
    case probe(Probe)
}

/// A probe: a check that the supervisor makes again and again.
public struct Probe: Sendable, Hashable {
    /// What a probe checks.
    public enum Kind: Sendable, Hashable {
        /// Whether a TCP connection is accepted.
        case tcp(host: String, port: UInt16)
        /// Whether a GET is answered with a status from 200 to 399. The path begins with `/` and includes the query.
        case http(host: String, port: UInt16, path: String)
        /// Whether the command exits with 0.
        case command([String])
        /// Whether the command exits with 0 inside the app's container.
        case inside([String])
        /// Whether the file exists.
        case file(String)
    }

    /// What the probe checks; settings in its address have their default values.
    public var kind: Kind
    /// The address as it is written, if it contains settings.
    public var template: String?
    /// The time from the end of one probe to the start of the next.
    public var interval: Duration = .milliseconds(100)
    /// The longest time that one probe may take.
    public var timeout: Duration = .seconds(1)

    /// A probe with the default interval and timeout.
    public init(_ kind: Kind) {
        self.kind = kind
    }
}

extension ReadySpecification {
    /// The probe as `status` shows it.
    public var text: String {
        switch self {
        case .exec: "exec"
        case .notify: "notify"
        case .delegate: "delegate"
        case .probe(let probe): probe.text
        }
    }
}

extension Probe {
    /// What the probe checks, as `status` and a diff show it.
    public var text: String {
        switch kind {
        case .tcp where template != nil: "tcp \(template ?? "")"
        case .http where template != nil: template ?? ""
        case .tcp(let host, let port): "tcp \(host):\(port)"
        case .http(let host, let port, let path): "http://\(host):\(port)\(path)"
        case .command(let words): "command \(words.joined(separator: " "))"
        case .inside(let words): "command in the container: \(words.joined(separator: " "))"
        case .file(let path): "file \(path)"
        }
    }
}

/// The values of `health`: how a running app is checked.
public struct HealthSpecification: Sendable, Hashable {
    /// The probe that checks the app. By default it runs every 30 s, with 5 s for the answer.
    public var probe: Probe
    /// How many failures in a row make torpord end the app.
    public var failures = 3

    /// A check with the default interval and timeout.
    public init(_ kind: Probe.Kind) {
        probe = Probe(kind)
        probe.interval = .seconds(30)
        probe.timeout = .seconds(5)
    }

    /// What the check probes and how often, as `status` shows it.
    public var text: String { "\(probe.text), every \(Quantity.text(probe.interval))" }
}

/// The values of `kill_mode` and `notify_access`: which processes of an app.
public enum ProcessSelection: String, Sendable, Hashable, CaseIterable {
    case all
    case main
}

/// The values of `suspend_with`: how an app is suspended.
public enum SuspendMethod: String, Sendable, Hashable, CaseIterable {
    case signal
    case freezer
}

/// The values of `before_first_unlock`: whether events may launch an app before the user first unlocks the session.
public enum UnlockRule: String, Sendable, Hashable, CaseIterable {
    case all
    case unprotected
    case none
}

/// A file that `environment_file` names.
public struct EnvironmentFileReference: Sendable, Hashable {
    /// The absolute path of the file.
    public var path: String
    /// Whether the file may be missing: the path was written with a leading `-`.
    public var isOptional: Bool

    /// Creates a reference to the file at a path.
    public init(path: String, isOptional: Bool) {
        self.path = path
        self.isOptional = isOptional
    }
}

/// One entry of `limits`.
public struct ResourceLimit: Sendable, Hashable {
    /// The limit's name, as in `ulimit` and limits.conf: `nofile`.
    public var name: String
    /// The limit's number in setrlimit(2), or ``tasks``, which setrlimit(2) does not have.
    public var resource: Int32
    /// The soft limit, in the unit of setrlimit(2); `UInt64.max` for no limit.
    public var soft: UInt64
    /// The hard limit, in the unit of setrlimit(2); `UInt64.max` for no limit.
    public var hard: UInt64

    /// The `resource` of `limits.tasks`, which applies to the app as a whole.
    public static let tasks: Int32 = -1

    /// Creates a limit; the soft limit must not be above the hard limit.
    public init(name: String, resource: Int32, soft: UInt64, hard: UInt64) {
        self.name = name
        self.resource = resource
        self.soft = soft
        self.hard = hard
    }
}

/// One command of `before_start` or `after_stop`.
public struct HookCommand: Sendable, Hashable {
    /// The program and its arguments; never empty.
    public var command: [String]
    /// How long the command may run before it is killed and counts as failed; `nil` for no limit.
    public var deadline: Duration? = .seconds(30)

    /// A command with the default deadline.
    public init(_ command: [String]) {
        self.command = command
    }
}

/// The table `resources.STATE`: overrides of a state's resource profile.
public struct ResourceProfile: Sendable, Hashable {
    /// The value of cpu.weight in the app's cgroup, 1 to 10000.
    public var cpuWeight: Int?
    /// The value of io.weight in the app's cgroup, 1 to 10000.
    public var ioWeight: Int?
    /// The value of oom_score_adj of the app's processes, −1000 to 1000.
    public var oomScoreAdjust: Int32?
    /// The timer slack of the app's threads (PR_SET_TIMERSLACK).
    public var timerSlack: Duration?
    /// The limit on processor time (cpu.max), in thousandths of a percent of one processor; `Int.max` for no limit.
    public var cpuMaximum: Int?
    /// The value of memory.high in bytes; `UInt64.max` for no limit.
    public var memoryHigh: UInt64?
    /// The value of memory.low in bytes; 0 for no protection.
    public var memoryLow: UInt64?

    /// A profile that overrides nothing.
    public init() {}
}
