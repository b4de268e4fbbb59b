// SPDX-License-Identifier: Apache-2.0

/// Actions that were decided but perhaps not carried out: if a supervisor dies in between, the next one repeats them.
///
/// Launches, stops and kills under way are left out: the machine's phase records them.
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
    /// SIGTERM has to be sent to the processes that the main process left behind.
    public static let endRemains = ActionMask(rawValue: 1 << 3)
    /// The ending has to be recorded.
    public static let ended = ActionMask(rawValue: 1 << 4)

    /// The bits of `action`; empty if a new supervisor need not repeat it.
    public init(_ action: Action) {
        switch action {
        case .signalStop: self = .signalStop
        case .signalWatchdog: self = .signalWatchdog
        case .continueProcesses: self = .continueProcesses
        case .endRemains: self = .endRemains
        case .ended: self = .ended
        case .tell(let message): self.init(message)
        case .warn: self.init(.taskExpiring)
        // Messages to scenes need no bit: they wait in the app's message queue.
        case .launch, .stopProcesses, .killProcesses, .entered, .report, .requestLaunch, .askForAdmission,
            .askForMemory, .takeSnapshot, .tellScene:
            self = []
        }
    }

    /// A message whose record code is 16 or more has no bit: it waits in the app's mailbox or message queue.
    private init(_ message: Message) {
        self.init(rawValue: message.recordCode < 16 ? 1 << (16 + UInt32(message.recordCode)) : 0)
    }

    /// The messages in the mask.
    public var messages: [Message] {
        Message.allCases.filter { !ActionMask($0).isEmpty && contains(ActionMask($0)) }
    }
}

extension AppMachine {
    /// What a new supervisor has to do after it takes over an app in this state from one that died: `undone` as far
    /// as it still makes sense, and what the phase says is under way. Every action may have been carried out already.
    ///
    /// A launch without a known process is repeated, so the caller must first check that the process does not exist.
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

    /// Repeats a launch that may or may not have created a process (which may have come and gone unseen). It gets a
    /// new incarnation number, so that no two runs share one.
    public mutating func repeatLaunch() -> [Action] {
        guard case .launching(let launching) = phase, !launching.hasProcess else { return [] }
        incarnation += 1
        return [.launch(launchOrder)]
    }

    /// How the main process of the terminating incarnation ended; nil until that is known.
    public var exitCause: ExitCause? {
        if case .terminating(let terminating) = phase { return terminating.cause }
        return nil
    }

    /// Whether a process of the incarnation is known to exist; false until its launch has succeeded.
    public var hasProcess: Bool {
        switch phase {
        case .notRunning: false
        case .launching(let launching): launching.hasProcess
        case .running: true
        case .terminating(let terminating): terminating.hasProcess
        }
    }
}
