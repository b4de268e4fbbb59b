// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Lifecycle
import Linux
package import Varlink

/// The session of a scene: a record that the scene was opened, with its options. It survives the end of the scene's
/// processes, restarts of torpord and reboots.
package struct SceneSession: Sendable, Hashable {
    /// The scene's full name, `TEMPLATE@NAME`. It is also the name of the scene's app, unless the scene is inside an
    /// app.
    package let app: String
    /// The template that the scene is made of, or the app that the scene is inside.
    package let template: String
    package let name: String
    /// The options with which the scene was first opened; null if there were none.
    package var options: JSON = .null
    /// When the scene was first opened, in microseconds since 1970.
    package var openedAt: Int64
    /// When the scene's template was first found missing, in microseconds since 1970; nil while the template exists.
    package var templateGoneAt: Int64?
    /// Whether the scene is being removed for good.
    package var isDiscarded = false
    /// Whether the scene was opened as a scene inside an app.
    package var isInside = false
    /// The state that a scene inside an app should have. Nil if it need not be connected, and for a scene that is an
    /// app itself.
    package var goal: SceneGoal?
    /// Whether the scene was in the foreground when its app last left the foreground or ended. Such a scene returns to
    /// the foreground together with its app.
    package var returns = false
    /// Whether the scene has ever been connected inside its app.
    package var wasConnected = false
    /// When the scene last had a process, or was opened, in microseconds since 1970. It is stored as the modification
    /// time of the session's file.
    package var usedAt: Int64

    /// The most bytes that `options` may have as JSON text.
    package static let longestOptions = 4096

    init(app: String, template: String, name: String, openedAt: Int64) {
        (self.app, self.template, self.name) = (app, template, name)
        (self.openedAt, usedAt) = (openedAt, openedAt)
    }

    var document: JSON {
        [
            "options": options, "opened_at": .int(openedAt), "template_gone_at": .optional(templateGoneAt),
            "discarded": .bool(isDiscarded), "goal": .optional(goal.map { Int64($0.rawValue) }),
            "connected": .bool(wasConnected), "returns": .bool(returns), "inside": .bool(isInside),
        ]
    }
}

/// The folder `STATE/scenes` with the stored sessions of scenes, one file for each scene.
struct SceneFolder: Sendable {
    let path: String

    init(state: String) { path = state + "/scenes" }

    private func file(_ app: String) -> String { path + "/" + app }

    /// The prefix of files that are being written: no app's name begins with it.
    private static let draft = "."

    /// Reads the sessions of all scenes, and reports those whose files cannot be read. Skips files whose names are not
    /// names of scenes.
    func read() -> (sessions: [SceneSession], troubles: [String]) {
        var sessions: [SceneSession] = []
        var troubles: [String] = []
        let names: [String]
        do throws(Errno) {
            names = try File.list(path)
        } catch {
            if error != .noSuchFileOrDirectory {
                troubles.append("the sessions of scenes in \(path) cannot be read (\(error)): starting without them")
            }
            return ([], troubles)
        }
        for name in names.sorted() {
            // An earlier torpord died while it wrote this file, so no client was told of the scene: remove the file.
            if name.hasPrefix(Self.draft) {
                try? File.remove(file(name))
                continue
            }
            guard let (template, scene) = AppName.sceneParts(name),
                let status = try? File.status(file(name), followLinks: false), status.kind == .regular,
                status.uid == Users.effectiveUID
            else { continue }
            let time = status.modifiedMicroseconds
            var session = SceneSession(app: name, template: template, name: scene, openedAt: time)
            if let bytes = try? File.read(file(name), limit: 64 << 10), let json = try? JSON.parse(bytes),
                json["options"].map({ $0.isNull || $0.objectValue != nil }) ?? true
            {
                session.options = json["options"] ?? .null
                session.openedAt = json["opened_at"]?.intValue ?? time
                session.templateGoneAt = json["template_gone_at"]?.intValue
                session.isDiscarded = json["discarded"]?.boolValue ?? false
                session.goal = json["goal"]?.intValue.flatMap { UInt8(exactly: $0) }.flatMap(SceneGoal.init)
                session.wasConnected = json["connected"]?.boolValue ?? false
                session.returns = json["returns"]?.boolValue ?? false
                session.isInside = json["inside"]?.boolValue ?? false
            } else {
                troubles.append("\(name): its session cannot be read: it continues without its options")
            }
            sessions.append(session)
        }
        return (sessions, troubles)
    }

