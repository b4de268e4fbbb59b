// SPDX-License-Identifier: Apache-2.0

public import Lifecycle

/// Everything that the configuration says about one app, checked and with every default filled in.
///
/// The keys are those of docs/interfaces.md. Apps with equal settings share one copy of them in memory; only what
/// differs between apps is stored for each.
@dynamicMemberLookup
public struct AppSpecification: Sendable, Hashable {
    /// The app's name; an instance's is `TEMPLATE@NUMBER`, a scene's `TEMPLATE@NAME`.
    public var name: String
    /// The name under `[apps]` that an instance or a scene comes from; for other apps their own name.
    public var template: String
    /// The number of an instance, from `instance_first`; `nil` where the app has no `instances`.
    public var instance: Int?
    /// The name of a scene among those of its template; `nil` if it is not a scene.
    public var scene: String?
    /// The program and its arguments; empty only for a container that runs what its image says.
    public var exec: [String] = []
    /// The sockets that it is given, in this order.
    public var sockets: [SocketSpecification] = []
    private static let usual = Shared(AppSettings())
    @usableFromInline var settings: Shared<AppSettings>
    private var presented: Shared<AppPresentation>?
    private var contained: Shared<ContainerSpecification>?

    /// An app with only a name.
    public init(name: String) {
        self.name = name
        self.template = name
        settings = Self.usual
    }

    /// What users see of it besides its name.
    public var presentation: AppPresentation {
        get { presented?.value ?? AppPresentation() }
        set { presented = newValue == AppPresentation() ? nil : Shared(newValue) }
    }

    /// The container that podman runs it in; `nil` for an app without one.
    public var container: ContainerSpecification? {
        get { contained?.value }
        set { contained = newValue.map(Shared.init) }
    }

    /// One of ``AppSettings``.
    @inlinable
    public subscript<T>(dynamicMember path: any WritableKeyPath<AppSettings, T> & Sendable) -> T {
        get { settings.value[keyPath: path] }
        _modify { yield &settings.value[keyPath: path] }
    }

    /// One of ``AppOutput``.
    @inlinable
    public subscript<T>(dynamicMember path: any WritableKeyPath<AppOutput, T> & Sendable) -> T {
        get { settings.value.output[keyPath: path] }
        _modify { yield &settings.value.output[keyPath: path] }
    }

    /// One of ``AppEvents``.
    @inlinable
    public subscript<T>(dynamicMember path: any WritableKeyPath<AppEvents, T> & Sendable) -> T {
        get { settings.value.events[keyPath: path] }
        _modify { yield &settings.value.events[keyPath: path] }
    }
}

extension AppSpecification {
    /// What its container is called; `nil` for an app without one. A scene's or an instance's name has an @, which podman
    /// does not allow.
    public var containerName: String? {
        self.container.map { $0.name ?? "torpor-" + self.name.split(separator: "@").joined(separator: ".") }
    }

    /// How it is checked while it runs: `health`, or else that of its container.
    public var check: HealthSpecification? { self.health ?? self.container?.health }

    /// How to find out that it is ready: `ready`, or else by the health of its container, at least once a second.
    public var readiness: ReadySpecification {
        guard self.ready == .exec, let container = self.container, container.isReadyByHealth,
            var probe = container.health?.probe
        else { return self.ready }
        probe.interval = min(probe.interval, .seconds(1))
        return .probe(probe)
    }

    /// Whether READY=1 says that it is ready: from the app itself, or from what has started its container.
    public var isReadyByNotify: Bool {
        switch self.readiness {
        case .notify: true
        case .exec: self.container != nil
        case .delegate, .probe: false
        }
    }

    /// Whether it is an instance or a scene of ``template``.
    public var isOneOfTemplate: Bool { instance != nil || scene != nil }

    /// The limits that each process starts with.
    public var processLimits: [ResourceLimit] { self.limits.filter { $0.resource != ResourceLimit.tasks } }

    /// How many processes and threads it may have at once; `nil` for no limit.
    public var taskLimit: UInt64? {
        self.limits.first { $0.resource == ResourceLimit.tasks }.flatMap { $0.soft == .max ? nil : $0.soft }
    }
}

