// SPDX-License-Identifier: Apache-2.0

/// Actions that were decided and perhaps not carried out: what a supervisor that died in between has to repeat.
///
/// Only those that the machine's phase does not tell of by itself. A launch, a stop and a kill under way do.
public struct ActionMask: OptionSet, Hashable, Sendable {
    /// Bits 0 to 7: actions; bits 16 to 31: messages, by their place in records.
    public let rawValue: UInt32

    /// A mask of these bits.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// `stop_signal` has to be sent.
    public static let signalStop = ActionMask(rawValue: 1 << 0)
    /// `watchdog_signal` has to be sent.
    public static let signalWatchdog = ActionMask(rawValue: 1 << 1)
    /// Every process has to be continued.
    public static let continueProcesses = ActionMask(rawValue: 1 << 2)
    /// What the main process left has to be asked to end.
    public static let endRemains = ActionMask(rawValue: 1 << 3)
    /// The ending has to be recorded.
    public static let ended = ActionMask(rawValue: 1 << 4)

    /// What `action` leaves to be repeated.
    public init(_ action: Action) {
        switch action {
        case .signalStop: self = .signalStop
        case .signalWatchdog: self = .signalWatchdog
        case .continueProcesses: self = .continueProcesses
        case .endRemains: self = .endRemains
        case .ended: self = .ended
        case .tell(let message): self.init(message)
        case .warn: self.init(.taskExpiring)
        // What scenes are told waits with all else that the app is told.
        case .launch, .stopProcesses, .killProcesses, .entered, .report, .requestLaunch, .askForAdmission,
            .askForMemory, .takeSnapshot, .tellScene:
            self = []
        }
    }

    /// What the core never tells by itself waits in a mailbox, and has no bit.
    private init(_ message: Message) {
        self.init(rawValue: message.recordCode < 16 ? 1 << (16 + UInt32(message.recordCode)) : 0)
    }

    /// The messages in the mask.
    public var messages: [Message] {
        Message.allCases.filter { !ActionMask($0).isEmpty && contains(ActionMask($0)) }
    }
}

extension AppMachine {
    /// What a supervisor has to do that takes over an app in this state from one that died: `undone` as far as it
    /// still makes sense, and what the phase says is under way. Every action may have been carried out already.
    ///
    /// A launch whose process does not exist is repeated; the caller looks first whether it does.
    public func actionsToRepeat(_ undone: ActionMask) -> [Action] {
        var actions: [Action] = []
        switch phase {
        case .notRunning:
            break
        case .launching(let launching):
            if !launching.hasProcess { actions.append(.launch(launchOrder)) }
        case .running(let running):
            for message in undone.messages {
                if message == .taskExpiring {
                    actions += tasks.filter(\.isWarned).map { .warn($0.token) }
                } else {
                    actions.append(.tell(message))
                }
            }
            if running.edge?.transition == .suspending {
                actions.append(.stopProcesses)
            } else if running.state != .suspended, undone.contains(.continueProcesses) {
                actions.append(.continueProcesses)
            }
            if awaitsSnapshot { actions.append(.takeSnapshot) }
        case .terminating(let terminating):
            guard terminating.hasProcess else { break }
            if terminating.stage == .asked, undone.contains(ActionMask(.tell(.willTerminate))) {
                actions.append(.tell(.willTerminate))
            }
            if undone.contains(.signalStop) { actions.append(.signalStop) }
            if undone.contains(.signalWatchdog) { actions.append(.signalWatchdog) }
            if undone.contains(.continueProcesses) { actions.append(.continueProcesses) }
            if terminating.stage == .killed { actions.append(.killProcesses) }
        }
        return actions
    }

    /// The order for the incarnation that is being launched.
    public var launchOrder: LaunchOrder {
        LaunchOrder(
            incarnation: incarnation,
            foreground: launchInForeground,
            reason: launchReason,
            previousEnding: lastEnding
        )
    }

    /// Makes a launch again of which nobody knows whether a process came of it: one may have come and gone unseen. So
    /// the next is another incarnation, and no number is given to two runs.
    public mutating func repeatLaunch() -> [Action] {
        guard case .launching(let launching) = phase, !launching.hasProcess else { return [] }
        incarnation += 1
        return [.launch(launchOrder)]
    }

    /// How the main process of the incarnation that is ending ended, once that is known.
    public var exitCause: ExitCause? {
        if case .terminating(let terminating) = phase { return terminating.cause }
        return nil
    }

    /// Whether a process of the incarnation exists as far as the machine knows: not while its launch is under way.
    public var hasProcess: Bool {
        switch phase {
        case .notRunning: false
        case .launching(let launching): launching.hasProcess
        case .running: true
        case .terminating(let terminating): terminating.hasProcess
        }
    }
}
