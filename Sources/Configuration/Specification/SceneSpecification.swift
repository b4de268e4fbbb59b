// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Linux

/// The table `scenes`. An app with this table is a template, which is never launched itself: each of its scenes becomes
/// an app when the scene is opened. With `inside`, the app is not a template, and its scenes are in its own processes.
public struct SceneSpecification: Sendable, Hashable {
    /// Whether the scenes are in the app's own processes, so that the app is not a template.
    public var isInside = false
    /// The maximum number of live scenes; `nil` for no limit. A live scene has a process or a connection.
    public var maxLive: Int?
    /// The maximum number of scenes, live or not.
    public var maxSessions = 1_000
    /// How long a scene without a process or connection is kept before it is discarded; `nil` for no limit.
    public var discardAfter: Duration?

    /// Which users may open scenes.
    public var openedBy: SceneOpener = .operators

    /// With `inside`: whether each scene has its own cgroup, for processes that work only for that scene.
    public var hasCgroups = false

    /// Creates a specification with default values.
    public init() {}
}

/// The values of `scenes.opened_by`: which users may open scenes, besides root and the supervisor's own user.
public enum SceneOpener: String, Sendable, Hashable, CaseIterable {
    /// Only users who may change apps (`operators`).
    case operators
    /// Operators, and users who may post to apps (`posters`). Posters open scenes only in the background and without
    /// session data.
    case posters
}

/// Reads `scenes`, and checks that the app's other keys are compatible with it.
enum SceneReader {
    static let keys: [Key<SceneSpecification>] = [
        .value("inside", \.isInside, Read.boolean),
        .optional("max_live", \.maxLive, Read.integer(1...10_000)),
        .value("max_sessions", \.maxSessions, Read.integer(1...10_000)),
        .value("discard_after", \.discardAfter, Read.deadline),
        .value("opened_by", \.openedBy) { Read.choice($0, $1) },
        .value("cgroups", \.hasCgroups, Read.boolean),
    ]

    /// The members of `scenes` as texts, to compare and show them in a diff.
    @Sendable static func written(_ scenes: SceneSpecification) -> [String: String] {
        var members = ["inside": "\(scenes.isInside)", "max_sessions": "\(scenes.maxSessions)"]
        members["opened_by"] = scenes.openedBy.rawValue
        members["cgroups"] = "\(scenes.hasCgroups)"
        members["max_live"] = scenes.maxLive.written
        members["discard_after"] = scenes.discardAfter.written
        return members
    }

    /// Makes the checks that compare `scenes` with other keys of the app.
    static func check(_ draft: AppDraft) {
        guard let scenes = draft.specification.scenes ?? draft.specification.innerScenes else { return }
        let app = draft.specification
        if draft.instances != nil {
            draft.error("instances", "an app has instances or scenes, not both: scenes are made when they are opened")
        }
        if let most = scenes.maxLive, most > scenes.maxSessions {
            draft.error("scenes", "max_live must not be more than max_sessions (\(scenes.maxSessions))")
        }
        if scenes.hasCgroups, !scenes.isInside {
            draft.error("scenes", "cgroups is for scenes inside one process (inside = true): others have one anyway")
        } else if scenes.hasCgroups, app.rules.backgroundTime == nil {
            draft.warning(
                "scenes",
                "cgroups are never frozen while background_time is \"none\": set it to a duration"
            )
        }
        if scenes.isInside {
            if app.rules.exitsOnSuspend {
                draft.error(
                    "exits_on_suspend",
                    "an app with scenes inside keeps running when they leave the foreground: remove it"
                )
            }
            if app.rules.isOneshot { draft.error("type", "a oneshot app cannot have scenes") }
        } else if let origin = draft.origins["launch"], !origin.context.path.hasPrefix("defaults."),
            app.launch != .onDemand
        {
            draft.error("launch", "scenes are launched when they are opened: remove it, or write \"on-demand\"")
        }
        if app.name.utf8.count > AppName.longestTemplate {
            draft.origin.error(
                "the name of an app with scenes has at most \(AppName.longestTemplate) characters, "
                    + "since a scene's name follows it"
            )
        }
    }

    /// Makes the checks that need the finished template, with its sockets.
    static func check(_ app: AppSpecification, _ draft: AppDraft) {
        guard app.innerScenes == nil else {
            if app.rules.readiness != .delegate {
                draft.error("scenes", "only the delegate of an app hears of scenes inside: write ready = \"delegate\"")
            }
            return
        }
        for socket in app.sockets {
            let text = socket.template?.text ?? "\(socket.plan.address)"
            if socket.plan.address.isInternet || !Placeholder.isForScene(text) {
                draft.error(
                    "sockets",
                    "\(quoted(text)) would be the same address for every scene: write a Unix socket with %s (the "
                        + "scene's name) in its path, and let a reverse proxy choose by name (docs/scenes.md)"
                )
            } else if let link = socket.symlinks.first(where: { !Placeholder.isForScene($0) }) {
                draft.error("sockets", "\(quoted(link)) would be the same symlink for every scene: put %s into it")
            }
        }
        let texts =
            app.exec + Array(app.environment.values) + [app.directory].compactMap { $0 }
            + app.environmentFiles.map(\.path) + app.beforeStart.flatMap(\.command) + (app.container?.texts ?? [])
        // `cgroups` without `inside` is already reported as an error. The user probably wanted scenes inside the app,
        // so do not also report that the scenes of the template do not differ.
        if app.scenes?.hasCgroups == false, app.sockets.isEmpty, !app.data.isWanted,
            !texts.contains(where: Placeholder.isForScene)
        {
            draft.warning(
                "exec",
                "does not contain %s, so its scenes differ only in $TORPOR_SCENE: put %s where a scene's name belongs"
            )
        }
    }
}

extension AppName {
    /// The maximum length of a template's name in bytes, so that there is room for the scene's name. Both names and the
    /// @ between them may have at most 63 bytes together.
    static let longestTemplate = 40
}

extension TorporConfiguration {
    /// The template with this name; `nil` if there is none.
    public func template(named name: String) -> AppSpecification? { templates.first { $0.name == name } }
}
