// SPDX-License-Identifier: Apache-2.0

public import Lifecycle
public import Permissions
import WireText

/// The configuration of one app. The values are checked, and missing values are replaced by defaults.
///
/// The keys are described in docs/interfaces.md. Apps with equal settings share one copy of them in memory. Only values
/// that usually differ between apps are stored for each app.
@dynamicMemberLookup
public struct AppSpecification: Sendable, Hashable {
    /// The app's name. The name of an instance is `TEMPLATE@NUMBER`, that of a scene `TEMPLATE@NAME`.
    public var name: String
    /// The name of the app's table in `[apps]`. It differs from ``name`` if the app is an instance or a scene.
    public var template: String
    /// The number of the instance; the first is `instance_first`. `nil` if the app is not an instance.
    public var instance: Int?
    /// The scene's name without that of its template; `nil` if the app is not a scene.
    public var scene: String?
    /// The program and its arguments. Empty only for a container that runs its image's own command.
    public var exec: [String] = []
    /// The sockets that the app gets, in the order of its descriptors.
    public var sockets: [SocketSpecification] = []
    private static let usual = Shared(AppSettings())
    @usableFromInline var settings: Shared<AppSettings>
    private var bundled: Shared<BundleReference>?
    /// The ``presentation``, if it is set: copying it takes longer than asking whether there is one.
    public private(set) var presented: Shared<AppPresentation>?
    private static let plain = AppPresentation()
    private var contained: Shared<ContainerSpecification>?
    private var confined: Shared<Sandbox>?

    /// Creates a specification with a name and otherwise default values.
    public init(name: String) {
        self.name = name
        self.template = name
        settings = Self.usual
    }

    /// The bundle that contains the program; nil if the app has no bundle.
    public var bundle: BundleReference? {
        get { bundled?.value }
        set { bundled = newValue.map(Shared.init) }
    }

    /// How the app is presented to users.
    public var presentation: AppPresentation {
        get { presented?.value ?? Self.plain }
        set { presented = newValue == AppPresentation() ? nil : Shared(newValue) }
    }

    /// The container in which podman runs the app; `nil` if the app runs without a container.
    public var container: ContainerSpecification? {
        get { contained?.value }
        set { contained = newValue.map(Shared.init) }
    }

    /// The app's sandbox and its permissions.
    public var sandbox: Sandbox {
        get { confined?.value ?? Sandbox() }
        set { confined = newValue == Sandbox() ? nil : Shared(newValue) }
    }

    /// Whether the app runs in a sandbox.
    public var isSandboxed: Bool { confined?.value.mode != nil }

    /// Reads and writes a field of ``AppSettings``.
    @inlinable
    public subscript<T>(dynamicMember path: any WritableKeyPath<AppSettings, T> & Sendable) -> T {
        @inline(__always) get { settings.value[keyPath: path] }
        _modify { yield &settings.value[keyPath: path] }
    }

    /// Reads and writes a field of ``AppOutput``.
    @inlinable
    public subscript<T>(dynamicMember path: any WritableKeyPath<AppOutput, T> & Sendable) -> T {
        @inline(__always) get { settings.value.output[keyPath: path] }
        _modify { yield &settings.value.output[keyPath: path] }
    }

    /// Reads and writes a field of ``AppEvents``.
    @inlinable
    public subscript<T>(dynamicMember path: any WritableKeyPath<AppEvents, T> & Sendable) -> T {
        @inline(__always) get { settings.value.events[keyPath: path] }
        _modify { yield &settings.value.events[keyPath: path] }
    }
}

extension AppSpecification {
    /// The name of the app's container; `nil` if it has none. podman does not allow an @ in names, so the @ in the
    /// name of a scene or an instance is replaced by a dot.
    public var containerName: String? {
        self.container.map { $0.name ?? "torpor-" + self.name.split(separator: "@").joined(separator: ".") }
    }

    /// The health check of a running app: the key `health`, otherwise the health check of its container.
    public var check: HealthSpecification? { self.health ?? self.container?.health }

    /// How torpord detects that the app is ready: the key `ready` or, without it, the health check of the app's
    /// container. Until the app is ready, that check runs at least once a second.
    public var readiness: ReadySpecification {
        guard self.ready == .exec, let container = self.container, container.isReadyByHealth,
            var probe = container.health?.probe
        else { return self.ready }
        probe.interval = min(probe.interval, .seconds(1))
        return .probe(probe)
    }

    /// Whether torpord waits for READY=1 from the app, or from the program that starts the app's container.
    public var isReadyByNotify: Bool {
        switch self.readiness {
        case .notify: true
        case .exec: self.container != nil
        case .delegate, .probe: false
        }
    }

    /// Whether the app is an instance or a scene of ``template``.
    public var isOneOfTemplate: Bool { instance != nil || scene != nil }