/// The part of a specification that many apps have in common. `rules` has what the pure state machine needs.
public struct AppSettings: Sendable, Hashable {
    /// The working directory; absolute.
    public var directory: String?
    /// The user to run as, by name or number.
    public var user: String?
    /// The group to run as, by name or number.
    public var group: String?
    /// Further groups, by name or number; `nil` means those of the user.
    public var supplementaryGroups: [String]?
    /// Variables besides those that every app gets.
    public var environment: [String: String] = [:]
    /// Files of variables, read before each launch; `environment` overrides them, and a later file an earlier one.
    public var environmentFiles: [EnvironmentFileReference] = []
    /// The file mode creation mask, 0 to 0o777.
    public var umask: UInt32?
    /// −20 to 19.
    public var nice: Int32?
    /// Whether and how the supervisor launches the app at its own start.
    public var launch: LaunchMode = .foreground
    /// How to find out that the app is ready, and that it is healthy.
    var checks = Checks()
    /// Names of the apps (instances, never templates) that are started and ready before this one, and stopped after it.
    public var requires: [String] = []
    /// Names of the apps (instances, never templates) that are started before this one if they are started at all.
    public var after: [String] = []
    /// What the pure state machine needs.
    public var rules = AppRules()
    /// The signal of `terminate`.
    public var stopSignal: Int32 = 15
    /// The processes that get `stopSignal`.
    public var killMode: ProcessSelection = .all
    /// The signal after a missed heartbeat.
    public var watchdogSignal: Int32 = 6
    /// How the app's processes are stopped.
    public var suspendWith: SuspendMethod = .signal
    /// The messages that the app receives as a signal.
    public var signals: [Message: Int32] = [:]
    /// The processes whose notifications are accepted.
    public var notifyAccess: ProcessSelection = .all
    /// Names by which verbs select the app: `tag:demo`.
    public var tags: [String] = []
    /// Resource limits, sorted by name: of each process (setrlimit(2)), and the number of processes.
    public var limits: [ResourceLimit] = []
    /// Commands that run before each launch, one after the other; if one fails, the launch fails.
    public var beforeStart: [HookCommand] = []
    /// Commands that run after each exit.
    public var afterStop: [HookCommand] = []
    /// Overrides of the profiles of states; a missing value means the state's default.
    public var resources: [AppState: ResourceProfile] = [:]
    /// Largest state archive in bytes; `nil` for no limit.
    public var stateLimit: UInt64? = 16 << 20
    /// Where its snapshots come from; `nil` if the supervisor takes none.
    public var snapshot: SnapshotSpecification?
    /// The folders for its data.
    public var data = DataFolderSpecification()
    /// Files whose locks keep the app from being suspended, whether it holds them or waits for them; absolute.
    public var sharedResources: [String] = []
    /// Bytes of memory at which the app is terminated; `nil` for no limit.
    public var memoryLimit: UInt64?
    /// Bytes of memory that are freed before the app is launched.
    public var memoryNeeded: UInt64?
    /// Apps with lower priority are evicted first. −1000 to 1000.
    public var priority = 0
    /// Time in `suspended` after which its memory is paged out; `nil` for never.
    public var pageOutAfter: Duration?
    /// Folders in memory (tmpfs) whose files are removed when memory is short; absolute.
    public var purgeable: [String] = []
    /// Whether the last rung of the memory ladder may terminate the app even while it is active.
    public var lastResort = false
    /// The settings that users can change, in the order in which they are written.
    public var declaredSettings: [SettingDeclaration] = []
    /// `scenes` of a template, and of each of its scenes.
    public var scenes: SceneSpecification?
    /// `scenes` of an app with scenes inside; `nil` for other apps.
    public var innerScenes: SceneSpecification?
    /// The files in which it gets its settings.
    public var settingsFormat: SettingsFormat = .json
    /// Where its output goes.
    public var output = AppOutput()
    /// What notifies and wakes the app.
    public var events = AppEvents()

    /// The defaults.
    public init() {}
}

