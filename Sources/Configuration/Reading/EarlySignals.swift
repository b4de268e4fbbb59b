// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Linux

/// Warns about messages that may reach a program as a signal before the program has a handler for it. With
/// `ready = "exec"`, torpord sends messages right after the execve(2), when every signal still has its default action,
/// and the default action of most signals ends the process (signal(7)).
enum EarlySignals {
    /// The messages that an app may get as soon as it is ready: the last step of a launch, or what it was launched for.
    private static let early: Set<Message> = [
        .willFinishLaunching, .restoreState, .didFinishLaunching, .didBecomeActive, .didEnterBackground, .openURL,
        .performFetch, .didReceiveEvent, .didReceiveNotification, .didReceiveRemoteNotification,
        .didReceiveLocalNotification, .handleEventsForBackgroundTransfer, .refresh, .willContinueActivity,
        .continueActivity,
    ]

    /// The signals whose default action does not end a process.
    private static let harmless = Set(["CHLD", "CONT", "URG", "WINCH"].compactMap { Signal.number(named: $0) })

    static func check(_ app: AppSpecification, _ draft: AppDraft) {
        guard app.ready == .exec, app.container == nil, !app.rules.isOneshot else { return }
        let fatal = app.signals.filter { early.contains($0.key) && !harmless.contains($0.value) }
        guard let first = fatal.min(by: { $0.key.rawValue < $1.key.rawValue }) else { return }
        draft.warning(
            "signals",
            "\(Signal.name(first.value)) (\(first.key.rawValue)) may reach the program before it has a handler, and "
                + "ends it then: with ready = \"exec\" a message may come right after the launch. Write ready = "
                + "\"notify\", and have the program send READY=1 once it has its handlers; or a probe (ready)"
        )
    }
}