    /// The limits that each process of the app gets (setrlimit(2)).
    public var processLimits: [ResourceLimit] {
        let limits = self.limits
        return limits.isEmpty ? limits : limits.filter { $0.resource != ResourceLimit.tasks }
    }

    /// The maximum number of processes and threads of the app; `nil` for no limit.
    public var taskLimit: UInt64? {
        self.limits.first { $0.resource == ResourceLimit.tasks }.flatMap { $0.soft == .max ? nil : $0.soft }
    }
}

/// The part of a specification that many apps share.
public struct AppSettings: Sendable, Hashable {
    /// The absolute path of the app's working directory.
    public var directory: String?
    /// The user that the app runs as, by name or number.
    public var user: String?
    /// The group that the app runs as, by name or number.
    public var group: String?
    /// The supplementary groups of the app, by name or number; `nil` for those of the user.
    public var supplementaryGroups: [String]?
    /// Environment variables in addition to those that every app gets.
    public var environment: [String: String] = [:]
    /// Files with environment variables, read before each launch. A later file overrides an earlier one, and
    /// `environment` overrides all files.
    public var environmentFiles: [EnvironmentFileReference] = []
    /// The file mode creation mask, 0 to 0o777.
    public var umask: UInt32?
    /// The nice value, −20 to 19.
    public var nice: Int32?
    /// Whether the supervisor launches the app at its own start.
    public var launch: LaunchMode = .foreground
    /// How torpord checks that the app is ready and healthy.
    var checks = Checks()
    /// Names of the apps that must be ready before this app is launched, and that are stopped after it. Names of
    /// instances are allowed, names of templates are not.
    public var requires: [String] = []
    /// Names of the apps that are launched before this app, if both will be launched. Names of instances are allowed,
    /// names of templates are not.
    public var after: [String] = []
    /// The values that the app's state machine uses.
    public var rules = AppRules()
    /// The number of the signal that requests the app to terminate.
    public var stopSignal: Int32 = 15
    /// The processes that get `stopSignal`.
    public var killMode: ProcessSelection = .all
    /// The number of the signal that terminates the app after a missed heartbeat.
    public var watchdogSignal: Int32 = 6
    /// How the app is suspended: by a signal or by its cgroup.
    public var suspendWith: SuspendMethod = .signal
    /// The messages that the app gets as signals, each with the number of the signal.
    public var signals: [Message: Int32] = [:]
    /// The processes whose sd_notify messages torpord accepts.
    public var notifyAccess: ProcessSelection = .all
    /// The app's tags. In requests, `tag:NAME` selects all apps with that tag.
    public var tags: [String] = []
    /// The resource limits of each process (setrlimit(2)), and the limit `tasks` of the app. Sorted by name.
    public var limits: [ResourceLimit] = []
    /// Commands that run before a launch, and when the app has ended.
    var hooks = Hooks()
    /// For each state: values that replace those of the state's default resource profile.
    public var resources: [AppState: ResourceProfile] = [:]
    /// The maximum size of a state archive in bytes; `nil` for no limit.
    public var stateLimit: UInt64? = 16 << 20
    /// How torpord takes snapshots of the app; `nil` if it takes none.
    public var snapshot: SnapshotSpecification?
    /// The folders for the app's data.
    public var data = DataFolderSpecification()
    /// The absolute paths of files with locks. While the app holds such a lock or waits for one, it is not suspended.
    public var sharedResources: [String] = []
    /// The maximum memory of the app, in bytes; `nil` for no limit. If the app uses more, it is terminated.
    public var memoryLimit: UInt64?
    /// How many bytes of memory must be available before the app is launched; `nil` if any amount suffices.
    public var memoryNeeded: UInt64?
    /// The app's priority, −1000 to 1000. Apps with a lower priority are evicted first.
    public var priority = 0
    /// How long the app is in the state `suspended` before its memory is paged out; `nil` if it never is.
    public var pageOutAfter: Duration?
    /// The absolute paths of folders on tmpfs. If memory is short, torpord removes the files in them.
    public var purgeable: [String] = []
    /// Whether torpord may terminate the app while it is active, as the last step if memory is short.
    public var lastResort = false
    /// The settings that users can change, in the order of the configuration.
    public var declaredSettings: [SettingDeclaration] = []
    /// The table `scenes` of a template, and of each of its scenes; `nil` for other apps.
    public var scenes: SceneSpecification?
    /// The table `scenes` of an app whose scenes live inside its own processes; `nil` for other apps.
    public var innerScenes: SceneSpecification?
    /// The format of the files in which the app gets its settings.
    public var settingsFormat: SettingsFormat = .json
    /// The source of the app's input, and the destinations of its output.
    public var output = AppOutput()
    /// The events that notify and wake the app.
    public var events = AppEvents()