/// What notifies and wakes an app: the part of ``AppSettings`` about events.
public struct AppEvents: Sendable, Hashable {
    /// The background modes whose events launch the app after a force quit.
    public var wakeAfterForceQuit: [String] = ["location"]
    /// Whether events may launch the app before the first unlock of its user's session.
    public var beforeFirstUnlock: UnlockRule = .all
    /// What it does in the background, sorted by name, without repetitions.
    public var backgroundModes: [BackgroundMode] = []
    /// Bluetooth devices that notify and wake the app; needs the mode `bluetooth-central`.
    public var bluetooth: [BluetoothTrigger] = []
    /// The positions that notify and wake it; needs the mode `location`.
    public var location = LocationSpecification()
    /// How a connection to a socket that the app opened itself wakes it.
    public var wakeOnConnect: WakeManner = .none
    /// How long a client that waits for an answer keeps it from being suspended; `nil` for no limit.
    public var answerTime: Duration? = .seconds(300)
    /// Time in `suspended` after which it is woken to keep its connections open; `nil` for never.
    public var keepAlive: Duration?

    /// Files and directories that notify and wake the app.
    public var paths: [PathTrigger] = []
    /// Devices that notify and wake the app.
    public var devices: [DeviceTrigger] = []
    /// Files whose changes the app receives as `settingsDidChange`; absolute paths or glob(7) patterns.
    public var settingsFiles: [String] = []
    /// Files whose changes the app receives as `identityDidChange`; absolute paths or glob(7) patterns.
    public var identityFiles: [String] = []
    /// The changes of the machine that the app is notified of.
    public var notifications: [NotificationTopic] = NotificationTopic.usual
    /// The least interval between checks for new content by an app with the background mode `fetch`.
    public var fetchInterval: Duration = .seconds(900)
    /// Timers that wake it.
    public var timers: [TimerSpecification] = []

    /// How the app receives messages, by topic; a topic may be a pattern of `*` and `?`.
    public var topics: [String: TopicRule] = [:]
    /// The apps that may post to it: names, patterns or `tag:NAME`.
    public var acceptsFrom: [String] = []
    /// How many messages may be queued for it.
    public var mailboxLimit = 1_000
    /// Bytes that may be queued for it; `nil` for no limit.
    public var mailboxSize: UInt64? = 1 << 20
    /// A message is given up after this many runs that got it and crashed.
    public var mailAttempts = 3
    /// Transfers that run for it while it is suspended.
    public var transfers = TransferSpecification()
    /// Network resources that are checked for it while it is suspended.
    public var subscriptions: [SubscriptionSpecification] = []
    /// What it opens, and may ask other apps to open.
    public var opening = OpeningSpecification()
    /// How often events may wake it.
    public var wakeStorm = WakeStormRules()

    /// The defaults.
    public init() {}
}

/// `launch`.
public enum LaunchMode: String, Sendable, Hashable, CaseIterable {
    /// At the supervisor's start, into the foreground.
    case foreground
    /// At the supervisor's start, into the background.
    case background
    /// When a request or event needs it.
    case onDemand = "on-demand"
}

/// `ready` and `health`.
struct Checks: Sendable, Hashable {
    var ready: ReadySpecification = .exec
    var health: HealthSpecification?
}

extension AppSettings {
    /// How to find out that the app is ready.
    public var ready: ReadySpecification {
        get { checks.ready }
        set { checks.ready = newValue }
    }

    /// How it is checked while it runs; `nil` for not at all.
    public var health: HealthSpecification? {
        get { checks.health }
        set { checks.health = newValue }
    }
}

/// `ready`.
public enum ReadySpecification: Sendable, Hashable {
    /// A successful exec is enough.
    case exec
    /// The app sends READY=1.
    case notify
    /// The app's delegate answers the launch messages.
    case delegate
    /// The supervisor probes until it succeeds.
    case probe(Probe)
}

