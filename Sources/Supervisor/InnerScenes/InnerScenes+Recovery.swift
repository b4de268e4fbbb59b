// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Lifecycle

/// Keeps the scenes inside apps when torpord or the machine is restarted.
extension InnerScenes {
    /// What the next torpord needs to know about the scenes of an app.
    func ledger(of app: AppRuntime) -> [SceneEntry] {
        var entries: [SceneEntry] = []
        for scene in machine(app).sceneMachines {
            guard let name = names[scene.id] else { continue }
            var entry = SceneEntry(name: name, scene: scene)
            entry.isRestoring = restoring[app.id] == scene.id
            entries.append(entry)
        }
        return entries
    }

    /// The full name, `APP@NAME`, of the scene with that number; nil if the number belongs to no scene.
    func fullName(of scene: SceneID) -> String? { names[scene] }

    /// Restores the scenes that an earlier torpord stored. `isOver`: the launch of the app that the entries belong to
    /// has ended by now.
    func restore(_ entries: [SceneEntry], isOver: Bool, of app: AppRuntime) {
        for entry in entries { take(entry.scene.id, for: entry.name) }
        if !isOver, let entry = entries.first(where: \.isRestoring) { restoring[app.id] = entry.scene.id }
        if !isOver, let entry = entries.first(where: { $0.scene.awaiting == .sceneWillConnect }) {
            connecting[app.id] = entry.scene.id
        }
        let scenes = entries.map { isOver ? SceneMachine(wanting: $0.scene) : $0.scene }
        coordinator.restore(app.id, scenes: scenes, now: now)
    }

    /// Gives the core the scenes that were connected, or about to be connected, when the supervisor ended.
    func begin() {
        for session in roster.sessions.values where session.isDiscarded && owner(named: session.template) != nil {
            leaving.insert(session.app)
        }
        for app in owners {
            var scenes = machine(app).sceneMachines
            let known = Set(scenes.map(\.id))
            if !machine(app).isAlive || machine(app).isWaitingToLaunch {
                for session in sessions(of: app) {
                    guard let goal = session.goal, !known.contains(number(of: session.app)) else { continue }
                    scenes.append(SceneMachine(id: number(of: session.app), goal: goal, returns: session.returns))
                }
            }
            if scenes.count > known.count { coordinator.restore(app.id, scenes: scenes, now: now) }
            seen[app.id] = machine(app).sceneMachines
        }
        for app in apps where machine(app).isAlive && machine(app).rules.hasScenes {
            // Include apps whose configuration no longer permits scenes inside: while these apps run, they still show
            // their scenes.
            seen[app.id] = machine(app).sceneMachines
            cgroups.adopt(of: app)
            cgroups.look(at: app)
            deliver(.scenesRestored, to: app.id)
        }
        engine.whenStarted { [weak self] in
            guard let self else { return }
            // If an app neither runs nor is about to be launched, drop the goals of its scenes, so that a later launch
            // does not connect these scenes. Their sessions remain.
            for app in owners
            where !machine(app).isAlive && !machine(app).isWaitingToLaunch && !coordinator.isHeld(app.id) {
                coordinator.restore(app.id, scenes: [], now: now)
                look(at: app)
            }
            configure()
            discardNow(leaving.sorted())
        }
    }
}
