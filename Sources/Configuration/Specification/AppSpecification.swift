// SPDX-License-Identifier: Apache-2.0

public import Lifecycle

/// Everything that the configuration says about one app, checked and with every default filled in.
///
/// The keys are those of docs/interfaces.md. Apart from what each app has of its own, it is in memory once for all apps
/// of which the configuration says the same.
@dynamicMemberLookup
public struct AppSpecification: Sendable, Hashable {
    /// The app's name; an instance's is `TEMPLATE@NUMBER`, a scene's `TEMPLATE@NAME`.
    public var name: String
    /// The name under `[apps]` that an instance or a scene comes from; the app's own name where it is neither.
    public var template: String
    /// The number of an instance, from `instance_first`; `nil` where the app has no `instances`.
    public var instance: Int?
    /// The name of a scene among those of its template; `nil` for what is none.
    public var scene: String?
    /// The program and its arguments; never empty.
    public var exec: [String] = []
    /// The sockets that it is given, in this order.
    public var sockets: [SocketSpecification] = []
    private static let usual = Shared(AppSettings())
    @usableFromInline var settings: Shared<AppSettings>
    private var presented: Shared<AppPresentation>?

    /// An app of which only the name is known.
    public init(name: String) {
        self.name = name
        self.template = name
        settings = Self.usual
    }

    /// What people see of it beside its name.
    public var presentation: AppPresentation {
        get { presented?.value ?? AppPresentation() }
        set { presented = newValue == AppPresentation() ? nil : Shared(newValue) }
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
    /// Whether it is one of several that ``template`` stands for.
    public var isOneOfTemplate: Bool { instance != nil || scene != nil }

    /// The limits that each process is born with.
    public var processLimits: [ResourceLimit] { self.limits.filter { $0.resource != ResourceLimit.tasks } }

    /// How many processes and threads it may have at once; `nil` for any number.
    public var taskLimit: UInt64? {
        self.limits.first { $0.resource == ResourceLimit.tasks }.flatMap { $0.soft == .max ? nil : $0.soft }
    }
}

/// What apps often have in common. What the pure machine needs is in `rules`.
public struct AppSettings: Sendable, Hashable {
    /// The working directory; absolute.
    public var directory: String?
    /// The user to run as, by name or number.
    public var user: String?
    /// The group to run as, by name or number.
    public var group: String?
    /// Further groups, by name or number; `nil` means those of the user.
    public var supplementaryGroups: [String]?
    /// Variables beside those that every app gets.
    public var environment: [String: String] = [:]
    /// Files of variables, read before each launch; `environment` wins over them, a later file over an earlier.
    public var environmentFiles: [EnvironmentFileReference] = []
    /// The file mode creation mask, 0 to 0o777.
    public var umask: UInt32?
    /// −20 to 19.
    public var nice: Int32?
    /// Whether and how the supervisor launches the app at its own start.
    public var launch: LaunchMode = .foreground
    /// How the app is found to be ready.
    public var ready: ReadySpecification = .exec
    /// Names of the apps (instances, never templates) that are started and ready before this one, and stopped after it.
    public var requires: [String] = []
    /// Names of the apps (instances, never templates) that are started before this one if they are started at all.
    public var after: [String] = []
    /// What the pure machine needs to know.
    public var rules = AppRules()
    /// What terminate sends.
    public var stopSignal: Int32 = 15
    /// Whom `stopSignal` is sent to.
    public var killMode: ProcessSelection = .all
    /// What a missed heartbeat sends.
    public var watchdogSignal: Int32 = 6
    /// How the app's processes are stopped.
    public var suspendWith: SuspendMethod = .signal
    /// The messages that the app hears as a signal.
    public var signals: [Message: Int32] = [:]
    /// Whose notifications are heard.
    public var notifyAccess: ProcessSelection = .all
    /// What verbs select the app by: `tag:demo`.
    public var tags: [String] = []
    /// Resource limits, in order of their names: of each process (setrlimit(2)), and how many processes there may be.
    public var limits: [ResourceLimit] = []
    /// Commands that run before each launch, one after the other; one that fails ends the launch.
    public var beforeStart: [HookCommand] = []
    /// Commands that run after each ending.
    public var afterStop: [HookCommand] = []
    /// Overrides of the profiles of states; a missing value is the state's own.
    public var resources: [AppState: ResourceProfile] = [:]
    /// Bytes that a state archive may have; `nil` for any number.
    public var stateLimit: UInt64? = 16 << 20
    /// Where snapshots of what it shows come from; `nil` where the supervisor takes none.
    public var snapshot: SnapshotSpecification?
    /// The folders that it keeps its data in.
    public var data = DataFolderSpecification()
    /// Files on which the app is not suspended with a lock, waited for or not; absolute.
    public var sharedResources: [String] = []
    /// Bytes of memory at which the app is ended; `nil` for none.
    public var memoryLimit: UInt64?
    /// Bytes of memory that are made free before the app is launched.
    public var memoryNeeded: UInt64?
    /// Among apps that could go, the lower one goes first. −1000 to 1000.
    public var priority = 0
    /// Time in `suspended` after which its memory is paged out; `nil` for never.
    public var pageOutAfter: Duration?
    /// Folders in memory (tmpfs) whose files are removed when memory is short; absolute.
    public var purgeable: [String] = []
    /// Whether the last rung of the memory ladder may end the app even while it is active.
    public var lastResort = false
    /// The settings that persons can change, in the order in which they are written.
    public var declaredSettings: [SettingDeclaration] = []
    /// What is said of scenes, of a template and of each of them.
    public var scenes: SceneSpecification?
    /// What is said of scenes inside the app; `nil` for one that has none there.
    public var innerScenes: SceneSpecification?
    /// Which files have their values.
    public var settingsFormat: SettingsFormat = .json
    /// Where what it writes goes.
    public var output = AppOutput()
    /// What tells the app something, and wakes it.
    public var events = AppEvents()