/// A `ready` that the supervisor probes itself.
public struct Probe: Sendable, Hashable {
    /// What is probed.
    public enum Kind: Sendable, Hashable {
        /// A connection is accepted.
        case tcp(host: String, port: UInt16)
        /// A GET is answered with a status from 200 to 399. The path begins with `/` and includes the query.
        case http(host: String, port: UInt16, path: String)
        /// The command exits with 0.
        case command([String])
        /// The command exits with 0 inside the container of the app.
        case inside([String])
        /// The file exists.
        case file(String)
    }

    /// What is probed, with the defaults of settings in the address.
    public var kind: Kind
    /// The address as it is written, if it contains settings.
    public var template: String?
    /// Time from the end of a probe to the next one.
    public var interval: Duration = .milliseconds(100)
    /// The longest time that one probe may take.
    public var timeout: Duration = .seconds(1)

    /// A probe with the default interval and timeout.
    public init(_ kind: Kind) {
        self.kind = kind
    }
}

extension ReadySpecification {
    /// As `status` shows it.
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
    /// What is probed, as `status` and a diff show it.
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

/// `health`: how a running app is checked.
public struct HealthSpecification: Sendable, Hashable {
    /// What is asked; every 30 s, with 5 s for the answer, if the configuration does not say it.
    public var probe: Probe
    /// How many failures in a row end the app.
    public var failures = 3

    /// A check with the usual times.
    public init(_ kind: Probe.Kind) {
        probe = Probe(kind)
        probe.interval = .seconds(30)
        probe.timeout = .seconds(5)
    }

    /// What is asked and how often, as `status` shows it.
    public var text: String { "\(probe.text), every \(Quantity.text(probe.interval))" }
}

/// `kill_mode`, `notify_access`: which processes of an app.
public enum ProcessSelection: String, Sendable, Hashable, CaseIterable {
    case all
    case main
}

/// `suspend_with`.
public enum SuspendMethod: String, Sendable, Hashable, CaseIterable {
    case signal
    case freezer
}

/// `before_first_unlock`.
public enum UnlockRule: String, Sendable, Hashable, CaseIterable {
    case all
    case unprotected
    case none
}

/// One file of `environment_file`.
public struct EnvironmentFileReference: Sendable, Hashable {
    /// Absolute.
    public var path: String
    /// Written with a leading `-`: a missing file is no error.
    public var isOptional: Bool

    /// A reference to the file at the path.
    public init(path: String, isOptional: Bool) {
        self.path = path
        self.isOptional = isOptional
    }
}

/// One entry of `limits`.
public struct ResourceLimit: Sendable, Hashable {
    /// The limit's name, as in `ulimit` and limits.conf: `nofile`.
    public var name: String
    /// Its number in setrlimit(2); ``tasks`` is not one of those.
    public var resource: Int32
    /// In the unit of setrlimit(2); `UInt64.max` for no limit.
    public var soft: UInt64
    /// In the unit of setrlimit(2); `UInt64.max` for no limit.
    public var hard: UInt64

    /// Stands for `limits.tasks`, which applies to the app as a whole.
    public static let tasks: Int32 = -1

    /// A limit; the soft one is never above the hard one.
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
    /// Time after which it is killed and counts as failed; `nil` for none.
    public var deadline: Duration? = .seconds(30)

    /// A command with the default deadline.
    public init(_ command: [String]) {
        self.command = command
    }
}

/// `resources.STATE`: overrides of a state's profile.
public struct ResourceProfile: Sendable, Hashable {
    /// 1 to 10000, as cpu.weight.
    public var cpuWeight: Int?
    /// 1 to 10000, as io.weight.
    public var ioWeight: Int?
    /// −1000 to 1000, as oom_score_adj.
    public var oomScoreAdjust: Int32?
    /// As PR_SET_TIMERSLACK.
    public var timerSlack: Duration?
    /// As cpu.max: thousandths of a percent of one processor; `Int.max` for no limit.
    public var cpuMaximum: Int?
    /// As memory.high, bytes; `UInt64.max` for none.
    public var memoryHigh: UInt64?
    /// As memory.low, bytes; 0 for none.
    public var memoryLow: UInt64?

    /// A profile that overrides nothing.
    public init() {}
}
