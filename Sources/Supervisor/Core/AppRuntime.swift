// SPDX-License-Identifier: Apache-2.0

import Configuration
import EventLoop
import Lifecycle
import Linux
import Notify
import Output
import Processes
import TorporAPI
import VarlinkServer

/// What the shell holds for one app: its place in the outside world. Its state is the coordinator's.
@dynamicMemberLookup
final class AppRuntime {
    let id: AppID
    private unowned let supervisor: Supervisor
    /// What it goes by: of an incarnation that lives, what it was launched with and what can change under it.
    var specification: AppSpecification
    /// Whether the configuration has it; ``AppTable`` says so.
    var isListed = false
    /// An earlier torpord launched it by an older configuration, of which nothing more is known.
    var isOutdatedSinceRecovery = false
    /// Whether an incarnation that lives was launched by an older configuration.
    var isOutdated: Bool { self.next != nil || isOutdatedSinceRecovery }

    /// The processes of the incarnation, from the exec to the end.
    var tree: ProcessTree?
    /// Wakes the machine at its next deadline.
    var deadlineTimer: TimerSource?
    var armedFor: Duration?
    /// Repeats stop and kill passes while they are under way.
    var passTimer: TimerSource?
    var passDelay: Duration = .milliseconds(1)
    var stop = StopProgress.none
    /// The signal by which it was told something last, since it goes on.
    var told: Int32?
    /// It is stopped by freezing its cgroup.
    var freezes = false
    /// The state whose share of the machine was given to this incarnation last; nil: none, it has what it was born with.
    var profileState: AppState?
    /// It waits for its share of the machine.
    var isInProfileQueue = false

    var notifySocket: NotifySocket?
    var notifySource: IOSource?
    /// The app's own socket.
    var server: VarlinkServer?
    /// What waits in the notify socket is being read: what that causes does not read it again.
    var isHearing = false
    /// Somebody looks for the file that says that it is ready.
    var isLookedAt = false
    var store = FDStore()
    /// What the keeper calls the stored descriptors, and which of them are watched.
    var storeHolds: [ObjectIdentifier: StoreHold] = [:]
    var storeCount = 0
    var capture: OutputCapture?
    /// Clients that follow its log; it need not have run yet.
    var logFollowers: [LogFollower] = []
    /// What it was asked last, so that nothing is carried out twice.
    var tokens = TakenTokens()

    /// Its place in the recovery file.
    var slot: Int?
    /// What was decided and is not carried out yet.
    var undone: ActionMask = []
    /// Exits of this incarnation that the keeper keeps until its ending is recorded.
    var keptExits: [ExitRecord] = []

    /// What outlives the boot.
    var kept = KeptApp()

    var launchedAt: Duration? { didSet { mostMemory = 0 } }
    /// When it last came into each state, and when it was last used.
    var times = StateTimes()
    /// What all its processes together were last seen to have.
    var usage = Usage.none { didSet { mostMemory = max(mostMemory, usage.memoryBytes) } }
    /// The most memory that was seen so in this run.
    private(set) var mostMemory: UInt64 = 0
    /// When that was last read for a list.
    var sampledAt: Duration?
    var reports: [Report] = []
    /// What was last announced, so that a change of it is.
    var announced: Transition?
    /// The change of state under way that is being timed.
    var counted: (transition: Transition, began: Duration)?
    /// What has happened to it since this torpord was started.
    var counters = AppCounters()
    /// What the log has room for.
    var room = LogRoom()
    var lastState: AppState = .notRunning
    /// A process of the app stopped it from inside or outside, and the supervisor did not.
    var foundStopped = false
    /// RELOADING=1 was said, and READY=1 not yet after it.
    var isReloading = false
    /// What this incarnation went through.
    var timeline = Timeline()

    var name: String { specification.name }

    private var extras: Shared<AppExtras>?

    /// One of ``AppExtras``.
    subscript<T>(dynamicMember path: WritableKeyPath<AppExtras, T?>) -> T? {
        get { extras?.value[keyPath: path] }
        set {
            if extras == nil {
                guard newValue != nil else { return }
                extras = Shared(AppExtras())
            }
            extras?.value[keyPath: path] = newValue
        }
    }

    init(id: AppID, specification: AppSpecification, supervisor: Supervisor) {
        self.id = id
        self.specification = specification
        self.supervisor = supervisor
    }
}

