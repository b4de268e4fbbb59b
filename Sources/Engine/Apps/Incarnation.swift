// SPDX-License-Identifier: Apache-2.0

import Configuration
package import EventLoop
package import Lifecycle
import Linux
package import Processes
import TorporAPI

/// What the shell stores for one run of an app. It is dropped with the run, so nothing leaks into the next one.
package final class Incarnation {
    /// The processes of the incarnation, from exec to end.
    package var tree: ProcessTree?
    /// When its launch began.
    package var launchedAt: Duration?
    package var stop = StopProgress.none
    /// The signal of the last message sent since it was continued.
    package var told: Int32?
    /// It is suspended by freezing its cgroup.
    package var freezes = false
    /// Repeats stop and kill passes while they are under way.
    package var passTimer: TimerSource?
    package var passDelay: Duration = .milliseconds(1)
    /// The state whose share of the machine this incarnation got last; nil if it still has its initial one.
    package var profileState: AppState?
    /// The resource usage of all its processes, as last read.
    package var usage = Usage.none { didSet { mostMemory = max(mostMemory, usage.memoryBytes) } }
    /// The highest memory usage read in this run.
    package private(set) var mostMemory: UInt64 = 0
    /// When usage was last read for a list.
    package var sampledAt: Duration?
    /// The app sent RELOADING=1 and no READY=1 since.
    package var isReloading = false
    /// The history of this incarnation, for its termination report.
    package var timeline = Timeline()

    /// Values that rooms store with the run.
    package var slots = Slots()

    /// A run of which nothing is known yet.
    package init() {}
}

/// The progress of stopping an app's processes.
package enum StopProgress {
    case none
    /// Decided; what may prevent it is checked first.
    case decided
    /// The processes are being stopped.
    case underWay
}

extension Incarnation {
    /// Watches for the exit of a main process that the app named itself.
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

    /// Why the last launch failed, as a sentence.
    package var refusal: String? {
        get { slots[RefusalSlot.self] }
        set { slots[RefusalSlot.self] = newValue }
    }

    package var exitRecord: MainExit? {
        get { slots[ExitRecordSlot.self] }
        set { slots[ExitRecordSlot.self] = newValue }
    }

    /// The last missed deadline.
    package var missed: MissedDeadline? {
        get { slots[MissedSlot.self] }
        set { slots[MissedSlot.self] = newValue }
    }

    /// Its state just before it was terminated.
    package var crashSnapshot: CrashSnapshot? {
        get { slots[CrashSnapshotSlot.self] }
        set { slots[CrashSnapshotSlot.self] = newValue }
    }

    /// A policy gave it the share of another state, for as long as it stays in its own state.
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
