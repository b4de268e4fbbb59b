// SPDX-License-Identifier: Apache-2.0

import Engine
import Lifecycle

/// Why no event launches the app until a user starts it, or until this machine owns it.
package enum WakeBlock: String {
    case stopped
    case forceQuit = "force-quit"
    case failed
    case unowned

    /// The reason as text that follows the app's name.
    package var text: String {
        switch self {
        case .stopped: "was stopped"
        case .forceQuit: "was force-quit"
        case .failed: "has failed"
        case .unowned: "is not owned by this machine"
        }
    }
}

extension AppMachine {
    /// Why no event launches the app until a user starts it or this machine owns it; nil if events may launch it.
    /// Timers also launch an app that has failed (``blocksTimers``).
    package var blocksWaking: WakeBlock? {
        if !mayRun { return .unowned }
        if failed { return .failed }
        if isForceQuit { return .forceQuit }
        return isStopped ? .stopped : nil
    }

    /// Why no timer launches the app until a user starts it or this machine owns it; nil if timers may launch it.
    package var blocksTimers: WakeBlock? {
        if !mayRun { return .unowned }
        if isForceQuit { return .forceQuit }
        return isStopped ? .stopped : nil
    }
}
