// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import EventLoop
public import Lifecycle
import Linux
package import Notify
public import Output
package import Processes
package import TorporAPI
package import VarlinkServer

/// What torpord stores for one app, except for the app's lifecycle state, which the coordinator stores.
public final class AppRuntime {
    /// The app's index in the coordinator and in the table of apps.
    public let id: AppID
    private unowned let owner: any OutputOwner
    /// The configuration with which the running incarnation was launched, plus later changes that could be applied
    /// without a new launch. While the app does not run, its current configuration.
    package var specification: AppSpecification { didSet { specificationNumber &+= 1 } }
    /// Whether the running incarnation was launched with an older configuration than the current one.
    package var isOutdated: Bool { outdatedDigest != nil }
    /// The current run of the app, which may be launching or terminating; empty if there is none.
    package var run = Incarnation()

    /// Fires at the next deadline of the app's lifecycle machine.
    var deadlineTimer: TimerSource?
    @OptionallyPacked var armedFor: Duration? = nil

    package var notifySocket: NotifySocket?
    package var notifySource: IOSource?
    /// The server of the app's own socket (`TORPOR_APP_SOCKET`).
    package var server: VarlinkServer?
    package var store = FDStore()
    package var storeCount = 0
    package var capture: OutputCapture?

    /// Exits of the incarnation's processes. torpor-keeper stores them too until torpord has recorded the
    /// incarnation's end.
    package var keptExits: [ExitRecord] = []
    package var reports: [Report] = []
    /// When the transition in `counted` began.
    @Packed var countedSince: Duration = .zero
    /// Values that other parts of torpord store with the app.
    package var slots = Slots()
    /// Counts about the app since this torpord started.
    package var counters = AppCounters()
    /// The index of the app's record in the recovery file.
    package var slot: Int?

    // The small values are last, so that they take little memory together.

    /// When the app last entered each state, and when it was last used.
    package var times = StateTimes()
    /// Whether the configuration contains the app; set by ``AppTable``.
    package internal(set) var isListed = false
    /// Whether the app waits in the queue of apps whose CPU and memory limits have to be set for a new state.
    package var isInProfileQueue = false
    /// Whether the app's notify socket is being read. While it is, a nested call must not read it.
    package var isHearing = false
    /// Whether a background thread is checking for the file of the app's readiness probe. While it is, no other check
    /// may start.
    package var isLookedAt = false
    package var lastState: AppState = .notRunning
    /// The transition that was last announced to clients, to detect changes.
    package var announced: Transition?
    /// The transition whose duration is being measured.
    var counted: Transition?
    /// Limits how many log entries below the level `warning` the app's events may cause.
    var room = LogRoom()
    /// Limits how many log entries the app's events of one kind may cause at the level `warning` or above.
    var problemRooms: [EventKind: LogRoom] = [:]
    /// Increases with each change of `specification`, so that others can detect that it has changed.
    package private(set) var specificationNumber: UInt32 = 0
    /// Actions that the lifecycle core has decided for the app, but that torpord has not carried out yet.
    package var undone: ActionMask = []

    package var name: String { specification.name }

    /// Why the app's last run ended; nil if unknown.
    var lastReason: TerminationReason? { lastExit.flatMap { TerminationReason(rawValue: $0.reason) } }

    /// - Parameter owner: receives the output of the app.
    package init(id: AppID, specification: AppSpecification, owner: any OutputOwner) {
        self.id = id
        self.specification = specification
        self.owner = owner
    }
}

/// Receives what apps write to standard output and standard error.
package protocol OutputOwner: AnyObject {
    func logFile(of app: AppRuntime) -> LogFile
    /// Called when the app has written output, which is now in its log.
    func outputArrived(_ app: AppRuntime)
    /// Gives torpor-keeper a copy of a descriptor, because torpord's own descriptors are lost when torpord dies.
    func hold(_ name: String, _ descriptor: Int32)
    /// Called when output of the app cannot be stored, and when it can be again.
    func outputTroubled(_ app: AppRuntime, _ sentence: String)
}

extension AppRuntime: OutputCaptureDelegate {
    /// The log file for the app's output.
    public func outputLog(_ capture: OutputCapture) -> LogFile { owner.logFile(of: self) }

    /// Passes on that the app has written output, which is now in its log.
    public func outputArrived(_ capture: OutputCapture) { owner.outputArrived(self) }

    /// Gives torpor-keeper the new descriptor of the app's output.
    public func outputRenewed(_ capture: OutputCapture) {
        if let descriptor = capture.descriptorToHold { owner.hold(DescriptorName.output(name), descriptor) }
    }

    /// Passes on that output of the app cannot be stored, or that it can be again.
    public func outputTroubled(_ capture: OutputCapture, _ sentence: String) { owner.outputTroubled(self, sentence) }
}

extension AppRuntime {
    /// The app's current configuration, if its running incarnation still uses an older one; otherwise nil.
    package var next: AppSpecification? {
        get { slots[NextSlot.self] }
        set {
            let launched = newValue == nil ? nil : slots[LaunchDigestSlot.self] ?? specification.launchDigest
            slots[LaunchDigestSlot.self] = launched
            slots[NextSlot.self] = newValue
        }
    }

    /// The `launchDigest` of the older configuration with which an earlier torpord launched the app; nil if there is
    /// none. The digest is all that this torpord knows of that configuration. The value is 0 if not even the digest is
    /// known.
    package var recoveredDigest: UInt64? {
        get { slots[RecoveredDigestSlot.self] }
        set { slots[RecoveredDigestSlot.self] = newValue }
    }

