// SPDX-License-Identifier: Apache-2.0

import Engine
import Lifecycle
import Supervisor
import TorporAPI

/// Requests that are asked again by a client that lost the connection: what they asked for was carried out, maybe by an
/// earlier torpord, and is only waited for.
extension ControlService {
    /// What to wait for, as the app is now.
    func repeated(_ request: VerbRequest, _ app: AppRuntime) -> PendingCall.Item {
        let machine = coordinator.machine(app.id)
        var item = PendingCall.Item(
            app: app.id,
            target: targetAgain(request, app, machine),
            incarnation: machine.incarnation,
            // A stop was the newest request when it was taken: any other goal now is a newer one.
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
            // Until the old incarnation is gone it is the newest.
            let isOld =
                coordinator.isHeld(app.id) || machine.isWaitingForPermission || machine.transition == .terminating
            return .newIncarnation(
                after: isOld || machine.incarnation == 0 ? machine.incarnation : machine.incarnation - 1
            )
        case .background, .resume: return .goal(.background)
        case .suspend: return .goal(.suspended)
        case .interrupt: return .interruption(of: machine.goal)
        case .reset, .hold, .wait: return .done
        }
    }

    /// An incarnation that came and went while nobody looked on behalf of the call.
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
