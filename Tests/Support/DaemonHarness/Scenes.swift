// SPDX-License-Identifier: Apache-2.0

import Foundation
package import TorporAPI
import Varlink

extension Daemon {
    /// Opens a scene, and waits until it is there; throws what is said where it is not.
    package func openScene(
        _ name: String,
        of template: String = "code",
        _ change: (inout OpenSceneRequest) -> Void = { _ in }
    ) throws {
        var request = OpenSceneRequest(template: template, name: name)
        change(&request)
        let reply = try call(.openScene(request))
        let result = try VerbResult(json: reply["results"]?.arrayValue?.first ?? .null)
        if !result.ok { throw Trouble(result.message ?? "not opened") }
    }

    package func scenes() throws -> (templates: [SceneTemplateInfo], scenes: [SceneInfo]) {
        let reply = try call(.scenes(template: nil))
        return (
            try (reply["templates"]?.arrayValue ?? []).map { try SceneTemplateInfo(json: $0) },
            try (reply["scenes"]?.arrayValue ?? []).map { try SceneInfo(json: $0) }
        )
    }
}