    /// The `launchDigest` of the configuration with which the running incarnation was launched; nil if that is the
    /// current one.
    package var outdatedDigest: UInt64? { recoveredDigest ?? slots[LaunchDigestSlot.self] }

    /// Whether an earlier torpord launched the running incarnation with an outdated configuration that has the same
    /// launch settings as `other`. Launch settings are the settings that take effect only at a launch.
    package func wasLaunched(with other: AppSpecification) -> Bool {
        recoveredDigest.map { $0 == other.launchDigest } ?? false
    }

    /// The specification of the last run of an app that has gone down, if an apply has brought another since, which only
    /// a launch puts into effect: the launch that ‘torpor apply --restart’ makes up for. Only its digest outlives
    /// torpord (``lastLaunchDigest``).
    package var lastLaunched: AppSpecification? {
        get { slots[LastLaunchedSlot.self] }
        set {
            slots[LastLaunchedSlot.self] = newValue
            slots[LastLaunchDigestSlot.self] = newValue?.launchDigest
        }
    }

    /// The `launchDigest` of ``lastLaunched``. If an earlier torpord has applied the newer configuration, the digest is
    /// all that is known of the last run's specification.
    package var lastLaunchDigest: UInt64? { slots[LastLaunchDigestSlot.self] }

    /// Whether only ``lastLaunchDigest`` is known of the specification of the last run.
    package var isLastLaunchRecovered: Bool { lastLaunched == nil && lastLaunchDigest != nil }

    /// Sets all that is known of the last run's specification, after an earlier torpord has applied another.
    package func recoverLastLaunch(_ digest: UInt64?) {
        lastLaunched = nil
        slots[LastLaunchDigestSlot.self] = digest
    }

    package var lastExit: LastExit? {
        get { slots[LastExitSlot.self] }
        set { slots[LastExitSlot.self] = newValue }
    }

    /// How the app's last run ended, also as text; pending requests that wait for the app return it.
    package var lastEnding: (ending: Ending, text: String)? {
        get { slots[LastEndingSlot.self] }
        set { slots[LastEndingSlot.self] = newValue }
    }

    /// Why the app's launch is delayed: a policy, too little memory, the limit of live scenes, or locked protected
    /// data; nil if none of these delays it.
    package var heldBack: String? {
        get { slots[HeldBackSlot.self] }
        set { slots[HeldBackSlot.self] = newValue }
    }

    /// Whether a user forced the app's launch (`torpor start --force`), so that it waits neither for a policy nor for
    /// memory.
    package var skipsAdmission: Bool? {
        get { slots[SkipsAdmissionSlot.self] }
        set { slots[SkipsAdmissionSlot.self] = newValue }
    }

    /// Why the app is sent didReceiveMemoryWarning: `warning`, `critical` or `limit`.
    package var memoryWarning: String? {
        get { slots[MemoryWarningSlot.self] }
        set { slots[MemoryWarningSlot.self] = newValue }
    }

    /// Whether a policy is terminating the app.
    package var isEndedByPolicy: Bool? {
        get { slots[IsEndedByPolicySlot.self] }
        set { slots[IsEndedByPolicySlot.self] = newValue }
    }

    /// Whether the app's last run was ended by an eviction or by a kill while suspended, and no policy asked for that.
    package var wasCutShort: Bool? {
        get { slots[WasCutShortSlot.self] }
        set { slots[WasCutShortSlot.self] = newValue }
    }

    /// Whether another process, or the kernel, killed the app while it was suspended. Such a kill counts as an
    /// eviction, so the app's restart policy does not restart it.
    package var wasKilledAsleep: Bool? {
        get { slots[WasKilledAsleepSlot.self] }
        set { slots[WasKilledAsleepSlot.self] = newValue }
    }

    /// The name of the policy that sent the app away from the foreground; empty if an earlier torpord followed that
    /// policy. Nil if no policy did, if the app has returned, or if a user has requested a state since. A run that
    /// takes the place of another goes where that one was sent.
    package var sentAwayBy: String? {
        get { slots[SentAwayBySlot.self] }
        set { slots[SentAwayBySlot.self] = newValue }
    }

    /// The policy whose advice was followed last, and the number of the goal that the app had before
    /// (``AppMachine/goalGeneration``).
    package var lastAdvice: (policy: String, replacing: Int)? {
        get { slots[LastAdviceSlot.self] }
        set { slots[LastAdviceSlot.self] = newValue }
    }
}

private enum LastAdviceSlot: Slot { typealias Value = (policy: String, replacing: Int) }
private enum NextSlot: Slot { typealias Value = AppSpecification }
private enum LastLaunchedSlot: Slot { typealias Value = AppSpecification }
private enum LastLaunchDigestSlot: Slot { typealias Value = UInt64 }
private enum LaunchDigestSlot: Slot { typealias Value = UInt64 }
private enum RecoveredDigestSlot: Slot { typealias Value = UInt64 }
private enum LastExitSlot: Slot { typealias Value = LastExit }
private enum LastEndingSlot: Slot { typealias Value = (ending: Ending, text: String) }
private enum HeldBackSlot: Slot { typealias Value = String }
private enum SkipsAdmissionSlot: Slot { typealias Value = Bool }
private enum MemoryWarningSlot: Slot { typealias Value = String }
private enum IsEndedByPolicySlot: Slot { typealias Value = Bool }
private enum WasCutShortSlot: Slot { typealias Value = Bool }
private enum WasKilledAsleepSlot: Slot { typealias Value = Bool }
private enum SentAwayBySlot: Slot { typealias Value = String }
