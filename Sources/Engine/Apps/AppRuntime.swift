// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import EventLoop
package import Lifecycle
import Linux
package import Notify
package import Output
package import Processes
package import TorporAPI
package import VarlinkServer

/// What the shell stores for one app. The app's lifecycle state belongs to the coordinator.
package final class AppRuntime {
    package let id: AppID
    private unowned let owner: any OutputOwner
    /// Its configuration: that of the running incarnation, if there is one, with the changes that applied at once.
    package var specification: AppSpecification { didSet { specificationNumber &+= 1 } }
    /// Increases with each change of the specification.
    package private(set) var specificationNumber: UInt32 = 0
    /// Whether the configuration has it; set by ``AppTable``.
    package internal(set) var isListed = false
    /// An earlier torpord launched it with an older configuration, which is not known any more.
    package var isOutdatedSinceRecovery = false
    /// Whether a running incarnation was launched with an older configuration.
    package var isOutdated: Bool { next != nil || isOutdatedSinceRecovery }
    /// The current run, which may be launching or terminating; empty if there is none.
    package var run = Incarnation()

    /// Fires at the machine's next deadline.
    var deadlineTimer: TimerSource?
    var armedFor: Duration?
    /// It is queued to get its share of CPU and memory.
    package var isInProfileQueue = false

    package var notifySocket: NotifySocket?
    package var notifySource: IOSource?
    /// The app's own socket.
    package var server: VarlinkServer?
    /// Its notify socket is being read: must not be read again from within.
    package var isHearing = false
    /// A check for the file that says that the app is ready is under way.
    package var isLookedAt = false
    package var store = FDStore()
    package var storeCount = 0
    package var capture: OutputCapture?

    /// Its place in the recovery file.
    package var slot: Int?
    /// Actions that were decided but not carried out yet.
    package var undone: ActionMask = []
    /// Exits of this incarnation that the keeper stores until its ending is recorded.
    package var keptExits: [ExitRecord] = []

    /// When it last entered each state, and when it was last used.
    package var times = StateTimes()
    package var reports: [Report] = []
    /// The transition that was last announced, to detect changes.
    package var announced: Transition?
    /// The transition that is being timed, and when it began.
    var counted: (transition: Transition, began: Duration)?
    /// Counts since this torpord started.
    package var counters = AppCounters()
    /// The budget of its log entries.
    var room = LogRoom()
    package var lastState: AppState = .notRunning

    package var name: String { specification.name }

    /// Why its last run ended; nil if unknown.
    var lastReason: TerminationReason? { lastExit.flatMap { TerminationReason(rawValue: $0.reason) } }

    /// Values that rooms store with the app.
    package var slots = Slots()

    /// - Parameter owner: receives its output.
    package init(id: AppID, specification: AppSpecification, owner: any OutputOwner) {
        self.id = id
        self.specification = specification
        self.owner = owner
    }
}

/// Receives the output of apps.
package protocol OutputOwner: AnyObject {
    func logFile(of app: AppRuntime) -> LogFile
    /// New output is in the log.
    func outputArrived(_ app: AppRuntime)
    /// Gives a copy of a descriptor to the keeper.
    func hold(_ name: String, _ descriptor: Int32)
    func warn(_ sentence: String)
}

extension AppRuntime: OutputCaptureDelegate {
    package func outputLog(_ capture: OutputCapture) -> LogFile { owner.logFile(of: self) }

    package func outputArrived(_ capture: OutputCapture) { owner.outputArrived(self) }

    package func outputRenewed(_ capture: OutputCapture) {
        if let descriptor = capture.descriptorToHold { owner.hold(DescriptorName.output(name), descriptor) }
    }

    package func outputTroubled(_ capture: OutputCapture, _ sentence: String) { owner.warn("\(name): \(sentence)") }
}

extension AppRuntime {
    /// The current configuration, if a running incarnation still uses an older one.
    package var next: AppSpecification? {
        get { slots[NextSlot.self] }
        set { slots[NextSlot.self] = newValue }
    }

    package var lastExit: LastExit? {
        get { slots[LastExitSlot.self] }
        set { slots[LastExitSlot.self] = newValue }
    }

    /// How its last run ended, also as text, for requests that wait for the app.
    package var lastEnding: (ending: Ending, text: String)? {
        get { slots[LastEndingSlot.self] }
        set { slots[LastEndingSlot.self] = newValue }
    }

    /// Why a policy does not let it launch yet.
    package var heldBack: String? {
        get { slots[HeldBackSlot.self] }
        set { slots[HeldBackSlot.self] = newValue }
    }

    /// A user wants it launched, whatever policies say.
    package var skipsAdmission: Bool? {
        get { slots[SkipsAdmissionSlot.self] }
        set { slots[SkipsAdmissionSlot.self] = newValue }
    }

    /// Why it is sent didReceiveMemoryWarning: `warning`, `critical` or `limit`.
    package var memoryWarning: String? {
        get { slots[MemoryWarningSlot.self] }
        set { slots[MemoryWarningSlot.self] = newValue }
    }

    /// A policy is terminating it.
    package var isEndedByPolicy: Bool? {
        get { slots[IsEndedByPolicySlot.self] }
        set { slots[IsEndedByPolicySlot.self] = newValue }
    }

    /// It was evicted for its memory or killed while suspended, not terminated on request.
    package var wasCutShort: Bool? {
        get { slots[WasCutShortSlot.self] }
        set { slots[WasCutShortSlot.self] = newValue }
    }

    /// Another process killed it while it was suspended; if it had been running, it would be restarted.
    package var wasKilledAsleep: Bool? {
        get { slots[WasKilledAsleepSlot.self] }
        set { slots[WasKilledAsleepSlot.self] = newValue }
    }
}

private enum NextSlot: Slot { typealias Value = AppSpecification }
private enum LastExitSlot: Slot { typealias Value = LastExit }
private enum LastEndingSlot: Slot { typealias Value = (ending: Ending, text: String) }
private enum HeldBackSlot: Slot { typealias Value = String }
private enum SkipsAdmissionSlot: Slot { typealias Value = Bool }
private enum MemoryWarningSlot: Slot { typealias Value = String }
private enum IsEndedByPolicySlot: Slot { typealias Value = Bool }
private enum WasCutShortSlot: Slot { typealias Value = Bool }
private enum WasKilledAsleepSlot: Slot { typealias Value = Bool }