    /// Creates settings with default values.
    public init() {}
}

/// The events that notify and wake an app; a part of ``AppSettings``.
public struct AppEvents: Sendable, Hashable {
    /// The background modes whose events launch the app even after a force quit.
    public var wakeAfterForceQuit: [String] = ["location"]
    /// Whether events may launch the app before the user has unlocked the session for the first time since the boot.
    public var beforeFirstUnlock: UnlockRule = .all
    /// The app's background modes, sorted by name and without duplicates.
    public var backgroundModes: [BackgroundMode] = []
    /// Bluetooth devices that notify and wake the app. They require the background mode `bluetooth-central`.
    public var bluetooth: [BluetoothTrigger] = []
    /// Positions that notify and wake the app. They require the background mode `location`.
    public var location = LocationSpecification()
    /// How a connection wakes the app, if the app has opened the listening socket itself.
    public var wakeOnConnect: WakeManner = .none
    /// What happens to open connections of the app's clients when the app is suspended.
    public var suspendedConnections: SuspendedConnections = .keep
    /// How long a client that waits for an answer can delay the app's suspension; `nil` for no limit.
    public var answerTime: Duration? = .seconds(300)
    /// How long the app is in the state `suspended` before it is woken to keep its connections open; `nil` for never.
    public var keepAlive: Duration?

    /// Files and directories whose changes notify and wake the app.
    public var paths: [PathTrigger] = []
    /// Devices whose events notify and wake the app.
    public var devices: [DeviceTrigger] = []
    /// Files whose changes are sent to the app as `settingsDidChange`: absolute paths or glob(7) patterns.
    public var settingsFiles: [String] = []
    /// Files whose changes are sent to the app as `identityDidChange`: absolute paths or glob(7) patterns.
    public var identityFiles: [String] = []
    /// The changes of the machine of which the app is notified.
    public var notifications: [NotificationTopic] = NotificationTopic.usual
    /// The minimum interval between checks for new content, if the app has the background mode `fetch`.
    public var fetchInterval: Duration = .seconds(900)
    /// Timers that wake the app.
    public var timers: [TimerSpecification] = []
    /// Services that are announced on the local network.
    public var announcements: [AnnouncementSpecification] = []
    /// What happens if the app uses a graphics card in the background.
    public var gpuBackground = GPURule.ignore
    /// How the app gets messages. The keys are topics, or patterns of topics with `*` and `?`.
    public var topics: [String: TopicRule] = [:]
    /// The apps that may post messages to this app: names, patterns of names, or `tag:NAME`.
    public var acceptsFrom: [String] = []
    /// The maximum number of messages in the app's queue.
    public var mailboxLimit = 1_000
    /// The maximum size of the app's queued messages in bytes; `nil` for no limit.
    public var mailboxSize: UInt64? = 1 << 20
    /// How many launches may crash after they got a message before torpord stops delivering that message.
    public var mailAttempts = 3
    /// The limits of the app's transfers, which torpord continues while the app is suspended.
    public var transfers = TransferSpecification()
    /// Network resources that torpord checks for changes while the app is suspended.
    public var subscriptions: [SubscriptionSpecification] = []
    /// The URLs and files that the app opens, and the URLs that it may ask other apps to open.
    public var opening = OpeningSpecification()
    /// How often events may wake the app.
    public var wakeStorm = WakeStormRules()

    /// Creates a specification with default values.
    public init() {}
}

/// The values of `suspended_connections`: what happens to open connections of an app's clients when the app is
/// suspended.
public enum SuspendedConnections: String, Sendable, Hashable, CaseIterable {
    /// The connections stay open. Data from a client wakes the app, or waits until the app runs.
    case keep
    /// Connections on which no client waits for an answer are shut down, so that clients notice the sleep at once.
    case close
}

/// The values of `launch`: whether the supervisor launches the app when the supervisor starts.
public enum LaunchMode: String, Sendable, Hashable, CaseIterable {
    /// Launch the app into the foreground when the supervisor starts.
    case foreground
    /// Launch the app into the background when the supervisor starts.
    case background
    /// Launch the app only when a request or an event needs it.
    case onDemand = "on-demand"
}

/// The values of `ready` and `health`.
struct Checks: Sendable, Hashable {
    var ready: ReadySpecification = .exec
    var health: HealthSpecification?
}

extension AppSettings {
    /// How torpord detects that the app is ready.
    public var ready: ReadySpecification {
        get { checks.ready }
        set { checks.ready = newValue }
    }

    /// How torpord checks a running app; `nil` for no checks.
    public var health: HealthSpecification? {
        get { checks.health }
        set { checks.health = newValue }
    }
}