/// How far it has come with stopping an app's processes.
enum StopProgress {
    case none
    /// Decided; what may be in its way is looked at first.
    case decided
    /// They are being stopped.
    case underWay
}

/// What most apps have nothing of most of the time: it takes memory only of those that do.
struct AppExtras {
    /// What the configuration says, where an incarnation that lives goes by something older.
    var next: AppSpecification?
    /// Sees the end of a main process that the app named itself.
    var mainSource: IOSource?
    var mainTimer: TimerSource?
    var probe: ReadinessProbe?
    /// Whom it runs as, and what that follows from, as of its last launch.
    var account: (names: Account.Names, account: Account)?
    /// Something is being read for a launch.
    var reading: LaunchReading?
    /// Its picture is being read for these.
    var iconReplies: [Reply]?
    var hooks: HookRun?
    var statusText: String?
    var saidErrno: Int32?
    var lastExit: LastExit?
    var launchFailure: LaunchFailure?
    /// Why the last launch came to nothing, in a sentence.
    var refusal: String?
    /// Why a policy holds its launch back.
    var heldBack: String?
    /// A person wants it launched whatever policies say.
    var skipsAdmission: Bool?
    var exitRecord: MainExit?
    /// The deadline that was missed last.
    var missed: MissedDeadline?
    /// How it was when it was about to be ended.
    var evidence: Evidence?
    /// Opens the descriptors that it sends to be stored.
    var receiver: DescriptorReceiver?
    /// What waits for that, and when it waits no longer.
    var afterHearing: (until: Duration, work: [() -> Void])?
    /// Looks where its program stands before it is told to end.
    var stackLook: StackLook?
    /// A policy has given it another share of the machine than its state's, for as long as it is in that state.
    var advisedProfile: (state: AppState, profile: AppState)?
    /// What it used when its memory was last lowered to a new limit.
    var loweredFrom: UInt64?
    /// Goes on with that.
    var limitTimer: TimerSource?
    /// What has become of the state archive that it was offered at its launch.
    var restoration: Supervisor.Restoration?
    /// The incarnation of which it was said that its state cannot be saved.
    var stateNotKeptIn: UInt32?
    /// A snapshot of it that is being taken.
    var snapshotRun: SnapshotRun?
    /// When the last one began of this stay in the background.
    var snapshotBegan: Duration?
    /// Its memory is in swap, or on its way there; cleared when it is continued.
    var isPagedOut: Bool?
    /// Why it is told that memory is short: `warning`, `critical` or `limit`.
    var memoryWarning: String?
    /// It was told that it comes near its limit of memory, and still does.
    var isNearLimit: Bool?
    /// Tells that it waits for memory in its own cgroup.
    var pressureSource: (trigger: PressureTrigger, source: IOSource)?
    /// A look at its file locks that is under way.
    var lockLook: LockWatch.Look?
    /// The file locks that it had when it was last looked at.
    var locks: [HeldLock]?
    /// Those of them with which it was not left suspended.
    var locksInTheWay: [LockInTheWay]?
    /// Looks once a second whether the debugger has let go.
    var tracerTimer: TimerSource?
    /// What it is told on its socket, and says there.
    var channel: AppChannel?
    /// What it shall open.
    var url: String?
    /// What it was woken by, until it runs.
    var pendingWake: PendingWake?
    /// When events woke it.
    var wakes: WakeLedger?
    /// A policy has it ended.
    var isEndedByPolicy: Bool?
    /// It was evicted for its memory, or killed in its sleep, and not because anybody wanted it to end.
    var wasCutShort: Bool?
    /// It was killed in its sleep by another process: one that runs would be restarted.
    var wasKilledAsleep: Bool?
    /// The topics that it asked for when it ran.
    var subscriptions: [String: TopicRule]?
    /// What was last kept of its tasks, holds and messages.
    var ledger: [UInt8]?
}

extension AppRuntime: OutputCaptureDelegate {
    func outputLog(_ capture: OutputCapture) -> LogFile { supervisor.logFile(of: self) }

    func outputArrived(_ capture: OutputCapture) { supervisor.outputArrived(self) }

    func outputRenewed(_ capture: OutputCapture) {
        if let descriptor = capture.descriptorToHold { supervisor.hold(HeldName.output(name), descriptor) }
    }

    func outputTroubled(_ capture: OutputCapture, _ sentence: String) {
        supervisor.log.warning("\(name): \(sentence)")
    }
}