    /// Those of an app of which the configuration says nothing.
    public init() {}
}

/// What tells an app something, and wakes it: the part of ``AppSettings`` that is about events.
public struct AppEvents: Sendable, Hashable {
    /// The background modes whose events launch the app after a force quit.
    public var wakeAfterForceQuit: [String] = ["location"]
    /// Whether events may launch the app before the first unlock of its user's session.
    public var beforeFirstUnlock: UnlockRule = .all
    /// What it does in the background, each once, in the order of their names.
    public var backgroundModes: [BackgroundMode] = []
    /// Bluetooth devices that tell the app, and wake it; needs the mode `bluetooth-central`.
    public var bluetooth: [BluetoothTrigger] = []
    /// Which positions it is told, and wakes for; needs the mode `location`.
    public var location = LocationSpecification()
    /// How a connection to a socket that it opened itself wakes it.
    public var wakeOnConnect: WakeManner = .none
    /// How long a client that waits for an answer keeps it from its sleep; `nil` for as long as it waits.
    public var answerTime: Duration? = .seconds(300)
    /// Time asleep after which it is woken to keep its connections open; `nil` for never.
    public var keepAlive: Duration?

    /// Files and directories that tell the app, and wake it.
    public var paths: [PathTrigger] = []
    /// Devices that tell the app, and wake it.
    public var devices: [DeviceTrigger] = []
    /// Files of which the app hears as `settingsDidChange`; absolute, patterns as glob(7) has them.
    public var settingsFiles: [String] = []
    /// Files of which the app hears as `identityDidChange`; absolute, patterns as glob(7) has them.
    public var identityFiles: [String] = []
    /// What of the machine the app is told.
    public var notifications: [NotificationTopic] = NotificationTopic.usual
    /// An app with the background mode `fetch` looks for new content no more often.
    public var fetchInterval: Duration = .seconds(900)
    /// When it is woken.
    public var timers: [TimerSpecification] = []

    /// What the app takes of what is posted to it, by topic; a name may be a pattern of `*` and `?`.
    public var topics: [String: TopicRule] = [:]
    /// The apps that may post to it: names, patterns or `tag:NAME`.
    public var acceptsFrom: [String] = []
    /// How many messages may wait for it.
    public var mailboxLimit = 1_000
    /// Bytes of all that waits for it; `nil` for any number.
    public var mailboxSize: UInt64? = 1 << 20
    /// In so many runs that ended unasked it is told something; then it is told that no more.
    public var mailAttempts = 3
    /// What is transferred for it while it sleeps.
    public var transfers = TransferSpecification()
    /// What is looked at for it on the network while it sleeps.
    public var subscriptions: [SubscriptionSpecification] = []
    /// What it opens, and may have other apps open.
    public var opening = OpeningSpecification()
    /// How often events may wake it.
    public var wakeStorm = WakeStormRules()

    /// Those of an app of which the configuration says nothing.
    public init() {}
}

/// `launch`.
public enum LaunchMode: String, Sendable, Hashable, CaseIterable {
    /// At the supervisor's start, into the foreground.
    case foreground
    /// At the supervisor's start, into the background.
    case background
    /// When something asks for it.
    case onDemand = "on-demand"
}

/// `ready`.
public enum ReadySpecification: Sendable, Hashable {
    /// A successful exec is enough.
    case exec
    /// The app sends READY=1.
    case notify
    /// The app's delegate answers the launch messages.
    case delegate
    /// The supervisor tries until it succeeds.
    case probe(Probe)
}

/// A `ready` that the supervisor finds out by itself.
public struct Probe: Sendable, Hashable {
    /// What is tried.
    public enum Kind: Sendable, Hashable {
        /// A connection is accepted.
        case tcp(host: String, port: UInt16)
        /// A GET is answered with a status from 200 to 399. The path begins with `/` and includes the query.
        case http(host: String, port: UInt16, path: String)
        /// The command exits with 0.
        case command([String])
        /// The file is there.
        case file(String)
    }

    /// What is tried. Where settings stand in the address, that with their defaults.
    public var kind: Kind
    /// The address as it is written, where settings stand in it.
    public var template: String?
    /// From the end of a try to the next one.
    public var interval: Duration = .milliseconds(100)
    /// The longest that one try takes.
    public var timeout: Duration = .seconds(1)

    /// A probe with the default interval and timeout.
    public init(_ kind: Kind) {
        self.kind = kind
    }
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
    /// Written with a leading `-`: nothing happens where the file is missing.
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
    /// The number that setrlimit(2) knows it by; ``tasks`` is none of those.
    public var resource: Int32
    /// In the unit of setrlimit(2); `UInt64.max` for no limit.
    public var soft: UInt64
    /// In the unit of setrlimit(2); `UInt64.max` for no limit.
    public var hard: UInt64

    /// Stands for `limits.tasks`, which is the app's as a whole.
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

/// `resources.STATE`: what a state's profile is overridden with.
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
