// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Lifecycle
import Linux
import Supervisor
import TorporAPI
import VarlinkServer

/// Restarts apps at a user's request.
extension ControlService {
    /// The result for an app whose restart is not waited for. The process that it has now is about to end, so that its
    /// pid would mislead the client.
    func resultOfBegunRestart(_ app: AppRuntime) -> VerbResult {
        var begun = result(app, ok: true, "is being restarted")
        begun.pid = nil
        return begun
    }

    /// Carries out a Restart. Apps that run, but could not be launched again, are not ended, unless the request has
    /// `force`.
    func restart(_ request: VerbRequest, _ selected: [AppRuntime], for peer: Peer, _ reply: Reply) {
        let ended = selected.filter { app in
            coordinator.machine(app.id).isAlive && app.tokens.standing(of: request.token) == .unknown
        }
        guard !request.force, !ended.isEmpty else { return carryOut(request, selected, for: peer, reply) }
        let before = ended.map { ($0, coordinator.machine($0.id)) }
        findObstacles(ended.map { $0.next ?? $0.specification }) { [weak self] obstacles in
            guard let self else { return }
            var refusals = obstacles.mapValues {
                "is not restarted, since it could not be launched again: \($0) (‘--force’ restarts it all the same)"
            }
            // An app may have been removed from the configuration by now.
            let left = selected.filter { app in self.apps.contains { $0 === app } }
            for (app, before) in before where left.contains(where: { $0 === app }) {
                // If another request for the app came in between, that later request takes precedence: do not restart
                // the app. Another restart asks for the same, so this one joins or follows it.
                let machine = self.coordinator.machine(app.id)
                guard machine.goalGeneration != before.goalGeneration, machine.goal != before.goal else { continue }
                refusals[app.name] = "is not restarted: another request came in between"
            }
            self.carryOut(request, left, refusals: refusals, for: peer, reply)
        }
    }
}
