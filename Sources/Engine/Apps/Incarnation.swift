// SPDX-License-Identifier: Apache-2.0

import Configuration
package import EventLoop
package import Lifecycle
import Linux
package import Processes
import TorporAPI

/// What the shell has of one run of an app. It goes with the run, so that nothing of it can be found in the next one.
package final class Incarnation {
    /// The processes of the incarnation, from the exec to the end.
    package var tree: ProcessTree?
    /// When its launch began.
    package var launchedAt: Duration?
    package var stop = StopProgress.none
    /// The signal by which it was told something last, since it goes on.
    package var told: Int32?
    /// It is stopped by freezing its cgroup.
    package var freezes = false
    /// Repeats stop and kill passes while they are under way.
    package var passTimer: TimerSource?
    package var passDelay: Duration = .milliseconds(1)
    /// The state whose share of the machine was given to this incarnation last; nil: none, it has what it was born with.
    package var profileState: AppState?
    /// What all its processes together were last seen to have.
    package var usage = Usage.none { didSet { mostMemory = max(mostMemory, usage.memoryBytes) } }
    /// The most memory that was seen so in this run.
    package private(set) var mostMemory: UInt64 = 0
    /// When that was last read for a list.
    package var sampledAt: Duration?
    /// RELOADING=1 was said, and READY=1 not yet after it.
    package var isReloading = false
    /// A process of the app stopped it from inside or outside, and the supervisor did not.
    package var foundStopped = false
    /// What this incarnation went through.
    package var timeline = Timeline()

    /// What rooms keep with it.
    package var slots = Slots()

    /// Nothing of it is there yet.
    package init() {}
}

/// How far it has come with stopping an app's processes.
package enum StopProgress {
    case none
    /// Decided; what may be in its way is looked at first.
    case decided
    /// They are being stopped.
    case underWay
}

extension Incarnation {
    /// Sees the end of a main process that the app named itself.
    package var mainSource: IOSource? {
        get { slots[MainSourceSlot.self] }
        set { slots[MainSourceSlot.self] = newValue }
    }

    package var statusText: String? {
        get { slots[StatusTextSlot.self] }
        set { slots[StatusTextSlot.self] = newValue }
    }

    package var saidErrno: Int32? {
        get { slots[SaidErrnoSlot.self] }
        set { slots[SaidErrnoSlot.self] = newValue }
    }

    package var launchFailure: LaunchFailure? {
        get { slots[LaunchFailureSlot.self] }
        set { slots[LaunchFailureSlot.self] = newValue }
    }

    /// Why the last launch came to nothing, in a sentence.
    package var refusal: String? {
        get { slots[RefusalSlot.self] }
        set { slots[RefusalSlot.self] = newValue }
    }

    package var exitRecord: MainExit? {
        get { slots[ExitRecordSlot.self] }
        set { slots[ExitRecordSlot.self] = newValue }
    }

    /// The deadline that was missed last.
    package var missed: MissedDeadline? {
        get { slots[MissedSlot.self] }
        set { slots[MissedSlot.self] = newValue }
    }

    /// How it was when it was about to be ended.
    package var crashSnapshot: CrashSnapshot? {
        get { slots[CrashSnapshotSlot.self] }
        set { slots[CrashSnapshotSlot.self] = newValue }
    }

    /// A policy has given it another share of the machine than its state's, for as long as it is in that state.
    package var advisedProfile: (state: AppState, profile: AppState)? {
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
private enum CrashSnapshotSlot: Slot { typealias Value = CrashSnapshot }
private enum AdvisedProfileSlot: Slot { typealias Value = (state: AppState, profile: AppState) }
