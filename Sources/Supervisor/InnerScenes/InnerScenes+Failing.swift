// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle

/// Scenes that end their app while it connects them. Each further run would connect them again, and end with all the
/// other scenes of the app.
extension InnerScenes {
    /// How many runs in a row may end while they connect a scene that was connected before. The first of them may have
    /// failed because of the scene's saved state, which the next one does not get, or for another reason.
    private static let mostEnds = 2

    /// Called when an app has ended while it connected a scene. A session that was never connected is discarded, as
    /// after a refusal; another one stays unattached after several such ends.
    func ended(_ app: AppRuntime, connecting scene: SceneID) {
        guard let name = names[scene], let session = roster[name], !session.isDiscarded else { return }
        let count = (ends[scene] ?? 0) + 1
        ends[scene] = count
        let isLast = !session.wasConnected || count >= Self.mostEnds
        let text = "ended while it connected its scene \(name)"
        guard isLast else { return note(app, .lateAnswer, text: text) }
        let remedy = "‘torpor foreground \(name)’ tries again, ‘torpor scene discard \(name)’ removes it"
        let outcome = session.wasConnected ? "; that stays unattached: \(remedy)" : ", which was new, and is removed"
        note(app, .lateAnswer, text: text + outcome)
        refusals[scene] = "\(app.name) ended while it connected it"
        ends[scene] = nil
        // The core still carries out the end of the app. It is told before the next run can connect the scene.
        loop.later { [weak self, weak app] in
            guard let self, let app, let session = roster[name], !session.isDiscarded else { return }
            if let machine = machine(of: scene, app), machine.state == .unattached {
                try? request(.scene(scene, .unattached), of: app.id)
            }
            guard session.wasConnected else { return discard([session]) {} }
            supervisor.scenes.change(name) { session in
                session.goal = nil
                session.returns = false
            }
        }
    }
}
