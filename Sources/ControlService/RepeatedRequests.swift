// SPDX-License-Identifier: Apache-2.0

import Engine
import Lifecycle
import Supervisor
import TorporAPI

/// Requests that a client repeats after a lost connection. This torpord or an earlier one has carried them out before,
/// so now they only wait for the result.
extension ControlService {
    /// The item of a repeated request: what the request waits for, given the app's current state.
    func repeated(_ request: VerbRequest, _ app: AppRuntime) -> PendingCall.Item {
        let machine = coordinator.machine(app.id)
        var item = PendingCall.Item(
            app: app.id,
            target: targetAgain(request, app, machine),
            incarnation: machine.incarnation,
            // These verbs set the app's goal to not running. If the goal is different now, a newer request has set it:
            // use -1, a generation that never matches, so that the newer goal is noticed.
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
        case .start where request.standby: return .goal(.suspended)
        case .start:
            let isElsewhere = request.background && machine.goal != .notRunning
            return .goal(isElsewhere ? machine.goal : request.background ? .background : .active)
        case .foreground: return .goal(.active)
        case .stop, .kill, .disconnect, .discard: return .gone
        case .restart:
            // If the app's restart has not ended the old incarnation yet, wait for the next one. Otherwise the
            // current incarnation is already the new one, so wait for that.
            let isOld =
                coordinator.isHeld(app.id) || machine.isWaitingForPermission || machine.transition == .terminating
            return .newIncarnation(
                after: isOld || machine.incarnation == 0 ? machine.incarnation : machine.incarnation - 1
            )
        case .background, .resume: return .goal(.background)
        case .suspend: return .goal(.suspended)
        case .interrupt: return .interruption(of: machine.goal)
        // A `wait` never gets here: it has no token, so it never counts as repeated.
        case .disown: return machine.isAlive ? .standingBy(gone: request.stop) : .done
        case .reset, .hold, .wait, .own: return .done
        }
    }

    /// The result of a repeated request if the app ended between the two requests; nil otherwise.
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
