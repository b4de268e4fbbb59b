// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import EverydayVerbs
import TorporAPI
import Varlink

/// The scenes inside an app, whose states are exported one by one.
struct ScenesInside {
    /// The full names of the scenes; empty if the app has none, or if the supervisor does not say.
    let names: [String]

    /// - Parameter app: the name of an app, or the full name of a scene.
    init(of app: String, _ manager: Manager) {
        let owner = String(app.prefix { $0 != "@" })
        // The supervisor refuses the call if the app has no scenes.
        guard let reply = try? manager.call(.scenes(template: owner)), let fields = try? Fields(reply),
            let templates = try? fields.list("templates", Self.template),
            templates.contains(where: { $0.name == owner && $0.inside }),
            let scenes = try? fields.list("scenes", Self.scene)
        else {
            names = []
            return
        }
        names = scenes.map(\.app)
    }

    private static func template(_ json: JSON) throws(FieldError) -> SceneTemplateInfo {
        try SceneTemplateInfo(json: json)
    }

    private static func scene(_ json: JSON) throws(FieldError) -> SceneInfo { try SceneInfo(json: json) }

    /// Says that an export of the app does not contain the states of its scenes.
    func warn(of app: String) {
        guard !names.isEmpty, !names.contains(app) else { return }
        let whose = names.count == 1 ? "its scene \(names[0])" : "its \(names.count) scenes"
        Complaint.say(
            "the state of \(app) is without that of \(whose): ‘torpor state export \(app)@NAME’ exports a scene's state",
            .warning
        )
    }
}
