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

/// What the shell holds for one app: its place in the outside world. Its state is the coordinator's.
package final class AppRuntime {
    package let id: AppID
    private unowned let owner: any OutputOwner
    /// What it goes by: of an incarnation that lives, what it was launched with and what can change under it.
    package var specification: AppSpecification { didSet { specificationNumber &+= 1 } }
    /// Grows with each change of the specification.
    package private(set) var specificationNumber: UInt32 = 0
    /// Whether the configuration has it; ``AppTable`` says so.
    package internal(set) var isListed = false
    /// An earlier torpord launched it by an older configuration, of which nothing more is known.
    package var isOutdatedSinceRecovery = false
    /// Whether an incarnation that lives was launched by an older configuration.
    package var isOutdated: Bool { next != nil || isOutdatedSinceRecovery }
    /// The run that is under way, or is being ended or launched; with nothing in it while there is none.
    package var run = Incarnation()

    /// Wakes the machine at its next deadline.
    var deadlineTimer: TimerSource?
    var armedFor: Duration?
    /// It waits for its share of the machine.
    package var isInProfileQueue = false

    package var notifySocket: NotifySocket?
    package var notifySource: IOSource?
    /// The app's own socket.
    package var server: VarlinkServer?
    /// What waits in the notify socket is being read: what that causes does not read it again.
    package var isHearing = false
    /// Somebody looks for the file that says that it is ready.
    package var isLookedAt = false
    package var store = FDStore()
    package var storeCount = 0
    package var capture: OutputCapture?

    /// Its place in the recovery file.
    package var slot: Int?
    /// What was decided and is not carried out yet.
    package var undone: ActionMask = []
    /// Exits of this incarnation that the keeper keeps until its ending is recorded.
    package var keptExits: [ExitRecord] = []

    /// When it last came into each state, and when it was last used.
    package var times = StateTimes()
    package var reports: [Report] = []
    /// What was last announced, so that a change of it is.
    package var announced: Transition?
    /// The change of state under way that is being timed.
    var counted: (transition: Transition, began: Duration)?
    /// What has happened to it since this torpord was started.
    package var counters = AppCounters()
    /// What the log has room for.
    var room = LogRoom()
    package var lastState: AppState = .notRunning

    package var name: String { specification.name }

    /// Why its last run ended, where that is known.
    var lastReason: TerminationReason? { lastExit.flatMap { TerminationReason(rawValue: $0.reason) } }

    /// What rooms keep with it.
    package var slots = Slots()

    /// - Parameter owner: what its output is handed to.
    package init(id: AppID, specification: AppSpecification, owner: any OutputOwner) {
        self.id = id
        self.specification = specification
        self.owner = owner
    }
}

/// Takes what apps write.
package protocol OutputOwner: AnyObject {
    func logFile(of app: AppRuntime) -> LogFile
    /// It is in the log.
    func outputArrived(_ app: AppRuntime)
    /// Gives a descriptor to the keeper.
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
    /// What the configuration says, where an incarnation that lives goes by something older.
    package var next: AppSpecification? {
        get { slots[NextSlot.self] }
        set { slots[NextSlot.self] = newValue }
    }

    package var lastExit: LastExit? {
        get { slots[LastExitSlot.self] }
        set { slots[LastExitSlot.self] = newValue }
    }

    /// How its last run ended, and that in words, for those who wait for the app.
    package var lastEnding: (ending: Ending, text: String)? {
        get { slots[LastEndingSlot.self] }
        set { slots[LastEndingSlot.self] = newValue }
    }

    /// Why a policy holds its launch back.
    package var heldBack: String? {
        get { slots[HeldBackSlot.self] }
        set { slots[HeldBackSlot.self] = newValue }
    }

    /// A person wants it launched whatever policies say.
    package var skipsAdmission: Bool? {
        get { slots[SkipsAdmissionSlot.self] }
        set { slots[SkipsAdmissionSlot.self] = newValue }
    }

    /// Why it is told that memory is short: `warning`, `critical` or `limit`.
    package var memoryWarning: String? {
        get { slots[MemoryWarningSlot.self] }
        set { slots[MemoryWarningSlot.self] = newValue }
    }

    /// A policy has it ended.
    package var isEndedByPolicy: Bool? {
        get { slots[IsEndedByPolicySlot.self] }
        set { slots[IsEndedByPolicySlot.self] = newValue }
    }

    /// It was evicted for its memory, or killed in its sleep, and not because anybody wanted it to end.
    package var wasCutShort: Bool? {
        get { slots[WasCutShortSlot.self] }
        set { slots[WasCutShortSlot.self] = newValue }
    }

    /// It was killed in its sleep by another process: one that runs would be restarted.
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
