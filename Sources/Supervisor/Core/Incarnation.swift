// SPDX-License-Identifier: Apache-2.0

import Configuration
import EventLoop
import Lifecycle
import Linux
import Processes
import TorporAPI

/// What the shell has of one run of an app. It goes with the run, so that nothing of it can be found in the next one.
@dynamicMemberLookup
final class Incarnation {
    /// The processes of the incarnation, from the exec to the end.
    var tree: ProcessTree?
    /// When its launch began.
    var launchedAt: Duration?
    var stop = StopProgress.none
    /// The signal by which it was told something last, since it goes on.
    var told: Int32?
    /// It is stopped by freezing its cgroup.
    var freezes = false
    /// Repeats stop and kill passes while they are under way.
    var passTimer: TimerSource?
    var passDelay: Duration = .milliseconds(1)
    /// The state whose share of the machine was given to this incarnation last; nil: none, it has what it was born with.
    var profileState: AppState?
    /// What all its processes together were last seen to have.
    var usage = Usage.none { didSet { mostMemory = max(mostMemory, usage.memoryBytes) } }
    /// The most memory that was seen so in this run.
    private(set) var mostMemory: UInt64 = 0
    /// When that was last read for a list.
    var sampledAt: Duration?
    /// RELOADING=1 was said, and READY=1 not yet after it.
    var isReloading = false
    /// A process of the app stopped it from inside or outside, and the supervisor did not.
    var foundStopped = false
    /// What this incarnation went through.
    var timeline = Timeline()

    private var extras: Shared<RunExtras>?

    /// One of ``RunExtras``.
    subscript<T>(dynamicMember path: WritableKeyPath<RunExtras, T?>) -> T? {
        get { extras?.value[keyPath: path] }
        set {
            if extras == nil {
                guard newValue != nil else { return }
                extras = Shared(RunExtras())
            }
            extras?.value[keyPath: path] = newValue
        }
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

/// What most runs have nothing of most of the time: it takes memory only of those that do.
struct RunExtras {
    /// Sees the end of a main process that the app named itself.
    var mainSource: IOSource?
    var mainTimer: TimerSource?
    var probe: ReadinessProbe?
    var statusText: String?
    var saidErrno: Int32?
    var launchFailure: LaunchFailure?
    /// Why the last launch came to nothing, in a sentence.
    var refusal: String?
    var exitRecord: MainExit?
    /// The deadline that was missed last.
    var missed: MissedDeadline?
    /// How it was when it was about to be ended.
    var evidence: Evidence?
    /// Looks where its program stands before it is told to end.
    var stackLook: StackLook?
    /// A policy has given it another share of the machine than its state's, for as long as it is in that state.
    var advisedProfile: (state: AppState, profile: AppState)?
    /// What it used when its memory was last lowered to a new limit.
    var loweredFrom: UInt64?
    /// Goes on with that.
    var limitTimer: TimerSource?
    /// The incarnation of which it was said that its state cannot be saved.
    var stateNotKeptIn: UInt32?
    /// Its memory is in swap, or on its way there; cleared when it is continued.
    var isPagedOut: Bool?
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
}
