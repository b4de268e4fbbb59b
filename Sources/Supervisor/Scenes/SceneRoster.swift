// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Lifecycle
import Linux
package import Varlink

/// A session of a scene: that it was opened, and what it was opened with. It outlives the scene's processes, torpord and
/// boots.
package struct SceneSession: Sendable, Hashable {
    /// The scene's full name, `TEMPLATE@NAME`; it is that of an app, except where the scene is inside one.
    package let app: String
    /// The app that the scene is made of, or is inside.
    package let template: String
    package let name: String
    /// What it was opened with first; null for nothing.
    package var options: JSON = .null
    /// When it was opened first, microseconds since 1970.
    package var openedAt: Int64
    /// When its template was first found missing, microseconds since 1970; nil while there is one.
    package var templateGoneAt: Int64?
    /// It is being removed, and comes back no more.
    package var isDiscarded = false
    /// It was opened as a scene inside an app.
    package var isInside = false
    /// Where it is wanted inside its app; nil for unattached, and for a scene that is an app.
    package var goal: SceneGoal?
    /// It was in the foreground inside its app when that left it last, or ended, and comes back with it.
    package var returns = false
    /// It was connected inside its app at some time.
    package var wasConnected = false
    /// When it had a process last, or was opened, microseconds since 1970. It is the time of the file.
    package var usedAt: Int64

    /// Bytes of `options`, serialised.
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

/// The sessions on the disk: `STATE/scenes`, a file each.
struct SceneFolder: Sendable {
    let path: String

    init(state: String) { path = state + "/scenes" }

    private func file(_ app: String) -> String { path + "/" + app }

    /// What files are called that are being written begins with it: no app's name does.
    private static let draft = "."

    /// All sessions; what is said of those whose files cannot be read. What has no name of a scene is none.
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
            // What was being written when a torpord died: nobody was told that it is there.
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

    /// Writes one; durable when it returns. One that could not be written is as it was, or is not there.
    func write(_ session: SceneSession) throws(Errno) {
        try File.makeDirectories(path, mode: 0o700)
        let draft = file(Self.draft + session.app)
        try File.replace(file(session.app), session.document.serialised(), mode: 0o600, sync: true, draft: draft)
        try Folder(path).synchronise()
    }

    /// Notes that it was in use now.
    func touch(_ app: String) throws(Errno) { try File.markChanged(file(app)) }

    /// Removes one; durable when it returns.
    func remove(_ app: String) throws(Errno) {
        do throws(Errno) {
            try File.remove(file(app))
        } catch {
            if error != .noSuchFileOrDirectory { throw error }
        }
        try Folder(path).synchronise()
    }
}

/// Which scenes there are: with the configuration it says which apps there are.
package final class SceneRoster {
    let folder: SceneFolder
    /// By the names of their apps.
    private(set) var sessions: [String: SceneSession] = [:]
    /// How many of each template there are that are not being discarded.
    private(set) var counts: [String: Int] = [:]
    /// What could not be read of them, in sentences.
    let troubles: [String]

    /// Reads them from the disk.
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

    /// A configuration with the scenes of its templates among its apps; those inside apps are none. Those whose template it does not have are among them
    /// too, as apps that nothing launches: their mail and their state wait for the template.
    package func complete(_ configuration: TorporConfiguration) -> TorporConfiguration {
        guard !sessions.isEmpty else { return configuration }
        let templates = Dictionary(configuration.templates.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
        let taken = Set(configuration.apps.map(\.name))
        let owners = Set(configuration.apps.filter { $0.innerScenes != nil }.map(\.name))
        var result = configuration
        for session in sessions.values.sorted(by: { $0.app < $1.app })
        where !session.isDiscarded && !taken.contains(session.app) && !owners.contains(session.template) {
            // One that was inside an app is none itself, unless that has become a template.
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
    /// A scene whose template is not in the configuration.
    init(withoutTemplate app: String, _ template: String, _ scene: String) {
        self.init(name: app)
        self.template = template
        self.scene = scene
        exec = ["/nonexistent"]
        self.launch = .onDemand
        self.rules.restart = .never
    }

    /// Whether it is a scene without its template: nothing launches it.
    package var lacksTemplate: Bool { scene != nil && self.scenes == nil }
}
