// SPDX-License-Identifier: Apache-2.0

/// A set of actions that were decided but perhaps not carried out. If the supervisor dies before it carries them out,
/// the next supervisor repeats them.
///
/// Launches, SIGSTOPs and SIGKILLs in progress are not in the set, because the phase of ``AppMachine`` records them.
public struct ActionMask: OptionSet, Hashable, Sendable {
    /// Bits 0 to 7 stand for actions. Bits 16 to 31 stand for messages: the message with record code n has bit 16 + n.
    public let rawValue: UInt32

    /// A mask with these raw bits.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// torpord still has to send `stop_signal`.
    public static let signalStop = ActionMask(rawValue: 1 << 0)
    /// torpord still has to send `watchdog_signal`.
    public static let signalWatchdog = ActionMask(rawValue: 1 << 1)
    /// torpord still has to continue every process of the app (SIGCONT or freezer).
    public static let continueProcesses = ActionMask(rawValue: 1 << 2)
    /// torpord still has to send SIGTERM to the processes that the app's main process left behind when it exited.
    public static let endRemains = ActionMask(rawValue: 1 << 3)
    /// torpord still has to record how the incarnation (the app's run from launch to exit) ended.
    public static let ended = ActionMask(rawValue: 1 << 4)

    /// The bit of `action`. Empty if the action needs no bit, because the phase of ``AppMachine`` or the app's message
    /// queue records the action, or because a new supervisor need not repeat it.
    public init(_ action: Action) {
        switch action {
        case .signalStop: self = .signalStop
        case .signalWatchdog: self = .signalWatchdog
        case .continueProcesses: self = .continueProcesses
        case .endRemains: self = .endRemains
        case .ended: self = .ended
        case .tell(let message): self.init(message)
        case .warn: self.init(.taskExpiring)
        // Messages to scenes need no bit: the app's message queue stores these messages.
        case .launch, .stopProcesses, .killProcesses, .entered, .report, .requestLaunch, .askForAdmission,
            .askForMemory, .takeSnapshot, .tellScene:
            self = []
        }
    }

    /// The bit of `message`; empty for a message whose record code is 16 or more, because the app's mailbox or message
    /// queue stores such a message.
    private init(_ message: Message) {
        self.init(rawValue: message.recordCode < 16 ? 1 << (16 + UInt32(message.recordCode)) : 0)
    }

    /// The messages in the mask.
    public var messages: [Message] {
        if rawValue >> 16 == 0 { return [] }
        return Message.allCases.filter { !ActionMask($0).isEmpty && contains(ActionMask($0)) }
    }
}

extension AppMachine {
    /// The actions that a new supervisor must carry out when it takes over the app from a supervisor that died. These
    /// are the actions of `undone` that still make sense, and the actions that were in progress. The old supervisor may
    /// already have carried out any of them.
    ///
    /// If a launch is in progress and torpord knows no process of it, the result contains this launch. Before the
    /// launch is repeated, the caller must check that the first attempt has left no process.
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

    /// How to launch the current incarnation (run of the app), while its launch is in progress.
    public var launchOrder: LaunchOrder {
        LaunchOrder(
            incarnation: incarnation,
            foreground: launchInForeground,
            reason: launchReason,
            previousEnding: lastEnding
        )
    }

    /// Repeats a launch that may or may not have created a process. The launch gets a new incarnation number, because
    /// the first attempt may have created a process that exited unnoticed, and no two processes may share a number.
    /// Returns no action if the app is not being launched, or has a process.
    public mutating func repeatLaunch() -> [Action] {
        guard case .launching(let launching) = phase, !launching.hasProcess else { return [] }
        incarnation += 1
        return [.launch(launchOrder)]
    }

    /// How the main process of a terminating app ended; nil until that is known, and while the app is not terminating.
    public var exitCause: ExitCause? {
        if case .terminating(let terminating) = phase { return terminating.cause }
        return nil
    }

    /// Whether a process of the current incarnation is known to exist; false until the launch has succeeded.
    public var hasProcess: Bool {
        switch phase {
        case .notRunning: false
        case .launching(let launching): launching.hasProcess
        case .running: true
        case .terminating(let terminating): terminating.hasProcess
        }
    }
}
