// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Lifecycle
import Linux
import Processes
import Recovery

/// The main app (`[supervisor] main`): when it ends, the supervisor ends with its exit status.
///
/// The core reports when the app has ended for good. The recovery file contains two more facts: the exit status of the
/// app's last ending, which is written before the ending itself is recorded, and whether that ending counts. So
/// whenever torpord dies, the next torpord ends with the same exit status.
extension Shutdown {
    /// The main app; nil if none is configured.
    var mainApp: AppID? { supervisor.configuration.supervisor.main.flatMap { coordinator.id(of: $0) } }

    /// Updates the main app's two facts in the recovery file from the core's actions, before these actions are recorded
    /// and carried out: an ending sets the exit status; a launch or an ending makes the ending count.
    func noteMain(_ outputs: [AppAction]) {
        guard let main = mainApp else { return }
        for output in outputs where output.app == main {
            switch output.action {
            case .launch: supervisor.recovery.isMainCounted = true
            case .ended(let ending):
                supervisor.recovery.mainStatus = MainStatus.of(ending, apps[main].run.launchFailure)
                supervisor.recovery.isMainCounted = true
            case .tell, .tellScene, .warn, .signalStop, .signalWatchdog, .stopProcesses, .continueProcesses,
                .killProcesses,
                .endRemains,
                .entered, .report, .requestLaunch, .askForAdmission, .askForMemory, .takeSnapshot:
                break
            }
        }
    }

    /// Called before the main app changes to another app or to none. Earlier endings of the new main app do not count:
    /// only endings of its later runs do.
    package func mainChanges(to name: String?) {
        guard name != supervisor.configuration.supervisor.main else { return }
        supervisor.recovery.isMainCounted = false
        supervisor.recovery.mainStatus = nil
    }

    /// The main app, if it must be launched although it has ended. This happens if torpord and torpor-keeper were both
    /// lost after the ending: a supervisor that is then started begins the main app's work again.
    var mainAtStart: [(app: AppID, foreground: Bool)] {
        guard supervisor.keeper.instance == 1, !supervisor.recovery.isShuttingDown, let main = mainApp,
            coordinator.isOver(main),
            coordinator.machine(main).goalGeneration > 0
        else { return [] }
        supervisor.recovery.isMainCounted = false
        switch apps[main].specification.launch {
        case .foreground: return [(main, true)]
        case .background: return [(main, false)]
        case .onDemand: return []
        }
    }

    /// Ends everything once the main app has ended for good.
    func followMain() {
        guard isStarted, !isEnding, let main = mainApp else { return }
        guard coordinator.isOver(main) else {
            if !supervisor.recovery.isMainCounted { supervisor.recovery.isMainCounted = true }
            return
        }
        guard supervisor.recovery.isMainCounted else { return }
        let name = apps[main].name
        note(.stopping, text: "\(name), the main app, has ended for good: every app is terminated")
        begin()
    }

    var exitStatus: Int32 {
        guard supervisor.configuration.supervisor.main != nil else { return 0 }
        // torpord was stopped before the main app had ended: report a failure, since the app's work was not completed.
        return supervisor.recovery.mainStatus ?? MainStatus.signal + Signal.terminate
    }
}

/// Maps an ending to an exit status, by the convention of shells.
enum MainStatus {
    static let signal: Int32 = 128
    private static let notFound: Int32 = 127
    private static let notExecutable: Int32 = 126
    private static let failure: Int32 = 1

    /// The status of the main process, or 128 + the number of the signal that ended it. If no process was launched:
    /// 127 if the program was not found, 126 if it cannot be executed, otherwise 1. An ending that counts as a
    /// failure is never 0.
    static func of(_ ending: Ending, _ launchFailure: LaunchFailure?) -> Int32 {
        let status: Int32
        switch ending.cause {
        case .exited(let code): status = code & 0xff
        case .signaled(let number, _): status = signal + number
        case .outOfMemory, .memoryLimit: status = signal + Signal.kill
        case .unknown: status = failure
        case nil:
            if ending.reason.wasAskedFor { return signal + Signal.terminate }
            guard let launchFailure, launchFailure.stage == .exec else { return failure }
            return launchFailure.errno == .noSuchFileOrDirectory ? notFound : notExecutable
        }
        return status == 0 && ending.reason.isFailure ? failure : status
    }
}

extension RecoveryFile {
    /// Whether the main app was launched, or was ready, since it became the main app. Its ending counts only then.
    var isMainCounted: Bool {
        get { flags & 2 != 0 }
        set { flags = newValue ? flags | 2 : flags & ~2 }
    }

    /// The exit status of the main app's last ending; nil if it has not ended since it became the main app.
    var mainStatus: Int32? {
        get { verdict == 0 ? nil : Int32(clamping: verdict) - 1 }
        set { verdict = newValue.map { UInt32(clamping: $0) + 1 } ?? 0 }
    }
}
