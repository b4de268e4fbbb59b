// SPDX-License-Identifier: Apache-2.0

import Lifecycle

/// What an app makes of what it hears of its scenes.
extension ModelApp {
    /// Takes in a message: one that cannot come now is a violation.
    mutating func hear(_ message: Message, of id: SceneID) throws(Violation) {
        // One that connects is in the background or inactive from its answer on.
        let isConnecting = connecting.remove(id) != nil
        let known = scenes[id] ?? .unattached
        switch (known, message) {
        case (.unattached, .sceneWillConnect) where !isConnecting: connecting.insert(id)
        case (.background, .sceneWillEnterForeground): scenes[id] = .inactive
        case (.background, .sceneDidEnterBackground): break  // It saves again before a suspension.
        case (.background, .sceneDidDisconnect): scenes[id] = nil
        case (.inactive, .sceneDidBecomeActive): scenes[id] = .active
        case (.inactive, .sceneDidEnterBackground): scenes[id] = .background
        case (.active, .sceneWillResignActive): scenes[id] = .inactive
        case (.unattached, .sceneDidBecomeActive) where isConnecting: scenes[id] = .active
        case (.unattached, .sceneDidEnterBackground) where isConnecting: scenes[id] = .background
        case (.unattached, .sceneWillEnterForeground) where isConnecting: scenes[id] = .inactive
        case (.unattached, .sceneDidDisconnect) where isConnecting: scenes[id] = nil
        default: throw Violation("scene \(id) is \(known), and told \(message)")
        }
    }

    /// Whether what the machine says of scenes fits the app, and what the app has heard.
    mutating func checkScenes(_ machine: AppMachine) throws(Violation) {
        let all = machine.sceneMachines
        if !machine.isAlive || machine.transition == .launching,
            let scene = all.first(where: { $0.state != .unattached })
        {
            throw Violation("scene \(scene.id) is \(scene.state) of an app that does not run")
        }
        let asked = all.filter { $0.awaiting != nil }
        if asked.count > 1 { throw Violation("\(asked.count) scenes are asked at once") }
        if let scene = asked.first, machine.state == .suspended || machine.transition == .suspending || stopped {
            throw Violation("scene \(scene.id) is asked while the app is being stopped")
        }
        guard machine.isAlive, machine.transition != .terminating else { return }
        let nearest = Self.nearest(machine.state)
        for scene in all {
            if machine.transition == nil, scene.state > nearest {
                throw Violation("scene \(scene.id) is \(scene.state) of an app that is \(machine.state)")
            }
            guard scene.awaiting == nil else { continue }
            if connecting.remove(scene.id) != nil, scene.state != .unattached { scenes[scene.id] = scene.state }
            // Nobody tells an app that does not listen.
            if !machine.hasDelegate { scenes[scene.id] = scene.state == .unattached ? nil : scene.state }
            guard scenes[scene.id] ?? .unattached == scene.state else {
                throw Violation(
                    "scene \(scene.id) is \(scene.state), but was told \(String(describing: scenes[scene.id]))"
                )
            }
        }
        connecting = connecting.filter { id in all.contains { $0.id == id && $0.awaiting != nil } }
        for id in scenes.keys where !all.contains(where: { $0.id == id }) {
            if machine.hasDelegate { throw Violation("scene \(id) is forgotten, and was told nothing") }
            scenes[id] = nil
        }
    }

    private static func nearest(_ state: AppState) -> SceneState {
        switch state {
        case .active: .active
        case .inactive: .inactive
        case .background, .suspended: .background
        case .notRunning: .unattached
        }
    }

    /// Whether nothing is to be told any more, and the app is where its scenes want it.
    func areScenesQuiet(_ machine: AppMachine) -> Bool {
        guard machine.rules.hasScenes else { return true }
        let nearest = Self.nearest(machine.state)
        return machine.sceneMachines.allSatisfy { $0.awaiting == nil && $0.state == min($0.goal.state, nearest) }
            && (machine.goal == .active) == machine.hasSceneInForeground
    }
}
