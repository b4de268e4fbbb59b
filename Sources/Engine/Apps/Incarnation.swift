// SPDX-License-Identifier: Apache-2.0

import Configuration
package import EventLoop
package import Lifecycle
import Linux
package import Processes
import TorporAPI

/// What torpord stores for one run of an app. It is dropped when the run ends, so nothing leaks into the next one.
package final class Incarnation {
    /// The processes of the run; nil until the app's main process exists.
    package var tree: ProcessTree?
    /// When the launch of the incarnation began.
    @OptionallyPacked package var launchedAt: Duration? = nil
    /// Fires when the next attempt to stop or kill all processes is due.
    package var passTimer: TimerSource?
    @Packed package var passDelay: Duration = .milliseconds(1)
    /// The resource usage of all processes of the incarnation, as last read.
    package var usage = Usage.none { didSet { mostMemory = max(mostMemory, usage.memoryBytes) } }
    /// The highest memory usage that was read in this run, in bytes.
    package private(set) var mostMemory: UInt64 = 0
    /// When the usage was last read for a list of apps.
    @OptionallyPacked package var sampledAt: Duration? = nil
    /// The history of this incarnation, for its termination report.
    package var timeline = Timeline()

    /// Values that other parts of torpord store with the run.
    package var slots = Slots()

    // The small values are last, so that they take little memory together.

    /// The state whose CPU and memory limits were set last; nil if the incarnation still has its initial limits.
    package var profileState: AppState?
    package var stop = StopProgress.none
    /// Whether the app is suspended by freezing its cgroup, rather than by SIGSTOP.
    package var freezes = false
    /// Whether the app has sent RELOADING=1 without a READY=1 after it.
    package var isReloading = false
    /// The last message signal (`signals`) that the app got since it was last continued; nil for none. Before torpord
    /// stops the app, it waits until the app has handled this signal.
    package var told: Int32?

    /// Creates the record of a new run, about which nothing is known yet.
    package init() {}
}

/// How far torpord has got with stopping an app's processes, in order to suspend the app.
package enum StopProgress {
    case none
    /// The stop is decided; first torpord checks for locks or signal handlers that prevent it.
    case decided
    /// The processes are being stopped.
    case underWay
}

extension Incarnation {
    /// Watches for the exit of a main process that the app named itself (MAINPID).
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

    /// Why the launch failed or was refused, as a sentence; nil if it was not.
    package var refusal: String? {
        get { slots[RefusalSlot.self] }
        set { slots[RefusalSlot.self] = newValue }
    }

    package var exitRecord: MainExit? {
        get { slots[ExitRecordSlot.self] }
        set { slots[ExitRecordSlot.self] = newValue }
    }

    /// How many processes were still running when the main process had ended; torpord then asked them to end. Nil if
    /// none were.
    package var remains: Int? {
        get { slots[RemainsSlot.self] }
        set { slots[RemainsSlot.self] = newValue }
    }

    /// The deadline that the app missed last; nil if none.
    package var missed: MissedDeadline? {
        get { slots[MissedSlot.self] }
        set { slots[MissedSlot.self] = newValue }
    }

    /// The state of the app just before it was terminated; nil if it was not read.
    package var crashSnapshot: CrashSnapshot? {
        get { slots[CrashSnapshotSlot.self] }
        set { slots[CrashSnapshotSlot.self] = newValue }
    }

    /// Whether the event that last woke the app came over a socket whose traffic the kernel does not report, such as a
    /// Unix socket. Measurements then do not show whether the app is still in use.
    package var wasWokenUntraced: Bool {
        get { slots[WokenUntracedSlot.self] ?? false }
        set { slots[WokenUntracedSlot.self] = newValue ? true : nil }
    }

    /// The CPU and memory limits that a policy chose for the app: until the app leaves `state`, it has the limits of
    /// the state `profile`. Nil if no policy chose any.
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
private enum RemainsSlot: Slot { typealias Value = Int }
private enum MissedSlot: Slot { typealias Value = MissedDeadline }
private enum CrashSnapshotSlot: Slot { typealias Value = CrashSnapshot }
private enum WokenUntracedSlot: Slot { typealias Value = Bool }
private enum AdvisedProfileSlot: Slot { typealias Value = (state: AppState, profile: AppState) }
