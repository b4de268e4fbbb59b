// SPDX-License-Identifier: Apache-2.0

import Configuration
import EventLoop
import Lifecycle
import Linux
import Processes
import TorporAPI

/// What the shell has of one run of an app. It goes with the run, so that nothing of it can be found in the next one.
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

    /// What rooms keep with it.
    var slots = Slots()
}

/// How far it has come with stopping an app's processes.
enum StopProgress {
    case none
    /// Decided; what may be in its way is looked at first.
    case decided
    /// They are being stopped.
    case underWay
}

extension Incarnation {
    /// Sees the end of a main process that the app named itself.
    var mainSource: IOSource? {
        get { slots[MainSourceSlot.self] }
        set { slots[MainSourceSlot.self] = newValue }
    }

    var statusText: String? {
        get { slots[StatusTextSlot.self] }
        set { slots[StatusTextSlot.self] = newValue }
    }

    var saidErrno: Int32? {
        get { slots[SaidErrnoSlot.self] }
        set { slots[SaidErrnoSlot.self] = newValue }
    }

    var launchFailure: LaunchFailure? {
        get { slots[LaunchFailureSlot.self] }
        set { slots[LaunchFailureSlot.self] = newValue }
    }

    /// Why the last launch came to nothing, in a sentence.
    var refusal: String? {
        get { slots[RefusalSlot.self] }
        set { slots[RefusalSlot.self] = newValue }
    }

    var exitRecord: MainExit? {
        get { slots[ExitRecordSlot.self] }
        set { slots[ExitRecordSlot.self] = newValue }
    }

    /// The deadline that was missed last.
    var missed: MissedDeadline? {
        get { slots[MissedSlot.self] }
        set { slots[MissedSlot.self] = newValue }
    }

    /// How it was when it was about to be ended.
    var evidence: Evidence? {
        get { slots[EvidenceSlot.self] }
        set { slots[EvidenceSlot.self] = newValue }
    }

    /// A policy has given it another share of the machine than its state's, for as long as it is in that state.
    var advisedProfile: (state: AppState, profile: AppState)? {
        get { slots[AdvisedProfileSlot.self] }
        set { slots[AdvisedProfileSlot.self] = newValue }
    }
}

private enum MainSourceSlot: Slot { typealias Value = IOSource }
private enum StatusTextSlot: Slot { typealias Value = String }
private enum SaidErrnoSlot: Slot { typealias Value = Int32 }
private enum LaunchFailureSlot: Slot { typealias Value = LaunchFailure }
private enum RefusalSlot: Slot { typealias Value = String }
private enum ExitRecordSlot: Slot { typealias Value = MainExit }
private enum MissedSlot: Slot { typealias Value = MissedDeadline }
private enum EvidenceSlot: Slot { typealias Value = Evidence }
private enum AdvisedProfileSlot: Slot { typealias Value = (state: AppState, profile: AppState) }