    /// Writes the session of a scene to disk. The file is durable when this function returns. If writing fails, the
    /// file is unchanged, missing, or written without being durable.
    func write(_ session: SceneSession) throws(Errno) {
        try File.makeDirectories(path, mode: 0o700)
        let draft = file(Self.draft + session.app)
        try File.replace(file(session.app), session.document.serialised(), mode: 0o600, sync: true, draft: draft)
        try Folder(path).synchronise()
    }

    /// Records that the scene is in use now, by setting the modification time of its file.
    func touch(_ app: String) throws(Errno) { try File.markChanged(file(app)) }

    /// Removes the session of a scene from disk. The removal is durable when this function returns.
    func remove(_ app: String) throws(Errno) {
        do throws(Errno) {
            try File.remove(file(app))
        } catch {
            if error != .noSuchFileOrDirectory { throw error }
        }
        try Folder(path).synchronise()
    }
}

/// The scenes that exist. Together with the configuration they define which apps there are.
package final class SceneRoster {
    let folder: SceneFolder
    /// The sessions, by the full names of their scenes.
    private(set) var sessions: [String: SceneSession] = [:]
    /// The number of scenes of each template, without those that are being discarded.
    private(set) var counts: [String: Int] = [:]
    /// Sentences about sessions that could not be read.
    let troubles: [String]

    /// Reads the sessions from disk.
    init(state: String) {
        folder = SceneFolder(state: state)
        let (found, troubles) = folder.read()
        self.troubles = troubles
        for session in found { self[session.app] = session }
    }

    subscript(app: String) -> SceneSession? {
        get { sessions[app] }
        set {
            if let old = sessions[app], !old.isDiscarded { counts[old.template, default: 0] -= 1 }
            if let newValue, !newValue.isDiscarded { counts[newValue.template, default: 0] += 1 }
            sessions[app] = newValue
        }
    }

    /// Adds scenes to the apps of a configuration: each scene of a template is an app, scenes inside apps are not. If a
    /// scene's template is missing, the scene becomes an app that is never launched, so that its mail and saved state
    /// are kept until the template returns.
    package func complete(_ configuration: TorporConfiguration) -> TorporConfiguration {
        guard !sessions.isEmpty else { return configuration }
        let templates = Dictionary(configuration.templates.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
        let taken = Set(configuration.apps.map(\.name))
        let owners = Set(configuration.apps.filter { $0.innerScenes != nil }.map(\.name))
        var result = configuration
        for session in sessions.values.sorted(by: { $0.app < $1.app })
        where !session.isDiscarded && !taken.contains(session.app) && !owners.contains(session.template) {
            // Skip a scene that was opened inside an app, unless that app has become a template.
            if session.isInside, templates[session.template] == nil { continue }
            result.apps.append(
                templates[session.template]?.scene(named: session.name)
                    ?? AppSpecification(withoutTemplate: session.app, session.template, session.name)
            )
        }
        return result
    }
}

extension AppSpecification {
    /// Makes the app for a scene whose template is not in the configuration.
    init(withoutTemplate app: String, _ template: String, _ scene: String) {
        self.init(name: app)
        self.template = template
        self.scene = scene
        exec = ["/nonexistent"]
        self.launch = .onDemand
        self.rules.restart = .never
    }

    /// Whether the app is a scene whose template is missing, so that it is never launched.
    package var lacksTemplate: Bool { scene != nil && self.scenes == nil }
}
