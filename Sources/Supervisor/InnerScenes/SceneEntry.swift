// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Varlink

/// A scene inside an app, in the form in which the app's ledger file (``ChannelLedger``) stores it for the next
/// torpord.
struct SceneEntry: Hashable {
    /// The scene's full name, `APP@NAME`.
    var name: String
    var scene: SceneMachine
    /// Whether the scene is being connected with its saved state.
    var isRestoring = false

    init(name: String, scene: SceneMachine) { (self.name, self.scene) = (name, scene) }

    /// Reads what ``json`` wrote; nil if the entry is invalid.
    init?(_ json: JSON) {
        func number<Value: RawRepresentable>(_ key: String) -> Value? where Value.RawValue == UInt8 {
            json[key]?.intValue.flatMap { UInt8(exactly: $0) }.flatMap(Value.init)
        }
        guard let name = json["name"]?.stringValue, let id = json["id"]?.intValue.flatMap({ SceneID(exactly: $0) }),
            let state: SceneState = number("state"), let goal: SceneGoal = number("goal")
        else { return nil }
        self.name = name
        scene = SceneMachine(
            id: id,
            state: state,
            goal: goal,
            awaiting: json["awaiting"]?.stringValue.flatMap { Message(rawValue: $0) },
            connectsInForeground: json["foreground"]?.boolValue ?? false,
            returns: json["returns"]?.boolValue ?? false,
            isPrepared: json["prepared"]?.boolValue ?? false
        )
        isRestoring = json["restoring"]?.boolValue ?? false
    }

    var json: JSON {
        [
            "name": .string(name), "id": .int(Int64(scene.id)), "state": .int(Int64(scene.state.rawValue)),
            "goal": .int(Int64(scene.goal.rawValue)), "awaiting": .optional(scene.awaiting?.rawValue),
            "foreground": .bool(scene.connectsInForeground), "returns": .bool(scene.returns),
            "prepared": .bool(scene.isPrepared), "restoring": .bool(isRestoring),
        ]
    }
}
