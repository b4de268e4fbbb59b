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
    private unowned let owner: any OutputOwner
    /// What it goes by: of an incarnation that lives, what it was launched with and what can change under it.
    var specification: AppSpecification
    /// Whether the configuration has it; ``AppTable`` says so.
    var isListed = false
    /// An earlier torpord launched it by an older configuration, of which nothing more is known.
    var isOutdatedSinceRecovery = false
    /// Whether an incarnation that lives was launched by an older configuration.
    var isOutdated: Bool { self.next != nil || isOutdatedSinceRecovery }
    /// The run that is under way, or is being ended or launched; with nothing in it while there is none.
    var run = Incarnation()

    /// Wakes the machine at its next deadline.
    var deadlineTimer: TimerSource?
    var armedFor: Duration?
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

    /// When it last came into each state, and when it was last used.
    var times = StateTimes()
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

    var name: String { specification.name }

    /// Why its last run ended, where that is known.
    var lastReason: TerminationReason? { self.lastExit.flatMap { TerminationReason(rawValue: $0.reason) } }

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

    /// - Parameter owner: what its output is handed to.
    init(id: AppID, specification: AppSpecification, owner: any OutputOwner) {
        self.id = id
        self.specification = specification
        self.owner = owner
    }
}

/// What most apps have nothing of most of the time: it takes memory only of those that do.
struct AppExtras {
    /// What the configuration says, where an incarnation that lives goes by something older.
    var next: AppSpecification?
    /// Whom it runs as, and what that follows from, as of its last launch.
    var account: (names: Account.Names, account: Account)?
    /// Something is being read for a launch.
    var reading: LaunchReading?
    /// Its picture is being read for these.
    var iconReplies: [Reply]?
    var hooks: HookRun?
    var lastExit: LastExit?
    /// How its last run ended, and that in words, for those who wait for the app.
    var lastEnding: (ending: Ending, text: String)?
    /// Why a policy holds its launch back.
    var heldBack: String?
    /// A person wants it launched whatever policies say.
    var skipsAdmission: Bool?
    /// Opens the descriptors that it sends to be stored.
    var receiver: DescriptorReceiver?
    /// What waits for that, and when it waits no longer.
    var afterHearing: (until: Duration, work: [() -> Void])?
    /// What has become of the state archive that it was offered at its launch.
    var restoration: Restoration?
    /// A snapshot of it that is being taken.
    var snapshotRun: SnapshotRun?
    /// When the last one began of this stay in the background.
    var snapshotBegan: Duration?
    /// Why it is told that memory is short: `warning`, `critical` or `limit`.
    var memoryWarning: String?
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

/// Takes what apps write.
protocol OutputOwner: AnyObject {
    func logFile(of app: AppRuntime) -> LogFile
    /// It is in the log.
    func outputArrived(_ app: AppRuntime)
    /// Gives a descriptor to the keeper.
    func hold(_ name: String, _ descriptor: Int32)
    func warn(_ sentence: String)
}

extension AppRuntime: OutputCaptureDelegate {
    func outputLog(_ capture: OutputCapture) -> LogFile { owner.logFile(of: self) }

    func outputArrived(_ capture: OutputCapture) { owner.outputArrived(self) }

    func outputRenewed(_ capture: OutputCapture) {
        if let descriptor = capture.descriptorToHold { owner.hold(HeldName.output(name), descriptor) }
    }

    func outputTroubled(_ capture: OutputCapture, _ sentence: String) { owner.warn("\(name): \(sentence)") }
}