/// The values of `ready`: how torpord detects that an app is ready.
public enum ReadySpecification: Sendable, Hashable {
    /// The app is ready as soon as execve(2) of its program has succeeded.
    case exec
    /// The app is ready when it sends READY=1.
    case notify
    /// The app is ready when its delegate has answered the launch messages.
    case delegate
    /// The app is ready when a probe succeeds.
    case probe(Probe)
}

/// A check that torpord repeats until it succeeds (`ready`) or as long as the app runs (`health`), such as a connection
/// to a TCP port.
public struct Probe: Sendable, Hashable {
    /// What a probe checks.
    public enum Kind: Sendable, Hashable {
        /// Whether a TCP connection is accepted.
        case tcp(host: String, port: UInt16)
        /// Whether a GET request gets a status from 200 to 399. The path begins with `/` and includes the query.
        case http(host: String, port: UInt16, path: String)
        /// Whether a command exits with status 0.
        case command([String])
        /// Whether a command that runs inside the app's container exits with status 0.
        case inside([String])
        /// Whether a file exists.
        case file(String)
    }

    /// What the probe checks. Settings in an address are replaced by their default values.
    public var kind: Kind
    /// The address as the configuration writes it, if it contains settings; otherwise `nil`.
    public var template: String?
    /// The time from the end of one probe to the start of the next.
    public var interval: Duration = .milliseconds(100)
    /// The maximum duration of one probe.
    public var timeout: Duration = .seconds(1)

    /// Creates a probe with the default interval and timeout.
    public init(_ kind: Kind) {
        self.kind = kind
    }
}

extension ReadySpecification {
    /// The probe as text, for `torpor status`.
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
    /// What the probe checks as text, for `torpor status` and for diffs.
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

/// The values of `health`: how torpord checks a running app.
public struct HealthSpecification: Sendable, Hashable {
    /// The probe that checks the app. By default it runs every 30 s and has a timeout of 5 s.
    public var probe: Probe
    /// After this many failures in a row, torpord terminates the app.
    public var failures = 3

    /// Creates a check with the default interval and timeout.
    public init(_ kind: Probe.Kind) {
        probe = Probe(kind)
        probe.interval = .seconds(30)
        probe.timeout = .seconds(5)
    }

    /// What is checked and how often, as text for `torpor status`.
    public var text: String { "\(probe.text), every \(Quantity.text(probe.interval))" }
}

/// The values of `kill_mode` and `notify_access`: which processes of an app a key applies to.
public enum ProcessSelection: String, Sendable, Hashable, CaseIterable {
    case all
    case main
}

/// The values of `suspend_with`: how an app is suspended.
public enum SuspendMethod: String, Sendable, Hashable, CaseIterable {
    case signal
    case freezer
}

/// The values of `before_first_unlock`: whether events may launch an app before the user has unlocked the session for
/// the first time since the boot.
public enum UnlockRule: String, Sendable, Hashable, CaseIterable {
    case all
    case unprotected
    case none
}

/// A file that `environment_file` names.
public struct EnvironmentFileReference: Sendable, Hashable {
    /// The absolute path of the file.
    public var path: String
    /// Whether the file may be missing. In the configuration, such a path has a leading `-`.
    public var isOptional: Bool

    /// Creates a reference to the file at the path `path`.
    public init(path: String, isOptional: Bool) {
        self.path = path
        self.isOptional = isOptional
    }
}

/// An entry of `limits`.
public struct ResourceLimit: Sendable, Hashable {
    /// The limit's name in limits.conf(5), such as `nofile`.
    public var name: String
    /// The limit's number in setrlimit(2), or ``tasks``, which is not a limit of setrlimit(2).
    public var resource: Int32
    /// The soft limit, in the unit of setrlimit(2); `UInt64.max` for no limit.
    public var soft: UInt64
    /// The hard limit, in the unit of setrlimit(2); `UInt64.max` for no limit.
    public var hard: UInt64

    /// The value of ``resource`` for `limits.tasks`, which limits the app as a whole.
    public static let tasks: Int32 = -1

    /// Creates a limit. The soft limit must not be above the hard limit.
    public init(name: String, resource: Int32, soft: UInt64, hard: UInt64) {
        self.name = name
        self.resource = resource
        self.soft = soft
        self.hard = hard
    }
}

/// The table `resources.STATE`: values that replace those of the state's default resource profile. `nil` keeps the
/// default value.
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

    /// Creates a profile that replaces no values.
    public init() {}
}

/// The values of `gpu_background`: what happens if an app uses a graphics card in the background.
public enum GPURule: String, Sendable, Hashable, CaseIterable {
    /// torpord records an event.
    case report
    /// torpord records an event and terminates the app.
    case end
    /// torpord does not check the use of graphics cards.
    case ignore
}
