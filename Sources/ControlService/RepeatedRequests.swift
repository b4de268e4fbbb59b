// SPDX-License-Identifier: Apache-2.0

import Engine
import Lifecycle
import Supervisor
import TorporAPI

/// Requests that a client repeats after a lost connection: they were carried out before, perhaps by an earlier
/// torpord, and now only wait.
extension ControlService {
    /// What a repeated request waits for, given the app's current state.
    func repeated(_ request: VerbRequest, _ app: AppRuntime) -> PendingCall.Item {
        let machine = coordinator.machine(app.id)
        var item = PendingCall.Item(
            app: app.id,
            target: targetAgain(request, app, machine),
            incarnation: machine.incarnation,
            // A stop set the goal to not running: another goal now comes from a newer request, so no generation may
            // match.
            generation: [.stop, .kill, .disconnect, .discard].contains(request.verb) ? -1 : machine.goalGeneration
        )
        item.isRepeated = true
        if request.verb == .foreground, let key = request.token?.text {
            item.url = supervisor.mailboxes.url(askedForAs: key, of: app)
        }
        return item
    }

    private func targetAgain(_ request: VerbRequest, _ app: AppRuntime, _ machine: AppMachine) -> PendingCall.Target {
        switch request.verb {
        case .start:
            let isElsewhere = request.background && machine.goal != .notRunning
            return .goal(isElsewhere ? machine.goal : request.background ? .background : .active)
        case .foreground: return .goal(.active)
        case .stop, .kill, .disconnect, .discard: return .gone
        case .restart:
            // As long as the old incarnation has not ended, wait for the next one; after that the current one is the
            // new one.
            let isOld =
                coordinator.isHeld(app.id) || machine.isWaitingForPermission || machine.transition == .terminating
            return .newIncarnation(
                after: isOld || machine.incarnation == 0 ? machine.incarnation : machine.incarnation - 1
            )
        case .background, .resume: return .goal(.background)
        case .suspend: return .goal(.suspended)
        case .interrupt: return .interruption(of: machine.goal)
        // A wait is never taken for a repeated one.
        case .reset, .hold, .wait: return .done
        }
    }

    /// For a repeated request: the result if the app has ended while no torpord observed it for the call.
    func endedUnseen(_ item: PendingCall.Item, _ app: AppRuntime, _ machine: AppMachine) -> VerbResult? {
        guard item.isRepeated, !machine.isAlive, !machine.isWaitingForPermission, let reason = machine.lastEnding,
            !reason.wasAskedFor
        else { return nil }
        return VerbResult(
            app: app.name,
            ok: false,
            state: machine.state.rawValue,
            message: "\(app.name) has ended (\(reason.rawValue))",
            error: reason.rawValue
        )
    }
}
